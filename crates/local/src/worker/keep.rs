//! What is kept of conversations that are not in the cache: copies in memory, files on disk.
//!
//! Invariant: a state that stands here belongs to the loaded model and its settings; its tokens say what it is. The
//! newest state of a conversation wins; what does not fit the budgets gives way, oldest first.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use llama_cpp_2::token::LlamaToken;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::cells::is_cell;
use super::history::History;
use super::output::Output;
use super::slots::{Checkpoint, Slot, best_teller};
use super::writer::Writer;
use crate::protocol::{Event, Load};
use crate::saved::{
    CacheOptions, FileError, Folder, Header, checkpoint_bytes, file_digest, hex, read_header, verify,
};

/// Branches of one conversation that are kept beside the cache.
const BRANCHES: usize = 4;

/// A conversation that is not in the cache.
pub(super) struct Stored {
    pub(super) slot: Slot,
    /// Its state, when it is in memory; else it is in the slot's file.
    pub(super) memory: Option<Vec<u8>>,
}

impl Stored {
    /// Bytes in memory.
    fn bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Vec::len) as u64
    }
}

/// What is kept beside the cache.
pub(super) struct Keep {
    pub(super) options: CacheOptions,
    key: String,
    pub(super) stored: Vec<Stored>,
    pub(super) disk: Option<Disk>,
    output: Arc<Output>,
}

/// The folder of states, and who writes into it.
pub(super) struct Disk {
    pub(super) folder: Folder,
    pub(super) writer: Writer,
}

impl Keep {
    /// Finds what earlier processes saved for this model.
    pub(super) fn new(load: &Load, template: &str, words: i32, context: u32, output: &Arc<Output>) -> Self {
        let options = load.cache.clone();
        let key = key_of(load, template);
        let mut keep = Self { options, key, stored: Vec::new(), disk: None, output: Arc::clone(output) };
        let Some(path) = keep.options.folder.clone() else { return keep };
        match Folder::open(&path) {
            Ok(folder) => {
                for name in folder.names(&keep.key) {
                    keep.find(&folder, name, words, context);
                }
                let writer = Writer::start(folder.clone(), keep.options.disk_bytes, Arc::clone(output));
                keep.disk = Some(Disk { folder, writer });
            }
            Err(error) => {
                keep.note(format!("states of conversations are not saved: {}: {error}", path.display()))
            }
        }
        keep.stored.sort_by_key(|stored| stored.slot.last_use);
        keep
    }

    fn find(&mut self, folder: &Folder, name: String, words: i32, context: u32) {
        let path = folder.path(&name);
        match read_header::<History>(&path) {
            Ok(header) => match slot_of(header, &self.key, words) {
                Some(slot) if slot.tokens.len() <= context as usize => {
                    let last_use = age_rank(&path);
                    self.stored
                        .push(Stored { slot: Slot { file: Some(name), last_use, ..slot }, memory: None });
                }
                // Of a time with a larger context.
                Some(_) => {}
                None => self.drop_file(folder, &name, "it belongs to something else"),
            },
            Err(error) => self.drop_file(folder, &name, &error.to_string()),
        }
    }

    /// Says something to the application's log.
    pub(super) fn note(&self, text: String) {
        self.output.send(&Event::Note { text });
    }

    fn drop_file(&self, folder: &Folder, name: &str, why: &str) {
        folder.delete(name);
        self.note(format!("the saved state {name} was dropped: {why}"));
    }

