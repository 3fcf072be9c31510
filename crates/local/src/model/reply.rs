//! One reply of a local model, from the request to the last delta.
//!
//! Invariant: the stream ends with `Finished` or with one error; after a cancel it ends within a tenth of a
//! second, whatever the worker does. A worker that does not stop is killed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{
    AnswerForm, ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, Purpose, Sampling, ToolChoice,
    ToolMode, ToolPlacement, Usage,
};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{Shared, Worker};
use crate::child::{Child, Death};
use crate::deltas::Deltas;
use crate::gguf::{FileFault, ModelFileError, read_info};
use crate::images::images_of;
use crate::messages::{Form, messages_of, provider_data, tools_of};
use crate::protocol::{
    Answer, Choice, Done, Event, Finish, Generate, Load, Request, SamplingOptions, Thinking, WorkerError,
};
use crate::saved::sweep_process;
use crate::tools::ToolSupport;

/// What a cancelled reply waits for the worker's last words.
const LAST_WORDS: Duration = Duration::from_millis(80);
/// What a cancelled worker gets before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// A load that says nothing for so long hangs.
const SILENT_LOAD: Duration = Duration::from_secs(120);

/// Calls were not held to all of their schemas.
const LOOSE: &str = "loose_grammar";

/// One reply.
pub(super) struct ReplyTask {
    shared: Arc<Shared>,
    request: ChatRequest,
    cancel: CancellationToken,
    out: UnboundedSender<Result<Delta, ModelError>>,
    form: Form,
    deltas: Deltas,
    /// Whether the reader has got a piece of the reply.
    begun: bool,
}

/// How waiting for an event ended.
enum Waited {
    Event(Event),
    Died,
    Cancelled,
    Silent,
}

/// How a job ended early.
enum Stop {
    /// The worker is fine.
    Failed(ModelError),
    /// The worker is gone or has to go.
    Dead(ModelError),
    /// The user stopped it; the worker is to say that it has.
    Cancelled(u64),
}

