//! The MCP servers: those of the vaults, and those of the settings.
//!
//! Invariant: only our own notes server is believed without the user's word; what a server says of itself is shown,
//! never used to tell servers apart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{
    CallContext, ConversationId, Nobody, Rule, RuleEffect, RuleMatch, ServerId, ToolCall, ToolCallId,
    ToolOutcome, ToolProvider, ToolResult, ToolSpec, TurnId,
};
use lectern_mcp::{
    Answers, Failure, HostOptions, Program, ServerConfig, ServerStatus, StartStep as McpStep, Transport,
};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::{Engine, unknown_server};
use crate::home::Home;
use crate::options::EngineOptions;
use crate::problem::chain;
use crate::settings::{ServerEntry, Settings};
use crate::vaults::{self, Vault};
use crate::view::{
    AppNews, ApprovalView, AuthView, NamedValue, NoteView, Problem, ServerState, ServerView, StartStep,
    ToolView, TransportView,
};

/// How long a turn waits for servers that are still on their way. Who needs all of them waits with
/// [`Engine::servers_ready`].
const SEND_WAITS: Duration = Duration::from_secs(5);

/// What is shown instead of a secret.
const HIDDEN: &str = "••••••";

/// The name of the notes server's tool that reads a note.
const READ_NOTE: &str = "read_note";

impl Engine {
    /// All servers as they are now, the vaults' first.
    pub fn servers(&self) -> Vec<ServerView> {
        self.0.host.statuses().into_iter().map(|status| self.server_view(status)).collect()
    }

    /// Waits until no server is starting any more; each start has its own limit of time.
    pub async fn servers_ready(&self) {
        self.0.host.settled().await;
    }

    /// Ends a server and starts it anew. Returns at once; the news tell what becomes of it.
    pub fn restart_server(&self, id: &ServerId) -> Result<(), Problem> {
        self.0.host.restart(id).map_err(|_| unknown_server(id))
    }

    /// The text of a note, from the server that serves its vault.
    pub async fn read_note(&self, server: &ServerId, path: &str) -> Result<NoteView, Problem> {
        let vault = self.state().vaults.iter().find(|vault| vault.server == *server).cloned();
        let vault = vault.ok_or_else(|| unknown_server(server))?;
        let mut text = String::new();
        let mut offset = 0;
        loop {
            let result = self.call_read_note(server, path, offset).await?;
            let page = Page::of(&result);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&page.text);
            match page.next {
                Some(next) if next > offset => offset = next,
                Some(_) | None => break,
            }
        }
        Ok(NoteView { vault: vault.path.display().to_string(), path: path.to_owned(), text })
    }

    pub(super) async fn servers_settled(&self) {
        // A server that needs longer offers its tools from the next step on.
        let _ = tokio::time::timeout(SEND_WAITS, self.0.host.settled()).await;
    }

    /// Passes on what the host tells, for as long as there is an engine.
    pub(super) fn follow_servers(&self) {
        let mut changes = self.0.host.subscribe();
        let engine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                let status = match changes.recv().await {
                    Ok(status) => status,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let Some(inner) = engine.upgrade() else { return };
                let engine = Engine(inner);
                let server = engine.server_view(status);
                engine.tell(AppNews::ServerChanged { server });
            }
        });
    }

    fn server_view(&self, status: ServerStatus) -> ServerView {
        let config = self.0.host.config(&status.id).ok();
        let state = self.state();
        let built_in = state.vaults.iter().any(|vault| vault.server == status.id);
        let rules = &state.settings.rules;
        let on_server = RuleMatch::Server { server: status.id.clone() };
        ServerView {
            reported: status.reported.map(|reported| format!("{} {}", reported.name, reported.version)),
            command: config.as_ref().map(ServerConfig::display_command).unwrap_or_default(),
            state: state_of(status.state),
            tools: status.tools.iter().map(|spec| tool_view(spec, rules)).collect(),
            protocol: status.protocol,
            built_in,
            transport: transport_view(config.as_ref()),
            enabled: config.as_ref().is_some_and(|config| !config.disabled),
            trusted: config.as_ref().is_some_and(|config| config.trusted),
            approval: ApprovalView::Approved,
            auth: AuthView::None,
            permission: effect_of(rules, &on_server),
            instructions: status.instructions,
            resources: 0,
            prompts: 0,
            starts: status.starts,
            timeout_s: config.and_then(|config| config.timeout_s),
            id: status.id,
        }
    }

    async fn call_read_note(
        &self,
        server: &ServerId,
        path: &str,
        offset: u64,
    ) -> Result<ToolResult, Problem> {
        let tools = self.0.host.tools();
        let spec = tools.iter().find(|spec| spec.server == *server && spec.original_name == READ_NOTE);
        let spec =
            spec.ok_or_else(|| Problem::new("no_note", format!("the server `{server}` reads no notes now")))?;
        let mut arguments = serde_json::Map::new();
        arguments.insert("path".to_owned(), Value::from(path));
        if offset > 0 {
            arguments.insert("offset".to_owned(), Value::from(offset));
        }
        let call = ToolCall {
            id: ToolCallId::fresh(),
            tool: spec.name.clone(),
            arguments,
            malformed: None,
            provider_data: None,
        };
        let context = CallContext {
            conversation: ConversationId::fresh(),
            turn: TurnId::fresh(),
            cancel: CancellationToken::new(),
            news: tokio::sync::mpsc::unbounded_channel().0,
            ask: Arc::new(Nobody),
        };
        let result = self.0.host.call(call, context).await;
        match result.outcome {
            ToolOutcome::Succeeded => Ok(result),
            ToolOutcome::Failed | ToolOutcome::Denied | ToolOutcome::Cancelled => {
                Err(Problem::new("no_note", result.text()))
            }
        }
    }
}

