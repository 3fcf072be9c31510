//! Answers what a server asks: whether the client lives, its folders, the user, the model.
//!
//! Invariant: every request of a server gets exactly one answer, unless the server takes it back; a question reaches
//! the user only through an [`Asker`], and never more of them at once than a person can bear.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::{Asker, CallNews, Nobody, ServerId, WireDirection};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::config::{Answers, HostOptions, Root, Roots};
use crate::mask::Mask;
use crate::outcome;
use crate::prompts;
use crate::requests::{Refusal, Wanted, read, response};
use crate::resources::{self, NewsDesk, ServerNews};

/// Requests of one server that may wait for an answer.
const MOST_OPEN: usize = 16;
/// Questions outside of any call that one connection may put.
const MOST_OUTSIDE: usize = 100;
/// News of one task that may wait.
const TASK_BACKLOG: usize = 16;

static NEXT_CALLER: AtomicU64 = AtomicU64::new(0);

/// Sends a message to the server.
pub(crate) type Answering = Box<dyn FnOnce(&Value) + Send>;

/// One connection's desk.
pub(crate) struct Desk {
    server: ServerId,
    answers: Answers,
    fallback: Option<Arc<dyn Asker>>,
    roots: Roots,
    news: NewsDesk,
    mask: Mask,
    /// What the server gave for some time.
    pub(crate) cache: Cache,
    /// How often the server said that a list is another one than before.
    changes: watch::Sender<ListChanges>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What runs now, the newest last.
    callers: Vec<Running>,
    /// The server's requests that wait, by their id as JSON.
    open: HashMap<String, Open>,
    outside: usize,
    tasks: HashMap<String, mpsc::Sender<Value>>,
    /// Visits that are under way, by the server's name for them.
    visits: HashMap<String, CancellationToken>,
}

/// How often each list changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListChanges {
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
}

struct Open {
    caller: Option<u64>,
    withdrawn: CancellationToken,
}

#[derive(Clone)]
struct Running {
    number: u64,
    requests: Vec<i64>,
    tasks: Vec<String>,
    who: Who,
}

/// Who answers.
#[derive(Clone)]
struct Who {
    number: Option<u64>,
    ask: Arc<dyn Asker>,
    waits: Option<watch::Sender<u32>>,
    news: Option<mpsc::UnboundedSender<CallNews>>,
}

