//! The files of a server's log: written by the app, read by whoever has the folder.
//!
//! Invariant: two files of [`FILE_LIMIT`] bytes each at most, readable by their owner only; reading never waits for
//! who writes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use lectern_core::{ServerId, Timestamp};

use crate::naming::server_part;

/// Where a file begins anew.
pub(crate) const FILE_LIMIT: u64 = 5 << 20;

/// A file that begins anew at a limit and keeps its predecessor.
pub(crate) struct RotatingFile {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    /// It could not be written. Tried again with the next start, not with each line of a flood.
    broken: bool,
}

impl RotatingFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0, broken: false }
    }

    /// A disk that was full may have room again.
    pub(crate) fn try_again(&mut self) {
        self.broken = false;
    }

    /// Writes one line with the time. A disk that is full or gone costs the line, nothing else.
    pub(crate) fn line(&mut self, line: &str) {
        self.text(&format!("{} {line}\n", Timestamp::now().strftime("%FT%T%.3fZ")));
    }

    /// Writes a text as it is; it ends with a line break.
    pub(crate) fn text(&mut self, line: &str) {
        if self.broken {
            return;
        }
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
                let file = open(&self.path)?;
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
        std::fs::rename(&self.path, before(&self.path))
    }
}

/// The file that came before this one.
fn before(path: &Path) -> PathBuf {
    let mut old = path.to_owned().into_os_string();
    old.push(".1");
    old.into()
}

/// Only for the owner: a server may write down what nobody else should read.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A server's log on disk, for who reads it, perhaps while another process writes it.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// The file that is being read. It stays the same file when it is renamed.
    open: Option<File>,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
}

impl LogFile {
    /// What a server wrote to stderr and logged, in this folder of logs.
    pub fn of(dir: &Path, server: &ServerId) -> Self {
        Self::at(dir, server, "log")
    }

    /// A server's messages, each line one of them as JSON, if they are kept at all.
    pub fn of_traffic(dir: &Path, server: &ServerId) -> Self {
        Self::at(dir, server, "traffic.jsonl")
    }

    fn at(dir: &Path, server: &ServerId, kind: &str) -> Self {
        let path = dir.join(format!("{}.{kind}", server_part(server.as_str())));
        Self { path, open: None, rest: Vec::new() }
    }

    /// Whether anything was ever written.
    pub fn exists(&self) -> bool {
        self.path.exists() || before(&self.path).exists()
    }

    /// The last lines, oldest first. [`Self::more`] goes on from there.
    pub fn tail(&mut self, count: usize) -> std::io::Result<Vec<String>> {
        let mut lines = self.more()?;
        if lines.len() < count
            && let Ok(old) = std::fs::read(before(&self.path))
        {
            let old = String::from_utf8_lossy(&old);
            lines.splice(0..0, old.lines().map(str::to_owned));
        }
        Ok(lines.split_off(lines.len().saturating_sub(count)))
    }

    /// The lines that were written since the last time.
    pub fn more(&mut self) -> std::io::Result<Vec<String>> {
        let mut bytes = std::mem::take(&mut self.rest);
        if let Some(file) = &mut self.open {
            file.read_to_end(&mut bytes)?;
        }
        if self.is_another_file()? {
            match File::open(&self.path) {
                Ok(file) => self.open.insert(file).read_to_end(&mut bytes)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(whole);
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Whether the file at the path is shorter than what was read of the open one: then it has begun anew.
    fn is_another_file(&mut self) -> std::io::Result<bool> {
        let Some(file) = &mut self.open else { return Ok(true) };
        let read = file.stream_position()?;
        Ok(std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() < read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_followed_across_its_new_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let server = ServerId::from("s");
        let mut reader = LogFile::of(dir.path(), &server);
        assert!(!reader.exists());
        assert_eq!(reader.tail(5).unwrap(), Vec::<String>::new());

        let mut writer = RotatingFile::new(dir.path().join("s.log"));
        for line in ["one\n", "two\n", "half"] {
            writer.text(line);
        }
        assert_eq!(reader.tail(1).unwrap(), ["two"]);
        writer.text(" and whole\n");
        assert_eq!(reader.more().unwrap(), ["half and whole"]);
        writer.rotate().unwrap();
        writer.text("new\n");
        assert_eq!(reader.more().unwrap(), ["new"]);
        assert_eq!(reader.more().unwrap(), Vec::<String>::new());

        let mut later = LogFile::of(dir.path(), &server);
        assert_eq!(later.tail(3).unwrap(), ["two", "half and whole", "new"]);
    }
}
