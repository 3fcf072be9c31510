//! JSON-RPC with one server: requests and their replies, progress, what the server asks.
//!
//! Knows no transport: what carries the messages holds the other end, [`Carrier`] (`pipe` for child processes).
//!
//! Invariant: every request is settled: by its reply, by damage to its reply, by what carries it, or by the end of the
//! connection. Taking a message in never waits for writing or for anybody who listens.

mod carrier;

pub(crate) use carrier::{Carrier, Incoming, Outgoing};

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::WireDirection;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::traffic::Traffic;

/// Messages that may wait for a server that does not read.
const WRITE_BACKLOG: usize = 256;
/// Answers that may wait beside them.
const LATE_ANSWERS: usize = 2_048;
/// Progress that may wait for a call that does not look.
const PROGRESS_BACKLOG: usize = 512;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("the connection is closed")]
    Closed,
    #[error("{0}")]
    Damaged(String),
    /// There will be no answer, for the reason that this sentence gives; the connection goes on.
    #[error("{0}")]
    Lost(String),
    /// The server can't be reached, which ends the connection.
    #[error("{0}")]
    Unreachable(String),
    /// The server wants the user to sign in, which ends the connection.
    #[error("sign in first: {0}")]
    SignIn(String),
    /// Signing in failed, for a reason that the user can't change by trying again.
    #[error("signing in failed: {0}")]
    Unauthorized(String),
    #[error("error {code}: {message}")]
    Rpc { code: i64, message: String, data: Option<Value> },
}

/// What a server says without being asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Notice {
    /// Its tools are others now.
    ToolsChanged,
    /// A line for the log, and the caller whom it is about, if that is known.
    Log(String, Option<u64>),
}

/// What the other side of a pipe needs of the host.
pub(crate) struct PeerOptions {
    pub(crate) desk: Arc<Desk>,
    pub(crate) notices: mpsc::Sender<Notice>,
    /// Where every message is written down.
    pub(crate) traffic: Arc<Traffic>,
}

/// One connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peer {
    shared: Arc<Shared>,
}

struct Shared {
    outgoing: mpsc::Sender<Outgoing>,
    pending: Mutex<Pending>,
    next_id: AtomicI64,
    /// Places for answers that wait until the server reads.
    late: Arc<Semaphore>,
    closed: CancellationToken,
    closing: CancellationToken,
    options: PeerOptions,
}

#[derive(Default)]
struct Pending {
    over: bool,
    requests: HashMap<i64, Waiting>,
}

/// A request of ours. It stays until it is dropped: a task tells its progress long after the reply.
struct Waiting {
    /// None when it is settled.
    reply: Option<Reply>,
    progress: Arc<ProgressQueue>,
    /// Whether progress counts after the reply.
    outlasts: bool,
    /// Whether it listens for changes, which the server may end.
    listens: bool,
}

type Reply = oneshot::Sender<Result<Value, PeerError>>;

impl Pending {
    /// Who waits for a reply with this id.
    fn take(&mut self, id: &Value) -> Option<Reply> {
        if id.is_null() {
            let mut open = self.requests.values_mut().filter(|waiting| waiting.reply.is_some());
            let only = open.next()?;
            return if open.next().is_none() { only.reply.take() } else { None };
        }
        self.requests.get_mut(&request_number(id)?)?.reply.take()
    }
}

impl Peer {
    /// A connection, and the end of it that whatever carries the messages holds.
    pub(crate) fn new(options: PeerOptions) -> (Self, Carrier) {
        let (outgoing, messages) = mpsc::channel(WRITE_BACKLOG);
        let shared = Arc::new(Shared {
            outgoing,
            pending: Mutex::default(),
            next_id: AtomicI64::new(1),
            late: Arc::new(Semaphore::new(LATE_ANSWERS)),
            closed: CancellationToken::new(),
            closing: CancellationToken::new(),
            options,
        });
        let carrier = Carrier {
            outgoing: messages,
            incoming: Incoming(Arc::clone(&shared)),
            closing: shared.closing.clone(),
        };
        (Self { shared }, carrier)
    }

    /// Sends a request.
    pub(crate) async fn request(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        reports: Reports,
    ) -> Result<Request, PeerError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        match (reports, params.entry("_meta").or_insert_with(|| json!({}))) {
            (Reports::Wanted, Value::Object(meta)) => _ = meta.insert("progressToken".into(), id.into()),
            (Reports::Unwanted, Value::Object(meta)) if meta.is_empty() => _ = params.shift_remove("_meta"),
            (Reports::Wanted | Reports::Unwanted, _) => {}
        }
        let message = Outgoing::new(Map::from_iter([
            ("jsonrpc".to_owned(), "2.0".into()),
            ("id".to_owned(), id.into()),
            ("method".to_owned(), method.into()),
            ("params".to_owned(), Value::Object(params)),
        ]));
        let (sender, reply) = oneshot::channel();
        let progress = Arc::new(ProgressQueue::default());
        {
            let mut pending = self.shared.pending();
            if pending.over {
                return Err(PeerError::Closed);
            }
            pending.requests.insert(
                id,
                Waiting {
                    reply: Some(sender),
                    progress: Arc::clone(&progress),
                    outlasts: false,
                    listens: method == "subscriptions/listen",
                },
            );
        }
        let request = Request { id, sent: message, progress, reply, shared: Arc::clone(&self.shared) };
        self.shared.record_sent(&request.sent);
        self.shared.outgoing.send(request.sent.clone()).await.map_err(|_| PeerError::Closed)?;
        Ok(request)
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Value, PeerError> {
        self.request(method, params, Reports::Unwanted).await?.result().await
    }

