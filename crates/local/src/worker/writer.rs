//! Finishes files of states beside the computing: digests, makes them last, puts them into their place.
//!
//! Invariant: jobs are done in the order in which they came, so that what was forgotten does not come back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::history::History;
use super::output::Output;
use super::slots::Checkpoint;
use crate::protocol::Event;
use crate::saved::{FileError, Folder, Header, forget_conversation, forget_everything, seal};

enum Job {
    Seal { temporary: PathBuf, name: String, header: Box<Header<History>>, checkpoints: Vec<Checkpoint> },
    Delete(String),
    Forget(Option<String>),
    Tell(Sender<()>),
}

/// The thread that finishes files.
pub(super) struct Writer {
    jobs: Sender<Job>,
}

impl Writer {
    pub(super) fn start(folder: Folder, disk_bytes: u64, output: Arc<Output>) -> Self {
        let (jobs, waiting) = channel();
        std::thread::spawn(move || run(&waiting, &folder, disk_bytes, &output));
        Self { jobs }
    }

    /// Finishes a file that llama.cpp wrote.
    pub(super) fn seal(
        &self,
        temporary: PathBuf,
        name: String,
        header: Header<History>,
        checkpoints: Vec<Checkpoint>,
    ) {
        self.send(Job::Seal { temporary, name, header: Box::new(header), checkpoints });
    }

    pub(super) fn delete(&self, name: String) {
        self.send(Job::Delete(name));
    }

    /// Deletes the files of a conversation, or all.
    pub(super) fn forget(&self, conversation: Option<&str>) {
        self.send(Job::Forget(conversation.map(str::to_owned)));
    }

    /// Returns when everything before is done.
    pub(super) fn wait(&self) {
        let (done, wait) = channel();
        self.send(Job::Tell(done));
        // An error means that the thread is gone, and so is its work.
        let _ = wait.recv();
    }

    fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }
}

fn run(jobs: &Receiver<Job>, folder: &Folder, disk_bytes: u64, output: &Output) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Seal { temporary, name, header, checkpoints } => {
                if let Err(error) = finish(folder, &temporary, &name, *header, &checkpoints) {
                    let _ = std::fs::remove_file(&temporary);
                    output.send(&Event::Note { text: format!("the state {name} was not saved: {error}") });
                }
                folder.fit(disk_bytes);
            }
            Job::Delete(name) => folder.delete(&name),
            Job::Forget(conversation) => {
                let done = match &conversation {
                    Some(conversation) => forget_conversation(&folder.path(""), conversation),
                    None => forget_everything(&folder.path("")),
                };
                if let Err(error) = done {
                    output.send(&Event::Note { text: format!("a saved state was not deleted: {error}") });
                }
            }
            // Nobody may wait any more.
            Job::Tell(done) => drop(done.send(())),
        }
    }
}

fn finish(
    folder: &Folder,
    temporary: &Path,
    name: &str,
    header: Header<History>,
    checkpoints: &[Checkpoint],
) -> Result<(), FileError> {
    let checkpoints: Vec<(usize, &[u8])> =
        checkpoints.iter().map(|checkpoint| (checkpoint.at, checkpoint.state.as_slice())).collect();
    seal(temporary, header, &checkpoints)?;
    folder.publish(temporary, name)?;
    Ok(())
}
