//! Local models: GGUF files run by llama.cpp in a child process.
//!
//! Invariant: llama.cpp never computes inside the application's own process; what it does to the worker is an
//! error of one reply.

mod busy;
mod child;
mod deltas;
mod format;
pub mod gguf;
mod grammar;
mod images;
pub mod measure;
pub mod memory;
mod messages;
mod model;
mod names;
mod native;
mod parse;
pub mod prompted;
mod protocol;
pub mod saved;
mod speed;
mod tools;
mod worker;

pub use child::WorkerCommand;
pub use format::{CallForm, FormatOptions};
pub use gguf::{
    DraftFault, FileFault, ModelFileError, ModelFileInfo, ProjectorChoice, ProjectorInfo, read_info,
    read_projector,
};
pub use images::AVAILABLE as SEES_IMAGES;
pub use model::{Lingering, LocalModel, LocalOptions};
pub use parse::{ParseError, ParsedText, ParsedToolCall, parse_text};
pub use protocol::Misbehaviour;
pub use saved::CacheOptions;
pub use speed::{FlashAttention, KvType, Loading, Lookup, SpeedError, SpeedOptions, Waiting};
pub use tools::{Inspection, TemplateFault, TextParser, ToolSupport, inspect, try_template};
pub use worker::worker_main;

/// With what a model is shown images: nothing in a build that shows none.
pub fn projector_of(
    info: &ModelFileInfo,
    choice: &ProjectorChoice,
) -> Result<Option<ProjectorInfo>, ModelFileError> {
    if SEES_IMAGES { choice.of(&info.path, info.shape.width) } else { Ok(None) }
}
