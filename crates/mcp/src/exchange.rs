//! One exchange with a server: a request, what the server wants in the meantime, and its one result.
//!
//! Invariant: an exchange always ends: with the server's answer, with its silence, with its death, or with the user's
//! stop, whichever comes first. The time that the user takes to answer a server is not the server's.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{Asker, CallNews, Question, QuestionAnswer, Reply, WireDirection};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::desk::Caller;
use crate::listen::{Lines, Meter};
use crate::outcome;
use crate::peer::{PeerError, ProgressQueue, Reports, Request, result_in};
use crate::requests;
use crate::server::{Live, Server};

/// Rounds of input that one call may want (MCP 2026-07-28, Multi Round-Trip Requests).
const MOST_ROUNDS: usize = 10;
/// Questions of one round.
const MOST_REQUESTS: usize = 20;
/// "URL elicitation required" (MCP 2025-11-25, Elicitation, "Error Handling").
const URL_REQUIRED: i64 = -32042;
/// Errors of the modern era.
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without a word of progress.
    pub(crate) silence: Duration,
    /// As a whole.
    pub(crate) total: Duration,
    /// Characters of the result that reach the model.
    pub(crate) result_budget: usize,
}

/// Why an exchange ended without a result.
#[derive(Debug)]
pub(crate) enum Stopped {
    Cancelled,
    Silent(Duration),
    Peer(PeerError),
    /// The server wanted something that it does not get, in words.
    Refused(String),
}

/// Who waits for the result, and for how long.
pub(crate) struct Waiter {
    pub(crate) ask: Arc<dyn Asker>,
    pub(crate) cancel: CancellationToken,
    pub(crate) news: mpsc::UnboundedSender<CallNews>,
    pub(crate) limits: Limits,
}

