//! Examines one server, step by step, as a user of it would meet it, and says which step fails and how to mend it.
//!
//! Invariant: a server that runs already is left alone; only well-known programs are asked for their version; nothing
//! is called that may change something; every check has a limit of time.

mod checks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lectern_core::ServerId;
use tokio::sync::broadcast::error::RecvError;

use crate::config::{HostOptions, ServerConfig, Transport};
use crate::host::{Host, UnknownServer};
use crate::server::RestartPolicy;
use crate::status::{Failure, ServerState, ServerStatus, StartStep};

/// How long a check before the start may take.
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// Lines of stderr that a finding shows.
const SHOWN_LINES: usize = 5;

/// What the doctor looks at, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The folders in which programs are looked for.
    Path,
    /// The program is there and may run.
    Executable,
    /// The program's version.
    Version,
    /// The address can be reached.
    Address,
    /// The process starts.
    Spawn,
    /// Somebody is signed in.
    SignIn,
    /// The protocol is agreed on.
    Handshake,
    /// The tools are listed.
    List,
    /// One harmless call.
    Call,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Passed,
    /// Here it breaks.
    Failed,
    /// Not looked at: it does not apply, or an earlier step failed.
    Skipped,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub step: Step,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// What was found, for people; secrets masked.
    pub says: String,
    /// How to mend it.
    pub hint: Option<String>,
}

/// A finding, before it is known when it was made.
struct Finding {
    verdict: Verdict,
    says: String,
    hint: Option<String>,
}

impl Finding {
    fn passed(says: impl Into<String>) -> Self {
        Self { verdict: Verdict::Passed, says: says.into(), hint: None }
    }

    fn failed(says: impl Into<String>, hint: Option<String>) -> Self {
        Self { verdict: Verdict::Failed, says: says.into(), hint }
    }

    fn skipped(says: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, says: says.into(), hint: None }
    }
}

impl Host {
    /// Examines a server; tells each finding as it is made. True when nothing failed.
    ///
    /// What runs already is left alone: the server is started once more, for this alone.
    pub async fn examine(
        &self,
        id: &ServerId,
        tell: impl Fn(Check) + Send + Sync,
    ) -> Result<bool, UnknownServer> {
        let config = self.config(id)?;
        Ok(examine(config, (*self.options).clone(), tell).await)
    }
}

/// Examines a server; tells each finding as it is made. True when nothing failed.
///
/// The server is started for this alone, with the approval and the secrets of `options`.
pub async fn examine(
    mut config: ServerConfig,
    options: HostOptions,
    tell: impl Fn(Check) + Send + Sync,
) -> bool {
    config.disabled = false;
    let mut visit = Visit { config, tell, broken: false, hopeless: false };
    visit.before_the_start().await;
    if visit.hopeless {
        for step in [Step::Spawn, Step::SignIn, Step::Handshake, Step::List, Step::Call] {
            visit.found(step, Duration::ZERO, Finding::skipped("an earlier step failed"));
        }
    } else {
        visit.start(options).await;
    }
    !visit.broken
}

struct Visit<T> {
    config: ServerConfig,
    tell: T,
    broken: bool,
    /// Nothing is there that could be started.
    hopeless: bool,
}

impl<T: Fn(Check) + Send + Sync> Visit<T> {
    fn found(&mut self, step: Step, took: Duration, finding: Finding) {
        let Finding { verdict, says, hint } = finding;
        self.broken |= verdict == Verdict::Failed;
        self.hopeless |= verdict == Verdict::Failed && matches!(step, Step::Executable | Step::Address);
        (self.tell)(Check { step, verdict, took, says, hint });
    }

