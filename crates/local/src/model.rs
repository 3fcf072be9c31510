//! A local model as the core sees it.
//!
//! The worker is started and the file loaded with the first reply. A worker that dies costs the reply that was
//! being written; the next reply starts a new one. Invariant: one reply at a time; others wait their turn.

mod ahead;
mod lingering;
mod reply;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use lectern_core::{ChatModel, ChatRequest, ConversationId, Delta, ModelError, ModelId, ModelInfo, ToolMode};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::child::{Child, WorkerCommand};
use crate::format::FormatOptions;
use crate::gguf::{ModelFileError, ModelFileInfo, ProjectorChoice, USUAL_CONTEXT};
use crate::names::Writing;
use crate::projector_of;
use crate::protocol::{Misbehaviour, Request};
use crate::saved::{CacheOptions, Deleted};
use crate::speed::SpeedOptions;
use crate::tools::{Inspection, ToolSupport, inspect_with};
pub use lingering::Lingering;
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
    /// What is kept of conversations that are not in use.
    pub cache: CacheOptions,
    /// The file of the part that sees images.
    pub projector: ProjectorChoice,
    /// What was deleted of conversations; none of it is saved any more.
    pub deleted: Deleted,
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
    cache: CacheOptions,
    deleted: Deleted,
    projector: Option<PathBuf>,
    tools: ToolSupport,
    writing: Writing,
    worker: Mutex<Worker>,
    /// What is read ahead. A std mutex: nothing awaits while it is held.
    ahead: std::sync::Mutex<ahead::Reading>,
    /// Cancelled when the model is no longer held by anyone who may ask it.
    retired: CancellationToken,
    /// How often it was used.
    uses: AtomicU64,
}

/// The worker, if it runs.
#[derive(Default)]
struct Worker {
    child: Option<Child>,
    loaded: bool,
    /// The number of the last deletion that it was told of.
    told: u64,
    /// What the next reply is to say of how it was loaded.
    notes: Vec<String>,
}

impl LocalModel {
    /// Looks at the file and starts the worker. The model itself is loaded with the first reply.
    pub async fn open(
        id: ModelId,
        path: &Path,
        options: LocalOptions,
        command: WorkerCommand,
    ) -> Result<Self, ModelFileError> {
        let command = command.waiting(options.speed.waiting);
        let (file, child) = inspect_with(path, options.format.template.as_deref(), &command).await?;
        let trained = file.info.context_length.max(1);
        let context = options.context.unwrap_or(USUAL_CONTEXT).clamp(1, trained);
        let projector = sight_of(&file.info, options.projector).await?;
        let info = ModelInfo {
            id,
            name: file.info.name.clone(),
            tool_mode: match file.tools {
                ToolSupport::Native => ToolMode::Native,
                ToolSupport::Prompted => ToolMode::Prompted,
            },
            context_length: Some(context),
            vision: projector.is_some(),
            remote: false,
        };
        let shared = Shared {
            path: path.to_owned(),
            command,
            context,
            speed: options.speed,
            format: options.format,
            cache: options.cache,
            deleted: options.deleted,
            projector,
            tools: file.tools,
            writing: file.writing,
            worker: Mutex::new(Worker { child: Some(child), ..Worker::default() }),
            ahead: std::sync::Mutex::default(),
            retired: CancellationToken::new(),
            uses: AtomicU64::new(0),
        };
        Ok(Self { info, file, shared: Arc::new(shared) })
    }

    /// What is known about the file.
    pub fn file(&self) -> &Inspection {
        &self.file
    }

    /// Ends the worker and gives its memory back; states that are not saved yet are saved before, but for those of
    /// conversations that were deleted. The next reply starts a new one.
    pub async fn unload(&self) {
        self.shared.unload().await;
    }

    /// Forgets what the worker keeps of a conversation (of all when unset), on disk too. For files of models that are
    /// not open there is [`crate::saved::forget_conversation`].
    pub async fn forget(&self, conversation: Option<&ConversationId>) {
        self.shared.forget(conversation).await;
    }

    /// What there is to do about it for as long as anything of it lives.
    pub fn lingering(&self) -> Lingering {
        Lingering(Arc::downgrade(&self.shared))
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

/// The file with which a model sees.
async fn sight_of(file: &ModelFileInfo, choice: ProjectorChoice) -> Result<Option<PathBuf>, ModelFileError> {
    let file = file.clone();
    let found = tokio::task::spawn_blocking(move || projector_of(&file, &choice)).await;
    found.unwrap_or(Ok(None)).map(|found| found.map(|info| info.path))
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        // A load that was begun ahead of a question has nobody to serve any more.
        self.shared.retired.cancel();
        // What the last seconds brought is saved before the worker goes; it gets a few seconds for that.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move { shared.unload().await });
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
            shared.interrupt_for(&request);
            shared.used();
            ReplyTask::new(Arc::clone(&shared), request, cancel, deltas).run().await;
            shared.used();
        };
        let started = async move {
            tokio::spawn(task);
            futures::stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|delta| (delta, receiver))
            })
        };
        futures::stream::once(started).flatten().boxed()
    }

    fn prepare(&self, request: ChatRequest, cancel: CancellationToken) -> BoxFuture<'static, ()> {
        ahead::prepare(Arc::clone(&self.shared), request, cancel).boxed()
    }

    fn count(&self, request: ChatRequest) -> BoxFuture<'static, Result<Option<u32>, ModelError>> {
        let shared = Arc::clone(&self.shared);
        shared.interrupt_for(&request);
        async move { ReplyTask::count(shared, request).await.map(Some) }.boxed()
    }
}
