//! A local model as the core sees it.
//!
//! The worker is started and the file loaded with the first reply. A worker that dies costs the reply that was
//! being written; the next reply starts a new one. Invariant: one reply at a time; others wait their turn.

mod reply;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use lectern_core::{ChatModel, ChatRequest, Delta, ModelError, ModelId, ModelInfo, ToolMode};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::child::{Child, WorkerCommand};
use crate::format::FormatOptions;
use crate::gguf::{ModelFileError, USUAL_CONTEXT};
use crate::protocol::{Misbehaviour, Request};
use crate::speed::SpeedOptions;
use crate::tools::{Inspection, ToolSupport, inspect_with};
use reply::ReplyTask;

/// How a model is run; what is unset is chosen by the file and the machine.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// Tokens of context.
    pub context: Option<u32>,
    /// How it uses the machine.
    pub speed: SpeedOptions,
    /// What replaces the file's own format.
    pub format: FormatOptions,
}

/// A model in a file on this machine.
pub struct LocalModel {
    info: ModelInfo,
    file: Inspection,
    shared: Arc<Shared>,
}

/// What replies share.
struct Shared {
    path: PathBuf,
    command: WorkerCommand,
    context: u32,
    speed: SpeedOptions,
    format: FormatOptions,
    tools: ToolSupport,
    worker: Mutex<Worker>,
}

/// The worker, if it runs.
#[derive(Default)]
struct Worker {
    child: Option<Child>,
    loaded: bool,
}

impl LocalModel {
    /// Looks at the file and starts the worker. The model itself is loaded with the first reply.
    pub async fn open(
        id: ModelId,
        path: &Path,
        options: LocalOptions,
        command: WorkerCommand,
    ) -> Result<Self, ModelFileError> {
        let (file, child) = inspect_with(path, options.format.template.as_deref(), &command).await?;
        let trained = file.info.context_length.max(1);
        let context = options.context.unwrap_or(USUAL_CONTEXT).clamp(1, trained);
        let info = ModelInfo {
            id,
            name: file.info.name.clone(),
            tool_mode: match file.tools {
                ToolSupport::Native => ToolMode::Native,
                ToolSupport::Prompted => ToolMode::Prompted,
            },
            context_length: Some(context),
            vision: false,
            remote: false,
        };
        let shared = Shared {
            path: path.to_owned(),
            command,
            context,
            speed: options.speed,
            format: options.format,
            tools: file.tools,
            worker: Mutex::new(Worker { child: Some(child), loaded: false }),
        };
        Ok(Self { info, file, shared: Arc::new(shared) })
    }

    /// What is known about the file.
    pub fn file(&self) -> &Inspection {
        &self.file
    }

    /// Ends the worker and gives its memory back. The next reply starts a new one.
    pub async fn unload(&self) {
        let mut worker = self.shared.worker.lock().await;
        worker.loaded = false;
        if let Some(child) = worker.child.take() {
            child.kill().await;
        }
    }

    /// The process id of the worker, while it runs.
    pub async fn worker_id(&self) -> Option<u32> {
        self.shared.worker.lock().await.child.as_ref().and_then(Child::id)
    }

    /// Makes the worker misbehave, if its command allows that. For tests of recovery.
    pub async fn misbehave(&self, how: Misbehaviour) {
        let mut worker = self.shared.worker.lock().await;
        if let Some(child) = &mut worker.child {
            let job = child.next_job();
            child.send(&Request::Misbehave { job, how }).await;
            child.event_of(job).await;
        }
    }
}

impl ChatModel for LocalModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        let shared = Arc::clone(&self.shared);
        let (deltas, receiver) = mpsc::unbounded_channel();
        // A task of its own, so that a worker which was told to stop is waited for after the reader has gone.
        let task = async move {
            ReplyTask::new(shared, request, cancel, deltas).run().await;
        };
        let started = async move {
            tokio::spawn(task);
            futures::stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|delta| (delta, receiver))
            })
        };
        futures::stream::once(started).flatten().boxed()
    }
}
