//! Looks at one server from outside and writes down, one JSON object at a time, what it finds: for people who mend
//! servers, and for programs that test Lectern.
//!
//! Invariant: it ends by itself, within its limits, and knows nothing of any particular server. It goes the way of
//! every other user of the [`Host`].

mod arguments;
mod asker;

use std::sync::Arc;
use std::time::Duration;

use lectern_core::{
    CallContext, CallNews, ConversationId, JsonObject, ServerId, ToolCall, ToolCallId, ToolName, ToolOutcome,
    ToolProvider, ToolSpec, TurnId, WireDirection,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{Answers, HostOptions, ServerConfig};
use crate::host::Host;
use crate::server::{Live, RestartPolicy};
use crate::status::{Failure, ServerState, ServerStatus};
use asker::Defaults;

/// Pages of one list.
const MOST_PAGES: usize = 200;

/// What to do with a server.
#[derive(Debug)]
pub struct Probe {
    /// The server.
    pub server: ServerConfig,
    /// The calls, by the server's own names of its tools, in order.
    pub calls: Vec<(String, JsonObject)>,
    /// Call every tool as well, with arguments made from its schema.
    pub call_all: bool,
    /// How forms are answered; not declared to the server when none.
    pub elicitation: Option<Elicitation>,
    /// The only protocol revision to speak.
    pub protocol: Option<String>,
    /// For the start, and for each call as a whole.
    pub limit: Duration,
    /// Opens the page on which the user signs in.
    pub browser: Option<Arc<dyn crate::auth::Browser>>,
}

/// How a server's forms are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicitation {
    /// With the defaults that the form names, and with something that fits where it names none.
    AcceptDefaults,
    /// With no.
    Decline,
}

/// Does it; tells `say` each finding. True when nothing failed.
pub async fn probe(probe: Probe, say: impl Fn(Value) + Send + Sync) -> bool {
    let id = probe.server.id.clone();
    let asker = probe.elicitation.map(|elicitation| Arc::new(Defaults(elicitation)));
    let options = HostOptions {
        start_timeout: probe.limit,
        call_timeout: probe.limit,
        total_timeout: probe.limit,
        restart: RestartPolicy::never(),
        answers: Answers { elicitation: asker.is_some(), ..Answers::default() },
        asker: asker.clone().map(|asker| asker as Arc<dyn lectern_core::Asker>),
        protocol: probe.protocol.clone(),
        browser: probe.browser.clone(),
        ..HostOptions::default()
    };
    let host = Host::start([probe.server.clone()], options);
    host.settled().await;
    let look = Look { probe: &probe, host: &host, id: &id, asker, say: &say };
    let fine = look.run().await;
    host.close().await;
    fine
}

struct Look<'a, S> {
    probe: &'a Probe,
    host: &'a Host,
    id: &'a ServerId,
    asker: Option<Arc<Defaults>>,
    say: &'a S,
}

