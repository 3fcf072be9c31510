//! Finishes the turns that a crash of the app left open.
//!
//! Invariant: afterwards the turn has its `TurnFinished`, and each of its calls exactly one result. A turn of a
//! living process is left alone.

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use super::read::read_event;
use super::write::{TurnWrite, apply};
use super::{Store, StoreError, TurnKey};
use crate::clock;
use crate::event::{Event, EventKind, StepStats, TurnError, TurnOutcome};
use crate::history::LOST_RESULT;
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::message::{AssistantMessage, Message, ToolCall, ToolOutcome, ToolResult};
use crate::model::FinishReason;

impl Store {
    pub(super) fn recover_interrupted(&self) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let open = tx
            .prepare_cached("SELECT id, conversation, instance FROM turns WHERE finished = 0")?
            .query_map([], |row| {
                let key = TurnKey { turn: TurnId(row.get(0)?), conversation: ConversationId(row.get(1)?) };
                Ok((key, row.get::<_, String>(2)?))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        for (key, instance) in open {
            if !self.instance().lives(&instance) {
                repair(&tx, &key)?;
            }
        }
        Ok(tx.commit()?)
    }
}

/// What the store knows of an interrupted turn.
struct Remains {
    events: Vec<Event>,
    draft: Option<(u32, AssistantMessage)>,
    last_seq: u64,
}

/// Finishes one turn.
pub(super) fn repair(tx: &Transaction<'_>, key: &TurnKey) -> Result<(), StoreError> {
    let remains = read(tx, key)?;
    let mut ending = Ending { key, next_seq: remains.last_seq + 1, events: Vec::new(), messages: Vec::new() };
    settle_calls(tx, &remains, &mut ending)?;
    if let Some(step) = open_step(&remains.events) {
        let draft = remains.draft.filter(|(of, _)| *of == step).map(|(_, draft)| draft).unwrap_or_default();
        ending.finish_step(step, draft);
    }
    let outcome = TurnOutcome::Failed { error: TurnError::interrupted() };
    ending.event(EventKind::TurnFinished { outcome });
    let messages = ending.messages.iter().map(|(id, message)| (id, message.clone())).collect();
    apply(tx, key, &TurnWrite { messages, events: &ending.events, drop_draft: true, finished: true })
}

fn read(tx: &Transaction<'_>, key: &TurnKey) -> Result<Remains, StoreError> {
    let turn = key.turn.as_str();
    let events: Vec<Event> = tx
        .prepare_cached("SELECT body FROM events WHERE turn = ?1 ORDER BY seq")?
        .query_map([turn], |row| row.get::<_, String>(0))?
        .filter_map(|body| body.map(|body| read_event(&body)).transpose())
        .collect::<Result<_, _>>()?;
    let draft = tx
        .prepare_cached("SELECT step, seq, body FROM drafts WHERE turn = ?1")?
        .query_row([turn], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)))
        .optional()?;
    let stored: Option<i64> =
        tx.query_row("SELECT max(seq) FROM events WHERE turn = ?1", [turn], |row| row.get(0))?;
    let last_seq = stored.max(draft.as_ref().map(|(_, seq, _)| *seq)).unwrap_or(0).cast_unsigned();
    let draft = draft.and_then(|(step, _, body)| Some((step, serde_json::from_str(&body).ok()?)));
    Ok(Remains { events, draft, last_seq })
}

/// The step that was begun and not finished.
fn open_step(events: &[Event]) -> Option<u32> {
    let mut open = None;
    for event in events {
        if let EventKind::StepStarted { step, .. } = event.kind {
            open = Some(step);
        } else if let EventKind::StepFinished { .. } = event.kind {
            open = None;
        }
    }
    open
}

/// Gives the calls of the last step the results they lack. A result whose event is there but whose message is not
/// (it waited for the ones before it) is taken from the event.
fn settle_calls(tx: &Transaction<'_>, remains: &Remains, ending: &mut Ending<'_>) -> Result<(), StoreError> {
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut finished = Vec::new();
    for event in &remains.events {
        if let EventKind::StepFinished { message, .. } = &event.kind {
            calls = message.tool_calls().cloned().collect();
            finished.clear();
        } else if let EventKind::ToolFinished { message_id, result } = &event.kind {
            finished.push((message_id, result));
        }
    }
    for call in calls {
        match finished.iter().find(|(_, result)| result.call == call.id) {
            Some((id, result)) if !is_stored(tx, id)? => {
                ending.messages.push(((*id).clone(), Message::Tool((*result).clone())));
            }
            Some(_) => {}
            None => ending.lose(&call),
        }
    }
    Ok(())
}

fn is_stored(tx: &Transaction<'_>, id: &MessageId) -> Result<bool, StoreError> {
    Ok(tx.prepare_cached("SELECT 1 FROM messages WHERE id = ?1")?.exists(params![id.as_str()])?)
}

/// What is added to end the turn.
struct Ending<'a> {
    key: &'a TurnKey,
    next_seq: u64,
    events: Vec<Event>,
    messages: Vec<(MessageId, Message)>,
}

impl Ending<'_> {
    fn event(&mut self, kind: EventKind) {
        self.events.push(Event {
            conversation: self.key.conversation.clone(),
            turn: self.key.turn.clone(),
            seq: self.next_seq,
            at: clock::now(),
            kind,
        });
        self.next_seq += 1;
    }

    fn lose(&mut self, call: &ToolCall) {
        let result = ToolResult::of(call, ToolOutcome::Cancelled, LOST_RESULT);
        let message_id = MessageId::fresh();
        self.messages.push((message_id.clone(), Message::Tool(result.clone())));
        self.event(EventKind::ToolFinished { message_id, result });
    }

    fn finish_step(&mut self, step: u32, draft: AssistantMessage) {
        let message = AssistantMessage { incomplete: true, ..draft };
        let message_id = MessageId::fresh();
        self.messages.push((message_id.clone(), Message::Assistant(message.clone())));
        let stats = StepStats::default();
        self.event(EventKind::StepFinished {
            step,
            message_id,
            message,
            finish: FinishReason::Failed,
            stats,
        });
    }
}
