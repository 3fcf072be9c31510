//! A model that plays a script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ids::ToolCallId;
use crate::model::{
    ChatModel, ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, ModelInfo, ToolMode,
};

/// One thing that the model does.
#[derive(Clone, Debug)]
pub enum Beat {
    /// It sends this.
    Delta(Delta),
    /// It takes its time; cancel ends it.
    Wait(Duration),
    /// It takes its time and does not look at cancel.
    Stall(Duration),
    /// It fails.
    Error(ModelError),
    /// It panics.
    Panic(&'static str),
}

/// What the model does in one step.
pub type Reply = Vec<Beat>;

/// A model that plays a script, one reply a step, and remembers what it was asked.
pub struct ScriptedModel {
    info: ModelInfo,
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<ChatRequest>>,
    prepared: Mutex<Vec<ChatRequest>>,
    repeat_last: bool,
    counted: AtomicUsize,
}

impl ScriptedModel {
    /// One reply for each step. A step beyond the script is an error of the model.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let info = ModelInfo {
            id: "scripted".into(),
            name: "Scripted".to_owned(),
            tool_mode: ToolMode::Native,
            context_length: Some(8_192),
            vision: false,
            remote: false,
        };
        Self {
            info,
            replies: Mutex::new(replies.into_iter().collect()),
            requests: Mutex::default(),
            prepared: Mutex::default(),
            repeat_last: false,
            counted: AtomicUsize::new(0),
        }
    }

    /// With so many tokens of context. It counts three characters as a token.
    #[must_use]
    pub fn with_context(mut self, tokens: u32) -> Self {
        self.info.context_length = Some(tokens);
        self
    }

    /// What it was told to get ready for.
    pub fn prepared(&self) -> Vec<ChatRequest> {
        lock(&self.prepared).clone()
    }

    /// How often it was asked to count.
    pub fn counted(&self) -> usize {
        self.counted.load(Ordering::Relaxed)
    }

    /// Tokens of a request, as this model counts them.
    pub fn tokens(request: &ChatRequest) -> u32 {
        let of = |value: serde_json::Result<String>| value.unwrap_or_default().chars().count();
        let texts =
            request.system.iter().chain(&request.tail).map(|text| text.chars().count()).sum::<usize>();
        let messages = of(serde_json::to_string(&request.messages));
        let tools = of(serde_json::to_string(&request.tools));
        u32::try_from((texts + messages + tools) / 3).unwrap_or(u32::MAX)
    }

    /// The last reply is given again and again.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// Adds a reply to the end of the script.
    pub fn then(&self, reply: Reply) {
        lock(&self.replies).push_back(reply);
    }

    /// What the model was asked so far.
    pub fn requests(&self) -> Vec<ChatRequest> {
        lock(&self.requests).clone()
    }

    fn next_reply(&self) -> Reply {
        let mut replies = lock(&self.replies);
        if self.repeat_last && replies.len() == 1 {
            return replies.front().cloned().unwrap_or_default();
        }
        replies.pop_front().unwrap_or_else(|| fails(ModelErrorCode::Provider, "the script is over"))
    }
}

impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn prepare(&self, request: ChatRequest, _: CancellationToken) -> BoxFuture<'static, ()> {
        lock(&self.prepared).push(request);
        futures::future::ready(()).boxed()
    }

    fn count(&self, request: ChatRequest) -> BoxFuture<'static, Result<Option<u32>, ModelError>> {
        self.counted.fetch_add(1, Ordering::Relaxed);
        futures::future::ready(Ok(Some(Self::tokens(&request)))).boxed()
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        lock(&self.requests).push(request);
        let state = (self.next_reply().into_iter(), cancel, false);
        stream::unfold(state, |(mut beats, cancel, over)| async move {
            if over {
                return None;
            }
            loop {
                match beats.next()? {
                    Beat::Delta(delta) => return Some((Ok(delta), (beats, cancel, false))),
                    Beat::Error(error) => return Some((Err(error), (beats, cancel, true))),
                    Beat::Stall(time) => tokio::time::sleep(time).await,
                    Beat::Wait(time) => tokio::select! {
                        () = tokio::time::sleep(time) => {}
                        () = cancel.cancelled() => {
                            let stopped = Ok(Delta::Finished(FinishReason::Cancelled));
                            return Some((stopped, (beats, cancel, true)));
                        }
                    },
                    #[expect(clippy::panic, reason = "the script asks for it")]
                    Beat::Panic(text) => panic!("{text}"),
                }
            }
        })
        .boxed()
    }
}

/// A reply of text alone.
pub fn says(text: &str) -> Reply {
    vec![Beat::Delta(Delta::Text(text.to_owned())), Beat::Delta(Delta::Finished(FinishReason::Stop))]
}

/// A reply that calls one tool.
pub fn calls(tool: &str, arguments: Value) -> Reply {
    calls_all([(tool, arguments)])
}

/// A reply that calls several tools.
pub fn calls_all<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Reply {
    let mut reply = Vec::new();
    for (index, (tool, arguments)) in (0..).zip(calls) {
        let id = ToolCallId::from(format!("call_{index}"));
        let tool = tool.into();
        reply.push(Beat::Delta(Delta::ToolCallStarted { index, id, tool, provider_data: None }));
        reply.push(Beat::Delta(Delta::ToolCallArguments { index, fragment: arguments.to_string() }));
    }
    reply.push(Beat::Delta(Delta::Finished(FinishReason::ToolCalls)));
    reply
}

/// A reply that fails at once.
pub fn fails(code: ModelErrorCode, message: &str) -> Reply {
    vec![Beat::Error(ModelError { code, message: message.to_owned(), hint: None, detail: None })]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