pub(crate) struct Exchange<'a> {
    server: &'a Server,
    pub(super) live: &'a Live,
    waiter: Waiter,
    pub(super) caller: Caller,
    clock: Clock,
    lines: Lines,
    meter: Meter,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(server: &'a Server, live: &'a Live, waiter: Waiter) -> Self {
        let caller = live.peer.desk().enter(Arc::clone(&waiter.ask), waiter.news.clone());
        let clock = Clock::new(&waiter.limits);
        let lines = Lines::follow(server.log(), caller.number());
        let meter = Meter::new(Instant::now());
        Self { server, live, waiter, caller, clock, lines, meter }
    }

    /// Sends the request and gives what the server wants until there is a result.
    pub(crate) async fn run(&mut self, method: &str, params: Value) -> Result<Value, Stopped> {
        let mut extra = Map::new();
        for _ in 0..=MOST_ROUNDS {
            let params = with(&params, &extra);
            let (request, answer) = self.once(method, params).await?;
            match answer {
                Err(PeerError::Rpc { code: URL_REQUIRED, data, .. }) => {
                    self.visit_all(data.as_ref()).await?;
                    extra.clear();
                }
                Err(error) => return Err(Stopped::Peer(error)),
                Ok(result) => match kind_of(&result) {
                    Kind::Complete => return Ok(result),
                    Kind::Task => return self.follow_task(&request, &result).await,
                    Kind::InputRequired => extra = self.input(&result).await?,
                },
            }
        }
        Err(Stopped::Refused(format!("the server wanted input more than {MOST_ROUNDS} times")))
    }

    /// One request and its reply.
    pub(super) async fn once(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<(Request, Result<Value, PeerError>), Stopped> {
        let params = self.live.session.params(params);
        let peer = self.live.peer.clone();
        self.clock.heard();
        let sending = peer.request(method, params, Reports::Wanted);
        let mut request = self.listen(sending, None).await?.map_err(Stopped::Peer)?;
        self.caller.sent(request.id);
        self.wire(WireDirection::Sent, request.sent.value());
        let progress = Arc::clone(&request.progress);
        let reply = match self.listen(request.reply(), Some(&progress)).await {
            Ok(reply) => reply,
            Err(stopped) => {
                self.give_up(&request, &stopped);
                return Err(stopped);
            }
        };
        let answer = reply.and_then(|reply| {
            self.wire(WireDirection::Received, &reply);
            result_in(reply)
        });
        Ok((request, answer))
    }

    /// Waits for something of the server's while its progress, its log and the clock are looked after.
    pub(super) async fn listen<T>(
        &mut self,
        awaited: impl Future<Output = T>,
        progress: Option<&Arc<ProgressQueue>>,
    ) -> Result<T, Stopped> {
        tokio::pin!(awaited);
        let cancel = self.waiter.cancel.clone();
        let mut waiting = self.caller.waiting.clone();
        loop {
            let due = self.clock.due();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Stopped::Cancelled),
                message = next(progress), if !self.clock.is_over() => {
                    self.clock.heard();
                    let step = self.meter.read(message);
                    self.report(step);
                }
                Ok(()) = waiting.changed() => self.clock.pause(*waiting.borrow_and_update() > 0),
                out = &mut awaited => {
                    // What came before the reply is told before it.
                    let late = std::iter::from_fn(|| progress.and_then(|queue| queue.try_next()));
                    for message in late {
                        let step = self.meter.read(message);
                        self.report(step);
                    }
                    let held = self.meter.held.take();
                    self.report(held);
                    while let Some(line) = self.lines.try_next() {
                        self.tell(CallNews::Log(line));
                    }
                    return Ok(out);
                }
                line = self.lines.next(), if self.lines.left > 0 => self.tell(CallNews::Log(line)),
                () = sleep_until(self.meter.due()), if self.meter.held.is_some() => {
                    let held = self.meter.held.take();
                    self.report(held);
                }
                () = until(due) => return Err(Stopped::Silent(self.clock.spent())),
            }
        }
    }

    /// Answers the requests in a result (2026-07-28): the parameters to send with the next try.
    async fn input(&mut self, result: &Value) -> Result<Map<String, Value>, Stopped> {
        let mut extra = Map::new();
        if let Some(requests) = result.get("inputRequests").and_then(Value::as_object) {
            extra.insert("inputResponses".into(), self.fulfil(requests).await?);
        }
        if let Some(state) = result.get("requestState") {
            extra.insert("requestState".into(), state.clone());
        }
        if extra.is_empty() {
            return Err(Stopped::Refused("the server wants input and does not say which".into()));
        }
        Ok(extra)
    }

    /// Puts requests to whoever waits, one after the other: the responses by the same names.
    pub(super) async fn fulfil(&mut self, requests: &Map<String, Value>) -> Result<Value, Stopped> {
        if requests.len() > MOST_REQUESTS {
            return Err(Stopped::Refused(format!("the server wants {} answers at once", requests.len())));
        }
        let mut responses = Map::new();
        for (name, request) in requests {
            let desk = Arc::clone(self.live.peer.desk());
            let (ask, cancel) = (Arc::clone(&self.waiter.ask), self.waiter.cancel.clone());
            let response = self.meanwhile(desk.fulfil(request, &ask, &cancel)).await?;
            let refused = |refusal| {
                Stopped::Refused(format!("the server wanted input that it does not get: {refusal}"))
            };
            responses.insert(name.clone(), response.map_err(refused)?);
        }
        Ok(Value::Object(responses))
    }

    /// Sends the user to the addresses that stand in the way, and waits until all of them were visited.
    async fn visit_all(&mut self, data: Option<&Value>) -> Result<(), Stopped> {
        let wanted = data.and_then(|data| data.get("elicitations")).and_then(Value::as_array);
        let none = || Stopped::Refused("the server wants an address to be visited and names none".into());
        let wanted = wanted.filter(|all| !all.is_empty() && all.len() <= MOST_REQUESTS).ok_or_else(none)?;
        for params in wanted {
            let mut params = params.clone();
            if let Value::Object(fields) = &mut params {
                fields.entry("mode").or_insert_with(|| json!("url"));
            }
            let question = requests::elicitation(&params).map_err(|refusal| {
                Stopped::Refused(format!("the server wants a visit to nowhere: {refusal}"))
            })?;
            let Question::Url { elicitation_id, .. } = &question else {
                return Err(Stopped::Refused("the server wants a form where an address belongs".into()));
            };
            // Listened for before the user can be done.
            let complete = elicitation_id.as_deref().map(|id| self.live.peer.desk().visit(id));
            self.visit(question.clone(), complete).await?;
        }
        Ok(())
    }

    /// One visit: its consent, then its end, which the server or the user tells.
    async fn visit(
        &mut self,
        question: Question,
        complete: Option<CancellationToken>,
    ) -> Result<(), Stopped> {
        let declined = || Stopped::Refused("the user did not visit the address that the server needs".into());
        match self.ask(question, self.waiter.cancel.clone()).await? {
            QuestionAnswer::Accepted { .. } => {}
            QuestionAnswer::Declined | QuestionAnswer::Cancelled => return Err(declined()),
        }
        let complete = complete.unwrap_or_default();
        if complete.is_cancelled() {
            return Ok(());
        }
        let done = Question::Form {
            message: "Continue when you are done there.".into(),
            fields: Vec::new(),
            schema: json!({"type": "object", "properties": {}}),
        };
        match self.ask(done, complete.clone()).await? {
            QuestionAnswer::Accepted { .. } => Ok(()),
            QuestionAnswer::Cancelled if complete.is_cancelled() => Ok(()),
            QuestionAnswer::Declined | QuestionAnswer::Cancelled => Err(declined()),
        }
    }

    async fn ask(
        &mut self,
        question: Question,
        withdrawn: CancellationToken,
    ) -> Result<QuestionAnswer, Stopped> {
        let asked = self.waiter.ask.ask(self.server.id().clone(), question, withdrawn);
        Ok(match self.meanwhile(asked).await? {
            Reply::Answer(answer) => answer,
            Reply::Sample(_) | Reply::Failed(_) => QuestionAnswer::Cancelled,
        })
    }

    /// Waits for the user; the clock stands still.
    async fn meanwhile<T>(&mut self, answered: impl Future<Output = T>) -> Result<T, Stopped> {
        let cancel = self.waiter.cancel.clone();
        let since = Instant::now();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Stopped::Cancelled),
            answer = answered => answer,
        };
        self.clock.shift(since.elapsed());
        Ok(answer)
    }

    /// Tells the server that nobody waits any more.
    fn give_up(&self, request: &Request, why: &Stopped) {
        let reason = match why {
            Stopped::Cancelled => "the user stopped it",
            Stopped::Silent(_) => "it took too long",
            Stopped::Peer(_) | Stopped::Refused(_) => "nobody waits for it any more",
        };
        let params = [("requestId".to_owned(), json!(request.id)), ("reason".to_owned(), json!(reason))];
        let sent = self.live.peer.notify("notifications/cancelled", Map::from_iter(params));
        self.wire(WireDirection::Sent, sent.value());
    }

    fn report(&self, progress: Option<(lectern_core::Progress, Value)>) {
        if let Some((mut progress, message)) = progress {
            self.wire(WireDirection::Received, &message);
            progress.message = progress.message.map(|text| self.server.mask().text(&text));
            self.tell(CallNews::Progress(progress));
        }
    }

    /// A sign of life.
    pub(super) fn heard(&mut self) {
        self.clock.heard();
    }

    pub(super) fn wire(&self, direction: WireDirection, message: &Value) {
        self.tell(CallNews::Wire(direction, self.server.mask().value(outcome::for_trace(message))));
    }

    pub(super) fn log(&self, line: &str) {
        self.tell(CallNews::Log(self.server.mask().text(line)));
    }

    fn tell(&self, news: CallNews) {
        // Nobody listens any more when the turn is over.
        let _ = self.waiter.news.send(news);
    }
}