impl<S: Fn(Value) + Send + Sync> Look<'_, S> {
    async fn run(&self) -> bool {
        let Ok(status) = self.host.status(self.id) else { return false };
        let Some(live) = self.host.live(self.id) else {
            self.broken(&status);
            return false;
        };
        self.connected(&status);
        let tools = self.host.tools();
        self.tools(&tools, &live);
        let mut fine = self.resources(&live).await;
        fine &= self.prompts(&live).await;
        fine &= self.calls(&tools).await;
        // It may have died without a call that noticed.
        let status = self.host.status(self.id);
        if let Some(status) = status.ok().filter(|status| failure(&status.state).is_some()) {
            self.broken(&status);
            fine = false;
        }
        fine
    }

    fn connected(&self, status: &ServerStatus) {
        let server = status.reported.as_ref().map(|it| json!({"name": it.name, "version": it.version}));
        let problems = match &status.state {
            ServerState::Degraded(reasons) => reasons.as_slice(),
            _ => &[],
        };
        (self.say)(json!({
            "type": "connected", "server": server, "protocol": status.protocol,
            "instructions": status.instructions, "problems": problems,
        }));
    }

    fn broken(&self, status: &ServerStatus) {
        let mut line = json!({"type": "error", "server": self.id.as_str()});
        match failure(&status.state) {
            Some(failure) => {
                line["message"] = json!(failure.message);
                line["code"] = json!(failure.code.as_str());
                line["step"] = json!(failure.step.map(|step| step.to_string()));
                line["hint"] = json!(failure.hint);
                line["exit"] = json!(failure.exit.map(|exit| exit.to_string()));
                line["stderr"] = json!(failure.stderr);
            }
            None => {
                let last = self.host.log_tail(self.id, 1).ok().and_then(|mut lines| lines.pop());
                let state = match status.state {
                    ServerState::NeedsSignIn => "the server waits for the user to sign in",
                    _ => "the server is not ready",
                };
                line["message"] = json!(match last {
                    Some(last) => format!("{state}: {}", last.trim_start_matches("[lectern] ")),
                    None => state.to_owned(),
                });
            }
        }
        (self.say)(line);
    }

    fn tools(&self, tools: &[ToolSpec], live: &Live) {
        let tools: Vec<Value> = tools.iter().map(described).collect();
        (self.say)(json!({"type": "tools", "tools": tools, "dropped": live.tools.dropped}));
    }

    async fn resources(&self, live: &Live) -> bool {
        if !live.session.can("/resources") {
            (self.say)(json!({"type": "resources", "resources": [], "templates": []}));
            return true;
        }
        let resources = self.list(live, "resources/list", "resources").await;
        let templates = self.list(live, "resources/templates/list", "resourceTemplates").await;
        match resources {
            Ok(resources) => {
                // Not every server that has resources knows of templates.
                let templates = templates.unwrap_or_default();
                (self.say)(json!({"type": "resources", "resources": resources, "templates": templates}));
                true
            }
            Err(why) => self.failed("list the resources", &why),
        }
    }

    async fn prompts(&self, live: &Live) -> bool {
        if !live.session.can("/prompts") {
            (self.say)(json!({"type": "prompts", "prompts": []}));
            return true;
        }
        match self.list(live, "prompts/list", "prompts").await {
            Ok(prompts) => {
                (self.say)(json!({"type": "prompts", "prompts": prompts}));
                true
            }
            Err(why) => self.failed("list the prompts", &why),
        }
    }

    fn failed(&self, step: &str, why: &str) -> bool {
        (self.say)(json!({"type": "error", "step": step, "message": why}));
        false
    }

    async fn list(&self, live: &Live, method: &str, field: &str) -> Result<Vec<Value>, String> {
        let all = async {
            let mut found = Vec::new();
            let mut params = json!({});
            for _ in 0..MOST_PAGES {
                let answer = live.peer.ask(method, live.session.params(params)).await;
                let mut answer = answer.map_err(|error| error.to_string())?;
                let Some(Value::Array(page)) = answer.get_mut(field).map(Value::take) else {
                    return Err(format!("the answer to `{method}` has no list"));
                };
                found.extend(page);
                match answer.get("nextCursor").filter(|cursor| cursor.is_string()) {
                    Some(cursor) => params = json!({"cursor": cursor}),
                    None => return Ok(found),
                }
            }
            Err(format!("the list of `{method}` has no end"))
        };
        let no_answer =
            || Err(format!("no answer to `{method}` within {} seconds", self.probe.limit.as_secs_f32()));
        tokio::time::timeout(self.probe.limit, all).await.unwrap_or_else(|_| no_answer())
    }

    async fn calls(&self, tools: &[ToolSpec]) -> bool {
        let mut fine = true;
        let own = self.probe.calls.iter().map(|(name, arguments)| {
            let known = |spec: &&ToolSpec| spec.original_name == *name || spec.name.as_str() == name;
            (name.clone(), tools.iter().find(known), arguments.clone())
        });
        let every = tools
            .iter()
            .filter(|_| self.probe.call_all)
            .map(|spec| (spec.original_name.clone(), Some(spec), arguments::arguments(&spec.input_schema)));
        for (number, (name, spec, arguments)) in own.chain(every).enumerate() {
            fine &= match spec {
                Some(spec) => self.call(number + 1, &name, &spec.name, arguments).await,
                None => {
                    let message = format!("there is no tool `{name}`");
                    (self.say)(
                        json!({"type": "error", "call": name, "number": number + 1, "message": message}),
                    );
                    false
                }
            };
        }
        fine
    }

    async fn call(&self, number: usize, name: &str, tool: &ToolName, arguments: JsonObject) -> bool {
        let (news, mut received) = mpsc::unbounded_channel();
        let context = CallContext {
            conversation: ConversationId::from("probe"),
            turn: TurnId::from("probe"),
            cancel: CancellationToken::new(),
            news,
            ask: match &self.asker {
                Some(asker) => Arc::clone(asker) as Arc<dyn lectern_core::Asker>,
                None => Arc::new(lectern_core::Nobody),
            },
        };
        let call = ToolCall {
            id: ToolCallId::from(format!("probe-{number}")),
            tool: tool.clone(),
            arguments,
            malformed: None,
            provider_data: None,
        };
        let mut last = None;
        let mut running = self.host.call(call, context);
        let result = loop {
            tokio::select! {
                biased;
                Some(told) = received.recv() => self.told(number, name, told, &mut last),
                result = &mut running => break result,
            }
        };
        while let Ok(told) = received.try_recv() {
            self.told(number, name, told, &mut last);
        }
        // A tool that says that it failed has answered; anything else that is no answer is an error.
        let answered = last.as_ref().is_some_and(|reply| reply.get("result").is_some());
        if result.outcome == ToolOutcome::Succeeded || answered {
            (self.say)(json!({
                "type": "result", "call": name, "number": number,
                "is_error": result.outcome != ToolOutcome::Succeeded, "text": result.text(),
                "content": result.content, "structured": result.structured,
                "result": last.and_then(|mut reply| reply.get_mut("result").map(Value::take)),
            }));
            true
        } else {
            (self.say)(json!({"type": "error", "call": name, "number": number, "message": result.text()}));
            false
        }
    }

    fn told(&self, number: usize, name: &str, told: CallNews, last: &mut Option<Value>) {
        match told {
            CallNews::Progress(progress) => (self.say)(json!({
                "type": "progress", "call": name, "number": number, "progress": progress.done,
                "total": progress.total, "message": progress.message,
            })),
            CallNews::Wire(WireDirection::Received, message) if message.get("method").is_none() => {
                *last = Some(message);
            }
            CallNews::Wire(_, _) | CallNews::Log(_) => {}
        }
    }
}

fn failure(state: &ServerState) -> Option<&Failure> {
    match state {
        ServerState::Failed(failure) | ServerState::Restarting { failure, .. } => Some(failure),
        ServerState::Stopped
        | ServerState::Starting(_)
        | ServerState::Ready
        | ServerState::Degraded(_)
        | ServerState::NeedsApproval
        | ServerState::NeedsSignIn => None,
    }
}

fn described(spec: &ToolSpec) -> Value {
    let hints = &spec.annotations;
    json!({
        "name": spec.original_name, "public_name": spec.name.as_str(), "title": spec.title,
        "description": spec.description, "inputSchema": spec.input_schema, "outputSchema": spec.output_schema,
        "annotations": {
            "readOnlyHint": hints.read_only, "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent, "openWorldHint": hints.open_world,
        },
    })
}
