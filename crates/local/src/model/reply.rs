//! One reply of a local model, from the request to the last delta.
//!
//! Invariant: the stream ends with `Finished` or with one error; after a cancel it ends within a tenth of a
//! second, whatever the worker does. A worker that does not stop is killed.

mod asked;
mod beside;
mod failure;
mod loading;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;

use lectern_core::{
    ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, Purpose, ToolChoice, ToolMode, Usage,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::{Shared, Worker};
use crate::child::Child;
use crate::deltas::Deltas;
use crate::format::CallForm;
use crate::messages::{Form, provider_data};
use crate::names::{Names, Writing};
use crate::protocol::{Done, Event, Finish, Request};
use crate::tools::ToolSupport;
use failure::{error, with_death};
use waiting::Waited;

/// Calls were not held to all of their schemas.
const LOOSE: &str = "loose_grammar";

/// One reply.
pub(super) struct ReplyTask {
    shared: Arc<Shared>,
    request: ChatRequest,
    cancel: CancellationToken,
    out: UnboundedSender<Result<Delta, ModelError>>,
    form: Form,
    names: Arc<Names>,
    deltas: Deltas,
    /// Whether the reader has got a piece of the reply.
    begun: bool,
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
        let writing = match form {
            Form::Native => shared.writing,
            Form::Prompted(CallForm::Json) => Writing::Json,
            Form::Prompted(CallForm::Pythonic) => Writing::Pythonic,
        };
        let names = Arc::new(Names::new(&request.tools, &request.messages, writing));
        let deltas = Deltas::new(form, callable, Arc::clone(&names));
        Self { shared, request, cancel, out, form, names, deltas, begun: false }
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
        // A step of which nothing was seen yet is tried once more, with a new worker; and as long as one dies of code
        // that the processor cannot run, with the next kind.
        let mut once_more = true;
        loop {
            let Some(mut child) = self.take_child(&mut worker).await else { return };
            match self.drive(&mut worker, &mut child).await {
                Ok(()) => worker.child = Some(child),
                Err(Stop::Failed(error)) => {
                    worker.child = Some(child);
                    self.send(Err(error));
                }
                Err(Stop::Dead(error)) => {
                    let unseen = worker.loaded && !self.begun;
                    worker.loaded = false;
                    let death = self.bury(child).await;
                    let retry = unseen && (death.unfit.is_some() || std::mem::take(&mut once_more));
                    tracing::warn!(status = death.status, retry, "the worker of a local model died");
                    if retry {
                        self.tell_restart(&death.why("it died before it wrote anything"));
                        continue;
                    }
                    self.send(Err(with_death(error, &death)));
                }
                Err(Stop::Cancelled(job)) => self.settle(&mut worker, child, job).await,
            }
            return;
        }
    }

    async fn drive(&mut self, worker: &mut Worker, child: &mut Child) -> Result<(), Stop> {
        self.ready(worker, child).await?;
        for message in worker.notes.drain(..) {
            self.send(Ok(Delta::Notice { code: "model_loading".to_owned(), message }));
        }
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
            image_tokens: Some(done.usage.images).filter(|tokens| *tokens > 0),
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
        let open = called.into_iter().filter_map(|name| Some((name, done.open.get(self.names.alias(name))?)));
        let open = open.map(|(name, open)| {
            format!("the arguments of `{name}` were held to a part of their schema only; left open: {open}")
        });
        for message in done.notes.iter().map(|note| self.names.in_text(note)).chain(open) {
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
}
