//! The model library: what can be downloaded, what is on its way, what this machine can carry.
//!
//! Invariant: names, licences and texts of repositories are what others wrote, untrusted. Sizes are bytes, speeds are
//! per second.

use lectern_core::{ModelId, Timestamp, ToolMode};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ModelView, Problem};

/// Where a model's file came from; it decides what becomes of the file when the model is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum ModelOrigin {
    /// Built into Lectern.
    BuiltIn,
    /// In Lectern's own folder of models, where it may be deleted.
    Library,
    /// Found in a folder that is watched; the file is never touched.
    Folder,
    /// Added by its path; the file is never touched.
    File,
    /// At a provider; there is no file.
    Remote,
}

/// What a repository offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct RepositoryView {
    /// E.g. `Qwen/Qwen3-4B-GGUF`, or the address of a single file.
    pub target: String,
    /// The host that is asked, e.g. `huggingface.co`.
    pub host: String,
    /// The revision that is listed, e.g. `main`.
    pub revision: String,
    /// The models, the smallest first; the files of a split model are one.
    pub files: Vec<RepositoryFile>,
    /// The name of the file that the target or the machine suggests.
    pub suggested: Option<String>,
    /// Files that are no models.
    pub other_files: u32,
}

/// One model of a repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct RepositoryFile {
    /// Its path in the repository; of a split model, that of its first file.
    pub name: String,
    /// All files together; none when the host does not say.
    pub size: Option<u64>,
    /// E.g. `Q4_K_M`, as the name says.
    pub quantisation: Option<String>,
    /// As the host says, in hexadecimal; none for a split model, whose files each have their own.
    pub sha256: Option<String>,
    /// Number of files.
    pub parts: u32,
    /// Whether it is the part of another model that sees images (`mmproj`), and no model by itself.
    pub projector: bool,
    /// Whether this machine can carry it.
    pub advice: Option<AdviceView>,
    /// The model of the list that this is, when it was downloaded before.
    pub model: Option<ModelId>,
}

/// What to download.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct DownloadRequest {
    /// `owner/repo`, `owner/repo:Q4_K_M`, an address of Hugging Face, or the address of a file.
    pub target: String,
    /// The file in the repository; none for the suggested one.
    #[serde(default)]
    #[ts(optional)]
    pub file: Option<String>,
    /// The folder; none for Lectern's own.
    #[serde(default)]
    #[ts(optional)]
    pub folder: Option<String>,
}

/// A download.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct DownloadView {
    /// Its id; the same after a restart.
    pub id: String,
    /// The file's name on this machine.
    pub name: String,
    /// Where it will be.
    pub path: String,
    /// What was asked for, e.g. `Qwen/Qwen3-4B-GGUF`.
    pub target: String,
    /// The host that it comes from.
    pub host: String,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes of the whole; none when the host does not say.
    pub total: Option<u64>,
    /// The smoothed speed while it runs.
    pub bytes_per_second: Option<u64>,
    /// The time left at this speed.
    pub seconds_left: Option<u64>,
    /// How it stands.
    pub state: DownloadState,
    /// What the user should know although it goes on, e.g. that the file changed on the server and starts anew.
    pub notice: Option<String>,
}

/// How a download stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum DownloadState {
    /// Waits for others to finish.
    Queued,
    /// Bytes arrive, or are waited for.
    Running,
    /// Stopped by the user or by the end of Lectern; goes on where it was.
    Paused,
    /// All bytes are here; their checksum is computed.
    Checking,
    /// The file is whole and in its place.
    Done {
        /// The model of the list; none for what is no model by itself.
        model: Option<ModelId>,
    },
    /// It does not go on by itself.
    Failed {
        /// Why, and what to do.
        problem: Problem,
    },
}

/// What this machine has, read once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct HardwareView {
    /// Name of the processor.
    pub processor: String,
    /// Cores; none when the system does not say.
    pub physical_cores: Option<u32>,
    /// Threads that run at once, within the limits of this process.
    pub logical_cores: u32,
    /// Memory in bytes, within the limits of this process (container, cgroup).
    pub memory_total: u64,
    /// Of it, what can be used now.
    pub memory_available: u64,
    /// What limits the memory beside the machine itself, in bytes.
    pub memory_limit: Option<u64>,
    /// Instruction sets that matter for models, e.g. `avx2`.
    pub instruction_sets: Vec<String>,
    /// What llama.cpp can compute on.
    pub devices: Vec<DeviceView>,
    /// Why the devices are not known, when they are not.
    pub devices_problem: Option<Problem>,
    /// Bytes of weights that this machine reads in a second while it writes, from the tests that were made.
    pub weights_per_second: Option<u64>,
}

/// Something that llama.cpp can compute on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct DeviceView {
    /// E.g. `CUDA0`.
    pub name: String,
    /// E.g. `NVIDIA GeForce RTX 4070`.
    pub description: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its memory in bytes.
    pub memory_total: u64,
    /// Of it, what is free.
    pub memory_free: u64,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A graphics card with memory of its own.
    Gpu,
    /// Graphics that share the machine's memory.
    IntegratedGpu,
    /// Something that helps the processor.
    Accelerator,
}

/// Whether a model suits this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct AdviceView {
    /// In one word.
    pub verdict: Verdict,
    /// The memory it needs with `context` tokens.
    pub need: NeedView,
    /// Tokens of context that the need is counted with.
    pub context: u32,
    /// The most context that fits with ease; none when not even the weights do.
    pub suggested_context: Option<u32>,
    /// Memory that there is for it.
    pub available: u64,
    /// How fast it writes; none when nothing is known.
    pub speed: Option<SpeedView>,
    /// Why, most important first.
    pub reasons: Vec<AdviceReason>,
}