/// What is served, and the servers for it and beside it.
pub(super) fn planned(
    home: &Home,
    settings: &Settings,
    options: &EngineOptions,
    executable: &Path,
) -> Result<(Vec<Vault>, Vec<ServerConfig>), Problem> {
    if options.without_servers {
        return Ok((vaults::of_settings(home, settings), Vec::new()));
    }
    let others: Vec<ServerConfig> = match &options.mcp_config {
        Some(path) => servers_of_file(path)?,
        None => settings.servers.iter().map(|(id, entry)| config_of_entry(id, entry)).collect(),
    };
    let taken = others.iter().map(|config| config.id.0.clone()).collect();
    let vaults = if !options.vaults.is_empty() {
        vaults::of_folders(&options.vaults, taken)?
    } else if options.mcp_config.is_some() {
        Vec::new()
    } else {
        vaults::of_settings(home, settings)
    };
    let mut configs: Vec<ServerConfig> = vaults.iter().map(|vault| vault_config(vault, executable)).collect();
    configs.extend(others);
    Ok((vaults, configs))
}

/// The notes server of a vault: this executable again.
pub(super) fn vault_config(vault: &Vault, executable: &Path) -> ServerConfig {
    let arguments = ["vault".to_owned(), vault.path.display().to_string()];
    let mut config = ServerConfig::new(vault.server.clone(), executable.display().to_string(), arguments);
    config.trusted = true;
    config
}

/// What the host may do.
pub(super) fn host_options(home: &Home, settings: &Settings) -> HostOptions {
    HostOptions {
        log_dir: Some(home.logs()),
        traffic_dir: settings.keep_traffic.then(|| home.logs()),
        answers: Answers { elicitation: true, sampling: true },
        ..HostOptions::default()
    }
}

fn config_of_entry(id: &str, entry: &ServerEntry) -> ServerConfig {
    let program = Program {
        command: entry.command.clone(),
        args: entry.args.clone(),
        env: entry.env.clone(),
        cwd: entry.cwd.clone(),
    };
    let mut config = ServerConfig::of(id, Transport::Stdio(program));
    config.disabled = entry.disabled;
    config.timeout_s = entry.timeout_s;
    config.trusted = entry.trusted;
    config
}