impl ReplyTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        request: ChatRequest,
        cancel: CancellationToken,
        out: UnboundedSender<Result<Delta, ModelError>>,
    ) -> Self {
        let form = match (request.tool_mode, shared.tools) {
            (ToolMode::Native | ToolMode::Off, ToolSupport::Native) => Form::Native,
            (ToolMode::Prompted, _) | (_, ToolSupport::Prompted) => {
                Form::Prompted(shared.format.call_form.unwrap_or_default())
            }
        };
        let mut request = request;
        if request.tool_mode == ToolMode::Off {
            request.tools.clear();
        }
        let callable = match request.tool_choice {
            ToolChoice::None => Vec::new(),
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) => {
                request.tools.iter().map(|tool| tool.name.0.clone()).collect()
            }
        };
        Self { shared, request, cancel, out, form, deltas: Deltas::new(form, callable), begun: false }
    }

    /// Writes the reply to its end.
    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut worker = tokio::select! {
            biased;
            () = self.stopped() => return self.finish(FinishReason::Cancelled),
            worker = shared.worker.lock() => worker,
        };
        if self.request.purpose == Purpose::Chat {
            // What was to be read for it and has not begun would come too late.
            shared.interrupt();
        }
        // A step of which nothing was seen yet is tried once more, with a new worker.
        for may_retry in [true, false] {
            let Some(mut child) = self.take_child(&mut worker) else { return };
            match self.drive(&mut worker, &mut child).await {
                Ok(()) => worker.child = Some(child),
                Err(Stop::Failed(error)) => {
                    worker.child = Some(child);
                    self.send(Err(error));
                }
                Err(Stop::Dead(error)) => {
                    let retry = may_retry && worker.loaded && !self.begun;
                    worker.loaded = false;
                    let death = self.bury(child).await;
                    tracing::warn!(status = death.status, retry, "the worker of a local model died");
                    if retry {
                        continue;
                    }
                    self.send(Err(with_death(error, &death)));
                }
                Err(Stop::Cancelled(job)) => self.settle(&mut worker, child, job).await,
            }
            return;
        }
    }

    /// Loads the model and reads what two requests begin with in common, until it is stopped. A load is stopped only
    /// when nobody can ask the model any more.
    pub(super) async fn read_ahead(
        shared: Arc<Shared>,
        one: ChatRequest,
        other: ChatRequest,
        stopped: impl Future<Output = ()>,
    ) {
        let (out, _unread) = tokio::sync::mpsc::unbounded_channel();
        let other = Self::new(Arc::clone(&shared), other, CancellationToken::new(), out.clone());
        let mut task = Self::new(Arc::clone(&shared), one, shared.retired.clone(), out);
        let mut stopped = std::pin::pin!(stopped);
        let mut worker = tokio::select! {
            biased;
            () = &mut stopped => return,
            worker = shared.worker.lock() => worker,
        };
        let Some(mut child) = task.take_child(&mut worker) else { return };
        match task.read_common(&mut worker, &mut child, &other, stopped).await {
            Ok(()) | Err(Stop::Failed(_)) => worker.child = Some(child),
            Err(Stop::Dead(_)) => {
                worker.loaded = false;
                task.bury(child).await;
            }
            Err(Stop::Cancelled(job)) => task.settle(&mut worker, child, job).await,
        }
    }

    async fn read_common(
        &self,
        worker: &mut Worker,
        child: &mut Child,
        other: &Self,
        stopped: impl Future<Output = ()>,
    ) -> Result<(), Stop> {
        self.ready(worker, child).await?;
        let job = child.next_job();
        let (one, other) = (self.generate(job), other.generate(job));
        let (one, other) = (Box::new(one), Box::new(other));
        child.send(&Request::ReadAhead { job, one, other }).await;
        tokio::select! {
            biased;
            () = stopped => {
                child.send(&Request::Cancel { job }).await;
                Err(Stop::Cancelled(job))
            }
            last = last_event(child, job) => match last {
                Some(_) => Ok(()),
                None => Err(Stop::Dead(error(ModelErrorCode::ModelCrashed, "it died while it read".to_owned()))),
            },
        }
    }

    /// Counts the tokens of the prompt that this request would have.
    pub(super) async fn count(shared: Arc<Shared>, request: ChatRequest) -> Result<u32, ModelError> {
        // Progress of a load is shown by the reply that follows.
        let (out, _unread) = tokio::sync::mpsc::unbounded_channel();
        let task = Self::new(Arc::clone(&shared), request, CancellationToken::new(), out);
        let mut worker = shared.worker.lock().await;
        let crashed = || error(ModelErrorCode::ModelCrashed, "the model's process did not start".to_owned());
        let mut child = task.take_child(&mut worker).ok_or_else(crashed)?;
        match task.counted(&mut worker, &mut child).await {
            Ok(tokens) => {
                worker.child = Some(child);
                Ok(tokens)
            }
            Err(Stop::Failed(error)) => {
                worker.child = Some(child);
                Err(error)
            }
            Err(Stop::Dead(error)) => {
                worker.loaded = false;
                let death = task.bury(child).await;
                Err(with_death(error, &death))
            }
            // Nobody can cancel this task.
            Err(Stop::Cancelled(_)) => Err(crashed()),
        }
    }

    async fn counted(&self, worker: &mut Worker, child: &mut Child) -> Result<u32, Stop> {
        self.ready(worker, child).await?;
        let job = child.next_job();
        child.send(&Request::Count(Box::new(self.generate(job)))).await;
        loop {
            match child.event_of(job).await {
                Some(Event::Counted { tokens, .. }) => return Ok(tokens),
                Some(Event::Failed { error, .. }) => return Err(Stop::Failed(self.explain(error))),
                Some(_) => {}
                None => {
                    let what = "the model's process died while it counted".to_owned();
                    return Err(Stop::Dead(error(ModelErrorCode::ModelCrashed, what)));
                }
            }
        }
    }

    /// Finds out how a worker died, and removes the temporary file that it may have been writing.
    async fn bury(&self, child: Child) -> Death {
        let process = child.id();
        let death = child.autopsy().await;
        if let (Some(process), Some(folder)) = (process, &self.shared.cache.folder) {
            sweep_process(folder, process);
        }
        death
    }

    fn take_child(&self, worker: &mut Worker) -> Option<Child> {
        if let Some(mut child) = worker.child.take()
            && !child.has_ended()
        {
            return Some(child);
        }
        worker.loaded = false;
        match Child::start(&self.shared.command) {
            Ok(child) => Some(child),
            Err(cause) => {
                self.send(Err(error(
                    ModelErrorCode::ModelCrashed,
                    format!("start the model's process: {cause}"),
                )));
                None
            }
        }
    }

    async fn drive(&mut self, worker: &mut Worker, child: &mut Child) -> Result<(), Stop> {
        self.ready(worker, child).await?;
        let job = child.next_job();
        child.send(&Request::Generate(Box::new(self.generate(job)))).await;
        loop {
            match self.wait(child, job, None).await {
                Waited::Event(Event::Prompt { done, total, reused, .. }) => {
                    self.send(Ok(Delta::PromptProgress { done, total, reused }));
                }
                Waited::Event(Event::Pieces { pieces, .. }) => {
                    self.begun = true;
                    for piece in pieces {
                        let deltas = self.deltas.piece(piece);
                        deltas.into_iter().for_each(|delta| self.send(Ok(delta)));
                    }
                }
                Waited::Event(Event::Done(done)) => {
                    self.done(&done);
                    return Ok(());
                }
                Waited::Event(Event::Failed { error, .. }) => return Err(Stop::Failed(self.explain(error))),
                Waited::Event(_) | Waited::Silent => {}
                Waited::Cancelled => return Err(Stop::Cancelled(job)),
                Waited::Died => {
                    let what =
                        format!("the process that runs `{}` died while it wrote", self.shared.path.display());
                    return Err(Stop::Dead(error(ModelErrorCode::ModelCrashed, what)));
                }
            }
        }
    }

    /// Loads the model if it is not. A process that dies over it is replaced once: memory that was short or a driver
    /// that failed may be there the next time. A file that kills it each time is refused after that.
    async fn ready(&self, worker: &mut Worker, child: &mut Child) -> Result<(), Stop> {
        if worker.loaded {
            return Ok(());
        }
        match self.load(child).await {
            Ok(()) => {}
            // One that hangs is alive, and would hang for as long again.
            Err(Stop::Dead(error)) if child.has_ended() => {
                let Ok(fresh) = Child::start(&self.shared.command) else { return Err(Stop::Dead(error)) };
                let death = self.bury(std::mem::replace(child, fresh)).await;
                tracing::warn!(status = death.status, "a model's process died while it loaded; once more");
                self.load(child).await.map_err(|stop| match stop {
                    Stop::Dead(error) => Stop::Dead(ModelError {
                        message: format!("{} (it was tried twice)", error.message),
                        ..error
                    }),
                    Stop::Failed(_) | Stop::Cancelled(_) => stop,
                })?;
            }
            Err(stop) => return Err(stop),
        }
        worker.loaded = true;
        Ok(())
    }

    async fn load(&self, child: &mut Child) -> Result<(), Stop> {
        let path = self.shared.path.clone();
        let checked = tokio::task::spawn_blocking(move || read_info(&path)).await;
        if let Ok(Err(fault)) = checked {
            return Err(Stop::Failed(bad_file(&fault)));
        }
        let (path, context, speed) =
            (self.shared.path.clone(), self.shared.context, self.shared.speed.clone());
        let job = child.next_job();
        let format = self.shared.format.clone();
        let cache = self.shared.cache.clone();
        let projector = self.shared.projector.clone();
        child
            .send(&Request::Load(Box::new(Load { job, path, context, speed, format, cache, projector })))
            .await;
        self.send(Ok(Delta::Loading(0.0)));
        loop {
            match self.wait(child, job, Some(SILENT_LOAD)).await {
                Waited::Event(Event::Loading { part, .. }) => self.send(Ok(Delta::Loading(part))),
                Waited::Event(Event::Loaded { .. }) => return Ok(()),
                Waited::Event(Event::Failed { error, .. }) => return Err(Stop::Failed(self.explain(error))),
                Waited::Event(_) => {}
                Waited::Cancelled => return Err(Stop::Cancelled(job)),
                Waited::Died => return Err(Stop::Dead(self.refused("llama.cpp crashed"))),
                Waited::Silent => return Err(Stop::Dead(self.refused("loading it does not come to an end"))),
            }
        }
    }

    /// The next event, unless the user stops first. A stop is passed on to the worker.
    async fn wait(&self, child: &mut Child, job: u64, silence: Option<Duration>) -> Waited {
        let deadline = silence.map(|silence| Instant::now() + silence);
        let silent = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let waited = tokio::select! {
            biased;
            () = self.stopped() => Waited::Cancelled,
            event = child.event_of(job) => event.map_or(Waited::Died, Waited::Event),
            () = silent => Waited::Silent,
        };
        if matches!(waited, Waited::Cancelled) {
            child.send(&Request::Cancel { job }).await;
        }
        waited
    }

    /// The user cancelled, or nobody reads any more.
    async fn stopped(&self) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = self.out.closed() => {}
        }
    }

    /// After a cancel: the worker's last words if they come at once, then the end of the stream. A worker that
    /// does not stop is killed afterwards.
    async fn settle(&mut self, worker: &mut Worker, mut child: Child, job: u64) {
        let first = timeout(LAST_WORDS, last_event(&mut child, job)).await;
        match &first {
            Ok(Some(Event::Done(done))) => self.done(&Done { finish: Finish::Cancelled, ..(**done).clone() }),
            Ok(_) | Err(_) => self.finish(FinishReason::Cancelled),
        }
        let last = match first {
            Ok(last) => last,
            Err(_) => timeout(GRACE, last_event(&mut child, job)).await.unwrap_or(None),
        };
        match last {
            Some(Event::Loaded { .. }) => worker.loaded = true,
            Some(_) => {}
            None => {
                worker.loaded = false;
                let process = child.id();
                child.kill().await;
                if let (Some(process), Some(folder)) = (process, &self.shared.cache.folder) {
                    sweep_process(folder, process);
                }
                return;
            }
        }
        worker.child = Some(child);
    }

    fn generate(&self, job: u64) -> Generate {
        let tools = tools_of(&self.request.tools);
        let choice = match &self.request.tool_choice {
            ToolChoice::Auto => Choice::Auto,
            ToolChoice::None => Choice::None,
            ToolChoice::Required => Choice::Required,
            ToolChoice::Tool(name) => Choice::Tool(name.0.clone()),
        };
        let (tools, described) = match self.form {
            Form::Native => (tools, Vec::new()),
            Form::Prompted(_) => (Vec::new(), tools),
        };
        let must_call = matches!(choice, Choice::Required | Choice::Tool(_)) && !described.is_empty();
        let answer = match &self.request.answer {
            AnswerForm::JsonSchema(schema) => Answer::JsonSchema(schema.clone()),
            AnswerForm::Grammar(grammar) => Answer::Grammar(grammar.clone()),
            AnswerForm::Free if must_call => Answer::Call,
            AnswerForm::Free => Answer::Free,
        };
        let thinking = self.request.thinking;
        let sees = self.shared.projector.is_some();
        Generate {
            job,
            conversation: self.request.conversation.0.clone(),
            side: self.request.purpose == Purpose::Side,
            messages: messages_of(&self.request, self.form, sees),
            images: if sees { images_of(&self.request) } else { Vec::new() },
            tools,
            choice,
            described,
            tools_last: self.request.tool_placement == ToolPlacement::LastUser,
            answer,
            thinking: Thinking { enabled: thinking.enabled, budget: thinking.budget },
            sampling: sampling_of(&self.request.sampling, self.stops()),
        }
    }

    /// Texts that end this reply: the request's, the model's, and what begins an invented result.
    fn stops(&self) -> Vec<String> {
        let mut stop = self.request.sampling.stop.clone();
        stop.extend(self.shared.format.stop.iter().cloned());
        if matches!(self.form, Form::Prompted(_)) && !self.request.tools.is_empty() {
            stop.push("<tool_response>".to_owned());
        }
        stop
    }

    fn done(&mut self, done: &Done) {
        let deltas = self.deltas.finish(done.unread.as_deref());
        deltas.into_iter().for_each(|delta| self.send(Ok(delta)));
        self.tell_of_holding(done);
        self.send(Ok(Delta::ProviderData(provider_data(&done.raw, self.deltas.spoken(), &done.notes))));
        self.send(Ok(Delta::Usage(Usage {
            prompt_tokens: done.usage.prompt,
            reused_tokens: done.usage.reused,
            generated_tokens: done.usage.generated,
            thinking_tokens: None,
            prompt_ms: Some(done.usage.prompt_ms),
            generation_ms: Some(done.usage.generation_ms),
            guessed_tokens: Some(done.usage.guessed),
            right_guesses: Some(done.usage.right),
            changed_at: done.changed_at,
        })));
        self.finish(match done.finish {
            Finish::Stop if self.deltas.spoken().calls.is_empty() => FinishReason::Stop,
            Finish::Stop => FinishReason::ToolCalls,
            Finish::Length => FinishReason::Length,
            Finish::Cancelled => FinishReason::Cancelled,
        });
    }

    /// What the trace is to say of how the calls were held.
    fn tell_of_holding(&self, done: &Done) {
        let called: BTreeSet<&String> = self.deltas.spoken().calls.iter().map(|(name, _)| name).collect();
        let open = called.into_iter().filter_map(|name| Some((name, done.open.get(name)?)));
        let open = open.map(|(name, open)| {
            format!("the arguments of `{name}` were held to a part of their schema only; left open: {open}")
        });
        for message in done.notes.iter().cloned().chain(open) {
            self.send(Ok(Delta::Notice { code: LOOSE.to_owned(), message }));
        }
    }

    fn finish(&self, reason: FinishReason) {
        self.send(Ok(Delta::Finished(reason)));
    }

    fn send(&self, delta: Result<Delta, ModelError>) {
        // Nobody may be reading any more.
        let _ = self.out.send(delta);
    }

    fn refused(&self, reason: &str) -> ModelError {
        bad_file(&ModelFileError::new(&self.shared.path, FileFault::Refused(reason.to_owned())))
    }

    fn explain(&self, failure: WorkerError) -> ModelError {
        match failure {
            WorkerError::Load { reason } => self.refused(&reason),
            WorkerError::ContextFull { needed, available } => ModelError {
                hint: Some(
                    "Start a new conversation, or give the model a larger context in Settings.".to_owned(),
                ),
                detail: Some(json!({ "needed": needed, "available": available })),
                ..error(ModelErrorCode::ContextFull, failure_text(needed, available))
            },
            WorkerError::Refused { reason } => error(ModelErrorCode::BadRequest, reason),
            WorkerError::Compute { reason } => error(ModelErrorCode::ModelCrashed, reason),
            WorkerError::Cancelled => error(ModelErrorCode::ModelCrashed, "the load was stopped".to_owned()),
        }
    }
}

