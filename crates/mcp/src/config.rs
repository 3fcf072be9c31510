//! What a server is and what the host allows itself.
//!
//! Invariant: plain data. Nothing here starts a process or reads a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use lectern_core::{Asker, ServerId};

use crate::auth::Browser;
use crate::mask::Mask;
use crate::resources::NewsDesk;
use crate::secrets::Secrets;
use crate::server::RestartPolicy;
use crate::trust::Approval;

/// One server of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Our own id; the first part of the tools' public names.
    pub id: ServerId,
    /// How it is reached.
    pub transport: Transport,
    /// Kept in the settings, but not started.
    pub disabled: bool,
    /// Seconds that a call may take without a word of progress; [`HostOptions::call_timeout`] when none.
    pub timeout_s: Option<u64>,
    /// The same for single tools, by their original names; wins over `timeout_s`.
    pub tool_timeouts: BTreeMap<String, u64>,
    /// Seconds that a call may take as a whole; [`HostOptions::total_timeout`] when none.
    pub total_timeout_s: Option<u64>,
    /// Calls that run side by side at most; further ones wait.
    pub max_concurrent: Option<u32>,
    /// Characters of a result's text that reach the model; [`HostOptions::result_budget`] when none.
    pub result_budget: Option<usize>,
    /// Whether what it claims of its tools (`readOnlyHint`) is believed. Never taken from an imported file.
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process that speaks over stdin and stdout.
    Stdio(Program),
    /// An address that speaks streamable HTTP, or HTTP with SSE as before 2025-03-26.
    Http(Endpoint),
}

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The executable, a bare name or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its own environment, added to the few variables that every server gets.
    pub env: BTreeMap<String, String>,
    /// Its working folder; the app's own when none.
    pub cwd: Option<PathBuf>,
}

/// An address to talk to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `https://…`, or `http://…`.
    pub url: String,
    /// Headers that every request carries, e.g. `Authorization`.
    pub headers: BTreeMap<String, String>,
    /// How to sign in, where the server wants it.
    pub sign_in: SignIn,
}

/// How a remote server is signed in to. None of it is needed: a server says what it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignIn {
    /// The client id that the authorization server's operator gave out.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<String>,
    /// The address of a document about the client, which is then its id (Client ID Metadata Document).
    pub client_metadata_url: Option<String>,
    /// Who signs in.
    pub grant: Grant,
}

/// Who signs in to a remote server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// The user, in a browser.
    #[default]
    User,
    /// The client itself, with its id and secret (`client_credentials`).
    Client,
}

impl ServerConfig {
    /// A child process with nothing but a command and arguments.
    pub fn new<A: Into<String>>(
        id: impl Into<ServerId>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::of(id, Transport::Stdio(Program { command: command.into(), args, ..Program::default() }))
    }

    /// A remote server with nothing but an address.
    pub fn remote(id: impl Into<ServerId>, url: impl Into<String>) -> Self {
        Self::of(id, Transport::Http(Endpoint { url: url.into(), ..Endpoint::default() }))
    }

    /// A server with nothing but the way to it.
    pub fn of(id: impl Into<ServerId>, transport: Transport) -> Self {
        Self {
            id: id.into(),
            transport,
            disabled: false,
            timeout_s: None,
            tool_timeouts: BTreeMap::new(),
            total_timeout_s: None,
            max_concurrent: None,
            result_budget: None,
            trusted: false,
        }
    }

    /// The program, unless it is remote.
    pub fn program(&self) -> Option<&Program> {
        match &self.transport {
            Transport::Stdio(program) => Some(program),
            Transport::Http(_) => None,
        }
    }

    /// The program to change, unless it is remote.
    pub fn program_mut(&mut self) -> Option<&mut Program> {
        match &mut self.transport {
            Transport::Stdio(program) => Some(program),
            Transport::Http(_) => None,
        }
    }

    /// Whether the variable or header of this name holds a secret: in clear, or as a placeholder for one.
    pub fn is_secret(&self, name: &str) -> bool {
        let values = match &self.transport {
            Transport::Stdio(program) => &program.env,
            Transport::Http(endpoint) => &endpoint.headers,
        };
        values.get(name).is_some_and(|value| {
            crate::mask::is_secret(name, value) || crate::placeholder::is_secret_reference(value)
        })
    }

    /// The configuration with dots for its secrets. For display.
    pub fn masked(&self) -> Self {
        let mask = Mask::of(self);
        let mut masked = crate::placeholder::mapped(self, &|text| mask.text(text));
        if let Transport::Stdio(program) = &mut masked.transport {
            // A folder is shown as it is; it is opened by people.
            program.cwd = self.program().and_then(|program| program.cwd.clone());
        }
        masked
    }