impl Desk {
    pub(crate) fn new(server: &ServerId, options: &HostOptions, mask: Mask) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            answers: options.answers,
            fallback: options.asker.clone(),
            roots: options.roots.clone(),
            news: options.news.clone(),
            mask,
            cache: Cache::default(),
            changes: watch::Sender::default(),
            state: Mutex::default(),
        })
    }

    /// Someone who waits for the server, and whom the server may ask in the meantime.
    pub(crate) fn enter(
        self: &Arc<Self>,
        ask: Arc<dyn Asker>,
        news: mpsc::UnboundedSender<CallNews>,
    ) -> Caller {
        let waits = watch::Sender::new(0);
        let waiting = waits.subscribe();
        let mut state = self.state();
        // Of all servers: a log outlives the connections that write to it.
        let number = NEXT_CALLER.fetch_add(1, Ordering::Relaxed);
        let who = Who { number: Some(number), ask, waits: Some(waits), news: Some(news) };
        state.callers.push(Running { number, requests: Vec::new(), tasks: Vec::new(), who });
        Caller { desk: Arc::clone(self), number, waiting }
    }

    /// Answers one request of the server, now or when the user has.
    ///
    /// `of` is the request of ours on whose stream it came, when what carries the messages knows it.
    pub(crate) fn take(self: &Arc<Self>, message: Value, of: Option<i64>, send: Answering) {
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        if !matches!(id, Value::String(_) | Value::Number(_)) {
            return send(&json!({"jsonrpc": "2.0", "id": null,
                "error": {"code": -32600, "message": "the id is neither text nor a number"}}));
        }
        match read(&self.server, self.answers, &message) {
            Err(refusal) => send(&refusal.reply(&id)),
            Ok(Wanted::Nothing) => send(&json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            Ok(Wanted::Roots) => send(&json!({"jsonrpc": "2.0", "id": id, "result": self.roots()})),
            Ok(Wanted::Answer(question)) => {
                let who = self.who(of, related_task(&message));
                let withdrawn = match self.open(&id, &who) {
                    Ok(withdrawn) => withdrawn,
                    Err(refusal) => return send(&refusal.reply(&id)),
                };
                who.tell(&self.mask, WireDirection::Received, &message);
                let desk = Arc::clone(self);
                tokio::spawn(async move {
                    let waits = who.waits.as_ref().map(Waiting::begin);
                    let asked = who.ask.ask(desk.server.clone(), question.clone(), withdrawn.clone());
                    let reply = tokio::select! {
                        biased;
                        () = withdrawn.cancelled() => None,
                        reply = asked => Some(reply),
                    };
                    desk.state().open.remove(&id.to_string());
                    drop(waits);
                    // What was taken back gets no answer (MCP 2025-11-25, Cancellation).
                    let Some(reply) = reply else { return };
                    let answer = match response(&question, reply) {
                        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                        Err(refusal) => refusal.reply(&id),
                    };
                    who.tell(&desk.mask, WireDirection::Sent, &answer);
                    send(&answer);
                });
            }
        }
    }

    /// What a request inside of a result wants (2026-07-28, input required), put to the one who waits for the result.
    pub(crate) async fn fulfil(
        &self,
        request: &Value,
        ask: &Arc<dyn Asker>,
        cancel: &CancellationToken,
    ) -> Result<Value, Refusal> {
        match read(&self.server, self.answers, request)? {
            Wanted::Nothing => Ok(json!({})),
            Wanted::Roots => Ok(self.roots()),
            Wanted::Answer(question) => {
                let reply = ask.ask(self.server.clone(), question.clone(), cancel.clone()).await;
                response(&question, reply)
            }
        }
    }

    /// A notification about what somebody waits for, or was given before.
    pub(crate) fn noticed(&self, method: &str, params: &Value) {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        match method {
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                if let Some(open) = self.state().open.remove(&id) {
                    open.withdrawn.cancel();
                }
            }
            "notifications/tasks/status" | "notifications/tasks" => {
                let task = text("taskId").and_then(|id| self.state().tasks.get(id).cloned());
                if let Some(task) = task {
                    // A full queue already says that there is news.
                    let _ = task.try_send(params.clone());
                }
            }
            "notifications/elicitation/complete" => {
                let visit = text("elicitationId").and_then(|id| self.state().visits.remove(id));
                if let Some(visit) = visit {
                    visit.cancel();
                }
            }
            "notifications/resources/updated" => {
                if let Some(uri) = text("uri") {
                    self.cache.forget(&[resources::READ]);
                    self.news.tell(ServerNews::ResourceUpdated(self.server.clone(), uri.to_owned()));
                }
            }
            "notifications/resources/list_changed" => {
                self.cache.forget(&[resources::LIST, resources::TEMPLATES]);
                self.changes.send_modify(|changes| changes.resources += 1);
                self.news.tell(ServerNews::ResourcesChanged(self.server.clone()));
            }
            "notifications/prompts/list_changed" => {
                self.cache.forget(&[prompts::LIST]);
                self.changes.send_modify(|changes| changes.prompts += 1);
                self.news.tell(ServerNews::PromptsChanged(self.server.clone()));
            }
            _ => {}
        }
    }

    /// How often the lists changed, from now on.
    pub(crate) fn list_changes(&self) -> watch::Receiver<ListChanges> {
        self.changes.subscribe()
    }

    /// What the server said of its lists may have been missed.
    pub(crate) fn lists_may_have_changed(&self) {
        self.cache.forget(&[resources::LIST, resources::TEMPLATES, prompts::LIST]);
        self.changes.send_modify(|changes| {
            changes.resources += 1;
            changes.prompts += 1;
        });
    }

    /// Whom a line of the log is about: the one whose request it came with, or the only one who waits.
    pub(crate) fn concerned(&self, of: Option<i64>) -> Option<u64> {
        let state = self.state();
        match (of, state.callers.as_slice()) {
            (Some(id), callers) => callers.iter().find(|running| running.requests.contains(&id)),
            (None, [running]) => Some(running),
            (None, _) => None,
        }
        .map(|running| running.number)
    }

    /// Whether a request of the server with this id waits for its answer.
    pub(crate) fn is_open(&self, id: &Value) -> bool {
        self.state().open.contains_key(&id.to_string())
    }

    /// Cancelled when the server says that a visit is complete.
    pub(crate) fn visit(&self, id: &str) -> CancellationToken {
        self.state().visits.entry(id.to_owned()).or_default().clone()
    }

    /// The connection is over: nobody waits for an answer any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.tasks.clear();
        state.open.drain().for_each(|(_, open)| open.withdrawn.cancel());
    }

    fn roots(&self) -> Value {
        let one = |root: &Root| match &root.name {
            Some(name) => json!({"uri": root.uri, "name": name}),
            None => json!({"uri": root.uri}),
        };
        let roots: Vec<Value> = self.roots.now().iter().map(one).collect();
        json!({ "roots": roots })
    }

    /// Who answers a question: the call it came with, the only call there is, the host's own asker, the newest call.
    fn who(&self, of: Option<i64>, task: Option<&str>) -> Who {
        let state = self.state();
        let known = |running: &&Running| {
            of.is_some_and(|id| running.requests.contains(&id))
                || task.is_some_and(|task| running.tasks.iter().any(|known| known == task))
        };
        let newest = state.callers.last();
        let chosen = match (state.callers.iter().find(known), state.callers.len()) {
            (Some(known), _) => Some(known),
            (None, 1) => newest,
            (None, _) if self.fallback.is_some() => None,
            (None, _) => newest,
        };
        chosen.map(|running| running.who.clone()).unwrap_or_else(|| Who {
            number: None,
            ask: self.fallback.clone().unwrap_or_else(|| Arc::new(Nobody)),
            waits: None,
            news: None,
        })
    }

    fn open(&self, id: &Value, who: &Who) -> Result<CancellationToken, Refusal> {
        let mut state = self.state();
        if state.open.len() >= MOST_OPEN {
            return Err(Refusal::busy("too many requests wait for an answer already"));
        }
        if state.open.contains_key(&id.to_string()) {
            return Err(Refusal::invalid_request("a request with this id waits for an answer already"));
        }
        if who.number.is_none() {
            state.outside += 1;
            if state.outside > MOST_OUTSIDE {
                return Err(Refusal::busy("too many requests outside of a call"));
            }
        }
        let withdrawn = CancellationToken::new();
        state.open.insert(id.to_string(), Open { caller: who.number, withdrawn: withdrawn.clone() });
        Ok(withdrawn)
    }

    // A std mutex: nothing awaits while it is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Who {
    fn tell(&self, mask: &Mask, direction: WireDirection, message: &Value) {
        if let Some(news) = &self.news {
            // Nobody listens any more when the turn is over.
            let _ = news.send(CallNews::Wire(direction, mask.value(outcome::for_trace(message))));
        }
    }
}

