//! Turns: started, followed, stopped, allowed.

use futures::stream;
use lectern_app::view::{Problem, SendReceipt, SendRequest};
use lectern_core::{Events, MessageId, PermissionAnswer, QuestionAnswer, QuestionId, ToolCallId, TurnId};
use tauri::ipc::{Channel, InvokeResponseBody};

use super::Desk;
use crate::bridge::{self, Listening};

/// Takes one message per batch: a JSON array of events.
type Page = Channel<InvokeResponseBody>;

#[tauri::command]
pub async fn send(desk: Desk<'_>, request: SendRequest, on_events: Page) -> Result<SendReceipt, Problem> {
    let engine = desk.engine().await?;
    let receipt = engine.send(request).await?;
    follow(engine.attach_turn(&receipt.turn, -1)?, on_events);
    Ok(receipt)
}

#[tauri::command]
pub async fn attach_turn(
    desk: Desk<'_>,
    turn: TurnId,
    after_seq: i64,
    on_events: Page,
) -> Result<(), Problem> {
    let events = desk.engine().await?.attach_turn(&turn, after_seq)?;
    follow(events, on_events);
    Ok(())
}

#[tauri::command]
pub async fn cancel_turn(desk: Desk<'_>, turn: TurnId) -> Result<(), Problem> {
    desk.engine().await?.cancel_turn(&turn)
}

#[tauri::command]
pub async fn answer_permission(
    desk: Desk<'_>,
    turn: TurnId,
    call: ToolCallId,
    answer: PermissionAnswer,
) -> Result<(), Problem> {
    desk.engine().await?.answer_permission(&turn, &call, answer)
}

#[tauri::command]
pub async fn answer_question(
    desk: Desk<'_>,
    turn: TurnId,
    question: QuestionId,
    answer: QuestionAnswer,
) -> Result<(), Problem> {
    desk.engine().await?.answer_question(&turn, &question, answer)
}

#[tauri::command]
pub async fn long_message(desk: Desk<'_>, id: MessageId) -> Result<serde_json::Value, Problem> {
    desk.engine().await?.long_message(&id)
}

fn follow(events: Events, page: Page) {
    let events = stream::unfold(events, |mut events| async { Some((events.next().await?, events)) });
    tauri::async_runtime::spawn(bridge::forward(Box::pin(events), move |batch| {
        match page.send(InvokeResponseBody::Json(batch)) {
            Ok(()) => Listening::Yes,
            Err(_) => Listening::No,
        }
    }));
}
