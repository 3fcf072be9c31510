//! The request with which a turn will most likely begin, while its message is still being written.
//!
//! Invariant: put together by what puts the first step together, so that both begin alike; nothing is stored, and no
//! model is asked.

use super::TurnInput;
use super::compose::{SoFar, requested};
use super::exposing::{Offer, asks_first, chosen, offerable, placement, yes_or_no};
use crate::exposure::{ToolExposure, gate, index};
use crate::fit::EarlierTurns;
use crate::message::Message;
use crate::model::{ChatRequest, ToolChoice};
use crate::pointing::keep_pointed_to;
use crate::store::StoreError;

/// The first request of a turn with this input. A conversation that is not stored yet has no history.
pub fn likely_request(input: &TurnInput) -> Result<ChatRequest, StoreError> {
    let begun = input.store.conversation(&input.conversation).is_ok();
    let SoFar { summary, mut messages } = match input.earlier_turns {
        EarlierTurns::Sent if begun => SoFar::of(&input.store, &input.conversation, &input.tools.tools())?,
        EarlierTurns::PointedTo if begun => {
            SoFar::lately(&input.store, &input.conversation, &input.tools.tools())?
        }
        EarlierTurns::Sent | EarlierTurns::PointedTo => SoFar::default(),
    };
    messages.push(Message::User(input.message.clone()));
    if input.earlier_turns == EarlierTurns::PointedTo {
        keep_pointed_to(&mut messages, |message| message);
    }
    let offer = first_offer(input, &messages);
    let request = requested(input, &input.conversation, &offer, summary, messages);
    let tools = offerable(input);
    if !asks(input) || tools.is_empty() {
        return Ok(request);
    }
    let shown = input.exposure.tools == ToolExposure::Always;
    Ok(yes_or_no(request, &gate::needs_tool(&tools, shown)))
}

/// Whether the question if a tool is needed comes first. What has to be called is called without it.
fn asks(input: &TurnInput) -> bool {
    asks_first(input) && matches!(input.first_choice, ToolChoice::Auto | ToolChoice::None)
}

fn first_offer(input: &TurnInput, messages: &[Message]) -> Offer {
    let all = offerable(input);
    if all.is_empty() {
        return Offer { answer: input.answer.clone(), ..Offer::default() };
    }
    let policy = input.exposure.tools;
    let asks = asks(input);
    let choice = chosen(input, &all, messages, &[]);
    let index = choice.needs_index.then(|| index::index(&all));
    let placement = placement(policy);
    if asks && policy != ToolExposure::Always {
        // The question whether a tool is needed comes first, and without definitions.
        return Offer { index, placement, ..Offer::default() };
    }
    Offer { tools: choice.tools, placement, index, ..Offer::default() }
}
