//! What a machine computes on, and how fast a model is there, asked of a worker.
//!
//! Invariant: a worker of its own for each question; the one that answers the user is left alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::child::{Child, WorkerCommand};
use crate::model::LocalOptions;
use crate::protocol::{Event, Load, Request};

/// Something that llama.cpp can compute on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A graphics card.
    Gpu,
    /// Graphics that share the machine's memory.
    IntegratedGpu,
    /// Something that helps the processor.
    Accelerator,
}

/// How fast a model was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Tokens that were read.
    pub prompt_tokens: u32,
    /// How long that took, in microseconds.
    pub prompt_micros: u64,
    /// Tokens that were written.
    pub generated_tokens: u32,
    /// How long that took, in microseconds.
    pub generation_micros: u64,
    /// Threads that computed.
    pub threads: u32,
    /// Bytes of the weights.
    pub weight_bytes: u64,
}

impl Measure {
    /// Tokens read in a second.
    pub fn prompt_per_second(&self) -> f64 {
        per_second(self.prompt_tokens, self.prompt_micros)
    }

    /// Tokens written in a second.
    pub fn generation_per_second(&self) -> f64 {
        per_second(self.generated_tokens, self.generation_micros)
    }
}

fn per_second(tokens: u32, micros: u64) -> f64 {
    f64::from(tokens) * 1e6 / micros.max(1) as f64
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bench {
    /// How fast.
    pub measure: Measure,
    /// How long the load took.
    pub load: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The worker could not be started.
    #[error("start a worker: {0}")]
    Start(String),
    /// The worker died.
    #[error("the worker ended ({0})")]
    Crashed(String),
    /// llama.cpp refused.
    #[error("{0}")]
    Refused(String),
    /// It took too long.
    #[error("it gave no answer within {0} seconds")]
    TooSlow(u64),
}

/// Enough context for the test.
const CONTEXT: u32 = 1024;
/// A worker that does not list its devices by now hangs in a driver.
const DEVICES_LIMIT: Duration = Duration::from_secs(30);
/// A large file on a slow disk takes minutes to load.
const BENCH_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What llama.cpp can compute on.
pub async fn devices(command: &WorkerCommand) -> Result<Vec<Device>, MeasureError> {
    within(DEVICES_LIMIT, command.retried(|| listed(command))).await
}

/// Loads a model and measures it for about so long. The process that does it is gone afterwards, also when the
/// future is dropped.
pub async fn bench(
    path: &Path,
    options: &LocalOptions,
    command: &WorkerCommand,
    time: Duration,
) -> Result<Bench, MeasureError> {
    within(BENCH_LIMIT, command.retried(|| measured(path, options, command, time))).await
}

async fn listed(command: &WorkerCommand) -> Result<Vec<Device>, MeasureError> {
    let mut child = start(command)?;
    let job = child.next_job();
    child.send(&Request::Devices { job }).await;
    match child.event_of(job).await {
        Some(Event::Devices { devices, .. }) => Ok(devices),
        Some(Event::Failed { error, .. }) => Err(MeasureError::Refused(error.to_string())),
        Some(_) => Err(MeasureError::Refused("the worker answered something else".to_owned())),
        None => Err(MeasureError::Crashed(child.autopsy().await.status)),
    }
}

async fn measured(
    path: &Path,
    options: &LocalOptions,
    command: &WorkerCommand,
    time: Duration,
) -> Result<Bench, MeasureError> {
    let mut child = start(&command.clone().waiting(options.speed.waiting))?;
    let began = Instant::now();
    let job = child.next_job();
    let (path, format): (PathBuf, _) = (path.to_owned(), options.format.clone());
    let (speed, context) = (options.speed.clone(), CONTEXT.min(options.context.unwrap_or(CONTEXT)));
    child
        .send(&Request::Load(Box::new(Load {
            job,
            path,
            context,
            speed,
            format,
            cache: crate::saved::CacheOptions::default(),
            projector: None,
        })))
        .await;
    let loaded = told(&mut child, job, |event| matches!(event, Event::Loaded { .. }).then_some(())).await?;
    if loaded.is_none() {
        return Err(MeasureError::Crashed(child.autopsy().await.status));
    }
    let load = began.elapsed();
    let job = child.next_job();
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    child.send(&Request::Bench { job, millis }).await;
    let measured = |event: &Event| match event {
        Event::Measured { measure, .. } => Some(*measure),
        _ => None,
    };
    match told(&mut child, job, measured).await? {
        Some(measure) => Ok(Bench { measure, load }),
        None => Err(MeasureError::Crashed(child.autopsy().await.status)),
    }
}

/// The first event of a job that answers; none when the worker died.
async fn told<T>(
    child: &mut Child,
    job: u64,
    answer: impl Fn(&Event) -> Option<T>,
) -> Result<Option<T>, MeasureError> {
    while let Some(event) = child.event_of(job).await {
        if let Event::Failed { error, .. } = &event {
            return Err(MeasureError::Refused(error.to_string()));
        }
        if let Some(answer) = answer(&event) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn start(command: &WorkerCommand) -> Result<Child, MeasureError> {
    Child::start(command).map_err(|error| MeasureError::Start(error.to_string()))
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, MeasureError>>,
) -> Result<T, MeasureError> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(MeasureError::TooSlow(limit.as_secs())),
    }
}
