//! What the engine has of the model library: downloads, this machine, tests of models, the trash.
//!
//! Invariant: nothing is read, connected or measured before it is asked for.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use lectern_core::{ModelId, Timestamp};
use lectern_library::advice::Ran;
use lectern_library::folders::Watch;
use lectern_library::machine::Machine;
use lectern_library::trash::{Trash, TrashError};
use lectern_library::{Downloads, Fault};
use lectern_local::measure::{Bench, Device, MeasureError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::durable;
use crate::home::Home;
use crate::view::{BenchView, Problem};

/// The parts of the library that last as long as the engine.
pub(crate) struct Library {
    // A std mutex: nothing awaits while it is held.
    pub(crate) downloads: Mutex<Option<Downloads>>,
    pub(crate) machine: OnceLock<Machine>,
    pub(crate) devices: tokio::sync::OnceCell<Result<Vec<Device>, Problem>>,
    pub(crate) benches: Benches,
    /// One test at a time.
    pub(crate) testing: tokio::sync::Mutex<()>,
    pub(crate) trash: Trash,
    /// The watch of the folders, and the task that listens to it.
    // A std mutex: nothing awaits while it is held.
    pub(crate) watch: Mutex<Option<(Watch, tokio::task::AbortHandle)>>,
}

impl Library {
    pub(crate) fn new(home: &Home) -> Self {
        Self {
            downloads: Mutex::default(),
            machine: OnceLock::new(),
            devices: tokio::sync::OnceCell::new(),
            benches: Benches { path: home.benches(), known: Mutex::default() },
            testing: tokio::sync::Mutex::default(),
            trash: Trash::new(home.models_trash()),
            watch: Mutex::default(),
        }
    }

    /// The machine, read once.
    pub(crate) fn machine(&self) -> &Machine {
        self.machine.get_or_init(Machine::read)
    }

    /// The tests made on this machine.
    pub(crate) fn tests(&self) -> Vec<Ran> {
        let machine = self.machine_key();
        let kept = self.benches.all();
        kept.values().filter(|kept| kept.machine == machine).map(KeptBench::ran).collect()
    }

    /// The test of a file on this machine.
    pub(crate) fn bench_of(&self, file: &Path) -> Option<KeptBench> {
        let kept = self.benches.all();
        if kept.is_empty() {
            return None;
        }
        kept.get(&self.key_of(file)?).cloned()
    }

    /// Remembers a test.
    pub(crate) fn keep_bench(&self, file: &Path, bench: &Bench) -> Result<KeptBench, Problem> {
        let measure = &bench.measure;
        let kept = KeptBench {
            machine: self.machine_key(),
            weights: measure.weight_bytes,
            prompt: measure.prompt_per_second(),
            generation: measure.generation_per_second(),
            prompt_tokens: measure.prompt_tokens,
            generated_tokens: measure.generated_tokens,
            load_ms: u64::try_from(bench.load.as_millis()).unwrap_or(u64::MAX),
            threads: measure.threads,
            at: Timestamp::now(),
        };
        let key = self.key_of(file).ok_or_else(|| {
            Problem::new("bad_model_file", format!("model file `{}` can't be read", file.display()))
        })?;
        self.benches.keep(key, kept.clone())?;
        Ok(kept)
    }

    fn machine_key(&self) -> String {
        let machine = self.machine();
        format!("{}, {} threads", machine.processor, machine.logical_cores)
    }

    fn key_of(&self, file: &Path) -> Option<String> {
        let print = fingerprint(file).ok()?;
        Some(format!("{print}, {}", self.machine_key()))
    }
}

/// A test as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptBench {
    machine: String,
    weights: u64,
    prompt: f64,
    generation: f64,
    prompt_tokens: u32,
    generated_tokens: u32,
    load_ms: u64,
    threads: u32,
    at: Timestamp,
}

impl KeptBench {
    pub(crate) fn ran(&self) -> Ran {
        Ran { weights: self.weights, prompt: self.prompt, generation: self.generation }
    }

    pub(crate) fn view(&self, model: &ModelId) -> BenchView {
        BenchView {
            model: model.clone(),
            prompt_tokens_per_second: self.prompt,
            generation_tokens_per_second: self.generation,
            prompt_tokens: self.prompt_tokens,
            generated_tokens: self.generated_tokens,
            load_ms: self.load_ms,
            threads: self.threads,
            at: self.at,
        }
    }
}

/// The tests, in a file.
pub(crate) struct Benches {
    path: PathBuf,
    // A std mutex: nothing awaits while it is held.
    known: Mutex<Option<BTreeMap<String, KeptBench>>>,
}

impl Benches {
    fn all(&self) -> BTreeMap<String, KeptBench> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| self.read()).clone()
    }

    fn keep(&self, key: String, bench: KeptBench) -> Result<(), Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may have made tests too.
        let mut all = self.read();
        all.insert(key, bench);
        let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
        durable::write(&self.path, &text).map_err(|error| {
            Problem::new("bench_not_kept", format!("write {}: {error}", self.path.display()))
        })?;
        *known = Some(all);
        Ok(())
    }

    /// A file that can't be read has no tests; they are quickly made again.
    fn read(&self) -> BTreeMap<String, KeptBench> {
        std::fs::read(&self.path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

/// What tells a model file from others without reading all of it: its size, its header, and its last weights.
fn fingerprint(file: &Path) -> std::io::Result<String> {
    const PIECE: u64 = 64 << 10;
    let mut open = std::fs::File::open(file)?;
    let length = open.metadata()?.len();
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    for from in [0, length / 2, length.saturating_sub(PIECE)] {
        open.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::new();
        (&mut open).take(PIECE).read_to_end(&mut piece)?;
        hash.update(&piece);
    }
    Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// A fault of a download, for people.
pub(crate) fn of_fault(fault: &Fault) -> Problem {
    Problem { hint: fault.hint(), ..Problem::from_error(fault.code(), fault) }
}

/// Why a test did not work.
pub(crate) fn of_measure(error: &MeasureError) -> Problem {
    Problem::from_error("bench_failed", error).hint("Look at the file: lectern models inspect FILE.")
}

/// Why something was not deleted or did not come back.
pub(crate) fn of_trash(error: &TrashError) -> Problem {
    match error {
        TrashError::Unknown(_) => Problem::from_error("unknown_removal", error)
            .hint("Removed models can come back for a day; this one is gone or was never there."),
        TrashError::Taken(_) => Problem::from_error("file_exists", error).hint("Move that file away first."),
        TrashError::Move(..) => {
            Problem::from_error("bad_folder", error).hint("Check that the folder of models can be written.")
        }
    }
}