/// What became of an exchange, for the model and the user.
pub(crate) async fn sentence(server: &Server, stopped: Stopped) -> Option<String> {
    let id = server.id();
    Some(match stopped {
        Stopped::Cancelled => return None,
        Stopped::Silent(after) => format!(
            "the server `{id}` gave no answer within {} seconds; the call was given up",
            (after.as_secs_f32() * 10.0).round() / 10.0
        ),
        Stopped::Refused(why) => why,
        Stopped::Peer(PeerError::Closed) => server.epitaph().await,
        Stopped::Peer(PeerError::Damaged(why)) => {
            format!("the answer of the server `{id}` could not be read: {why}")
        }
        Stopped::Peer(PeerError::Lost(why)) => format!("the server `{id}` gave no answer: {why}"),
        Stopped::Peer(
            error @ (PeerError::Unreachable(_) | PeerError::SignIn(_) | PeerError::Unauthorized(_)),
        ) => {
            format!("the server `{id}`: {error}")
        }
        Stopped::Peer(PeerError::Rpc { code: MISSING_CAPABILITY, message, data }) => {
            let wanted = data.as_ref().and_then(|data| data.get("requiredCapabilities"));
            let wanted = wanted.map(|wanted| format!(": {wanted}")).unwrap_or_default();
            format!("the server `{id}` needs of the client what it does not have{wanted} ({message})")
        }
        Stopped::Peer(PeerError::Rpc { code: UNSUPPORTED_VERSION, message, data }) => {
            let speaks = data.as_ref().and_then(|data| data.get("supported"));
            let speaks = speaks.map(|speaks| format!("; it speaks {speaks}")).unwrap_or_default();
            format!(
                "the server `{id}` no longer speaks the protocol that was agreed on{speaks} ({message}); restart it"
            )
        }
        Stopped::Peer(error @ PeerError::Rpc { .. }) => error.to_string(),
    })
}