    /// Sends a notification; dropped when the server has not read for long.
    pub(crate) fn notify(&self, method: &str, params: Map<String, Value>) -> Outgoing {
        let message = Outgoing::new(Map::from_iter([
            ("jsonrpc".to_owned(), "2.0".into()),
            ("method".to_owned(), method.into()),
            ("params".to_owned(), Value::Object(params)),
        ]));
        self.shared.send_or_drop(&message);
        message
    }

    /// Where what the server asks is answered.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.shared.options.desk
    }

    /// Has the tools listed again, as when the server says so.
    pub(crate) fn tools_may_have_changed(&self) {
        self.shared.notice(Notice::ToolsChanged);
    }

    /// Returns when the server's output has ended.
    pub(crate) async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// Whether the server's output has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Closes the server's input, which asks it to end.
    pub(crate) fn close(&self) {
        self.shared.closing.cancel();
    }
}

/// Whether a request asks for progress. Its id is then the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    Wanted,
    Unwanted,
}

/// A request on its way. Dropping it forgets it; a late reply is then dropped too.
pub(crate) struct Request {
    pub(crate) id: i64,
    /// The message as it was sent.
    pub(crate) sent: Outgoing,
    pub(crate) progress: Arc<ProgressQueue>,
    reply: oneshot::Receiver<Result<Value, PeerError>>,
    shared: Arc<Shared>,
}

impl Request {
    /// The whole reply, an error of the server included.
    pub(crate) async fn reply(&mut self) -> Result<Value, PeerError> {
        (&mut self.reply).await.unwrap_or(Err(PeerError::Closed))
    }

    /// Takes progress after the reply too: the reply was a task.
    pub(crate) fn outlast_reply(&self) {
        if let Some(waiting) = self.shared.pending().requests.get_mut(&self.id) {
            waiting.outlasts = true;
        }
    }

    /// The result in the reply.
    pub(crate) async fn result(&mut self) -> Result<Value, PeerError> {
        result_in(self.reply().await?)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.shared.pending().requests.remove(&self.id);
    }
}

/// The result in a reply, or the server's error.
pub(crate) fn result_in(mut reply: Value) -> Result<Value, PeerError> {
    match reply.get_mut("error").map(Value::take) {
        None | Some(Value::Null) => {
            let neither = || PeerError::Damaged("the reply has neither a result nor an error".into());
            reply.get_mut("result").map(Value::take).ok_or_else(neither)
        }
        Some(error) => Err(PeerError::Rpc {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(-32603),
            message: match error.get("message").and_then(Value::as_str) {
                Some(message) => message.to_owned(),
                None => error.to_string(),
            },
            data: error.get("data").cloned(),
        }),
    }
}

/// Progress in the order in which it came. When nobody looks, the furthest of the newest stays.
#[derive(Default)]
pub(crate) struct ProgressQueue {
    queue: Mutex<VecDeque<Value>>,
    arrived: Notify,
}

impl ProgressQueue {
    fn push(&self, message: Value) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queue_is_full = queue.len() >= PROGRESS_BACKLOG;
        let done = |message: &Value| message.pointer("/params/progress").and_then(Value::as_f64);
        match queue.back_mut() {
            // Out of order as they may be, the one that is furthest is not lost.
            Some(last) if queue_is_full => {
                if done(&message) >= done(last) {
                    *last = message;
                }
            }
            Some(_) | None => queue.push_back(message),
        }
        self.arrived.notify_one();
    }

    /// What waits, if anything.
    pub(crate) fn try_next(&self) -> Option<Value> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next one.
    pub(crate) async fn next(&self) -> Value {
        loop {
            if let Some(message) = self.try_next() {
                return message;
            }
            self.arrived.notified().await;
        }
    }
}

