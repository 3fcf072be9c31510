//! How a server is started: process, handshake, list of tools; and what is said when one of them fails.
//!
//! Invariant: a start ends within its limit, names the step that failed, and leaves no process behind when it fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Ended, Live, Server, count};
use crate::config::{HostOptions, ServerConfig};
use crate::connection::{Body, Connection, OpenError};
use crate::handshake::{HandshakeError, LOG_LEVEL, Opening, Session, negotiate};
use crate::lookup::LookupError;
use crate::peer::Peer;
use crate::placeholder::{self, ResolveError};
use crate::process;
use crate::secrets::SecretsError;
use crate::status::{Exit, Failure, FailureCode, ServerState, StartStep};
use crate::tools::ListError;

/// Lines of stderr that a failure shows.
const SHOWN_LINES: usize = 20;

/// How long the answer about the level of the log may take until it is forgotten.
const LOG_LEVEL_WAITS: Duration = Duration::from_secs(10);

/// Why a start failed.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error(transparent)]
    List(#[from] ListError),
}

/// Why an attempt to start failed.
enum Attempt {
    /// It ended when it was probed; it may be an old server that knows nothing but `initialize`.
    LostInProbe(Box<Failure>),
    Failed(Box<Failure>),
}

impl Server {
    /// Starts and greets, if need be twice: some old servers end themselves when they are asked for their protocol.
    pub(super) async fn begin(&self) -> Result<(Connection, Live), Ended> {
        let failed = |failure| Ended::Failed { failure, ready_for: None };
        let opening = *self.opening.get().unwrap_or(&Opening::Probe);
        match self.attempt(opening).await {
            Ok(started) => {
                // It bears to be probed: if it ends at its next start, the probe is not to blame.
                let _ = self.opening.set(opening);
                Ok(started)
            }
            Err(Attempt::Failed(failure)) => Err(failed(failure)),
            Err(Attempt::LostInProbe(failure)) if self.opening.get().is_some() => Err(failed(failure)),
            Err(Attempt::LostInProbe(_)) => {
                tracing::info!(server = %self.id(), "ended when probed; starting it again with `initialize`");
                match self.attempt(Opening::Initialize).await {
                    Ok(started) => {
                        let _ = self.opening.set(Opening::Initialize);
                        Ok(started)
                    }
                    Err(Attempt::Failed(failure) | Attempt::LostInProbe(failure)) => Err(failed(failure)),
                }
            }
        }
    }

