//! What a server writes to stderr, and what it logs over the protocol.
//!
//! Invariant: stderr is always drained, and neither memory nor disk grows without a limit, however much a server
//! writes.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::broadcast;

use crate::mask::Mask;

const KEPT_LINES: usize = 200;
const LONGEST_LINE: usize = 4_096;
const FILE_LIMIT: u64 = 5 << 20;

/// The log of one server, over all its processes.
pub(crate) struct ServerLog {
    kept: Mutex<Kept>,
    lines: broadcast::Sender<Arc<str>>,
    mask: Mask,
}

struct Kept {
    ring: VecDeque<Arc<str>>,
    file: Option<RotatingFile>,
}

impl ServerLog {
    /// A log that goes to `dir`, if there is one, as `name.log` and `name.log.1`.
    pub(crate) fn new(dir: Option<&Path>, name: &str, mask: Mask) -> Self {
        let file = dir.map(|dir| RotatingFile::new(dir.join(format!("{name}.log"))));
        Self {
            kept: Mutex::new(Kept { ring: VecDeque::new(), file }),
            lines: broadcast::channel(256).0,
            mask,
        }
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let kept = self.kept();
        let skipped = kept.ring.len().saturating_sub(count);
        kept.ring.iter().skip(skipped).map(|line| line.to_string()).collect()
    }

    /// Lines from now on. A slow reader misses some and is told how many.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Arc<str>> {
        self.lines.subscribe()
    }

    /// Adds one line.
    pub(crate) fn line(&self, line: &str) {
        let line: Arc<str> = self.mask.text(&clean(line)).into();
        let mut kept = self.kept();
        if kept.ring.len() == KEPT_LINES {
            kept.ring.pop_front();
        }
        kept.ring.push_back(Arc::clone(&line));
        if let Some(file) = &mut kept.file {
            file.line(&line);
        }
        drop(kept);
        // Nobody may be listening.
        let _ = self.lines.send(line);
    }

    /// Forgets the lines of an earlier process; the file stays.
    pub(crate) fn begin(&self, what: &str) {
        let mut kept = self.kept();
        kept.ring.clear();
        if let Some(file) = &mut kept.file {
            file.broken = false;
            file.line(&format!("--- {}", self.mask.text(what)));
        }
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

/// A file that begins anew at a limit and keeps its predecessor.
struct RotatingFile {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    /// It could not be written. Tried again with the next start, not with each line of a flood.
    broken: bool,
}

impl RotatingFile {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0, broken: false }
    }

    /// Writes one line with the time. A disk that is full or gone costs the line, nothing else.
    fn line(&mut self, line: &str) {
        if self.broken {
            return;
        }
        let line = format!("{} {line}\n", jiff::Timestamp::now().strftime("%FT%T%.3fZ"));
        if let Err(error) = self.write(line.as_bytes()) {
            tracing::warn!(path = %self.path.display(), %error, "server log not written");
            self.file = None;
            self.broken = true;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.file.is_some() && self.size + bytes.len() as u64 > FILE_LIMIT {
            self.rotate()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if let Some(dir) = self.path.parent() {
                    std::fs::create_dir_all(dir)?;
                }
                let file = OpenOptions::new().create(true).append(true).open(&self.path)?;
                self.size = file.metadata()?.len();
                none.insert(file)
            }
        };
        file.write_all(bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> std::io::Result<()> {
        self.file = None;
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)
    }
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

        assert_eq!(log.tail(1_000).len(), KEPT_LINES);
        assert_eq!(log.tail(1), ["last red\u{fffd}"]);
        let sizes: Vec<u64> =
            std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= FILE_LIMIT), "{sizes:?}");
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

    #[tokio::test]
    async fn a_line_without_end_is_cut() {
        let log = ServerLog::new(None, "x", Mask::default());
        log.drain("y".repeat(1 << 20).as_bytes()).await;
        assert_eq!(log.tail(1)[0].len(), LONGEST_LINE);
    }
}
