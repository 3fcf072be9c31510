//! What a server writes to stderr, and what it logs over the protocol.
//!
//! Invariant: stderr is always drained, and neither memory nor disk grows without a limit, however much a server
//! writes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::broadcast;

use crate::mask::Mask;

mod file;

pub use file::LogFile;
pub(crate) use file::RotatingFile;

const KEPT_LINES: usize = 2_000;
const KEPT_BYTES: usize = 1 << 20;
const LONGEST_LINE: usize = 4_096;

/// One line of a server's log, secrets masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Counts from 1 for each server, without a gap, over all its processes.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The line.
    pub text: Arc<str>,
}

/// Lines from a number on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// Oldest first. A gap before the first one means that older ones are gone.
    pub lines: Vec<LogLine>,
    /// What to ask for next: the number of the last line that there was.
    pub next: u64,
}

/// The log of one server, over all its processes.
pub(crate) struct ServerLog {
    kept: Mutex<Kept>,
    lines: broadcast::Sender<Heard>,
    mask: Mask,
}

/// A line for those who wait for the server.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Whose it is; none when there is only one who could be meant.
    pub(crate) caller: Option<u64>,
    pub(crate) text: Arc<str>,
}

struct Kept {
    ring: VecDeque<LogLine>,
    bytes: usize,
    last: u64,
    /// The number of the line with which the present process began.
    begun: u64,
    file: Option<RotatingFile>,
}

impl Kept {
    fn keep(&mut self, text: Arc<str>) {
        self.last += 1;
        self.bytes += text.len();
        self.ring.push_back(LogLine { number: self.last, at: Timestamp::now(), text });
        while self.ring.len() > KEPT_LINES || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.ring.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
    }
}

impl ServerLog {
    /// A log that goes to `dir`, if there is one, as `name.log` and `name.log.1`.
    pub(crate) fn new(dir: Option<&Path>, name: &str, mask: Mask) -> Self {
        let file = dir.map(|dir| RotatingFile::new(dir.join(format!("{name}.log"))));
        let kept = Kept { ring: VecDeque::new(), bytes: 0, last: 0, begun: 0, file };
        Self { kept: Mutex::new(kept), lines: broadcast::channel(64).0, mask }
    }

    /// The last lines of the present process, oldest first.
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let kept = self.kept();
        let own = kept.ring.iter().rev().take_while(|line| line.number > kept.begun).take(count);
        let mut lines: Vec<String> = own.map(|line| line.text.to_string()).collect();
        lines.reverse();
        lines
    }

    /// The lines after this number; 0 for all that are kept.
    pub(crate) fn after(&self, number: u64) -> LogPage {
        let kept = self.kept();
        let lines = kept.ring.iter().filter(|line| line.number > number).cloned().collect();
        LogPage { lines, next: kept.last }
    }

    /// Lines from now on. A slow reader misses some and is told how many.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Heard> {
        self.lines.subscribe()
    }

    /// Adds one line of which nobody knows what it is about. Who follows hears of it only when nobody else does: a line
    /// about one call must not stand in another one.
    pub(crate) fn line(&self, line: &str) {
        let text = self.keep(line);
        if self.lines.receiver_count() == 1 {
            let _ = self.lines.send(Heard { caller: None, text });
        }
    }

    /// Adds one line that is about what this caller waits for; about nobody's, when there is none.
    pub(crate) fn line_for(&self, line: &str, caller: Option<u64>) {
        let text = self.keep(line);
        if caller.is_some() {
            // Nobody may be listening.
            let _ = self.lines.send(Heard { caller, text });
        }
    }

    fn keep(&self, line: &str) -> Arc<str> {
        let line: Arc<str> = self.mask.text(&clean(line)).into();
        let mut kept = self.kept();
        kept.keep(Arc::clone(&line));
        if let Some(file) = &mut kept.file {
            file.line(&line);
        }
        line
    }

    /// A new process begins; what earlier ones wrote no longer explains a failure.
    pub(crate) fn begin(&self, what: &str) {
        let line = self.mask.text(&clean(&format!("--- {what}")));
        let mut kept = self.kept();
        if let Some(file) = &mut kept.file {
            file.try_again();
            file.line(&line);
        }
        kept.keep(line.into());
        kept.begun = kept.last;
    }

    /// Reads a stderr until it ends.
    pub(crate) async fn drain(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 64 << 10];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            for &byte in &chunk[..read] {
                if byte == b'\n' {
                    self.line(&String::from_utf8_lossy(&line));
                    line.clear();
                } else if line.len() < LONGEST_LINE {
                    line.push(byte);
                }
            }
        }
        if !line.is_empty() {
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    // A std mutex: nothing awaits while it is held.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without colours and other control characters, and not too long.
fn clean(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.trim_end().chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A control sequence: `ESC [`, parameters, one letter.
            if chars.next() == Some('[') {
                chars.by_ref().find(|c| c.is_ascii_alphabetic());
            }
        } else if !c.is_control() || c == '\t' {
            out.push(c);
        }
        if out.len() >= LONGEST_LINE {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_stays_within_memory_and_disk_limits() {
        let dir = tempfile::tempdir().unwrap();
        let log = ServerLog::new(Some(dir.path()), "flood", Mask::default());
        let flood = "x".repeat(1_000) + "\n";
        log.drain(flood.repeat(14_000).as_bytes()).await;
        log.drain(&b"last \x1b[31mred\x1b[0m\xff"[..]).await;

        assert!(log.tail(9_000).len() <= KEPT_LINES && log.kept().bytes <= KEPT_BYTES);
        assert_eq!(log.tail(1), ["last red\u{fffd}"]);
        let sizes: Vec<u64> =
            std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= file::FILE_LIMIT), "{sizes:?}");
    }

    #[test]
    fn secrets_do_not_reach_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = crate::ServerConfig::new("x", "x", [""; 0]);
        config.program_mut().unwrap().env.insert("API_TOKEN".into(), "swordfish".into());
        let log = ServerLog::new(Some(dir.path()), "x", Mask::of(&config));
        log.line("token is swordfish!");
        assert_eq!(log.tail(1), ["token is ••••••!"]);
        assert!(!std::fs::read_to_string(dir.path().join("x.log")).unwrap().contains("swordfish"));
    }

    #[test]
    fn lines_have_numbers_over_all_processes() {
        let log = ServerLog::new(None, "x", Mask::default());
        log.begin("start one");
        log.line("a");
        let page = log.after(0);
        log.begin("start two");
        log.line("b");
        assert_eq!(log.tail(10), ["b"], "what an earlier process wrote explains nothing");
        let texts = |page: LogPage| page.lines.iter().map(|line| line.text.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(log.after(page.next)), ["--- start two", "b"]);
        assert_eq!(log.after(0).lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(log.after(4), LogPage { lines: vec![], next: 4 });
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut() {
        let log = ServerLog::new(None, "x", Mask::default());
        log.drain("y".repeat(1 << 20).as_bytes()).await;
        assert_eq!(log.tail(1)[0].len(), LONGEST_LINE);
    }
}
