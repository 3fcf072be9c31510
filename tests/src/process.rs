//! Child processes of tests, and what is left of them.
//!
//! Invariant: a test that ends, however it ends, takes its processes along.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process group that ends with this value.
pub struct Group(Child);

impl Group {
    /// Starts the command as the leader of a group of its own, without our standard streams: one that outlives the
    /// test must not hold its pipe open.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // SAFETY: prctl is safe to call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // A test that is killed takes the group's leader along.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            })
        };
        command.spawn().map(Self)
    }

    /// The leader's process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, signal: i32) {
        let group = i32::try_from(self.0.id()).expect("process ids fit");
        // SAFETY: a signal to a group that we made.
        unsafe { libc::kill(-group, signal) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(libc::SIGTERM);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(5) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
        // A signal is sent, not done: a member may still be on its way out, and whoever asks next would see it run.
        let begin = Instant::now();
        while members(self.0.id()).next().is_some() && begin.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The running processes of a group.
fn members(group: u32) -> impl Iterator<Item = Process> {
    all().filter(move |entry| entry.group == group && !entry.zombie).map(|entry| entry.process)
}

/// One process: its id with its start time, so that a reused id is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its id.
    pub id: u32,
    started: u64,
    /// Its command line, for messages.
    pub command: String,
}

impl Process {
    /// Whether it still runs. One that ended and was not waited for yet does not.
    pub fn runs(&self) -> bool {
        read(self.id).is_some_and(|now| now.process.started == self.started && !now.zombie)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.id).expect("process ids fit");
        // SAFETY: a signal to a process of this test.
        unsafe { libc::kill(id, signal) };
    }
}

/// All processes below one, however deep.
pub fn descendants(of: u32) -> BTreeSet<Process> {
    let all: Vec<_> = all().collect();
    let mut found = BTreeSet::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for Entry { process, .. } in all.iter().filter(|entry| entry.parent == parent && !entry.zombie) {
            if found.insert(process.clone()) {
                parents.push(process.id);
            }
        }
    }
    found
}

/// One line of the process table.
struct Entry {
    process: Process,
    parent: u32,
    group: u32,
    /// Whether it ended and was not waited for yet.
    zombie: bool,
}

fn all() -> impl Iterator<Item = Entry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
}

fn read(id: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may hold anything; the fields after it are counted from its end.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 2..].split(' ').collect();
    let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
    let process = Process { id, started: fields.get(19)?.parse().ok()?, command };
    let zombie = matches!(*fields.first()?, "Z" | "X");
    Some(Entry { process, parent: fields.get(1)?.parse().ok()?, group: fields.get(2)?.parse().ok()?, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_with_its_children() {
        let group = Group::start(Command::new("sh").args(["-c", "sleep 300 & sleep 300"])).unwrap();
        let begin = Instant::now();
        let mut children = BTreeSet::new();
        while children.len() < 2 && begin.elapsed() < Duration::from_secs(20) {
            children = descendants(group.id());
        }
        assert_eq!(children.len(), 2, "{children:?}");
        drop(group);
        assert!(children.iter().all(|child| !child.runs()), "{children:?}");
    }
}
