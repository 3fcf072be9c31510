//! Puts the questions of servers to the user, within the turn whose call they belong to.
//!
//! Invariant: each `QuestionAsked` has its `QuestionAnswered`; an answer that does not fit is never passed on; a server
//! can ask one thing at a time and not for ever.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::journal::Journal;
use super::run::Turn;
use super::sample::Sampler;
use crate::event::EventKind;
use crate::form;
use crate::ids::{QuestionId, ServerId, ToolCallId};
use crate::message::ToolCall;
use crate::question::{Asker, Question, QuestionAnswer, Reply, Sample};
use crate::validate::ValidationError;

/// Questions that the user is asked during one call; more are declined unseen.
const MOST_QUESTIONS: u32 = 20;

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    /// It is answered already, or was never asked.
    #[error("the question is not open any more")]
    NotAsked,
    /// The answer does not fit the form; the question stays open.
    #[error("the answer does not fit: {}", listed(.0))]
    DoesNotFit(Vec<ValidationError>),
}

/// The questions that wait for the user.
#[derive(Default)]
pub(super) struct AskedQuestions(Mutex<HashMap<QuestionId, Open>>);

struct Open {
    question: Question,
    answer: oneshot::Sender<QuestionAnswer>,
}

impl AskedQuestions {
    pub fn answer(&self, id: &QuestionId, answer: QuestionAnswer) -> Result<(), AnswerRefused> {
        let mut open = self.open();
        let question = &open.get(id).ok_or(AnswerRefused::NotAsked)?.question;
        let faults = question.faults(&answer);
        if !faults.is_empty() {
            return Err(AnswerRefused::DoesNotFit(faults));
        }
        let answer = only_asked(question, answer);
        let waiting = open.remove(id).ok_or(AnswerRefused::NotAsked)?;
        waiting.answer.send(answer).map_err(|_| AnswerRefused::NotAsked)
    }

    fn ask(&self, id: &QuestionId, question: Question) -> oneshot::Receiver<QuestionAnswer> {
        let (answer, receiver) = oneshot::channel();
        self.open().insert(id.clone(), Open { question, answer });
        receiver
    }

    fn withdraw(&self, id: &QuestionId) {
        self.open().remove(id);
    }

    // A std mutex: nothing awaits while it is held.
    fn open(&self) -> MutexGuard<'_, HashMap<QuestionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn only_asked(question: &Question, answer: QuestionAnswer) -> QuestionAnswer {
    match (question, answer) {
        (Question::Form { fields, .. }, QuestionAnswer::Accepted { content }) => {
            QuestionAnswer::Accepted { content: Some(form::only_asked(fields, content.unwrap_or_default())) }
        }
        (
            Question::Url { .. } | Question::Sampling { .. } | Question::SamplingReply { .. },
            QuestionAnswer::Accepted { .. },
        ) => QuestionAnswer::Accepted { content: None },
        (_, answer) => answer,
    }
}

fn listed(faults: &[ValidationError]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Asks in the name of one call. Clones count together.
#[derive(Clone)]
pub(super) struct CallAsker(Arc<Asking>);

struct Asking {
    call: ToolCallId,
    journal: Arc<Journal>,
    questions: Arc<AskedQuestions>,
    sampler: Sampler,
    cancel: CancellationToken,
    /// One question at a time.
    turnstile: Semaphore,
    asked: AtomicU32,
}

impl std::fmt::Debug for CallAsker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallAsker").field(&self.0.call).finish()
    }
}

impl CallAsker {
    pub fn new(turn: &Turn, call: &ToolCall) -> Self {
        Self(Arc::new(Asking {
            call: call.id.clone(),
            journal: Arc::clone(&turn.journal),
            questions: Arc::clone(&turn.asked),
            sampler: Sampler::new(&turn.input),
            cancel: turn.cancel.clone(),
            turnstile: Semaphore::new(1),
            asked: AtomicU32::new(0),
        }))
    }
}

impl Asker for CallAsker {
    fn ask(
        &self,
        server: ServerId,
        question: Question,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Reply> {
        let asking = Arc::clone(&self.0);
        async move {
            tokio::select! {
                biased;
                () = asking.cancel.cancelled() => Reply::Answer(QuestionAnswer::Cancelled),
                () = cancel.cancelled() => Reply::Answer(QuestionAnswer::Cancelled),
                reply = asking.put(server, question, &cancel) => reply,
            }
        }
        .boxed()
    }
}

impl Asking {
    async fn put(&self, server: ServerId, mut question: Question, cancel: &CancellationToken) -> Reply {
        // The semaphore is never closed.
        let _one_at_a_time = self.turnstile.acquire().await;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked >= MOST_QUESTIONS {
            if asked == MOST_QUESTIONS {
                let message = format!("`{server}` asks too much in one call; the rest is declined unseen");
                self.journal.tell(EventKind::Notice { code: "questions_declined".to_owned(), message });
            }
            return Reply::Answer(QuestionAnswer::Declined);
        }
        if let Question::Sampling { model, .. } = &mut question {
            *model = Some(self.sampler.model());
        }
        let open = OpenQuestion::put(self, server.clone(), question.clone());
        let answer = open.answered().await;
        match (question, answer) {
            (Question::Sampling { request, .. }, (id, QuestionAnswer::Accepted { .. })) => {
                match self.sampler.run(&self.journal, &self.call, &id, *request, cancel).await {
                    Reply::Sample(sample) => self.shown(server, sample).await,
                    other @ (Reply::Answer(_) | Reply::Failed(_)) => other,
                }
            }
            (_, (_, answer)) => Reply::Answer(answer),
        }
    }

    /// Shows the model's reply to the user, and gives it when the user sends it.
    async fn shown(&self, server: ServerId, sample: Box<Sample>) -> Reply {
        let Sample { message, model, finish, .. } = &*sample;
        let (message, model, finish) = (message.clone(), model.clone(), *finish);
        let open = OpenQuestion::put(self, server, Question::SamplingReply { message, model, finish });
        match open.answered().await.1 {
            QuestionAnswer::Accepted { .. } => Reply::Sample(sample),
            answer @ (QuestionAnswer::Declined | QuestionAnswer::Cancelled) => Reply::Answer(answer),
        }
    }
}

/// A question that was told and not yet answered. Dropped, it is withdrawn.
struct OpenQuestion<'a> {
    asking: &'a Asking,
    id: QuestionId,
    answer: Option<oneshot::Receiver<QuestionAnswer>>,
}

impl<'a> OpenQuestion<'a> {
    fn put(asking: &'a Asking, server: ServerId, question: Question) -> Self {
        let id = QuestionId::fresh();
        let answer = asking.questions.ask(&id, question.clone());
        let call = asking.call.clone();
        asking.journal.tell(EventKind::QuestionAsked { call, question_id: id.clone(), server, question });
        Self { asking, id, answer: Some(answer) }
    }

    async fn answered(mut self) -> (QuestionId, QuestionAnswer) {
        let answer = match &mut self.answer {
            Some(answer) => answer.await.unwrap_or(QuestionAnswer::Cancelled),
            None => QuestionAnswer::Cancelled,
        };
        self.answer = None;
        self.tell(answer.clone());
        (self.id.clone(), answer)
    }

    fn tell(&self, answer: QuestionAnswer) {
        let call = self.asking.call.clone();
        let question_id = self.id.clone();
        self.asking.journal.tell(EventKind::QuestionAnswered { call, question_id, answer });
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.answer.take().is_some() {
            self.asking.questions.withdraw(&self.id);
            self.tell(QuestionAnswer::Cancelled);
        }
    }
}