/// The task that a request says it belongs to (2025-11-25, Tasks, "Associating Task-Related Messages").
fn related_task(message: &Value) -> Option<&str> {
    message.pointer("/params/_meta/io.modelcontextprotocol~1related-task/taskId")?.as_str()
}

/// Counts as long as the user is asked.
struct Waiting(watch::Sender<u32>);

impl Waiting {
    fn begin(waits: &watch::Sender<u32>) -> Self {
        waits.send_modify(|count| *count += 1);
        Self(waits.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Someone who waits for the server. Dropped, its questions are withdrawn.
pub(crate) struct Caller {
    desk: Arc<Desk>,
    number: u64,
    /// How many questions it has open.
    pub(crate) waiting: watch::Receiver<u32>,
}

impl Caller {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Requests on this request's stream are asked of this caller.
    pub(crate) fn sent(&self, request: i64) {
        self.change(|running| running.requests.push(request));
    }

    /// News of a task, which belongs to this caller from now on.
    pub(crate) fn follow(&self, task: &str) -> mpsc::Receiver<Value> {
        let (sender, news) = mpsc::channel(TASK_BACKLOG);
        self.change(|running| running.tasks.push(task.to_owned()));
        self.desk.state().tasks.insert(task.to_owned(), sender);
        news
    }

    fn change(&self, change: impl FnOnce(&mut Running)) {
        let mut state = self.desk.state();
        if let Some(running) = state.callers.iter_mut().find(|running| running.number == self.number) {
            change(running);
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        let gone = state.callers.iter().position(|running| running.number == self.number);
        if let Some(running) = gone.map(|at| state.callers.remove(at)) {
            running.tasks.iter().for_each(|task| _ = state.tasks.remove(task));
        }
        let mine = state.open.values().filter(|open| open.caller == Some(self.number));
        mine.for_each(|open| open.withdrawn.cancel());
    }
}