impl Shared {
    // A std mutex: nothing awaits while it is held.
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(self: &Arc<Self>, message: Value, of: Option<i64>) {
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(_), Some(id)) if !id.is_null() => {
                let shared = Arc::clone(self);
                let send = Box::new(move |answer: &Value| shared.answer(answer));
                self.options.desk.take(message, of, send);
            }
            (Some("notifications/progress"), _) => self.progress(message),
            (Some("notifications/tools/list_changed"), _) => self.notice(Notice::ToolsChanged),
            (Some("notifications/message"), _) => self.log(log_line(&message["params"]), of),
            (Some("notifications/cancelled"), _) if self.listening_ended(&message["params"]["requestId"]) => {
            }
            (Some(method), _) => {
                self.options.desk.noticed(method, &message["params"]);
            }
            (None, Some(id)) => {
                let id = id.clone();
                self.settle(&id, Ok(message));
            }
            (None, None) => {}
        }
    }

    /// Settles a request. An error with `id: null` is for the only request there is, if there is only one.
    fn settle(&self, id: &Value, reply: Result<Value, PeerError>) {
        let waiting = self.pending().take(id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(reply);
        }
    }

    /// A server may end a subscription of ours by cancelling it (MCP 2026-07-28, Subscriptions); usually it cancels
    /// requests of its own.
    fn listening_ended(&self, id: &Value) -> bool {
        if self.options.desk.is_open(id) {
            return false;
        }
        let reply = {
            let mut pending = self.pending();
            let waiting = request_number(id).and_then(|number| pending.requests.get_mut(&number));
            waiting.filter(|waiting| waiting.listens).and_then(|waiting| waiting.reply.take())
        };
        let ended = PeerError::Lost("the server ended the subscription".into());
        reply.map(|reply| reply.send(Err(ended))).is_some()
    }

    /// A damaged message settles its request; if it does not say which, all of them: nobody shall wait for ever.
    fn damaged(&self, id: Option<Value>, reason: String) {
        self.log(format!("[stdout] {reason}"), None);
        let lost: Vec<Reply> = {
            let mut pending = self.pending();
            match id.filter(|id| !id.is_null()) {
                Some(id) => pending.take(&id).into_iter().collect(),
                None => pending.requests.values_mut().filter_map(|waiting| waiting.reply.take()).collect(),
            }
        };
        for reply in lost {
            let _ = reply.send(Err(PeerError::Damaged(reason.clone())));
        }
    }

    fn progress(&self, message: Value) {
        let Some(number) = message.pointer("/params/progressToken").and_then(request_number) else { return };
        let queue = {
            let pending = self.pending();
            let waiting = pending.requests.get(&number);
            // What comes after the result is none of its progress.
            let waiting = waiting.filter(|waiting| waiting.reply.is_some() || waiting.outlasts);
            waiting.map(|waiting| Arc::clone(&waiting.progress))
        };
        if let Some(queue) = queue {
            queue.push(message);
        }
    }

    /// Sends an answer. While the server is busy it waits, as long as not too many do: a server that only asks and
    /// never reads gets no more.
    fn answer(self: &Arc<Self>, message: &Value) {
        let message = Outgoing::of(message.clone());
        let Err(TrySendError::Full(message)) = self.outgoing.try_send(message.clone()) else {
            self.record_sent(&message);
            return;
        };
        let Ok(place) = Arc::clone(&self.late).try_acquire_owned() else {
            tracing::debug!("answer to a server dropped: it does not read");
            return;
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = shared.closing.cancelled() => {}
                sent = shared.outgoing.send(message.clone()) => if sent.is_ok() {
                    shared.record_sent(&message);
                },
            }
            drop(place);
        });
    }

    fn send_or_drop(&self, message: &Outgoing) {
        if self.outgoing.try_send(message.clone()).is_err() {
            tracing::debug!("message to a server dropped: it does not read");
            return;
        }
        self.record_sent(message);
    }

    fn record_sent(&self, message: &Outgoing) {
        let text = message.line().trim_ascii_end();
        self.options.traffic.record(WireDirection::Sent, message.value(), Some(text));
    }

    /// Decided now: when the line is written, others may wait.
    fn log(&self, line: String, of: Option<i64>) {
        let caller = self.options.desk.concerned(of);
        self.notice(Notice::Log(line, caller));
    }

    fn notice(&self, notice: Notice) {
        // A full queue already says that the tools changed, and a log may lose lines.
        let _ = self.options.notices.try_send(notice);
    }
}

/// Our ids are numbers; some servers give them back as text or as `1.0`.
fn request_number(id: &Value) -> Option<i64> {
    match id {
        Value::Number(number) => number.as_i64().or_else(|| {
            let number = number.as_f64()?;
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole; ids are small")]
            (number.fract() == 0.0).then_some(number as i64)
        }),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn log_line(params: &Value) -> String {
    let level = params.get("level").and_then(Value::as_str).unwrap_or("info");
    let text = match params.get("data") {
        Some(Value::String(text)) => text.clone(),
        Some(data) => data.to_string(),
        None => String::new(),
    };
    match params.get("logger").and_then(Value::as_str) {
        Some(logger) => format!("[{level}] {logger}: {text}"),
        None => format!("[{level}] {text}"),
    }
}

#[cfg(test)]
mod tests;