enum Kind {
    Complete,
    InputRequired,
    Task,
}

/// Results of the modern era say what they are; before it, a task stood in `task`.
fn kind_of(result: &Value) -> Kind {
    match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => Kind::InputRequired,
        Some("task") => Kind::Task,
        _ if result.get("content").is_none() && result.get("task").is_some_and(Value::is_object) => {
            Kind::Task
        }
        _ => Kind::Complete,
    }
}

fn with(params: &Value, extra: &Map<String, Value>) -> Value {
    let mut params = params.clone();
    if let Value::Object(fields) = &mut params {
        fields.extend(extra.clone());
    }
    params
}

async fn next(progress: Option<&Arc<ProgressQueue>>) -> Value {
    match progress {
        Some(queue) => queue.next().await,
        None => std::future::pending().await,
    }
}

/// The time that a server has. It stands still while the user is asked.
struct Clock {
    silence: Duration,
    begin: Instant,
    /// Time of the user, which does not count.
    waited: Duration,
    silence_ends: Instant,
    end: Instant,
    paused: Option<Instant>,
}

impl Clock {
    fn new(limits: &Limits) -> Self {
        let begin = Instant::now();
        Self {
            silence: limits.silence,
            begin,
            waited: Duration::ZERO,
            silence_ends: begin + limits.silence,
            end: begin + limits.total,
            paused: None,
        }
    }

    /// A sign of life.
    fn heard(&mut self) {
        self.silence_ends = Instant::now() + self.silence;
    }

    fn shift(&mut self, by: Duration) {
        self.silence_ends += by;
        self.end += by;
        self.waited += by;
    }

    fn is_over(&self) -> bool {
        self.paused.is_none() && Instant::now() >= self.end
    }

    /// Stands still, or goes on.
    fn pause(&mut self, still: bool) {
        match (still, self.paused) {
            (true, None) => self.paused = Some(Instant::now()),
            (false, Some(since)) => {
                self.shift(since.elapsed());
                self.paused = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// When the time is over; never while the clock stands still.
    fn due(&self) -> Option<Instant> {
        self.paused.is_none().then(|| self.silence_ends.min(self.end))
    }

    /// The time that the server had.
    fn spent(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.waited)
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
