//! With [`ToolExposure::Deciding`] a conversation has two beginnings, one with definitions and one without. What a step
//! adds to one of them is read into the other while a tool runs, or the user reads.
//!
//! Invariant: nothing is stored, told or waited for here; what is read is what the next step will begin with.

use tokio_util::sync::CancellationToken;

use super::compose;
use super::exposing::{Offer, all_tools};
use super::run::Turn;
use crate::exposure::ToolExposure;
use crate::message::{Message, UserMessage};
use crate::model::ChatRequest;

/// Tools run: the model will most likely answer next, without definitions, from what they return.
pub(super) async fn of_answer(turn: &Turn) {
    let Some(mut request) = likely(turn, Offer::default()) else { return };
    // Of calls that ran in this step the results are not there yet; only the first one's beginning is certain.
    let last = request.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let Some(first_result) = last.map(|place| place + 1).filter(|place| *place < request.messages.len())
    else {
        return;
    };
    request.messages.truncate(first_result + 1);
    if let Some(Message::Tool(result)) = request.messages.last_mut() {
        result.content.clear();
    }
    read(turn, request, turn.cancel.child_token());
    // It is to begin before the tools end.
    tokio::task::yield_now().await;
}

/// The turn ends with an answer: the next one begins with definitions.
pub(super) fn of_question(turn: &Turn) {
    let offer = Offer { tools: all_tools(turn), ..Offer::default() };
    let Some(mut request) = likely(turn, offer) else { return };
    request.messages.push(Message::User(UserMessage::text("")));
    // The turn's own word would stop it with the turn.
    read(turn, request, CancellationToken::new());
}

fn likely(turn: &Turn, offer: Offer) -> Option<ChatRequest> {
    let deciding = turn.input.exposure.tools == ToolExposure::Deciding && !all_tools(turn).is_empty();
    // What can't be read now is read by the step.
    deciding.then(|| compose::composed(turn, &offer).ok()).flatten().map(|composed| composed.request)
}

fn read(turn: &Turn, request: ChatRequest, cancel: CancellationToken) {
    drop(tokio::spawn(turn.input.model.prepare(request, cancel)));
}
