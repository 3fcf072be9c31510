//! The downloads of one folder of models: begin, stop, go on, take away.
//!
//! Two downloads to one place are one, in this process and beside others: who writes holds a lock. Invariant: a file
//! has its own name only when it is whole.

mod run;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::hub::{Offer, Offers, look};
use crate::record::{FileRecord, Record, id_of, part_path, record_path, records_in, stop_path};
use crate::sink::sha256_of_file;
use crate::speed::Speed;
use crate::target::Target;
use crate::transfer::{Live, Reserve, Retry};
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
    web: Web,
    places: Arc<Semaphore>,
    // A std mutex: nothing awaits while it is held.
    entries: Mutex<BTreeMap<String, Entry>>,
    news: broadcast::Sender<Download>,
}

/// One download as this process knows it.
struct Entry {
    file: PathBuf,
    record: Record,
    state: State,
    live: Arc<Live>,
    /// Bytes of its files that are whole.
    whole: u64,
    speed: Speed,
    /// Ends the task that works on it; none when none does.
    task: Option<Task>,
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
        let web = Web::new(options.web.clone())?;
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
        look(&self.0.web, &Target::parse(target, self.0.web.hub())?).await
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
        let (downloads, own) = (self.clone(), id.to_owned());
        tokio::spawn(async move { downloads.work(&own, task).await });
        self.tell(id);
        self.get(id)
    }

    /// Stops a download; what is here stays.
    pub async fn pause(&self, id: &str) -> Result<Download, Fault> {
        self.stop(id, "pause").await?;
        if let Some(entry) = self.entries().get_mut(id)
            && !matches!(entry.state, State::Done | State::Failed(_))
        {
            entry.state = State::Paused;
        }
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

impl Entry {
    fn new(file: PathBuf, record: Record) -> Self {
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
    fn place(&self, file: &FileRecord) -> PathBuf {
        self.file.with_file_name(&file.name)
    }

    /// Counts what is on disk, while nobody works on it here.
    fn settle(&mut self, elsewhere: bool) {
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

    fn shown(&self, id: &str) -> Download {
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
    fn delete(&self) {
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

/// The old record with what is known now: a file that is listed differently now is another one.
fn continued(old: Record, new: Record) -> Record {
    let files = old.files.iter().zip(&new.files).map(|(old, new)| {
        let same = old.name == new.name
            && (new.sha256.is_none() || old.sha256 == new.sha256)
            && (new.sha256.is_some() || old.url == new.url);
        // An address may be signed anew each time.
        if same { FileRecord { url: new.url.clone(), ..old.clone() } } else { new.clone() }
    });
    Record { files: files.collect(), at: old.at, ..new }
}

/// Where a download goes, and whether it is there already. Another file of its name is left alone: then it goes into a
/// folder named after its source.
fn place_for(folder: &Path, record: &Record) -> Result<(PathBuf, bool), Fault> {
    let source: String =
        record.target.trim_start_matches("https://").trim_start_matches("http://").replace('/', "_");
    let beside = folder.join(crate::name::safe_name(&source).trim_end_matches(".gguf"));
    let mut last = Err(std::io::ErrorKind::AlreadyExists.into());
    for place in [folder.to_owned(), beside] {
        let file = place.join(record.name());
        let ours = Record::read(&record_path(&file)).is_some_and(|old| old.target == record.target);
        match is_there(&place, record) {
            Ok(true) => return Ok((file, true)),
            Ok(false) if ours => return Ok((file, false)),
            Ok(false) => {
                let taken = record.files.iter().any(|file| place.join(&file.name).symlink_metadata().is_ok());
                if !taken && !record_path(&file).exists() {
                    return Ok((file, false));
                }
            }
            Err(error) => last = Err(error),
        }
    }
    last.map_err(|error| Fault::file(folder.join(record.name()), error))
}

/// Whether all files are there, the very same as far as can be told.
fn is_there(folder: &Path, record: &Record) -> std::io::Result<bool> {
    for file in &record.files {
        let path = folder.join(&file.name);
        let Ok(meta) = std::fs::metadata(&path) else { return Ok(false) };
        if !meta.is_file() || file.size.is_some_and(|size| size != meta.len()) {
            return Ok(false);
        }
        match &file.sha256 {
            Some(sha256) if *sha256 != sha256_of_file(&path)? => return Ok(false),
            Some(_) => {}
            None if file.size.is_none() => return Ok(false),
            None => {}
        }
    }
    Ok(true)
}

fn make_folder(folder: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(|error| Fault::file(folder, error))
}

/// The folders in the folder for models, for downloads whose name was taken.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).filter(|path| !path.ends_with(LOCKS)).collect()
}