    async fn attempt(&self, opening: Opening) -> Result<(Connection, Live), Attempt> {
        self.change(|status| status.state = ServerState::Starting(StartStep::Spawn));
        // Before the clock runs: the keyring may ask the user for its password.
        let config = match self.resolved().await {
            Ok(config) => config,
            Err(error) => return Err(Attempt::Failed(self.start_failure(&error.into(), None))),
        };
        let options = self.options_for_start();
        let limit = options.start_timeout;
        let end = tokio::time::Instant::now() + limit;
        let opened = tokio::time::timeout_at(end, Connection::open(&config, &options, self.records())).await;
        let mut connection = match opened {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Attempt::Failed(self.start_failure(&error.into(), None))),
            Err(_) => return Err(Attempt::Failed(self.timeout_failure(limit))),
        };
        self.change(|status| {
            status.pid = connection.pid();
            status.state = ServerState::Starting(StartStep::Handshake);
        });
        let greeted = tokio::select! {
            // An answer that came tells more than the end after it.
            biased;
            greeted = tokio::time::timeout_at(end, self.greet(connection.peer.clone(), opening)) => greeted,
            // What it had said until then does not matter: it is gone.
            _ = connection.body.ended() => Ok(Err(HandshakeError::LostInProbe.into())),
        };
        let visited = match greeted {
            Ok(Ok(live)) => {
                let visit = tokio::time::timeout_at(end, self.visit(&connection.body, &options));
                visit.await.map(|visited| visited.map(|()| live))
            }
            other => other,
        };
        let error = match visited {
            Ok(Ok(live)) => {
                let signed_in = connection.body.started(self.options.browser.clone()).await;
                self.change(|status| status.signed_in = signed_in);
                return Ok((connection, live));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        let step = self.step();
        let ended_itself =
            tokio::time::timeout(Duration::from_millis(200), connection.body.ended()).await.ok();
        let exit = connection.close().await;
        let probing = opening == Opening::Probe && step == Some(StartStep::Handshake);
        let Some(error) = error else { return Err(Attempt::Failed(self.timeout_failure(limit))) };
        let lost =
            ended_itself.is_some() || matches!(error, StartError::Handshake(HandshakeError::LostInProbe));
        let failure = self.start_failure(&error, ended_itself.map(|_| exit));
        Err(if probing && lost { Attempt::LostInProbe(failure) } else { Attempt::Failed(failure) })
    }

    /// A server that asked who calls only after it was ready greets everybody: the user, who came to sign in, is not
    /// asked by it again.
    async fn visit(&self, body: &Body, options: &HostOptions) -> Result<(), StartError> {
        if options.browser.is_none() || !self.refused_late.load(Ordering::Relaxed) {
            return Ok(());
        }
        body.visit().await.map_err(HandshakeError::Unauthorized)?;
        self.refused_late.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// The configuration with a value for each `${…}`; what came out of the keyring is masked from here on.
    async fn resolved(&self) -> Result<ServerConfig, ResolveError> {
        let workspace = self.options.workspace.as_deref();
        if let Some(folder) = workspace.filter(|_| placeholder::names_workspace(&self.config)) {
            // What is wrong with it, the server's own start says.
            let _ = std::fs::create_dir_all(folder);
        }
        let variable = |name: &str| match workspace.filter(|_| name == placeholder::WORKSPACE) {
            Some(folder) => folder.to_str().map(str::to_owned),
            None => process::variable(name)?.into_string().ok(),
        };
        let secrets = self.options.secrets.as_deref();
        let resolved = placeholder::resolve(&self.config, secrets, variable).await?;
        self.mask.learn(&resolved.config, &resolved.secrets);
        Ok(resolved.config)
    }

    async fn greet(&self, peer: Peer, opening: Opening) -> Result<Live, StartError> {
        let session = negotiate(&peer, &self.options, opening, self.patience()).await?;
        self.change(|status| {
            status.state = ServerState::Starting(StartStep::ListTools);
            status.protocol = Some(session.protocol.clone());
            status.reported = session.reported.clone();
            status.instructions = session.instructions.clone();
            count::at_start(status, &session);
        });
        set_log_level(&peer, &session);
        let tools = self.listing().fetch(&peer, &session).await?;
        Ok(Live { peer, session: Arc::new(session), tools: Arc::new(tools) })
    }

    /// How long the probe may be without an answer. Over pipes an old server may well say nothing; over HTTP there is
    /// an answer to every request, and a server of the modern era takes it amiss when asked for `initialize`.
    fn patience(&self) -> Duration {
        match self.config.program() {
            Some(_) => self.options.probe_timeout,
            None => (self.options.start_timeout / 3).max(self.options.probe_timeout),
        }
    }

    fn step(&self) -> Option<StartStep> {
        match self.status.borrow().state {
            ServerState::Starting(step) => Some(step),
            ServerState::Stopped
            | ServerState::Ready
            | ServerState::Degraded(_)
            | ServerState::Restarting { .. }
            | ServerState::NeedsApproval
            | ServerState::NeedsSignIn
            | ServerState::Failed(_) => None,
        }
    }

    pub(super) fn failure(&self, code: FailureCode, message: String, exit: Option<Exit>) -> Box<Failure> {
        let hint = hint(code, self.config.program().map_or("", |program| &program.command));
        let message = self.mask.text(&message);
        Box::new(Failure { code, step: self.step(), message, hint, exit, stderr: self.log.tail(SHOWN_LINES) })
    }

    fn timeout_failure(&self, limit: Duration) -> Box<Failure> {
        let step = self.step().unwrap_or(StartStep::Spawn);
        let seconds = limit.as_secs_f32();
        let message =
            format!("the server `{}` was not ready within {seconds} seconds (step: {step})", self.id());
        self.failure(FailureCode::StartTimeout, message, None)
    }

    fn start_failure(&self, error: &StartError, exit: Option<Exit>) -> Box<Failure> {
        let id = self.id();
        if let Some(exit) = exit {
            let message = format!("the server `{id}` ended before it was ready: {exit}");
            return self.failure(FailureCode::ExitedAtStart, message, Some(exit));
        }
        let code = match error {
            StartError::Resolve(ResolveError::Keyring { source: SecretsError::Locked, .. }) => {
                FailureCode::KeyringLocked
            }
            StartError::Resolve(ResolveError::Keyring { .. }) => FailureCode::NoKeyring,
            StartError::Resolve(
                ResolveError::NoSecret(_) | ResolveError::NoInput(_) | ResolveError::NoVariable(_),
            ) => FailureCode::MissingValue,
            StartError::Open(OpenError::Lookup(LookupError::Missing(_))) => FailureCode::CommandNotFound,
            StartError::Open(OpenError::Lookup(LookupError::NotExecutable(_))) => FailureCode::NotExecutable,
            StartError::Open(OpenError::NoFolder(_)) => FailureCode::BadWorkingFolder,
            StartError::Open(OpenError::Spawn { .. }) => FailureCode::Spawn,
            StartError::Open(OpenError::Address(_)) => FailureCode::BadAddress,
            StartError::Handshake(HandshakeError::Unreachable(_)) => FailureCode::Unreachable,
            StartError::Handshake(HandshakeError::SignIn(_)) => FailureCode::SignIn,
            StartError::Handshake(HandshakeError::Unauthorized(_)) => FailureCode::Unauthorized,
            StartError::Handshake(_) => FailureCode::Handshake,
            StartError::List(_) => FailureCode::ListTools,
        };
        let mut message = format!("the server `{id}` could not be started: {error}");
        let cause = std::error::Error::source(error).map(ToString::to_string);
        // Some errors name their cause themselves.
        if let Some(cause) = cause.filter(|cause| !message.ends_with(cause.as_str())) {
            message += &format!(": {cause}");
        }
        self.failure(code, message, None)
    }
}

/// Says how much the server shall log, if it logs at all. Its answer is not waited for: it changes nothing.
fn set_log_level(peer: &Peer, session: &Session) {
    if session.is_modern() || !session.can("/logging") {
        return;
    }
    let (peer, params) = (peer.clone(), session.params(serde_json::json!({"level": LOG_LEVEL})));
    tokio::spawn(async move {
        let asked = peer.ask("logging/setLevel", params);
        if let Ok(Err(error)) = tokio::time::timeout(LOG_LEVEL_WAITS, asked).await {
            tracing::debug!(%error, "the level of the log was not set");
        }
    });
}

fn hint(code: FailureCode, command: &str) -> Option<String> {
    let hint = match code {
        FailureCode::CommandNotFound => {
            format!("Install `{command}`, or give its full path in the server's settings.")
        }
        FailureCode::NotExecutable => {
            format!("Make `{command}` executable, or name the program that runs it.")
        }
        FailureCode::BadWorkingFolder => "Choose a folder that exists as the server's working folder.".into(),
        FailureCode::StartTimeout => {
            "Look at the server's log; a first start that downloads may need a second try.".into()
        }
        FailureCode::ExitedAtStart => {
            "Look at the server's last lines; often an argument or a key is missing.".into()
        }
        FailureCode::MissingValue => {
            "Give it a value in the server's settings, or with `lectern mcp secret set`.".into()
        }
        FailureCode::KeyringLocked => "Unlock the keyring of your system and start the server again.".into(),
        FailureCode::NoKeyring => {
            "Start a keyring (GNOME Keyring, KWallet, KeePassXC) and start the server again, or give \
             the value in the server's settings for as long as Lectern runs."
                .into()
        }
        FailureCode::Died => "Look at the server's last lines; the next call starts it again.".into(),
        FailureCode::BadAddress => {
            "Correct the address in the server's settings; it begins with https://.".into()
        }
        FailureCode::Unreachable => {
            "Check the address, your network, and that the server is running; then start it again.".into()
        }
        FailureCode::Unauthorized => {
            "Ask the server's operator: what it says about signing in does not fit together.".into()
        }
        FailureCode::SignIn => {
            "Sign in to the server, or put a token into its `Authorization` header in the settings.".into()
        }
        FailureCode::Spawn | FailureCode::Handshake | FailureCode::ListTools => return None,
    };
    Some(hint)
}
