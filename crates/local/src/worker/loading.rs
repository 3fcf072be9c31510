//! Bringing a model into memory, and saying why that failed.
//!
//! Invariant: a load that is cancelled ends soon; llama.cpp's own reason is what the user reads.

use std::ffi::CString;
use std::num::NonZeroU32;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;

use super::ABORT;
use super::output::Output;
use crate::native::{capture_log, recent_log};
use crate::protocol::{Event, Load, WorkerError};
use crate::speed::Loading;

/// Bytes that a graphics processor keeps for others.
const FREE_ON_DEVICE: usize = 512 << 20;

/// A model in memory, and what the user is to know about how it came there.
pub(super) fn load_model(
    load: &Load,
    backend: &LlamaBackend,
    output: &Arc<Output>,
) -> Result<(LlamaModel, Vec<String>), WorkerError> {
    let _ = recent_log();
    let job = load.job;
    let output = Arc::clone(output);
    let mut last = -1.0;
    let (params, notes) = params_of(load, backend);
    let params = params.with_progress_callback(move |part| {
        // One event for each hundredth is enough.
        if part - last >= 0.01 || part >= 1.0 {
            last = part;
            output.send(&Event::Loading { job, part });
        }
        !ABORT.is_set()
    });
    let model = LlamaModel::load_from_file(backend, &load.path, &params);
    model.map(|model| (model, notes)).map_err(|error| {
        if ABORT.is_set() {
            return WorkerError::Cancelled;
        }
        WorkerError::Load { reason: with_log(&error.to_string()) }
    })
}

/// Loads another file beside it, with as many layers on a graphics processor as were said for the model.
pub(super) fn load_file(
    path: &Path,
    load: &Load,
    backend: &LlamaBackend,
) -> Result<LlamaModel, llama_cpp_2::LlamaModelLoadError> {
    let _ = recent_log();
    let params = into_memory(load);
    let params = match load.speed.gpu_layers {
        Some(layers) => params.with_n_gpu_layers(layers),
        None => params,
    };
    LlamaModel::load_from_file(backend, path, &params)
}

/// How a file comes into memory.
fn into_memory(load: &Load) -> LlamaModelParams {
    let params = LlamaModelParams::default();
    match load.speed.loading {
        Loading::Mapped => params,
        Loading::Locked => params.with_use_mmap(true).with_use_mlock(true),
        Loading::Copied => params.with_use_mmap(false),
    }
}

/// How the model comes into memory, and which layers go to a graphics processor.
fn params_of(load: &Load, backend: &LlamaBackend) -> (LlamaModelParams, Vec<String>) {
    let params = into_memory(load).with_load_mtp(load.speed.mtp);
    let offloads = backend.supports_gpu_offload();
    match load.speed.gpu_layers {
        Some(layers) => {
            let note = (layers > 0 && !offloads).then(|| no_device(layers));
            (params.with_n_gpu_layers(layers), note.into_iter().collect())
        }
        None if offloads => fitted(params, load),
        None => (params, Vec::new()),
    }
}

fn no_device(layers: u32) -> String {
    format!(
        "`gpu_layers` is {layers}, but there is no graphics processor that this Lectern can compute on: all layers run \
         on the processor"
    )
}

/// As many layers on the graphics processors as their memory holds; none when it cannot be known.
fn fitted(mut params: LlamaModelParams, load: &Load) -> (LlamaModelParams, Vec<String>) {
    let unfitted = |params: LlamaModelParams, why: &str| {
        let note = format!(
            "it could not be found out how many layers fit into the memory of the graphics processor ({why}): all run on \
             the processor. Set `gpu_layers` to say how many"
        );
        (params.with_n_gpu_layers(0), vec![note])
    };
    let Some(path) = load.path.to_str().and_then(|path| CString::new(path).ok()) else {
        return unfitted(params, "the path of the file is no text");
    };
    let mut context = LlamaContextParams::default().with_n_ctx(NonZeroU32::new(load.context));
    let mut margins = vec![FREE_ON_DEVICE; llama_cpp_2::max_devices()];
    let errors = llama_cpp_sys_2::GGML_LOG_LEVEL_ERROR;
    let fit = Pin::new(&mut params).fit_params(&path, &mut context, &mut margins, load.context, errors);
    // Fitting takes the log over.
    capture_log();
    match fit {
        Ok(_) => (params, Vec::new()),
        Err(error) => unfitted(params, &error.to_string()),
    }
}

/// The most telling line of the log, or else what the library returned.
pub(super) fn with_log(error: &str) -> String {
    let lines = recent_log();
    let telling = lines.iter().find(|line| line.contains("error")).or_else(|| lines.last());
    telling.map_or_else(|| error.to_owned(), |line| tidy(line))
}

/// `llama_model_load: error loading model: X` says X.
fn tidy(line: &str) -> String {
    const NOISE: [&str; 3] = [
        "error loading model: ",
        "error loading model hyperparameters: ",
        "error loading model vocabulary: ",
    ];
    let rest = NOISE.iter().fold(line, |line, noise| line.rsplit_once(noise).map_or(line, |(_, rest)| rest));
    rest.trim().to_owned()
}
