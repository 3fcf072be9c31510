//! Results that come later: tasks, as MCP 2025-11-25 has them and as the extension `io.modelcontextprotocol/tasks` of
//! 2026-07-28 does.
//!
//! Invariant: a task that nobody waits for any more is cancelled; one that never ends is given up with the call.

use std::sync::Arc;
use std::time::Duration;

use lectern_core::WireDirection;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::exchange::{Exchange, Stopped};
use crate::peer::{PeerError, Reports, Request, result_in};
use crate::requests::shortened;

/// Between two questions about a task, unless the server wants it otherwise.
const USUAL_POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(15);
/// Rounds of input that one task may want.
const MOST_ROUNDS: usize = 10;
/// Characters of an id.
const LONGEST_ID: usize = 1_024;

/// Which of the two forms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// 2025-11-25: the result is fetched with `tasks/result`.
    Legacy,
    /// The extension: `tasks/get` has the result, `tasks/update` takes input.
    Extension,
}

/// A task as it was last heard of.
struct Task {
    id: String,
    form: Form,
    status: String,
    message: Option<String>,
    poll: Duration,
}

impl Task {
    /// The task in the reply to a call.
    fn created(result: &Value) -> Option<Self> {
        let extension = result.get("resultType").and_then(Value::as_str) == Some("task");
        let form = if extension { Form::Extension } else { Form::Legacy };
        let task = result.get("task").filter(|task| task.is_object()).unwrap_or(result);
        let id = task.get("taskId").and_then(Value::as_str).filter(|id| id.len() <= LONGEST_ID)?;
        let mut made =
            Self { id: id.to_owned(), form, status: String::new(), message: None, poll: USUAL_POLL };
        made.heard(task);
        Some(made)
    }

    /// Takes news in; whether they are news.
    fn heard(&mut self, task: &Value) -> bool {
        let text = |name: &str| task.get(name).and_then(Value::as_str).map(str::to_owned);
        let poll = task.get("pollIntervalMs").or_else(|| task.get("pollInterval")).and_then(Value::as_u64);
        if let Some(poll) = poll {
            self.poll = Duration::from_millis(poll).clamp(SHORTEST_POLL, LONGEST_POLL);
        }
        let status = text("status").unwrap_or_else(|| "working".into());
        let message = text("statusMessage").map(|message| shortened(&message, 500));
        let new = (&status, &message) != (&self.status, &self.message);
        (self.status, self.message) = (status, message);
        new
    }

    fn line(&self) -> String {
        let message = self.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("[task] {}{message}", shortened(&self.status, 40))
    }
}

