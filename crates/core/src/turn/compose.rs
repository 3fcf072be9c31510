//! Puts a request together: what is stable first, what changes last.
//!
//! Invariant: the instructions and the history of two steps that follow each other have the same beginning; whatever is
//! only of this step stands behind them. Nothing here is stored.

use super::TurnInput;
use super::exposing::Offer;
use super::journal::store_error;
use super::run::Turn;
use crate::event::TurnError;
use crate::fit::{self, EarlierTurns, Shortened};
use crate::history;
use crate::ids::ConversationId;
use crate::message::{Message, UserMessage};
use crate::model::ChatRequest;
use crate::pointing;
use crate::store::{Store, StoreError, StoredMessage, StoredSummary};
use crate::tool::ToolSpec;

/// The history as the model gets it before anything is made to fit.
pub(super) fn history(turn: &Turn) -> Result<Vec<Message>, TurnError> {
    let (_, messages) = stored(turn)?;
    Ok(history::of_stored(messages))
}

/// What the summary says, and the stored messages of the active branch behind it; only those of the present turn and of
/// what it points back to, where others are left out.
pub(super) fn stored(turn: &Turn) -> Result<(Option<String>, Vec<StoredMessage>), TurnError> {
    if turn.input.earlier_turns == EarlierTurns::PointedTo {
        let last = turn.input.store.messages_of_last_turns(&turn.key.conversation, 1 + pointing::TURNS);
        let mut messages = last.map_err(|error| store_error(&error))?;
        pointing::keep_pointed_to(&mut messages, |stored| &stored.message);
        return Ok((None, messages));
    }
    behind(&turn.input.store, &turn.key.conversation, turn.summary.as_ref())
        .map_err(|error| store_error(&error))
}

/// A summary only counts while its last message is on the active branch.
fn behind(
    store: &Store,
    conversation: &ConversationId,
    summary: Option<&StoredSummary>,
) -> Result<(Option<String>, Vec<StoredMessage>), StoreError> {
    let Some(summary) = summary else { return Ok((None, store.messages(conversation)?)) };
    let (messages, found) = store.messages_behind(conversation, &summary.up_to)?;
    Ok((found.then(|| fit::summary::said(&summary.text)), messages))
}

/// What the next request of a conversation begins with, as far as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// Stands in the instructions for the oldest messages.
    pub summary: Option<String>,
    /// The messages behind it, cut as they were.
    pub messages: Vec<Message>,
}

impl SoFar {
    /// Of this conversation, when these tools may be named in what is cut.
    pub fn of(store: &Store, conversation: &ConversationId, tools: &[ToolSpec]) -> Result<Self, StoreError> {
        let (summary, messages) = behind(store, conversation, store.summary(conversation)?.as_ref())?;
        let mut messages = history::of_stored(messages);
        fit::shorten::apply(&mut messages, &store.cuts(conversation)?, tools);
        Ok(Self { summary, messages })
    }

    /// What a question may point back to.
    pub(super) fn lately(
        store: &Store,
        conversation: &ConversationId,
        tools: &[ToolSpec],
    ) -> Result<Self, StoreError> {
        let mut messages = history::of_stored(store.messages_of_last_turns(conversation, pointing::TURNS)?);
        fit::shorten::apply(&mut messages, &store.cuts(conversation)?, tools);
        Ok(Self { summary: None, messages })
    }
}

/// Instructions of these parts, in their order.
pub fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
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
    let (summary, messages) = stored(turn)?;
    let mut messages = history::of_stored(messages);
    let shortened = fit::shorten::apply(&mut messages, &turn.cuts, &input.tools.tools());
    let summarised = summary.is_some();
    let mut request = requested(input, &turn.key.conversation, offer, summary, messages);
    if let Some(last_word) = offer.last_word {
        append(&mut request, last_word);
    }
    Ok(Composed { request, shortened, summarised })
}

/// The request for what a step offers, behind a summary and these messages.
pub(super) fn requested(
    input: &TurnInput,
    conversation: &ConversationId,
    offer: &Offer,
    summary: Option<String>,
    messages: Vec<Message>,
) -> ChatRequest {
    ChatRequest {
        conversation: conversation.clone(),
        system: joined([input.system.clone(), offer.index.clone(), summary]),
        messages,
        tools: offer.tools.clone(),
        tool_choice: offer.choice.clone(),
        tool_mode: input.tool_mode,
        tool_placement: offer.placement,
        answer: offer.answer.clone(),
        thinking: input.thinking,
        sampling: input.sampling.clone(),
        ..ChatRequest::default()
    }
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
