//! Getting ready for a request whose last message is still being written, and giving memory back after a rest.
//!
//! Invariant: what a user waits for never waits for this: a reply stops the reading, but lets a load come to its end,
//! since it needs the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lectern_core::{ChatRequest, Message, Part};
use tokio_util::sync::CancellationToken;

use super::reply::ReplyTask;
use super::{Shared, Worker};

impl Shared {
    /// Stops reading ahead; somebody waits.
    pub(super) fn interrupt(&self) -> CancellationToken {
        let mut current = self.ahead.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        current.cancel();
        *current = CancellationToken::new();
        current.clone()
    }

    /// Counts a use; the model rests when none follows for the time of the settings.
    pub(super) fn used(self: &Arc<Self>) {
        let uses = self.uses.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(rest) = self.speed.idle_unload else { return };
        let resting = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            let Some(shared) = resting.upgrade() else { return };
            let mut worker = shared.worker.lock().await;
            if shared.uses.load(Ordering::SeqCst) == uses {
                tracing::info!(path = %shared.path.display(), "a model rests: its memory is given back");
                worker.unload().await;
            }
        });
    }
}

impl Worker {
    /// Ends the worker after it has saved what it keeps.
    pub(super) async fn unload(&mut self) {
        self.loaded = false;
        if let Some(child) = self.child.take() {
            child.finish().await;
        }
    }
}

/// Loads the model, and reads what a request begins with that goes on like this one.
pub(super) async fn prepare(shared: Arc<Shared>, request: ChatRequest, cancel: CancellationToken) {
    let interrupted = shared.interrupt();
    let (Some(one), Some(other)) = (with_ending(&request, " a"), with_ending(&request, "\nb")) else {
        return;
    };
    let stopped = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = interrupted.cancelled() => {}
        }
    };
    ReplyTask::read_ahead(Arc::clone(&shared), one, other, stopped).await;
    shared.used();
}

/// The request with its last message going on in some way. The last word of a draft may be half a word.
fn with_ending(request: &ChatRequest, ending: &str) -> Option<ChatRequest> {
    let mut request = request.clone();
    let Some(Message::User(user)) = request.messages.last_mut() else { return None };
    let text = user.parts.iter_mut().rev().find_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
    })?;
    let whole_words = text.rfind(char::is_whitespace).unwrap_or(0);
    text.truncate(whole_words);
    text.truncate(text.trim_end().len());
    text.push_str(ending);
    Some(request)
}
