//! The downloads of one folder of models: begin, stop, go on, take away.
//!
//! Two downloads to one place are one, in this process and beside others: who writes holds a lock. Invariant: a file
//! has its own name only when it is whole.

mod entry;
mod place;
mod run;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use entry::Entry;
use place::{below, continued, make_folder, place_for};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::fault::Fault;
use crate::hub::{Offer, Offers, look};
use crate::record::{Record, id_of, record_path, records_in, stop_path};
use crate::speed::Speed;
use crate::target::Target;
use crate::transfer::{Reserve, Retry};
use crate::web::{Web, WebOptions};

/// How downloads are done.
#[derive(Clone)]
pub struct DownloadOptions {
    /// The folder for models.
    pub folder: PathBuf,
    /// How the web is reached.
    pub web: WebOptions,
    /// How often something is tried again.
    pub retry: Retry,
    /// What the disk keeps free.
    pub reserve: Reserve,
    /// How many at once.
    pub at_once: usize,
}

/// All downloads. Clones are the same.
#[derive(Clone)]
pub struct Downloads(Arc<Inner>);

struct Inner {
    options: DownloadOptions,
    /// What begins from now on goes through this.
    // A std mutex: nothing awaits while it is held.
    web: Mutex<Web>,
    places: Arc<Semaphore>,
    // A std mutex: nothing awaits while it is held.
    entries: Mutex<BTreeMap<String, Entry>>,
    news: broadcast::Sender<Download>,
}

#[derive(Clone)]
struct Task {
    stop: CancellationToken,
    over: CancellationToken,
}

/// How a download stands.
#[derive(Clone, Debug)]
pub enum State {
    /// Waits for others.
    Queued,
    /// Bytes come.
    Running,
    /// Stopped; goes on where it was.
    Paused,
    /// All is here and is brought to its place.
    Checking,
    /// The file is in its place.
    Done,
    /// It does not go on by itself.
    Failed(Fault),
}

/// A download as it is shown.
#[derive(Clone, Debug)]
pub struct Download {
    /// The same for the same place, after a restart too.
    pub id: String,
    /// Where it will be; of a split model, the first file.
    pub file: PathBuf,
    /// What was asked for.
    pub target: String,
    /// The host that it comes from.
    pub host: String,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes of the whole.
    pub total: Option<u64>,
    /// Smoothed.
    pub bytes_per_second: Option<u64>,
    /// At this speed.
    pub seconds_left: Option<u64>,
    /// How it stands.
    pub state: State,
    /// What the user should know although it goes on.
    pub notice: Option<String>,
    /// Whether it is no model by itself.
    pub projector: bool,
    /// When it was begun.
    pub at: jiff::Timestamp,
}

/// The files beside the models that are ours.
const LOCKS: &str = ".locks";
const FOLDERS: &str = ".download-folders.json";

impl Downloads {
    /// Finds what earlier runs left undone; nothing is begun.
    pub fn open(options: DownloadOptions) -> Result<Self, Fault> {
        let web = Mutex::new(Web::new(options.web.clone())?);
        let inner = Inner {
            web,
            places: Arc::new(Semaphore::new(options.at_once.max(1))),
            entries: Mutex::default(),
            news: broadcast::channel(256).0,
            options,
        };
        let downloads = Self(Arc::new(inner));
        downloads.refresh();
        Ok(downloads)
    }

    /// What a target offers.
    pub async fn offers(&self, target: &str) -> Result<Offers, Fault> {
        let web = self.web();
        look(&web, &Target::parse(target, web.hub())?).await
    }

    /// Takes another hub, and asks for its token anew. Holds for what is looked for, begun or gone on with from now on;
    /// what runs ends as it began.
    pub fn set_hub(&self, hub: Url) -> Result<(), Fault> {
        let web = Web::new(WebOptions { hub, ..self.0.options.web.clone() })?;
        *self.0.web.lock().unwrap_or_else(PoisonError::into_inner) = web;
        Ok(())
    }