impl Exchange<'_> {
    /// Follows the task that a call became, to its result.
    pub(super) async fn follow_task(&mut self, call: &Request, result: &Value) -> Result<Value, Stopped> {
        let Some(mut task) = Task::created(result) else {
            return Err(Stopped::Refused("the server made a task without an id".into()));
        };
        call.outlast_reply();
        self.log(&task.line());
        let mut news = self.caller.follow(&task.id);
        let ended = self.watch_task(call, &mut task, &mut news).await;
        if let Err(Stopped::Cancelled | Stopped::Silent(_)) = &ended {
            self.cancel_task(&task).await;
        }
        ended
    }

    async fn watch_task(
        &mut self,
        call: &Request,
        task: &mut Task,
        news: &mut mpsc::Receiver<Value>,
    ) -> Result<Value, Stopped> {
        let mut rounds = 0;
        let mut state = Value::Null;
        loop {
            match (task.form, task.status.as_str()) {
                (Form::Extension, "completed") => {
                    let done = state.get_mut("result").map(Value::take).filter(|result| !result.is_null());
                    if let Some(result) = done {
                        return Ok(result);
                    }
                }
                (Form::Extension, "failed") => {
                    let error = json!({"error": state.get("error").cloned().unwrap_or_else(|| json!({}))});
                    let failed = || Stopped::Refused(failed(task));
                    return match result_in(error) {
                        Err(PeerError::Rpc { message, .. }) if message == "{}" => Err(failed()),
                        Err(error) => Err(Stopped::Peer(error)),
                        Ok(_) => Err(failed()),
                    };
                }
                // Its result waits for the input that the server now asks for, on a request of its own.
                (Form::Legacy, "completed" | "failed" | "input_required") => {
                    return self.task_result(call, task).await;
                }
                (Form::Extension, "input_required") => {
                    rounds += 1;
                    if rounds > MOST_ROUNDS {
                        return Err(Stopped::Refused(format!(
                            "the task wanted input more than {MOST_ROUNDS} times"
                        )));
                    }
                    self.update_task(task, &state).await?;
                }
                (_, "cancelled") => return Err(Stopped::Refused(cancelled(task))),
                _ => {}
            }
            self.pause(call, task, news).await?;
            state = self.ask_task(call, "tasks/get", json!({"taskId": task.id})).await?;
            if task.heard(&state) {
                self.wire(WireDirection::Received, &state);
                self.log(&task.line());
            }
        }
    }

    /// Waits until it is time to ask again, or the server says that there is news.
    async fn pause(
        &mut self,
        call: &Request,
        task: &Task,
        news: &mut mpsc::Receiver<Value>,
    ) -> Result<(), Stopped> {
        let progress = Arc::clone(&call.progress);
        let poll = task.poll;
        let told = async {
            match news.recv().await {
                Some(_) => {}
                None => std::future::pending().await,
            }
        };
        let waited = async {
            tokio::select! {
                () = tokio::time::sleep(poll) => {}
                // Not at once: a server that tells without end is not asked without end.
                () = told => tokio::time::sleep(SHORTEST_POLL).await,
            }
        };
        self.listen(waited, Some(&progress)).await
    }

    /// The result of a task of 2025-11-25. Comes when the task has ended.
    async fn task_result(&mut self, call: &Request, task: &Task) -> Result<Value, Stopped> {
        let result = self.ask_task(call, "tasks/result", json!({"taskId": task.id})).await;
        match result {
            Err(Stopped::Peer(PeerError::Rpc { .. }))
                if task.status == "failed" && task.message.is_some() =>
            {
                Err(Stopped::Refused(failed(task)))
            }
            result => result,
        }
    }

    /// Gives a task of the extension what it asks for.
    async fn update_task(&mut self, task: &Task, state: &Value) -> Result<(), Stopped> {
        let wanted = state.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        let responses = self.fulfil(&wanted).await?;
        let params = json!({"taskId": task.id, "inputResponses": responses});
        let (_, answer) = self.once("tasks/update", params).await?;
        answer.map(|_| ()).map_err(Stopped::Peer)
    }

    async fn ask_task(&mut self, call: &Request, method: &str, params: Value) -> Result<Value, Stopped> {
        let peer = self.live.peer.clone();
        let params = self.live.session.params(params);
        let progress = Arc::clone(&call.progress);
        let asking = async {
            let mut request = peer.request(method, params, Reports::Unwanted).await?;
            request.result().await
        };
        let answer = self.listen(asking, Some(&progress)).await?;
        self.heard();
        answer.map_err(|error| match error {
            // The task is gone, or was never there.
            error @ PeerError::Rpc { .. } if method == "tasks/get" => {
                Stopped::Refused(format!("the task of the call can't be followed: {error}"))
            }
            error => Stopped::Peer(error),
        })
    }

    /// Asks for the end of a task that nobody waits for any more; does not wait for the answer.
    async fn cancel_task(&mut self, task: &Task) {
        let params = self.live.session.params(json!({"taskId": task.id}));
        let peer = self.live.peer.clone();
        let sent = peer.request("tasks/cancel", params, Reports::Unwanted);
        // A server that does not read is not waited for.
        if let Ok(Ok(request)) = tokio::time::timeout(Duration::from_millis(300), sent).await {
            self.wire(WireDirection::Sent, request.sent.value());
        }
    }
}

fn failed(task: &Task) -> String {
    task.message.clone().unwrap_or_else(|| "the task failed and gave no reason".into())
}

fn cancelled(task: &Task) -> String {
    let message = task.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("the server cancelled the task{message}")
}