    async fn before_the_start(&mut self) {
        let mut checks: Vec<(Step, futures::future::BoxFuture<'static, Finding>)> = Vec::new();
        match self.config.transport.clone() {
            Transport::Stdio(program) => {
                let program = Arc::new(program);
                checks.push((Step::Path, Box::pin(checks::path(Arc::clone(&program)))));
                checks.push((Step::Executable, Box::pin(checks::executable(Arc::clone(&program)))));
                checks.push((Step::Version, Box::pin(checks::version(program))));
            }
            Transport::Http(endpoint) => {
                checks.push((Step::Address, Box::pin(checks::address(endpoint))));
            }
        }
        for (step, check) in checks {
            let start = Instant::now();
            let finding = match tokio::time::timeout(CHECK_LIMIT, check).await {
                Ok(finding) => finding,
                Err(_) => Finding::failed(format!("no answer within {} s", CHECK_LIMIT.as_secs()), None),
            };
            self.found(step, start.elapsed(), finding);
        }
    }

    /// Starts the server in a host of its own, and says what becomes of each step.
    async fn start(&mut self, options: HostOptions) {
        let options =
            HostOptions { restart: RestartPolicy::never(), log_dir: None, traffic_dir: None, ..options };
        let id = self.config.id.clone();
        let sleeping = ServerConfig { disabled: true, ..self.config.clone() };
        let host = Host::start([sleeping], options);
        let mut news = host.subscribe();
        if host.start_server(&id).is_err() {
            return;
        }
        let mut times = Times::default();
        let status = loop {
            match news.recv().await {
                Ok(status) if status.starts == 0 && status.state == ServerState::Stopped => {}
                Ok(status) => {
                    times.enters(&status.state);
                    if !status.state.is_starting() {
                        break status;
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        };
        self.steps(&status, &times);
        let start = Instant::now();
        let finding = if self.broken {
            Finding::skipped("an earlier step failed")
        } else {
            checks::call(&host, &id).await
        };
        self.found(Step::Call, start.elapsed(), finding);
        host.close().await;
    }

    fn steps(&mut self, status: &ServerStatus, times: &Times) {
        let remote = self.config.program().is_none();
        let (failed, problem) = match &status.state {
            ServerState::NeedsApproval => {
                let hint = "Look at what it would run, and approve it in the settings or with `lectern mcp approve`.";
                (Some(Step::Spawn), Finding::failed("it waits for your approval", Some(hint.into())))
            }
            ServerState::NeedsSignIn => {
                let hint = "Sign in from the settings of the server.";
                (Some(Step::SignIn), Finding::failed("it wants you to sign in", Some(hint.into())))
            }
            ServerState::Failed(failure) | ServerState::Restarting { failure, .. } => {
                (Some(step_of(failure, remote)), Finding::failed(said(failure), failure.hint.clone()))
            }
            ServerState::Stopped
            | ServerState::Starting(_)
            | ServerState::Ready
            | ServerState::Degraded(_) => (None, Finding::skipped("")),
        };
        let mut problem = Some(problem);
        for step in [Step::Spawn, Step::SignIn, Step::Handshake, Step::List] {
            let finding = if failed == Some(step) {
                problem.take().unwrap_or_else(|| Finding::skipped(""))
            } else if failed.is_some() && problem.is_none() {
                Finding::skipped("an earlier step failed")
            } else {
                well(step, status, remote)
            };
            self.found(step, times.of(step), finding);
        }
    }
}

/// What is said of a step that succeeded.
fn well(step: Step, status: &ServerStatus, remote: bool) -> Finding {
    match step {
        Step::Spawn if remote => Finding::skipped("it runs elsewhere"),
        Step::Spawn => Finding::passed("the process starts"),
        Step::SignIn if remote => Finding::passed("it lets Lectern in"),
        Step::SignIn => Finding::skipped("a program on this machine asks nobody to sign in"),
        Step::Handshake => {
            let protocol = status.protocol.as_deref().unwrap_or("unknown");
            let who = status.reported.as_ref().map(|who| format!(", {} {}", who.name, who.version));
            Finding::passed(format!("protocol {protocol}{}", who.unwrap_or_default()))
        }
        Step::List => match &status.state {
            ServerState::Degraded(reasons) => Finding {
                verdict: Verdict::Passed,
                says: format!("{} tools; left out: {}", status.tools.len(), reasons.join("; ")),
                hint: Some("Whoever wrote the server can mend the definitions that were left out.".into()),
            },
            _ => Finding::passed(format!("{} tools", status.tools.len())),
        },
        Step::Path | Step::Executable | Step::Version | Step::Address | Step::Call => Finding::skipped(""),
    }
}

fn step_of(failure: &Failure, remote: bool) -> Step {
    match failure.step {
        Some(StartStep::Spawn) if remote => Step::Handshake,
        Some(StartStep::Spawn) => Step::Spawn,
        Some(StartStep::Handshake) => Step::Handshake,
        Some(StartStep::ListTools) | None => Step::List,
    }
}

fn said(failure: &Failure) -> String {
    let first = failure.stderr.len().saturating_sub(SHOWN_LINES);
    let lines: String = failure.stderr[first..].iter().map(|line| format!("\n  {line}")).collect();
    format!("{}{lines}", failure.message)
}

/// How long each step of the start took.
#[derive(Default)]
struct Times {
    since: Option<(StartStep, Instant)>,
    took: Vec<(StartStep, Duration)>,
}

impl Times {
    fn enters(&mut self, state: &ServerState) {
        let now = Instant::now();
        let next = match state {
            ServerState::Starting(step) => Some(*step),
            _ => None,
        };
        if let Some((step, since)) = self.since.filter(|(step, _)| next != Some(*step)) {
            self.took.push((step, now - since));
            self.since = None;
        }
        self.since = self.since.or(next.map(|step| (step, now)));
    }

    fn of(&self, step: Step) -> Duration {
        let start = match step {
            Step::Spawn => StartStep::Spawn,
            Step::Handshake => StartStep::Handshake,
            Step::List => StartStep::ListTools,
            Step::Path | Step::Executable | Step::Version | Step::Address | Step::SignIn | Step::Call => {
                return Duration::ZERO;
            }
        };
        // A server that ends when it is probed goes through the first steps twice.
        self.took.iter().filter(|(own, _)| *own == start).map(|(_, took)| *took).sum()
    }
}
