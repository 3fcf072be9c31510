//! A server as a shell shows it.
//!
//! Invariant: secrets are masked here; text of a server is passed on as what it is, untrusted.

use std::collections::BTreeMap;

use lectern_mcp::{Failure, ServerConfig, ServerStatus, StartStep as McpStep, Transport};

use super::Unusable;
use crate::engine::Engine;
use crate::view::{
    ApprovalView, AuthView, NamedValue, Problem, ServerState, ServerView, StartStep, TransportView,
};

/// What is shown instead of a secret.
const HIDDEN: &str = "••••••";

impl Engine {
    /// An entry of the settings that can't be run, with the reason.
    pub(super) fn unusable_view(&self, unusable: Unusable) -> ServerView {
        let Unusable { id, reason } = unusable;
        let problem = Problem::new("bad_server", format!("the server `{id}` can't be read: {reason}"))
            .hint("Edit or remove it in the settings.");
        ServerView {
            id: id.into(),
            state: ServerState::Failed { problem },
            transport: transport_view(None),
            ..self.stopped_view(&ServerConfig::new("", "", [""; 0]))
        }
    }

    /// A server that the host does not have.
    pub(super) fn stopped_view(&self, config: &ServerConfig) -> ServerView {
        ServerView {
            id: config.id.clone(),
            reported: None,
            command: config.display_command(),
            state: ServerState::Stopped,
            tools: Vec::new(),
            protocol: None,
            built_in: false,
            transport: transport_view(Some(config)),
            enabled: !config.disabled,
            trusted: config.trusted,
            approval: ApprovalView::Approved,
            auth: AuthView::None,
            permission: None,
            instructions: None,
            resources: 0,
            prompts: 0,
            starts: 0,
            timeout_s: config.timeout_s,
        }
    }

    pub(in crate::engine) fn server_view(&self, status: ServerStatus) -> ServerView {
        let config = self.0.host.config(&status.id).ok();
        let built_in = self.state().vaults.iter().any(|vault| vault.server == status.id);
        let tools = self.tool_views(&status);
        ServerView {
            reported: status.reported.map(|reported| format!("{} {}", reported.name, reported.version)),
            command: config.as_ref().map(ServerConfig::display_command).unwrap_or_default(),
            state: state_of(status.state.clone()),
            tools,
            protocol: status.protocol,
            built_in,
            transport: transport_view(config.as_ref()),
            enabled: config.as_ref().is_some_and(|config| !config.disabled),
            trusted: config.as_ref().is_some_and(|config| config.trusted),
            approval: config.as_ref().map_or(ApprovalView::Approved, |config| self.0.approvals.view(config)),
            auth: auth_view(&status.state, status.signed_in),
            permission: self.server_permission(&status.id),
            instructions: status.instructions,
            resources: status.resources.unwrap_or(0),
            prompts: status.prompts.unwrap_or(0),
            starts: status.starts,
            timeout_s: config.and_then(|config| config.timeout_s),
            id: status.id,
        }
    }
}

fn auth_view(state: &lectern_mcp::ServerState, issuer: Option<String>) -> AuthView {
    match (state, issuer) {
        (lectern_mcp::ServerState::NeedsSignIn, _) => AuthView::SignedOut,
        (_, Some(issuer)) => AuthView::SignedIn { issuer },
        (_, None) => AuthView::None,
    }
}

fn transport_view(config: Option<&ServerConfig>) -> TransportView {
    let masked = config.map(ServerConfig::masked);
    match masked.map(|masked| masked.transport) {
        Some(Transport::Stdio(program)) => TransportView::Stdio {
            command: program.command,
            args: program.args,
            env: named(config, program.env),
            cwd: program.cwd.map(|cwd| cwd.display().to_string()),
        },
        Some(Transport::Http(endpoint)) => {
            TransportView::Http { url: endpoint.url, headers: named(config, endpoint.headers) }
        }
        None => TransportView::Stdio { command: String::new(), args: Vec::new(), env: Vec::new(), cwd: None },
    }
}

/// Names with their values; dots for secrets, wherever they are kept.
fn named(config: Option<&ServerConfig>, values: BTreeMap<String, String>) -> Vec<NamedValue> {
    let secret = |name: &str| config.is_some_and(|config| config.is_secret(name));
    let shown = values.into_iter().map(|(name, value)| {
        let secret = secret(&name);
        let value = if secret { HIDDEN.to_owned() } else { value };
        NamedValue { name, value, secret }
    });
    shown.collect()
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