    fn web(&self) -> Web {
        self.0.web.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells of every change, a few times a second at most for each download.
    pub fn subscribe(&self) -> broadcast::Receiver<Download> {
        self.0.news.subscribe()
    }

    /// All of them, the oldest first.
    pub fn list(&self) -> Vec<Download> {
        self.refresh();
        let mut all: Vec<Download> = self.entries().iter().map(|(id, entry)| entry.shown(id)).collect();
        all.sort_by_key(|download| download.at);
        all
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Result<Download, Fault> {
        self.entries().get(id).map(|entry| entry.shown(id)).ok_or_else(|| Fault::NoDownload(id.to_owned()))
    }

    /// Begins to download one of the offers, or finds it under way or done. Without a folder it goes to the one for
    /// models.
    pub async fn start(
        &self,
        offers: &Offers,
        offer: &Offer,
        folder: Option<&Path>,
    ) -> Result<Download, Fault> {
        let own = &self.0.options.folder;
        let folder = folder.unwrap_or(own);
        make_folder(folder)?;
        let record = Record::new(&offers.target, &offers.host, offer);
        let wanted = (folder.to_owned(), record.clone());
        let look = move || place_for(&wanted.0, &wanted.1);
        let placed = tokio::task::spawn_blocking(look).await;
        let (file, there) = placed.map_err(|error| Fault::file(folder, std::io::Error::other(error)))??;
        if folder != own {
            self.remember(folder);
        }
        let id = id_of(&file);
        if there {
            let whole = record.total().unwrap_or(0);
            let entry = Entry { whole, state: State::Done, ..Entry::new(file, record) };
            self.entries().insert(id.clone(), entry);
            return self.get(&id);
        }
        make_folder(file.parent().unwrap_or(folder))?;
        self.adopt(&id, &file, record)?;
        self.resume(&id)
    }

    /// Lets a download go on.
    pub fn resume(&self, id: &str) -> Result<Download, Fault> {
        self.refresh();
        let task = Task { stop: CancellationToken::new(), over: CancellationToken::new() };
        {
            let mut entries = self.entries();
            let entry = entries.get_mut(id).ok_or_else(|| Fault::NoDownload(id.to_owned()))?;
            if entry.task.is_some() || matches!(entry.state, State::Done) {
                return Ok(entry.shown(id));
            }
            let _ = std::fs::remove_file(stop_path(&entry.file));
            entry.state = State::Queued;
            entry.speed = Speed::default();
            entry.live.say(None);
            entry.task = Some(task.clone());
        }
        self.remember_wish(id, false);
        let (downloads, own) = (self.clone(), id.to_owned());
        tokio::spawn(async move { downloads.work(&own, task).await });
        self.tell(id);
        self.get(id)
    }

    /// Lets everything go on that nobody stopped: what an end of the program or of the machine broke off.
    pub fn resume_broken_off(&self) {
        self.refresh();
        let broken_off = |entry: &Entry| matches!(entry.state, State::Paused) && !entry.record.paused;
        let ids: Vec<String> =
            self.entries().iter().filter(|(_, entry)| broken_off(entry)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            if let Err(fault) = self.resume(&id) {
                tracing::warn!(%fault, "a download that was broken off");
            }
        }
    }

    /// Writes down whether a person stopped it.
    fn remember_wish(&self, id: &str, paused: bool) {
        let (record, path) = {
            let mut entries = self.entries();
            // A wish to stop is written again: what the work wrote meanwhile may not have known of it.
            let Some(entry) = entries.get_mut(id).filter(|entry| paused || entry.record.paused) else {
                return;
            };
            entry.record.paused = paused;
            (entry.record.clone(), record_path(&entry.file))
        };
        // One that is whole has none any more.
        if path.exists()
            && let Err(error) = record.write(&path)
        {
            tracing::warn!(%error, "whether a download was stopped is not remembered");
        }
    }

    /// Stops a download; what is here stays.
    pub async fn pause(&self, id: &str) -> Result<Download, Fault> {
        // Before it is seen to stand still: Lectern may end right then.
        self.remember_wish(id, true);
        if let Err(fault) = self.stop(id, "pause").await {
            self.remember_wish(id, false);
            return Err(fault);
        }
        if let Some(entry) = self.entries().get_mut(id)
            && !matches!(entry.state, State::Done | State::Failed(_))
        {
            entry.state = State::Paused;
        }
        self.remember_wish(id, true);
        self.tell(id);
        self.get(id)
    }

    /// Takes a download off the list; of one that is not done, what is here goes.
    pub async fn cancel(&self, id: &str) -> Result<(), Fault> {
        self.stop(id, "cancel").await?;
        let Some(entry) = self.entries().remove(id) else { return Err(Fault::NoDownload(id.to_owned())) };
        if !matches!(entry.state, State::Done) {
            entry.delete();
        }
        Ok(())
    }

    /// Stops all that run here, without forgetting them.
    pub async fn shutdown(&self) {
        let ids: Vec<String> = self.entries().keys().cloned().collect();
        for id in ids {
            let task = self.entries().get(&id).and_then(|entry| entry.task.clone());
            if let Some(task) = task {
                task.stop.cancel();
                task.over.cancelled().await;
            }
        }
    }

    /// Ends the work on a download, in whichever process it is done.
    async fn stop(&self, id: &str, wish: &str) -> Result<(), Fault> {
        self.refresh();
        let (task, file) = {
            let entries = self.entries();
            let entry = entries.get(id).ok_or_else(|| Fault::NoDownload(id.to_owned()))?;
            (entry.task.clone(), entry.file.clone())
        };
        if let Some(task) = task {
            task.stop.cancel();
            task.over.cancelled().await;
            return Ok(());
        }
        if self.lock(id)?.is_some() {
            return Ok(());
        }
        // Another process works on it, and looks for this a few times a second.
        let path = stop_path(&file);
        std::fs::write(&path, wish).map_err(|error| Fault::file(&path, error))?;
        for _ in 0..200 {
            if self.lock(id)?.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let _ = std::fs::remove_file(&path);
        Ok(())
    }

    /// Takes a record over, or finds the one that is there; its parts are gone on with.
    fn adopt(&self, id: &str, file: &Path, record: Record) -> Result<(), Fault> {
        let path = record_path(file);
        let record = match Record::read(&path) {
            Some(old) if old.files.len() == record.files.len() => continued(old, record),
            Some(_) | None => record,
        };
        let working = self.entries().get(id).is_some_and(|entry| entry.task.is_some());
        if !working {
            record.write(&path).map_err(|error| Fault::file(&path, error))?;
            self.entries().insert(id.to_owned(), Entry::new(file.to_owned(), record));
        }
        Ok(())
    }

    /// Sees what other processes did.
    fn refresh(&self) {
        let mut folders = vec![self.0.options.folder.clone()];
        folders.extend(below(&self.0.options.folder));
        folders.extend(self.remembered());
        let records = folders.iter().flat_map(|folder| records_in(folder));
        let found: BTreeMap<String, (PathBuf, Record)> =
            records.map(|(file, record)| (id_of(&file), (file, record))).collect();
        let mut entries = self.entries();
        entries.retain(|id, entry| {
            if entry.task.is_some() || found.contains_key(id) || matches!(entry.state, State::Failed(_)) {
                return true;
            }
            let whole = entry.record.files.iter().all(|file| entry.place(file).exists());
            if whole {
                (entry.state, entry.whole) = (State::Done, entry.record.total().unwrap_or(0));
            }
            whole
        });
        for (id, (file, record)) in found {
            let elsewhere = || matches!(self.lock(&id), Ok(None));
            match entries.get_mut(&id) {
                Some(entry) if entry.task.is_some() => {}
                Some(entry) => {
                    entry.record = record;
                    entry.settle(elsewhere());
                }
                None => {
                    let mut entry = Entry::new(file, record);
                    entry.settle(elsewhere());
                    entries.insert(id, entry);
                }
            }
        }
    }

    /// The right to write a download; none when somebody else has it.
    fn lock(&self, id: &str) -> Result<Option<File>, Fault> {
        let folder = self.0.options.folder.join(LOCKS);
        make_folder(&folder)?;
        // Lock files stay: one that is deleted while another process waits for it would be locked twice.
        let path = folder.join(id);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| Fault::file(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(Fault::file(&path, error)),
        }
    }

    /// Folders of the user's own choice that have downloads, for the next run.
    fn remembered(&self) -> Vec<PathBuf> {
        let path = self.0.options.folder.join(FOLDERS);
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn remember(&self, folder: &Path) {
        let mut folders = self.remembered();
        folders.retain(|known| known != folder && !records_in(known).is_empty());
        folders.push(folder.to_owned());
        let path = self.0.options.folder.join(FOLDERS);
        let written = make_folder(&self.0.options.folder).and_then(|()| {
            std::fs::write(&path, serde_json::to_vec(&folders).unwrap_or_default())
                .map_err(|error| Fault::file(&path, error))
        });
        if let Err(fault) = written {
            // It goes on in this run; only the next one does not know of it.
            tracing::warn!(%fault, "a folder of downloads was not remembered");
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, id: &str) {
        let shown = self.entries().get(id).map(|entry| entry.shown(id));
        if let Some(download) = shown {
            // Nobody may be listening.
            let _ = self.0.news.send(download);
        }
    }
}
