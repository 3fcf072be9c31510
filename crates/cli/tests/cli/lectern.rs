//! Runs `lectern` in a home of its own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use lectern_core::{Event, EventKind, ToolCall, ToolResult, TurnOutcome, Usage};
use tempfile::TempDir;

/// A question that the starter answers from the sample vault, and what its note says.
pub const QUESTION: &str = "What does error E7 on the heat pump mean?";
pub const ANSWER: &str = "Error E7 means that the filter in the return is blocked";

/// Lectern with a home of its own.
pub struct Lectern {
    home: TempDir,
}

/// What one run left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A run that has not ended yet.
pub struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    seen: Vec<Event>,
}

impl Lectern {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A file beside what Lectern keeps.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A model file that gives these replies, one after the other.
    pub fn scripted(&self, replies: &[&str]) -> PathBuf {
        let path = self.home().join("scripted.gguf");
        std::fs::write(&path, lectern_test_gguf::scripted(replies).bytes()).unwrap();
        path
    }

    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        self.run_with("", args)
    }

    pub fn run_with(&self, stdin: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        finish(self.command(args), stdin)
    }

    /// A run with these variables of the environment beside its own.
    pub fn run_within(&self, env: &[(&str, &str)], stdin: &str, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        finish(command, stdin)
    }

    /// Starts anything.
    pub fn start(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Starts `ask --json`.
    pub fn begin(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let mut child =
            self.command(["ask".into(), "--json".into()].into_iter().chain(args)).spawn().unwrap();
        drop(child.stdin.take());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines, seen: Vec::new() }
    }

    /// The events of `ask --json`.
    pub fn ask(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Asked {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let ran = self.run(["ask".into(), "--json".into()].into_iter().chain(args));
        let events = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Asked { ran, events }
    }

    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lectern"));
        command.args(args).env("LECTERN_HOME", self.home()).env_remove("LECTERN_LOG");
        // Whoever runs the tests may have a keyring of their own.
        command.env("LECTERN_KEYRING", "off");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn finish(mut command: Command, stdin: &str) -> Ran {
    let mut child = command.spawn().unwrap();
    // Who exits without reading is not asked to.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A question that was asked with `--json`.
pub struct Asked {
    pub ran: Ran,
    pub events: Vec<Event>,
}

impl Asked {
    pub fn outcome(&self) -> &TurnOutcome {
        match self.events.last().map(|event| &event.kind) {
            Some(EventKind::TurnFinished { outcome }) => outcome,
            other => panic!("the last event is {other:?}; {:?}", self.ran),
        }
    }

    /// Asserts that the turn was completed, and gives its answer.
    pub fn answer(&self) -> String {
        assert_eq!(*self.outcome(), TurnOutcome::Completed, "{}", self.ran.out);
        assert_eq!(self.ran.code, Some(0));
        let last = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::StepFinished { message, .. } => Some(message.text()),
            _ => None,
        });
        last.unwrap()
    }

    pub fn calls(&self) -> Vec<ToolCall> {
        calls(&self.events)
    }

    pub fn results(&self) -> Vec<ToolResult> {
        let results = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolFinished { result, .. } => Some(result.clone()),
            _ => None,
        });
        results.collect()
    }

    pub fn usages(&self) -> Vec<Usage> {
        let usages = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::StepFinished { stats, .. } => Some(stats.usage),
            _ => None,
        });
        usages.collect()
    }
}

/// The calls that ran.
pub fn calls(events: &[Event]) -> Vec<ToolCall> {
    let calls = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolStarted { call } => Some(call.clone()),
        _ => None,
    });
    calls.collect()
}

impl Running {
    /// Reads on until an event is such; panics when the events end before.
    pub fn until(&mut self, such: impl Fn(&EventKind) -> bool) -> Event {
        loop {
            let line =
                self.lines.next().unwrap_or_else(|| panic!("no such event in {:#?}", self.seen)).unwrap();
            let event: Event = serde_json::from_str(&line).unwrap();
            self.seen.push(event.clone());
            if such(&event.kind) {
                return event;
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads the rest and waits for the end: exit code and all events.
    pub fn end(mut self) -> (Option<i32>, Vec<Event>) {
        for line in self.lines.by_ref() {
            self.seen.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        (self.child.wait().unwrap().code(), self.seen)
    }
}

impl Running {
    /// Stops reading and waits for the end.
    pub fn go_away(self) -> Option<i32> {
        let Self { mut child, lines, .. } = self;
        drop(lines);
        child.wait().unwrap().code()
    }
}
