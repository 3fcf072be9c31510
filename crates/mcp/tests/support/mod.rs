//! A host with fixture servers, and a call with its news.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use lectern_core::{
    Asker, CallContext, CallNews, ConversationId, Nobody, Progress, ServerId, ToolCall, ToolCallId, ToolName,
    ToolProvider, ToolResult, TurnId, WireDirection,
};
use lectern_mcp::{Failure, Host, HostOptions, RestartPolicy, ServerConfig, ServerState};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A fixture server in this mode.
pub fn fixture(id: &str, mode: &str) -> ServerConfig {
    let binary = lectern_fixture_server::binary().to_str().expect("a path of text");
    ServerConfig::new(id, binary, ["--mode", mode])
}

/// Options with a short temper.
pub fn quick() -> HostOptions {
    HostOptions {
        start_timeout: Duration::from_secs(20),
        probe_timeout: Duration::from_millis(500),
        restart: RestartPolicy { first_pause: Duration::from_millis(20), ..RestartPolicy::default() },
        ..HostOptions::default()
    }
}

/// A host with one server `s` that has settled.
pub async fn host_with(config: ServerConfig) -> Host {
    started([config], quick()).await
}

/// A host whose servers have settled.
pub async fn started(configs: impl IntoIterator<Item = ServerConfig>, options: HostOptions) -> Host {
    let host = Host::start(configs, options);
    host.settled().await;
    host
}

pub fn state(host: &Host, id: &str) -> ServerState {
    host.status(&ServerId::from(id)).expect("a known server").state
}

/// Waits until a server is in a state for which this holds. News come a moment before that.
pub async fn reaches(host: &Host, id: &str, holds: impl Fn(&ServerState) -> bool) -> ServerState {
    for _ in 0..6_000 {
        let state = state(host, id);
        if holds(&state) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} is still {:?}", state(host, id));
}

/// The failure of a server that must have failed.
pub fn failure(host: &Host, id: &str) -> Failure {
    match state(host, id) {
        ServerState::Failed(failure) => failure,
        state => panic!("{id} is {state:?}"),
    }
}

/// The states of a server `s` as they were told, each change once.
pub struct Story {
    news: tokio::sync::broadcast::Receiver<lectern_mcp::ServerStatus>,
    pub states: Vec<ServerState>,
}

impl Story {
    pub fn of(host: &Host) -> Self {
        Self { news: host.subscribe(), states: Vec::new() }
    }

    /// Listens until a state for which this holds, which is the last one.
    pub async fn until(&mut self, holds: impl Fn(&ServerState) -> bool) -> &ServerState {
        loop {
            let news = tokio::time::timeout(Duration::from_secs(60), self.news.recv()).await;
            let status = news.expect("news within a minute").expect("the host lives");
            if status.id.as_str() == "s" && self.states.last() != Some(&status.state) {
                self.states.push(status.state);
            }
            if self.states.last().is_some_and(&holds) {
                return self.states.last().expect("a state");
            }
        }
    }

    /// The attempts that were announced: which, and of how many.
    pub fn attempts(&self) -> Vec<(u32, u32)> {
        let attempts = self.states.iter().filter_map(|state| match state {
            ServerState::Restarting { attempt, of, .. } => Some((*attempt, *of)),
            _ => None,
        });
        attempts.collect()
    }
}

/// A call on its way.
pub struct Calling {
    pub cancel: CancellationToken,
    pub news: mpsc::UnboundedReceiver<CallNews>,
    pub result: JoinHandle<ToolResult>,
}

/// A call that is over.
pub struct Called {
    pub result: ToolResult,
    pub news: Vec<CallNews>,
}

pub fn start_call(host: &Host, tool: &str, arguments: Value) -> Calling {
    start_asking_call(host, tool, arguments, Arc::new(Nobody))
}

/// A call whose server may ask something.
pub fn start_asking_call(host: &Host, tool: &str, arguments: Value, ask: Arc<dyn Asker>) -> Calling {
    let (sender, news) = mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let context = CallContext {
        conversation: ConversationId::from("c"),
        turn: TurnId::from("t"),
        cancel: cancel.clone(),
        news: sender,
        ask,
    };
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let call = ToolCall {
        id: ToolCallId::from(format!("call of {tool}")),
        tool: ToolName::from(tool),
        arguments,
        malformed: None,
        provider_data: None,
    };
    Calling { cancel, news, result: tokio::spawn(host.call(call, context)) }
}

impl Calling {
    pub async fn finish(mut self) -> Called {
        let result = self.result.await.expect("a call never panics");
        let mut news = Vec::new();
        while let Some(item) = self.news.recv().await {
            news.push(item);
        }
        Called { result, news }
    }

    /// Waits for the first step of progress.
    pub async fn progressed(&mut self) -> Progress {
        loop {
            match self.news.recv().await.expect("the call still runs") {
                CallNews::Progress(progress) => return progress,
                CallNews::Wire(..) | CallNews::Log(_) => {}
            }
        }
    }

    /// Waits until the call has been sent.
    pub async fn sent(&mut self) -> Value {
        loop {
            if let CallNews::Wire(WireDirection::Sent, message) =
                self.news.recv().await.expect("the call still runs")
            {
                return message;
            }
        }
    }
}

/// Calls a tool and waits for the end.
pub async fn call(host: &Host, tool: &str, arguments: Value) -> Called {
    start_call(host, tool, arguments).finish().await
}

/// Calls a tool without arguments.
pub async fn call_plain(host: &Host, tool: &str) -> Called {
    call(host, tool, json!({})).await
}

impl Called {
    pub fn text(&self) -> String {
        self.result.text()
    }

    pub fn progress(&self) -> Vec<f64> {
        let progress = self.news.iter().filter_map(|news| match news {
            CallNews::Progress(progress) => Some(progress.done),
            CallNews::Wire(..) | CallNews::Log(_) => None,
        });
        progress.collect()
    }

    pub fn logs(&self) -> Vec<&str> {
        let logs = self.news.iter().filter_map(|news| match news {
            CallNews::Log(line) => Some(line.as_str()),
            CallNews::Wire(..) | CallNews::Progress(_) => None,
        });
        logs.collect()
    }

    pub fn wire(&self) -> Vec<(WireDirection, &Value)> {
        let wire = self.news.iter().filter_map(|news| match news {
            CallNews::Wire(direction, message) => Some((*direction, message)),
            CallNews::Progress(_) | CallNews::Log(_) => None,
        });
        wire.collect()
    }
}
