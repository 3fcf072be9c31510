//! The worker as seen from the application: start it, talk to it, and find out how it died.
//!
//! Invariant: the worker is reached through its standard streams only, and is killed when this handle goes.

mod unfit;

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;

use crate::busy::quiet;
use crate::protocol::{Event, Request};
use crate::speed::Waiting;
use crate::worker::{AVOID_VARIABLE, MISBEHAVE_VARIABLE};
use unfit::{Unfit, is_illegal_instruction};

/// How a worker is started: an executable that calls [`crate::worker_main`] when given these arguments.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
    may_misbehave: bool,
    waiting: Waiting,
    unfit: Unfit,
}

impl WorkerCommand {
    /// This executable with these arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            program: program.into(),
            arguments,
            may_misbehave: false,
            waiting: Waiting::Auto,
            unfit: Unfit::default(),
        }
    }

    /// Allows [`crate::Misbehaviour`], for tests of recovery.
    pub fn allow_misbehaviour(mut self) -> Self {
        self.may_misbehave = true;
        self
    }

    /// How its threads are to wait for each other.
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Keeps in this file which kinds of code the processor turned out not to run, until another version tries them
    /// again. Clones know it of each other in any case.
    pub fn remembering(mut self, file: PathBuf) -> Self {
        self.unfit = Unfit::kept_in(file);
        self
    }

    /// Does it again after each failure that taught which code the processor cannot run; there are only so many kinds.
    pub(crate) async fn retried<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        work: impl Fn() -> F,
    ) -> Result<T, E> {
        loop {
            let known = self.unfit.kinds();
            match work().await {
                Err(_) if self.unfit.kinds() != known => {}
                done => return done,
            }
        }
    }

    fn command(&self, avoid: &BTreeSet<String>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            // ggml would start a debugger to print a backtrace.
            .env("GGML_NO_BACKTRACE", "1")
            .env_remove(MISBEHAVE_VARIABLE)
            .env_remove(AVOID_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        match self.waiting {
            Waiting::Asleep => _ = command.env("OMP_WAIT_POLICY", "passive"),
            // Not `active`: such threads would go on turning while nobody asks anything.
            Waiting::Awake => _ = command.env_remove("OMP_WAIT_POLICY"),
            Waiting::Auto => {
                if quiet() {
                    command.env_remove("OMP_WAIT_POLICY");
                } else {
                    command.env("OMP_WAIT_POLICY", "passive");
                }
            }
        }
        if self.may_misbehave {
            command.env(MISBEHAVE_VARIABLE, "1");
        }
        if !avoid.is_empty() {
            command.env(AVOID_VARIABLE, avoid.iter().map(String::as_str).collect::<Vec<_>>().join(","));
        }
        // Ctrl-C in a terminal is a question to the application, not to its worker.
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// How a worker died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// E.g. `signal: 6 (SIGABRT)`.
    pub(crate) status: String,
    /// The last lines of its standard error.
    pub(crate) lines: Vec<String>,
    /// The kind of code that it ran, when the processor cannot run it; the next worker is given another.
    pub(crate) unfit: Option<String>,
}

impl Death {
    /// Why another process goes on: the processor, or what this one was at.
    pub(crate) fn why(&self, else_this: &str) -> String {
        match &self.unfit {
            Some(kind) => format!("this processor cannot run the code for {kind}; the next best is used"),
            None => else_this.to_owned(),
        }
    }
}

/// A running worker.
pub(crate) struct Child {
    process: tokio::process::Child,
    requests: ChildStdin,
    events: mpsc::UnboundedReceiver<Event>,
    lines: Arc<Mutex<VecDeque<String>>>,
    jobs: u64,
    /// What it said that it runs, and what it was not to run.
    code: Option<String>,
    avoided: BTreeSet<String>,
    unfit: Unfit,
}

const KEPT_LINES: usize = 30;
const LONGEST_LINE: usize = 500;
/// What a worker gets to save its states.
const FAREWELL: Duration = Duration::from_secs(10);
/// A process whose output has ended is about to end itself.
const DYING: Duration = Duration::from_millis(500);

impl Child {
    /// Starts a worker.
    pub(crate) fn start(command: &WorkerCommand) -> std::io::Result<Self> {
        let unfit = command.unfit.clone();
        let avoided = unfit.kinds();
        let mut process = command.command(&avoided).spawn()?;
        let missing = || std::io::Error::other("the worker's standard streams are missing");
        let requests = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        let errors = process.stderr.take().ok_or_else(missing)?;
        let (sender, events) = mpsc::unbounded_channel();
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(read_events(output, sender));
        tokio::spawn(keep_lines(errors, Arc::clone(&lines)));
        Ok(Self { process, requests, events, lines, jobs: 0, code: None, avoided, unfit })
    }

    /// A number for the next job.
    pub(crate) fn next_job(&mut self) -> u64 {
        self.jobs += 1;
        self.jobs
    }

    /// Sends a request. A worker that no longer reads shows that by the end of its events.
    pub(crate) async fn send(&mut self, request: &Request) {
        if let Ok(mut line) = serde_json::to_vec(request) {
            line.push(b'\n');
            if self.requests.write_all(&line).await.is_ok() {
                let _ = self.requests.flush().await;
            }
        }
    }

    /// The next event of a job; none when the worker is gone.
    pub(crate) async fn event_of(&mut self, job: u64) -> Option<Event> {
        loop {
            let event = self.events.recv().await?;
            if let Event::Code { kind } = event {
                self.code = Some(kind);
            } else if event.job() == job {
                return Some(event);
            }
        }
    }

    /// Whether the worker has died while nobody was listening.
    pub(crate) fn has_ended(&mut self) -> bool {
        // Its output ends a little before it does.
        self.events.is_closed() || !matches!(self.process.try_wait(), Ok(None))
    }

    /// The kind of code that it died of, when that is what it died of. No worker of the command gets it again.
    pub(crate) async fn unfit(&mut self) -> Option<String> {
        let status = tokio::time::timeout(DYING, self.process.wait()).await.ok()?.ok()?;
        if !is_illegal_instruction(status) {
            return None;
        }
        // What it said at its start may not have been listened to yet. No event has this number.
        let _ = tokio::time::timeout(DYING, self.event_of(u64::MAX)).await;
        // When all were to be avoided, it ran one nevertheless.
        let kind = self.code.clone().filter(|kind| !self.avoided.contains(kind))?;
        self.unfit.add(&kind);
        Some(kind)
    }

    /// Ends the worker and says how it died.
    pub(crate) async fn autopsy(mut self) -> Death {
        let ended = tokio::time::timeout(DYING, self.process.wait()).await;
        let status = match &ended {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                let _ = self.process.kill().await;
                "it no longer answered and was killed".to_owned()
            }
        };
        let unfit = if ended.is_ok() { self.unfit().await } else { None };
        let lines = self.lines.lock().map(|lines| lines.iter().cloned().collect()).unwrap_or_default();
        Death { status, lines, unfit }
    }

    /// Lets the worker save what it keeps and end; kills it when that takes too long.
    pub(crate) async fn finish(self) {
        let Self { mut process, requests, .. } = self;
        // The end of its input is the word to end.
        drop(requests);
        if tokio::time::timeout(FAREWELL, process.wait()).await.is_err() {
            let _ = process.kill().await;
        }
    }

    /// Ends the worker.
    pub(crate) async fn kill(mut self) {
        let _ = self.process.kill().await;
    }

    /// The process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.id()
    }
}

async fn read_events(output: impl AsyncRead + Unpin, events: mpsc::UnboundedSender<Event>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // Other lines come from a library that prints.
        let Ok(event) = serde_json::from_str(&line) else { continue };
        if let Event::Note { text } = event {
            tracing::warn!(target: "lectern_local::worker", "{text}");
        } else if events.send(event).is_err() {
            return;
        }
    }
}

async fn keep_lines(errors: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(mut kept) = kept.lock() {
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line.chars().take(LONGEST_LINE).collect());
        }
    }
}