    /// The address, or the command line as a person would type it, secrets masked. For display, never for a shell.
    pub fn display_command(&self) -> String {
        let mask = Mask::of(self);
        match &self.transport {
            Transport::Stdio(program) => {
                let words = std::iter::once(&program.command).chain(&program.args);
                words.map(|word| quoted(&mask.text(word))).collect::<Vec<_>>().join(" ")
            }
            Transport::Http(endpoint) => mask.text(&endpoint.url),
        }
    }
}

/// A folder that servers may be told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A `file://` address.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// Folders that may become others while servers run. Clones are the same folders.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<RwLock<Vec<Root>>>);

impl Roots {
    /// The folders as they are now.
    pub fn now(&self) -> Vec<Root> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other folders from now on; whether they are others at all.
    pub(crate) fn set(&self, roots: Vec<Root>) -> bool {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *now != roots;
        *now = roots;
        changed
    }
}

impl From<Vec<Root>> for Roots {
    fn from(roots: Vec<Root>) -> Self {
        Self(Arc::new(RwLock::new(roots)))
    }
}

/// What servers may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Elicitation: forms and addresses.
    pub elicitation: bool,
    /// Sampling: replies of a model.
    pub sampling: bool,
}

/// What the host allows itself and its servers.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// How the host introduces itself.
    pub client_name: String,
    /// Its version.
    pub client_version: String,
    /// Where the servers' logs go (two files of 5 MB each at most); nowhere when none.
    pub log_dir: Option<PathBuf>,
    /// Where every message of every server is kept as well (two files of 5 MB each at most); only in memory when none.
    pub traffic_dir: Option<PathBuf>,
    /// Folders for servers that ask. Empty: the capability is not declared, and who asks anyway gets an empty list.
    pub roots: Roots,
    /// The folder that `${LECTERN_WORKSPACE}` in a server's configuration means; made when a server that names it starts.
    pub workspace: Option<PathBuf>,
    /// Who answers servers when it is not known for which call they ask; nobody when none.
    pub asker: Option<Arc<dyn Asker>>,
    /// What calls, or `asker`, can answer. Only that is declared to servers.
    pub answers: Answers,
    /// Where servers' news of their resources and prompts go.
    pub news: NewsDesk,
    /// From the start of the process to its list of tools.
    pub start_timeout: Duration,
    /// How long a server may keep silent about `server/discover` before `initialize` is sent as well.
    pub probe_timeout: Duration,
    /// A call without a word of progress.
    pub call_timeout: Duration,
    /// A call as a whole.
    pub total_timeout: Duration,
    /// Characters of a result's text that reach the model.
    pub result_budget: usize,
    /// Bytes of one message; a longer one is an error of its call.
    pub max_message: usize,
    /// Tools of one server.
    pub max_tools: usize,
    /// How often a broken server is started again by itself.
    pub restart: RestartPolicy,
    /// The only protocol revision to speak; the newest that both know when none.
    pub protocol: Option<String>,
    /// Where users sign in. Without it nothing opens by itself: a server that wants it waits for the user.
    pub browser: Option<Arc<dyn Browser>>,
    /// Who knows what the user approved; everything is, when none.
    pub approval: Option<Arc<dyn Approval>>,
    /// Where `${secret:NAME}` and `${input:NAME}` are looked up, and tokens kept; without it such a server can't start.
    pub secrets: Option<Arc<dyn Secrets>>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            client_name: "lectern".into(),
            client_version: env!("CARGO_PKG_VERSION").into(),
            log_dir: None,
            traffic_dir: None,
            roots: Roots::default(),
            workspace: None,
            asker: None,
            answers: Answers::default(),
            news: NewsDesk::default(),
            start_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(600),
            result_budget: 16_000,
            max_message: 16 << 20,
            max_tools: 1_000,
            restart: RestartPolicy::default(),
            protocol: None,
            browser: None,
            approval: None,
            secrets: None,
        }
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,•".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_displayed_command_hides_secrets_and_quotes_blanks() {
        let mut config = ServerConfig::new(
            "x",
            "npx",
            ["-y", "a server", "--api-key", "hunter2hunter2", "--url=http://h"],
        );
        let program = config.program_mut().unwrap();
        program.env.insert("GITHUB_TOKEN".into(), "ghp_0123456789".into());
        program.args.push("--header=ghp_0123456789".into());
        assert_eq!(
            config.display_command(),
            "npx -y 'a server' --api-key •••••• --url=http://h --header=••••••"
        );
    }
}
