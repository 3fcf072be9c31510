//! The work on one download, from its place in the queue to its end.
//!
//! Invariant: the task's `over` is cancelled last, exactly once, and the state is settled before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::entry::Entry;
use super::{Downloads, State, Task};
use crate::fault::Fault;
use crate::hub::moved;
use crate::record::{FileRecord, part_path, record_path, stop_path};
use crate::sink::put_in_place;
use crate::transfer::{Ended, Live, Transfer};
use crate::web::host_of;

/// How often it is told how far it is, and looked whether another process wants it stopped.
const TICK: Duration = Duration::from_millis(250);

impl Downloads {
    /// Does the work. Whatever happens, the download has a state that holds when this returns.
    pub(super) async fn work(&self, id: &str, task: Task) {
        let done = tokio::select! {
            done = self.in_turn(id, &task) => done,
            never = self.watch(id, &task) => match never {},
        };
        let state = match done {
            Ok(Ended::Whole) => State::Done,
            Ok(Ended::Stopped) => State::Paused,
            Err(fault) => State::Failed(fault),
        };
        if let Some(entry) = self.entries().get_mut(id) {
            entry.task = None;
            match &state {
                State::Done => {
                    entry.live.done.store(0, Ordering::Relaxed);
                    entry.whole = entry.record.total().unwrap_or(0);
                }
                // Why it broke off is said by the state.
                State::Failed(_) | State::Paused => entry.live.say(None),
                State::Queued | State::Running | State::Checking => {}
            }
            entry.state = state;
        }
        self.tell(id);
        task.over.cancel();
    }

    async fn in_turn(&self, id: &str, task: &Task) -> Result<Ended, Fault> {
        let places = Arc::clone(&self.0.places);
        let _place = tokio::select! {
            place = places.acquire_owned() => place,
            () = task.stop.cancelled() => return Ok(Ended::Stopped),
        };
        let Some(_lock) = self.lock_or_wait(id, task).await? else { return Ok(Ended::Stopped) };
        self.go_to_hub(id);
        self.set_state(id, State::Running);
        let (file, files, live) = {
            let entries = self.entries();
            let entry = entries.get(id).ok_or_else(|| Fault::NoDownload(id.to_owned()))?;
            (entry.file.clone(), entry.record.files.clone(), Arc::clone(&entry.live))
        };
        for (index, record) in files.into_iter().enumerate() {
            let place = file.with_file_name(&record.name);
            if !is_whole(&place, &record)
                && self.bring(id, index, record, &place, &live, task).await? == Ended::Stopped
            {
                return Ok(Ended::Stopped);
            }
            self.count_whole(id, index, &live);
        }
        let _ = std::fs::remove_file(record_path(&file));
        Ok(Ended::Whole)
    }

    /// The hub may be another one since this was listed.
    fn go_to_hub(&self, id: &str) {
        let web = self.web();
        let mut entries = self.entries();
        let Some(Entry { record, .. }) = entries.get_mut(id) else { return };
        for file in &mut record.files {
            if let Some(url) = moved(&web, &record.target, &file.url) {
                record.host = host_of(&url);
                file.url = url;
            }
        }
    }

    /// One file of it, into its place.
    async fn bring(
        &self,
        id: &str,
        index: usize,
        mut record: FileRecord,
        place: &Path,
        live: &Live,
        task: &Task,
    ) -> Result<Ended, Fault> {
        let part = part_path(place);
        let keep = |file: &FileRecord| self.keep(id, index, file);
        let web = self.web();
        let mut transfer = Transfer {
            web: &web,
            file: &mut record,
            part: &part,
            live,
            stop: &task.stop,
            retry: self.0.options.retry,
            reserve: self.0.options.reserve,
            keep: &keep,
        };
        let ended = transfer.run().await?;
        if ended == Ended::Stopped {
            return Ok(ended);
        }
        self.set_state(id, State::Checking);
        let (from, to): (PathBuf, PathBuf) = (part, place.to_owned());
        let put = tokio::task::spawn_blocking(move || put_in_place(&from, &to)).await;
        put.unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| Fault::file(place, error))?;
        self.set_state(id, State::Running);
        Ok(Ended::Whole)
    }

    /// The right to write; none when it was stopped while another process wrote.
    async fn lock_or_wait(&self, id: &str, task: &Task) -> Result<Option<std::fs::File>, Fault> {
        loop {
            if let Some(lock) = self.lock(id)? {
                if let Some(entry) = self.entries().get_mut(id) {
                    // The other one may have learned something, or left it whole.
                    if let Some(record) = crate::record::Record::read(&record_path(&entry.file)) {
                        entry.record = record;
                    }
                    entry.whole = 0;
                    entry.live.say(None);
                }
                return Ok(Some(lock));
            }
            if let Some(entry) = self.entries().get_mut(id) {
                entry.settle(true);
            }
            if tokio::time::timeout(TICK, task.stop.cancelled()).await.is_ok() {
                return Ok(None);
            }
        }
    }

    /// Tells how far it is, and hears what other processes want. Never ends.
    async fn watch(&self, id: &str, task: &Task) -> std::convert::Infallible {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let stop = {
                let mut entries = self.entries();
                entries.get_mut(id).map(|entry| {
                    let done = entry.whole + entry.live.done.load(Ordering::Relaxed);
                    entry.speed.tell(Instant::now(), done);
                    stop_path(&entry.file)
                })
            };
            if stop.is_some_and(|path| path.exists()) {
                self.remember_wish(id, true);
                task.stop.cancel();
            }
            self.tell(id);
        }
    }

    fn set_state(&self, id: &str, state: State) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.state = state;
        }
        self.tell(id);
    }

    fn count_whole(&self, id: &str, index: usize, live: &Live) {
        live.done.store(0, Ordering::Relaxed);
        if let Some(entry) = self.entries().get_mut(id) {
            entry.whole = entry.record.files.iter().take(index + 1).filter_map(|file| file.size).sum();
        }
    }

    fn keep(&self, id: &str, index: usize, file: &FileRecord) -> Result<(), Fault> {
        let (record, path) = {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(id) else { return Ok(()) };
            if let Some(known) = entry.record.files.get_mut(index) {
                known.clone_from(file);
            }
            (entry.record.clone(), record_path(&entry.file))
        };
        record.write(&path).map_err(|error| Fault::file(&path, error))
    }
}

/// A file in its place is whole; one of another size is somebody else's.
fn is_whole(place: &Path, record: &FileRecord) -> bool {
    std::fs::metadata(place).is_ok_and(|meta| record.size.is_none_or(|size| size == meta.len()))
}
