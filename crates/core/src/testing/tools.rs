//! Tools that behave as told, well or badly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use crate::ids::ToolName;
use crate::message::{ToolCall, ToolOutcome, ToolResult};
use crate::question::Question;
use crate::tool::{CallContext, CallNews, Progress, ToolAnnotations, ToolProvider, ToolSpec};

/// How a tool behaves.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Gives this text.
    Answers(&'static str),
    /// Fails with this text.
    Fails(&'static str),
    /// Panics.
    Panics,
    /// Takes its time, then gives this text; a cancel is heeded at once.
    Slow(Duration, &'static str),
    /// Never comes back, cancel or not.
    Hangs,
    /// Sends these steps of progress, gives its result, and sends one more.
    LateNews(Vec<f64>),
    /// Asks the user this so often, and gives the replies as text.
    Asks(Box<Question>, usize),
    /// Tells this, and is done.
    Tells(CallNews),
    /// Answers in the name of another call.
    WrongId,
}

/// A call that arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The call.
    pub call: ToolCall,
    /// Other calls that ran when it began.
    pub beside: Vec<ToolName>,
}

/// A provider of scripted tools.
#[derive(Default)]
pub struct ScriptedTools {
    specs: Vec<ToolSpec>,
    behaviours: HashMap<ToolName, Behaviour>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    calls: Vec<CallRecord>,
    running: Vec<ToolName>,
}

/// A tool `test__NAME` that takes any object. Reading ones are trusted to read only.
pub fn tool(name: &str, reads: bool) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        server: "test".into(),
        original_name: name.to_owned(),
        title: None,
        description: format!("The tool {name}."),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: ToolAnnotations { read_only: Some(reads), ..ToolAnnotations::default() },
        trusted: true,
    }
}

impl ScriptedTools {
    /// No tools yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more tool.
    #[must_use]
    pub fn with(mut self, spec: ToolSpec, behaviour: Behaviour) -> Self {
        self.behaviours.insert(spec.name.clone(), behaviour);
        self.specs.push(spec);
        self
    }

    /// The calls that arrived, in order.
    pub fn calls(&self) -> Vec<CallRecord> {
        lock(&self.log).calls.clone()
    }
}

impl ToolProvider for ScriptedTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.specs.clone().into()
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let behaviour = self.behaviours.get(&call.tool).cloned().unwrap_or(Behaviour::Fails("no such tool"));
        let running = Running::begin(&self.log, &call);
        async move {
            let result = behave(behaviour, &call, context).await;
            drop(running);
            result
        }
        .boxed()
    }
}

async fn behave(behaviour: Behaviour, call: &ToolCall, context: CallContext) -> ToolResult {
    match behaviour {
        Behaviour::Answers(text) => ToolResult::of(call, ToolOutcome::Succeeded, text),
        Behaviour::Fails(text) => ToolResult::of(call, ToolOutcome::Failed, text),
        #[expect(clippy::panic, reason = "the script asks for it")]
        Behaviour::Panics => panic!("the tool panics"),
        Behaviour::Slow(time, text) => tokio::select! {
            () = tokio::time::sleep(time) => ToolResult::of(call, ToolOutcome::Succeeded, text),
            () = context.cancel.cancelled() => ToolResult::of(call, ToolOutcome::Cancelled, "stopped"),
        },
        Behaviour::Hangs => std::future::pending().await,
        Behaviour::LateNews(steps) => {
            let news = |done| CallNews::Progress(Progress { done, total: None, message: None });
            for done in steps {
                let _ = context.news.send(news(done));
                tokio::task::yield_now().await;
            }
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let _ = context.news.send(news(f64::MAX));
            });
            ToolResult::of(call, ToolOutcome::Succeeded, "done")
        }
        Behaviour::Asks(question, times) => {
            let mut replies = Vec::new();
            for _ in 0..times {
                let asked = context.ask.ask("test".into(), (*question).clone(), context.cancel.clone());
                replies.push(format!("{:?}", asked.await));
            }
            ToolResult::of(call, ToolOutcome::Succeeded, replies.join("\n"))
        }
        Behaviour::Tells(news) => {
            let _ = context.news.send(news);
            ToolResult::of(call, ToolOutcome::Succeeded, "told")
        }
        Behaviour::WrongId => {
            let other = ToolCall { id: "another".into(), tool: "another".into(), ..call.clone() };
            ToolResult::of(&other, ToolOutcome::Succeeded, "done")
        }
    }
}

/// Notes that a call runs, until it is dropped.
struct Running {
    log: Arc<Mutex<Log>>,
    tool: ToolName,
}

impl Running {
    fn begin(log: &Arc<Mutex<Log>>, call: &ToolCall) -> Self {
        let mut page = lock(log);
        let beside = page.running.clone();
        page.calls.push(CallRecord { call: call.clone(), beside });
        page.running.push(call.tool.clone());
        Self { log: Arc::clone(log), tool: call.tool.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut page = lock(&self.log);
        if let Some(at) = page.running.iter().position(|tool| *tool == self.tool) {
            page.running.remove(at);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
