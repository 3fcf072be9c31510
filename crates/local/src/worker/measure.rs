//! What llama.cpp computes on, and how fast the loaded model is.
//!
//! Invariant: the conversations in the cache are as they were; the test takes a sequence of its own and leaves it empty.

use std::time::{Duration, Instant};

use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LlamaBackendDeviceType, list_llama_ggml_backend_devices};

use super::backends;
use super::session::{CHUNK, Session};
use crate::measure::{Device, DeviceKind, Measure};
use crate::native::{Context, ContextOptions, DecodeError, Row};
use crate::protocol::WorkerError;

/// Tokens of the prompt: two batches.
const PROMPT: usize = 2 * CHUNK as usize;
/// Tokens that are written at most.
const MOST: u32 = 256;
/// Tokens that are written at least, so that the figure means something.
const LEAST: u32 = 4;

/// What llama.cpp can compute on.
pub(super) fn devices() -> Vec<Device> {
    let kind = |kind| match kind {
        LlamaBackendDeviceType::Cpu => Some(DeviceKind::Cpu),
        LlamaBackendDeviceType::Gpu => Some(DeviceKind::Gpu),
        LlamaBackendDeviceType::IntegratedGpu => Some(DeviceKind::IntegratedGpu),
        LlamaBackendDeviceType::Accelerator => Some(DeviceKind::Accelerator),
        LlamaBackendDeviceType::Unknown => None,
    };
    let all = list_llama_ggml_backend_devices().into_iter();
    all.filter_map(|device| {
        Some(Device {
            kind: kind(device.device_type)?,
            name: device.name,
            description: described(device.description, device.device_type),
            memory_total: device.memory_total as u64,
            memory_free: device.memory_free as u64,
        })
    })
    .collect()
}

/// Of a processor also which of llama.cpp's kinds of code runs on it, where there is a choice.
fn described(description: String, kind: LlamaBackendDeviceType) -> String {
    match (kind, backends::chosen()) {
        (LlamaBackendDeviceType::Cpu, Some(code)) => format!("{description} (code for {code})"),
        _ => description,
    }
}

/// Reads a prompt, then writes the likeliest tokens until the time is over.
pub(super) fn bench(session: &Session<'_>, millis: u32) -> Result<Measure, WorkerError> {
    let failed = |error: DecodeError| match error {
        DecodeError::Aborted => WorkerError::Cancelled,
        DecodeError::Full | DecodeError::Failed(_) => WorkerError::Compute { reason: error.to_string() },
    };
    let model = session.model;
    let options = ContextOptions {
        tokens: u32::try_from(PROMPT).unwrap_or(CHUNK) + MOST + 1,
        sequences: 1,
        ..session.options
    };
    let mut context = Context::new(model, options, session.abort.flag())
        .map_err(|error| WorkerError::Compute { reason: error.0 })?;
    let limit = Duration::from_millis(millis.into());
    let words = usize::try_from(model.n_vocab()).unwrap_or(0);
    let prompt: Vec<LlamaToken> =
        (0..PROMPT).map(|place| LlamaToken((place * 7 % words.max(1)) as i32)).collect();
    // The first batch also reads the weights from the disk; it is not counted.
    context.decode(0, 0, &prompt[..CHUNK as usize]).map_err(failed)?;
    context.forget(0);
    let began = Instant::now();
    let mut read = 0;
    for batch in prompt.chunks(CHUNK as usize) {
        context.decode(0, read, batch).map_err(failed)?;
        read += batch.len();
        if began.elapsed() > limit / 2 {
            break;
        }
    }
    let prompt_time = began.elapsed();
    let began = Instant::now();
    let mut written = 0;
    while written < MOST && (written < LEAST || began.elapsed() + prompt_time < limit) {
        let likeliest = likeliest(context.logits_mut(Row::Last, words));
        context.decode(0, read + written as usize, &[likeliest]).map_err(failed)?;
        written += 1;
    }
    Ok(Measure {
        prompt_tokens: u32::try_from(read).unwrap_or(u32::MAX),
        prompt_micros: micros(prompt_time),
        generated_tokens: written,
        generation_micros: micros(began.elapsed()),
        threads: session.options.threads,
        weight_bytes: model.size(),
    })
}

fn likeliest(logits: &[f32]) -> LlamaToken {
    let best = logits.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    LlamaToken(best.map_or(0, |(token, _)| i32::try_from(token).unwrap_or(0)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
