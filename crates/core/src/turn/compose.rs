//! Puts a request together: what is stable first, what changes last.
//!
//! Invariant: the instructions and the history of two steps that follow each other have the same beginning; whatever is
//! only of this step stands behind them. Nothing here is stored.

use super::exposing::Offer;
use super::journal::store_error;
use super::run::Turn;
use crate::event::TurnError;
use crate::fit::{self, EarlierTurns, Shortened};
use crate::history;
use crate::message::{Message, UserMessage};
use crate::model::ChatRequest;
use crate::store::StoredMessage;

/// The history as the model gets it before anything is made to fit.
pub(super) fn history(turn: &Turn) -> Result<Vec<Message>, TurnError> {
    Ok(history::for_request(stored(turn)?.into_iter().map(|stored| stored.message).collect()))
}

/// The stored messages of the active branch.
pub(super) fn stored(turn: &Turn) -> Result<Vec<StoredMessage>, TurnError> {
    turn.input.store.messages(&turn.key.conversation).map_err(|error| store_error(&error))
}

/// A request, and what was left out of it.
pub(super) struct Composed {
    pub request: ChatRequest,
    pub shortened: Vec<Shortened>,
    /// Whether a summary stands for the oldest messages.
    pub summarised: bool,
}

/// The request of a step, with what was cut and summarised before.
pub(super) fn composed(turn: &Turn, offer: &Offer) -> Result<Composed, TurnError> {
    let input = &turn.input;
    let (summary, messages) = fit::summary::applied(turn.summary.as_ref(), stored(turn)?);
    let mut messages = history::for_request(messages.into_iter().map(|stored| stored.message).collect());
    if input.earlier_turns == EarlierTurns::LeftOut {
        let present = messages.iter().rposition(|message| matches!(message, Message::User(_)));
        messages.drain(..present.unwrap_or(0));
    }
    let shortened = fit::shorten::apply(&mut messages, &turn.cuts, &input.tools.tools());
    let summarised = summary.is_some();
    let parts = [input.system.clone(), offer.index.clone(), summary];
    let system: Vec<String> = parts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let mut request = ChatRequest {
        conversation: turn.key.conversation.clone(),
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        messages,
        tools: offer.tools.clone(),
        tool_choice: offer.choice.clone(),
        tool_mode: input.tool_mode,
        tool_placement: offer.placement,
        answer: offer.answer.clone(),
        thinking: input.thinking,
        sampling: input.sampling.clone(),
        ..ChatRequest::default()
    };
    if let Some(last_word) = offer.last_word {
        append(&mut request, last_word);
    }
    Ok(Composed { request, shortened, summarised })
}

/// Says something last: with the user's message when that is the last one, else as a message behind the results, so
/// that these need not be read twice.
pub(super) fn append(request: &mut ChatRequest, text: &str) {
    match request.messages.last() {
        Some(Message::User(_)) | None => request.tail = Some(text.to_owned()),
        Some(Message::Assistant(_) | Message::Tool(_)) => {
            request.messages.push(Message::User(UserMessage::text(text)));
        }
    }
}