fn failure_text(needed: u32, available: u32) -> String {
    WorkerError::ContextFull { needed, available }.to_string()
}

/// The event that ends a job; none when the worker is gone.
async fn last_event(child: &mut Child, job: u64) -> Option<Event> {
    loop {
        let event = child.event_of(job).await?;
        if matches!(
            event,
            Event::Done(_) | Event::ReadAhead { .. } | Event::Failed { .. } | Event::Loaded { .. }
        ) {
            return Some(event);
        }
    }
}

fn sampling_of(given: &Sampling, stop: Vec<String>) -> SamplingOptions {
    SamplingOptions {
        temperature: given.temperature,
        top_p: given.top_p,
        top_k: given.top_k,
        min_p: given.min_p,
        repeat_penalty: given.repeat_penalty,
        frequency_penalty: given.frequency_penalty,
        presence_penalty: given.presence_penalty,
        seed: given.seed,
        max_tokens: given.max_tokens,
        stop,
    }
}

fn error(code: ModelErrorCode, message: String) -> ModelError {
    ModelError { code, message, hint: None, detail: None }
}

fn bad_file(fault: &ModelFileError) -> ModelError {
    ModelError {
        hint: Some("Choose another model file, or download this one again.".to_owned()),
        ..error(ModelErrorCode::BadModelFile, fault.to_string())
    }
}

fn with_death(mut error: ModelError, death: &Death) -> ModelError {
    error.message = format!("{} ({})", error.message, death.status);
    error.hint.get_or_insert_with(|| "Send the message again; the model is started anew.".to_owned());
    error.detail = Some(json!({ "status": death.status, "log": death.lines }));
    error
}