/// Whether a model fits into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum Verdict {
    /// With room for other programs.
    Fits,
    /// It runs, but other programs may have to make room.
    Tight,
    /// It does not run here.
    TooBig,
}

/// Memory by part, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct NeedView {
    /// The model itself.
    pub weights: u64,
    /// What it remembers of the conversation.
    pub kv: u64,
    /// Room to compute in.
    pub compute: u64,
    /// All together.
    pub total: u64,
    /// Whether it was only guessed from the file's size, because the file is not here.
    pub guessed: bool,
}

/// How fast a model is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct SpeedView {
    /// Tokens that it writes in a second.
    pub generation: f64,
    /// Tokens that it reads in a second.
    pub prompt: Option<f64>,
    /// How this is known.
    pub source: SpeedSource,
}

/// How a speed is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum SpeedSource {
    /// This model was tested on this machine.
    Measured,
    /// Worked out from tests of other models on this machine.
    Estimated,
}

/// A reason for an advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct AdviceReason {
    /// E.g. `memory`; the window chooses its words by this.
    pub code: String,
    /// The sentence in English, with its figures.
    pub message: String,
}

/// What the five-second test of a model found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct BenchView {
    /// The model.
    pub model: ModelId,
    /// Tokens read in a second.
    pub prompt_tokens_per_second: f64,
    /// Tokens written in a second.
    pub generation_tokens_per_second: f64,
    /// Tokens that were read.
    pub prompt_tokens: u32,
    /// Tokens that were written.
    pub generated_tokens: u32,
    /// How long the load took, in milliseconds.
    pub load_ms: u64,
    /// Threads that computed.
    pub threads: u32,
    /// When.
    #[ts(type = "string")]
    pub at: Timestamp,
}

/// Everything about a model before it is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct ModelDetails {
    /// The file.
    pub path: String,
    /// The name in the file, or else the file's own.
    pub name: String,
    /// E.g. `llama`.
    pub architecture: String,
    /// Number of weights.
    pub parameters: u64,
    /// E.g. `Q4_K - Medium`.
    pub quantisation: String,
    /// Tokens that the model was trained to keep in view.
    pub context_length: u32,
    /// All files together.
    pub size: u64,
    /// Number of files.
    pub parts: u32,
    /// How tools are brought to it.
    pub tool_mode: ToolMode,
    /// Whether one message may hold several calls.
    pub parallel_calls: bool,
    /// Whether it thinks before it answers.
    pub thinking: bool,
    /// Whether the file brings a chat template.
    pub has_template: bool,
    /// The chat template.
    pub template: Option<String>,
    /// Why the template can't be used, when it can't.
    pub template_error: Option<String>,
    /// The licence that the file names.
    pub licence: Option<String>,
    /// Whether it suits this machine.
    pub advice: Option<AdviceView>,
    /// The test of this model on this machine, when one was made.
    pub bench: Option<BenchView>,
}

/// A model of the curated list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct CuratedView {
    /// A name for people, e.g. `Qwen3 4B`.
    pub title: String,
    /// E.g. `Qwen/Qwen3-4B-GGUF`.
    pub repository: String,
    /// The file in the repository.
    pub file: String,
    /// E.g. `Q4_K_M`.
    pub quantisation: String,
    /// Size of the file in bytes, about.
    pub size: u64,
    /// Number of weights, about.
    pub parameters: u64,
    /// E.g. `Apache-2.0`.
    pub licence: String,
    /// Language codes, e.g. `en`.
    pub languages: Vec<String>,
    /// Memory that a machine should have, in bytes.
    pub min_memory: u64,
    /// A sentence about it.
    pub note: String,
    /// Whether the makers of the list downloaded this very file.
    pub verified: bool,
    /// Whether it is from the user's own list.
    pub own: bool,
    /// Whether this machine can carry it.
    pub advice: Option<AdviceView>,
    /// The model of the list that this is, when it was downloaded before.
    pub model: Option<ModelId>,
}

/// A folder of model files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct ModelFolderView {
    /// The folder.
    pub path: String,
    /// Whose it is.
    pub kind: ModelFolderKind,
    /// Models that are in it.
    pub models: u32,
    /// Why it can't be read, when it can't.
    pub problem: Option<Problem>,
}

/// Whose a folder of models is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/models.ts")]
pub enum ModelFolderKind {
    /// Lectern's own.
    Library,
    /// The user's, watched.
    Watched,
    /// LM Studio's, not watched yet; it can be added.
    LmStudio,
    /// Jan's, not watched yet; it can be added.
    Jan,
    /// That of llama.cpp's own downloads, not watched yet; it can be added.
    LlamaCpp,
    /// That of Hugging Face's own programs, not watched yet; it can be added.
    HuggingFace,
    /// Ollama's, not watched yet; it can be added.
    Ollama,
}

/// A model that was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct RemovedModel {
    /// Brings it back, for a day.
    pub token: String,
    /// The model as it was.
    pub model: ModelView,
    /// Whether its file was deleted; else it stays where it is.
    pub file_deleted: bool,
    /// Bytes that are free once it can't be brought back any more.
    pub freed: u64,
    /// Until when it can be brought back.
    #[ts(type = "string")]
    pub until: Timestamp,
}

/// What is saved of conversations, so that they go on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/models.ts")]
pub struct StatesView {
    /// Bytes on disk.
    pub bytes: u64,
    /// Conversations of which something is saved.
    pub conversations: u32,
    /// Bytes at most; the oldest states give way.
    pub limit: u64,
    /// Whether more is saved.
    pub saved: bool,
}