    /// The one of these, or of the slot, whose history the messages continue farthest.
    pub(super) fn teller<'a>(
        &'a self,
        in_cache: Option<&'a Slot>,
        messages: &[Value],
        setting: &str,
    ) -> Option<&'a Slot> {
        // In the cache comes last: of several that are as good, the last is taken.
        best_teller(self.stored.iter().map(|stored| &stored.slot).chain(in_cache), messages, setting)
    }

    /// Takes out the state with most of these tokens, if it has more than so many.
    pub(super) fn take_better(
        &mut self,
        tokens: &[LlamaToken],
        than: usize,
        rewinds: bool,
    ) -> Option<Stored> {
        let each = self.stored.iter().enumerate();
        let kept =
            each.map(|(index, stored)| (stored.slot.reusable(tokens, rewinds), stored.slot.last_use, index));
        let (_, _, index) = kept.filter(|(kept, ..)| *kept >= than).max()?;
        Some(self.stored.remove(index))
    }

    /// Keeps a state that leaves the cache; the oldest copies in memory give way.
    pub(super) fn put(&mut self, stored: Stored) {
        // An older state that this one continues is of no use.
        let newer = &stored.slot;
        let of_same = |old: &Stored| {
            old.slot.conversation == newer.conversation && old.slot.file == newer.file && newer.file.is_some()
        };
        self.stored.retain(|old| !of_same(old));
        let conversation = newer.conversation.clone();
        self.stored.push(stored);
        self.thin_out(conversation.as_deref());
        self.make_room(0);
    }

    /// Whether so many bytes more fit into memory without another state going for them.
    pub(super) fn has_room(&self, size: u64) -> bool {
        self.bytes_in_memory().saturating_add(size) <= self.options.memory_bytes
    }

    fn bytes_in_memory(&self) -> u64 {
        self.stored.iter().map(Stored::bytes).sum()
    }

    /// Lets the oldest states go from memory until there is room for so many bytes more.
    pub(super) fn make_room(&mut self, size: u64) {
        let mut total = self.bytes_in_memory();
        for stored in &mut self.stored {
            if total.saturating_add(size) <= self.options.memory_bytes {
                break;
            }
            total -= stored.bytes();
            stored.memory = None;
        }
        self.stored.retain(|stored| stored.memory.is_some() || stored.slot.file.is_some());
    }

    /// Drops the oldest branches of a conversation beyond a few.
    fn thin_out(&mut self, conversation: Option<&str>) {
        let of = |stored: &Stored| stored.slot.conversation.as_deref() == conversation;
        while self.stored.iter().filter(|stored| of(stored)).count() > BRANCHES {
            let Some(oldest) = self.stored.iter().position(of) else { return };
            let old = self.stored.remove(oldest);
            if let (Some(disk), Some(name)) = (&self.disk, old.slot.file) {
                disk.writer.delete(name);
            }
        }
    }

    /// Checks a file and reads its checkpoints. An error names what is wrong with it.
    pub(super) fn open_file(&self, slot: &mut Slot) -> Result<std::path::PathBuf, FileError> {
        let (Some(disk), Some(name)) = (&self.disk, &slot.file) else { return Err(FileError::NotAState) };
        disk.writer.wait();
        let path = disk.folder.path(name);
        verify(&path)?;
        let header = read_header::<History>(&path)?;
        let same = header.cached == slot.cached
            && header.tokens.len() == slot.tokens.len()
            && header.tokens.iter().zip(&slot.tokens).all(|(saved, token)| *saved == token.0);
        if !same || header.key != self.key {
            return Err(FileError::Damaged);
        }
        slot.checkpoints.clear();
        for saved in header.checkpoints {
            let state = Arc::new(checkpoint_bytes(&path, saved)?);
            slot.checkpoints.push(Checkpoint { at: saved.at, state });
        }
        disk.folder.touch(name);
        Ok(path)
    }

    /// Drops a file that could not be used.
    pub(super) fn reject(&self, slot: &Slot, why: &str) {
        if let (Some(disk), Some(name)) = (&self.disk, &slot.file) {
            self.drop_file(&disk.folder, name, why);
        }
    }

    /// The name of a slot's file, a new one for a slot without.
    pub(super) fn name_for(&self, slot: &Slot) -> String {
        let conversation = slot.conversation.as_deref().unwrap_or_default();
        slot.file.clone().unwrap_or_else(|| Folder::name(conversation, &self.key, number()))
    }

    /// What a slot's file says of itself.
    pub(super) fn header(&self, slot: &Slot) -> Header<History> {
        Header {
            key: self.key.clone(),
            conversation: slot.conversation.clone().unwrap_or_default(),
            tokens: slot.tokens.iter().map(|token| token.0).collect(),
            cached: slot.cached,
            history: slot.history.clone(),
            setting: slot.setting.clone(),
            checkpoints: Vec::new(),
        }
    }

    /// Forgets a conversation, or all of them.
    pub(super) fn forget(&mut self, conversation: Option<&str>) {
        let meant = |slot: &Slot| conversation.is_none_or(|name| slot.conversation.as_deref() == Some(name));
        self.stored.retain(|stored| !meant(&stored.slot));
        if let Some(disk) = &self.disk {
            disk.writer.forget(conversation);
            disk.writer.wait();
        }
    }
}

/// The slot that a file describes; none when it is another model's, or no token list of this vocabulary.
fn slot_of(header: Header<History>, key: &str, words: i32) -> Option<Slot> {
    let tokens: Vec<LlamaToken> = header.tokens.into_iter().map(LlamaToken).collect();
    let sound = header.key == key
        && (1..=tokens.len()).contains(&header.cached)
        && header.history.fits(tokens.len())
        && tokens.iter().all(|token| is_cell(*token) || (0..words).contains(&token.0));
    let checkpoints = header.checkpoints.iter();
    let checkpoints = checkpoints.map(|one| Checkpoint { at: one.at, state: Arc::default() }).collect();
    sound.then(|| Slot {
        conversation: Some(header.conversation),
        cached: header.cached,
        tokens,
        history: header.history,
        setting: header.setting,
        checkpoints,
        ..Slot::default()
    })
}

/// What decides whether a state fits: the model's file, its template, how keys and values are kept, llama.cpp. The
/// file's part comes first, so that all states of a file are found by their names.
fn key_of(load: &Load, template: &str) -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    // SAFETY: a constant text of llama.cpp.
    let version = unsafe { std::ffi::CStr::from_ptr(llama_cpp_sys_2::llama_version()) };
    add(&version.to_string_lossy());
    add(template);
    let projector =
        load.projector.as_ref().map(|path| (path, std::fs::metadata(path).map(|meta| meta.len()).ok()));
    add(&format!("{projector:?}"));
    add(&format!("{:?} {:?} {:?}", load.speed.keys, load.speed.values, load.speed.attention()));
    format!("{}{}", file_digest(&load.path), hex(&digest.finalize()[..8]))
}

/// Older files have smaller numbers; all are below those of slots that were used since.
fn age_rank(path: &Path) -> u64 {
    let changed = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let changed = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    changed.map_or(0, |time| time.as_secs())
}

/// A number that no other file has.
fn number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let seed = format!("{now} {} {}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha256::digest(seed)[..8]);
    u64::from_le_bytes(bytes)
}