fn servers_of_file(path: &Path) -> Result<Vec<ServerConfig>, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_mcp_config", format!("{}: {reason}", path.display()))
            .hint(r#"The file looks like {"mcpServers": {"ID": {"command": "…", "args": ["…"]}}}."#)
    };
    let text = std::fs::read_to_string(path).map_err(|error| problem(vaults::reason(&error)))?;
    let variable = |name: &str| std::env::var(name).ok();
    let read = lectern_mcp::read_config(&text, variable).map_err(|error| problem(chain(&error)))?;
    match read.skipped.first() {
        // Somebody named this file for this run; a server that is quietly missing would be a riddle.
        Some(skipped) => Err(problem(format!("server `{}`: {}", skipped.name, skipped.reason))),
        None => Ok(read.servers),
    }
}

fn tool_view(spec: &ToolSpec, rules: &[Rule]) -> ToolView {
    ToolView {
        spec: spec.clone(),
        permission: effect_of(rules, &RuleMatch::Tool { tool: spec.name.clone() }),
        changed: None,
        enabled: true,
        visible_name: spec.original_name.clone(),
        visible_description: spec.description.clone(),
    }
}

/// What the last rule about exactly this says.
fn effect_of(rules: &[Rule], about: &RuleMatch) -> Option<RuleEffect> {
    rules.iter().rev().find(|rule| rule.matches == *about).map(|rule| rule.effect)
}

fn transport_view(config: Option<&ServerConfig>) -> TransportView {
    match config.map(|config| &config.transport) {
        Some(Transport::Stdio(program)) => TransportView::Stdio {
            command: program.command.clone(),
            args: program.args.clone(),
            env: hidden(program.env.keys()),
            cwd: program.cwd.as_ref().map(|cwd| cwd.display().to_string()),
        },
        Some(Transport::Http(endpoint)) => {
            TransportView::Http { url: endpoint.url.clone(), headers: hidden(endpoint.headers.keys()) }
        }
        None => TransportView::Stdio { command: String::new(), args: Vec::new(), env: Vec::new(), cwd: None },
    }
}

/// Names without their values.
fn hidden<'a>(names: impl Iterator<Item = &'a String>) -> Vec<NamedValue> {
    names.map(|name| NamedValue { name: name.clone(), value: HIDDEN.to_owned(), secret: true }).collect()
}

fn state_of(state: lectern_mcp::ServerState) -> ServerState {
    match state {
        lectern_mcp::ServerState::Stopped => ServerState::Stopped,
        lectern_mcp::ServerState::Starting(step) => ServerState::Starting { step: step_of(step) },
        lectern_mcp::ServerState::Ready => ServerState::Ready,
        lectern_mcp::ServerState::Degraded(reasons) => ServerState::Degraded { reasons },
        lectern_mcp::ServerState::Restarting { attempt, of, delay, failure } => ServerState::Restarting {
            attempt,
            of,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            problem: problem_of(&failure),
        },
        lectern_mcp::ServerState::NeedsApproval => ServerState::NeedsApproval,
        lectern_mcp::ServerState::NeedsSignIn => ServerState::NeedsSignIn,
        lectern_mcp::ServerState::Failed(failure) => ServerState::Failed { problem: problem_of(&failure) },
    }
}

fn step_of(step: McpStep) -> StartStep {
    match step {
        McpStep::Spawn => StartStep::Spawn,
        McpStep::Handshake => StartStep::Handshake,
        McpStep::ListTools => StartStep::ListTools,
    }
}

fn problem_of(failure: &Failure) -> Problem {
    Problem {
        code: failure.code.as_str().to_owned(),
        message: failure.message.clone(),
        hint: failure.hint.clone(),
        detail: failure.detail(),
    }
}

/// A piece of a note, and the line where the next one begins.
struct Page {
    text: String,
    next: Option<u64>,
}

impl Page {
    fn of(result: &ToolResult) -> Self {
        let field = |name: &str| result.structured.as_ref().and_then(|value| value.get(name));
        let text = field("text").and_then(Value::as_str);
        Self {
            text: text.map_or_else(|| result.text(), str::to_owned),
            next: field("nextOffset").and_then(Value::as_u64),
        }
    }
}
