//! One download as this process knows it.
//!
//! Invariant: what is shown is counted from the disk while nobody works on it, and from the work while somebody does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Download, State, Task};
use crate::record::{FileRecord, Record, part_path, record_path};
use crate::speed::Speed;
use crate::transfer::Live;

/// One download as this process knows it.
pub(super) struct Entry {
    pub(super) file: PathBuf,
    pub(super) record: Record,
    pub(super) state: State,
    pub(super) live: Arc<Live>,
    /// Bytes of its files that are whole.
    pub(super) whole: u64,
    pub(super) speed: Speed,
    /// Ends the task that works on it; none when none does.
    pub(super) task: Option<Task>,
}

impl Entry {
    pub(super) fn new(file: PathBuf, record: Record) -> Self {
        Self {
            file,
            record,
            state: State::Paused,
            live: Arc::default(),
            whole: 0,
            speed: Speed::default(),
            task: None,
        }
    }

    /// Where one of its files will be.
    pub(super) fn place(&self, file: &FileRecord) -> PathBuf {
        self.file.with_file_name(&file.name)
    }

    /// Counts what is on disk, while nobody works on it here.
    pub(super) fn settle(&mut self, elsewhere: bool) {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let here = |file: &FileRecord| match self.place(file) {
            place if place.exists() => length(&place),
            place => length(&part_path(&place)),
        };
        self.whole = self.record.files.iter().map(here).sum();
        self.live = Arc::default();
        if elsewhere {
            self.state = State::Running;
            self.speed.tell(Instant::now(), self.whole);
            self.live.say(Some("another Lectern downloads it".to_owned()));
        } else if !matches!(self.state, State::Failed(_)) {
            self.state = State::Paused;
        }
    }

    pub(super) fn shown(&self, id: &str) -> Download {
        let done = self.whole + self.live.done.load(Ordering::Relaxed);
        let total = self.record.total();
        let moves = matches!(self.state, State::Running);
        let per_second = self.speed.per_second().filter(|_| moves);
        let left = total.and_then(|total| self.speed.seconds_for(total.saturating_sub(done)));
        Download {
            id: id.to_owned(),
            file: self.file.clone(),
            target: self.record.target.clone(),
            host: self.record.host.clone(),
            done: total.map_or(done, |total| done.min(total)),
            total,
            bytes_per_second: per_second,
            seconds_left: left.filter(|_| moves),
            state: self.state.clone(),
            notice: self.live.notice(),
            projector: self.record.projector,
            at: self.record.at,
        }
    }

    /// What is here of it goes.
    pub(super) fn delete(&self) {
        for file in &self.record.files {
            let place = self.place(file);
            let _ = std::fs::remove_file(part_path(&place));
            // The whole files of a split model that is not whole are of no use. A single file that is there is
            // somebody else's: ours would be done.
            if self.record.files.len() > 1 {
                let _ = std::fs::remove_file(place);
            }
        }
        let _ = std::fs::remove_file(record_path(&self.file));
    }
}
