//! What can be seen of a server from outside.
//!
//! Invariant: no secrets (they are masked before they get here), no open handles.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{ServerId, ToolSpec};

use crate::trust::ToolReview;

/// One server as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    /// Our id.
    pub id: ServerId,
    /// How it is.
    pub state: ServerState,
    /// What it says of itself; a claim.
    pub reported: Option<Reported>,
    /// The protocol revision in use, e.g. `2025-11-25`.
    pub protocol: Option<String>,
    /// What it says about its use; untrusted text.
    pub instructions: Option<String>,
    /// Its tools by public name. They stay when it dies: a call starts it anew.
    pub tools: Arc<[ToolSpec]>,
    /// Those that the user has not seen as they are now. New ones are among `tools`; the others are withheld.
    pub unseen: Arc<[ToolReview]>,
    /// How many resources it listed; none until they were counted, which nobody waits for. Like its tools they stay
    /// when it dies.
    pub resources: Option<u32>,
    /// How many prompts it listed; none until they were counted.
    pub prompts: Option<u32>,
    /// The authorization server at which somebody signed in to a remote server.
    pub signed_in: Option<String>,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u64,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerState {
    /// Not running, on purpose.
    Stopped,
    /// On its way.
    Starting(StartStep),
    /// Answers calls.
    Ready,
    /// Answers calls; some tools were dropped, and why.
    Degraded(Vec<String>),
    /// Broken for now; started again by itself after a pause.
    Restarting {
        /// Which attempt comes next, from 1.
        attempt: u32,
        /// How many there are before it is given up.
        of: u32,
        /// The pause before it.
        delay: Duration,
        /// What went wrong the last time.
        failure: Failure,
    },
    /// Waits for the user's approval of what would run.
    NeedsApproval,
    /// Waits for the user to sign in.
    NeedsSignIn,
    /// Broken. The next call, or a restart, tries again.
    Failed(Failure),
}

impl ServerState {
    /// Whether it is on its way and may be ready soon. One that died and comes back by itself is not waited for.
    pub fn is_starting(&self) -> bool {
        match self {
            Self::Starting(_) => true,
            Self::Restarting { failure, .. } => failure.step.is_some(),
            Self::Stopped
            | Self::Ready
            | Self::Degraded(_)
            | Self::NeedsApproval
            | Self::NeedsSignIn
            | Self::Failed(_) => false,
        }
    }
}

/// The steps of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// The process is started.
    Spawn,
    /// The protocol is agreed on.
    Handshake,
    /// The tools are listed.
    ListTools,
}

impl fmt::Display for StartStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spawn => "start the process",
            Self::Handshake => "handshake",
            Self::ListTools => "list the tools",
        })
    }
}

/// Why a server is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind.
    pub code: FailureCode,
    /// The step that failed; none when it had been ready.
    pub step: Option<StartStep>,
    /// What happened, naming the thing.
    pub message: String,
    /// The way out, one sentence.
    pub hint: Option<String>,
    /// How the process ended, when it did.
    pub exit: Option<Exit>,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

impl Failure {
    /// Exit and stderr as text for those who want to see it; none when there is neither.
    pub fn detail(&self) -> Option<String> {
        let exit = self.exit.map(|exit| exit.to_string());
        let lines: Vec<String> = exit.into_iter().chain(self.stderr.iter().cloned()).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(last) = self.stderr.last() {
            write!(f, "; last line of stderr: {last}")?;
        }
        Ok(())
    }
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// There is no such command.
    CommandNotFound,
    /// The file may not be run.
    NotExecutable,
    /// The working folder is missing.
    BadWorkingFolder,
    /// A `${…}` of its configuration has no value.
    MissingValue,
    /// The keyring that has its secrets is locked.
    KeyringLocked,
    /// There is no keyring for its secrets, or none that answers.
    NoKeyring,
    /// The system would not start the process.
    Spawn,
    /// It did not get ready in time.
    StartTimeout,
    /// It ended before it was ready.
    ExitedAtStart,
    /// It ended, or closed its output, after it had been ready.
    Died,
    /// It would not agree on a protocol.
    Handshake,
    /// Its address is none.
    BadAddress,
    /// Nothing answers at its address.
    Unreachable,
    /// It wants the user to sign in.
    SignIn,
    /// Signing in to it failed.
    Unauthorized,
    /// It would not list its tools.
    ListTools,
}

impl FailureCode {
    /// Whether another start may help. What needs a change by the user, or has already taken all the time that a
    /// start may take, is not tried again.
    pub(crate) fn may_pass(self) -> bool {
        match self {
            Self::Spawn | Self::ExitedAtStart | Self::Died | Self::Unreachable => true,
            Self::CommandNotFound
            | Self::NotExecutable
            | Self::BadWorkingFolder
            | Self::StartTimeout
            | Self::Handshake
            | Self::MissingValue
            | Self::KeyringLocked
            | Self::NoKeyring
            | Self::BadAddress
            | Self::SignIn
            | Self::Unauthorized
            | Self::ListTools => false,
        }
    }

    /// The code by which a user interface chooses its words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandNotFound => "server_command_not_found",
            Self::NotExecutable => "server_not_executable",
            Self::BadWorkingFolder => "server_bad_working_folder",
            Self::MissingValue => "server_missing_value",
            Self::KeyringLocked => "server_keyring_locked",
            Self::NoKeyring => "server_no_keyring",
            Self::Spawn => "server_spawn",
            Self::StartTimeout => "server_start_timeout",
            Self::ExitedAtStart => "server_exited_at_start",
            Self::Died => "server_died",
            Self::Handshake => "server_handshake",
            Self::BadAddress => "server_bad_address",
            Self::Unreachable => "server_unreachable",
            Self::SignIn => "server_sign_in",
            Self::Unauthorized => "server_unauthorized",
            Self::ListTools => "server_list_tools",
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// The system does not say.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}
