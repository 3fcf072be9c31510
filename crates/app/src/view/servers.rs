//! A server as the settings show it, and as they save it.
//!
//! Invariant: a secret crosses in one direction only, from a form to the engine; what comes back is masked.

use lectern_core::{RuleEffect, ServerId, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use super::Problem;

/// One MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct ServerView {
    /// Our id.
    pub id: ServerId,
    /// What it says of itself: name and version.
    pub reported: Option<String>,
    /// The command or address, secrets masked.
    pub command: String,
    /// How it is.
    pub state: ServerState,
    /// Its tools.
    pub tools: Vec<ToolView>,
    /// Protocol revision in use, e.g. `2025-11-25`.
    pub protocol: Option<String>,
    /// Whether it is built in (the notes server of a vault).
    pub built_in: bool,
    /// How it is reached, secrets masked.
    pub transport: TransportView,
    /// Whether it is started with Lectern.
    pub enabled: bool,
    /// Whether what it claims of its tools is believed.
    pub trusted: bool,
    /// Whether the user has said that it may run as it is.
    pub approval: ApprovalView,
    /// Whether somebody is signed in.
    pub auth: AuthView,
    /// What holds for all its tools that have no rule of their own; none for the default.
    pub permission: Option<RuleEffect>,
    /// What it says about its use; untrusted text.
    pub instructions: Option<String>,
    /// Resources that it listed; 0 until they are counted, which is soon after its start.
    pub resources: u32,
    /// Prompts that it listed; 0 until they are counted.
    pub prompts: u32,
    /// How often it was started since Lectern was.
    pub starts: u64,
    /// Seconds that a call may take without a word of progress; none for the default.
    pub timeout_s: Option<u64>,
}

/// One tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct ToolView {
    /// The tool, verbatim.
    pub spec: ToolSpec,
    /// The rule for this tool; none for the server's or the default.
    pub permission: Option<RuleEffect>,
    /// What became different since it was accepted; such a tool is not offered.
    pub changed: Option<ToolChange>,
    /// Whether models may see it.
    pub enabled: bool,
    /// The server's name of it, with what can't be seen made visible.
    pub visible_name: String,
    /// Its description, with what can't be seen made visible.
    pub visible_description: String,
}

/// A tool's definition before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct ToolChange {
    /// As it was accepted.
    #[ts(type = "unknown")]
    pub before: Value,
    /// As the server tells it now.
    #[ts(type = "unknown")]
    pub after: Value,
    /// Names the definition as it is now; who accepts it must say it.
    pub digest: String,
}

/// How a server is reached; secrets masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum TransportView {
    /// A child process.
    Stdio {
        /// The executable.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its own environment.
        env: Vec<NamedValue>,
        /// Its working folder.
        cwd: Option<String>,
    },
    /// An address.
    Http {
        /// `https://…`, or `http://…`.
        url: String,
        /// Headers that every request carries.
        headers: Vec<NamedValue>,
    },
}

/// A variable or a header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct NamedValue {
    /// Its name.
    pub name: String,
    /// Its value; dots when it is a secret.
    pub value: String,
    /// Whether it is a secret.
    pub secret: bool,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum ServerState {
    /// Not running, on purpose.
    Stopped,
    /// Waits until the user has said that it may run.
    NeedsApproval,
    /// Waits until the user has signed in.
    NeedsSignIn,
    /// On its way.
    Starting {
        /// Which step.
        step: StartStep,
    },
    /// It ended by itself, and is started again after a while.
    Restarting {
        /// Which attempt comes next; the first is 1.
        attempt: u32,
        /// How many attempts there are.
        of: u32,
        /// Milliseconds from this news to the attempt.
        delay_ms: u64,
        /// Why it ended.
        problem: Problem,
    },
    /// Answers calls.
    Ready,
    /// Answers calls; some tools were dropped.
    Degraded {
        /// Why.
        reasons: Vec<String>,
    },
    /// Broken.
    Failed {
        /// Cause, exit code and last stderr lines.
        problem: Problem,
    },
}

/// The steps of a server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum StartStep {
    /// The process is started.
    Spawn,
    /// The protocol is agreed on.
    Handshake,
    /// The tools are listed.
    ListTools,
}

/// Whether the user has said that a server may run as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum ApprovalView {
    /// It may.
    Approved,
    /// It was never asked about.
    New {
        /// Names what would run; the approval must say it.
        digest: String,
        /// What would run, line by line, secrets masked.
        shown: String,
    },
    /// It became different since.
    Changed {
        /// Names what would run now; the approval must say it.
        digest: String,
        /// What may run.
        before: String,
        /// What would run now.
        after: String,
    },
}

/// Whether somebody is signed in at a remote server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum AuthView {
    /// It asks for nothing, as far as is known.
    None,
    /// Nobody is.
    SignedOut,
    /// Somebody is.
    SignedIn {
        /// At whose door.
        issuer: String,
    },
}

/// A server as a form saves it. Secrets go into the keyring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct ServerDraft {
    /// The server that is changed; none adds one.
    pub id: Option<ServerId>,
    /// Its name, from which the id of a new one is made.
    pub name: String,
    /// How it is reached.
    pub transport: DraftTransport,
    /// Whether it is started with Lectern.
    pub enabled: bool,
    /// Seconds that a call may take without a word of progress; none for the default.
    pub timeout_s: Option<u64>,
    /// Whether what it claims of its tools is believed.
    pub trusted: bool,
}

/// How a server of a form is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum DraftTransport {
    /// A child process.
    Stdio {
        /// The executable.
        command: String,
        /// Its arguments, in order.
        args: Vec<DraftArgument>,
        /// Its own environment.
        env: Vec<DraftNamed>,
        /// Its working folder.
        cwd: Option<String>,
    },
    /// An address.
    Http {
        /// The address; none keeps the present one (what is shown of it may be masked).
        url: Option<String>,
        /// Headers that every request carries.
        headers: Vec<DraftNamed>,
    },
}

/// A variable or a header of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct DraftNamed {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: DraftValue,
}

/// A value of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum DraftValue {
    /// As it is now under that name.
    Keep,
    /// Written into the settings.
    Plain {
        /// The value.
        text: String,
    },
    /// Written into the keyring; the settings only know its name.
    Secret {
        /// The value.
        text: String,
    },
}

/// An argument of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/servers.ts")]
pub enum DraftArgument {
    /// As it is now at that place (what is shown of it may be masked).
    Keep {
        /// Place among the present arguments; the first is 0.
        position: u32,
    },
    /// Written into the settings.
    Plain {
        /// The argument.
        text: String,
    },
}

/// With this a removed server comes back, for as long as Lectern runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/servers.ts")]
pub struct UndoToken(pub String);
