//! Getting ready for a request whose last message is still being written, and giving memory back after a rest.
//!
//! Invariant: what a user waits for never waits for this: a reply stops the reading, unless it would have to read the
//! same itself, and lets a load come to its end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use lectern_core::exposure::FINDER;
use lectern_core::{ChatRequest, Content, Message, Part, Purpose};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::reply::ReplyTask;

/// What is being read ahead.
#[derive(Default)]
pub(super) struct Reading {
    stop: CancellationToken,
    /// What it will most likely become; none when nothing is being read.
    request: Option<ChatRequest>,
}

impl Reading {
    /// Whether this request needs what is being read, and would have to read it itself.
    fn serves(&self, request: &ChatRequest) -> bool {
        let Some(likely) = &self.request else { return false };
        // Nobody waits for a title, and what is being read is soon wanted.
        let side = request.purpose == Purpose::Side && request.conversation != likely.conversation;
        side || (!self.stop.is_cancelled() && goes_on(likely, request))
    }
}

/// Whether a request differs from a likely one only in the last message of that, and behind it.
fn goes_on(likely: &ChatRequest, request: &ChatRequest) -> bool {
    let known = likely.messages.len().saturating_sub(1);
    likely.conversation == request.conversation
        && likely.system == request.system
        && likely.tools == request.tools
        && likely.tool_mode == request.tool_mode
        && likely.tool_placement == request.tool_placement
        && request.messages.get(..known) == Some(&likely.messages[..known])
}

impl Shared {
    /// Stops reading ahead.
    pub(super) fn interrupt(&self) {
        self.read_next(None);
    }

    /// The same, unless what is being read is the beginning of what is waited for.
    pub(super) fn interrupt_for(&self, request: &ChatRequest) {
        let mut current = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.serves(request) {
            current.stop.cancel();
            *current = Reading::default();
        }
    }

    fn read_next(&self, request: Option<ChatRequest>) -> CancellationToken {
        let mut current = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        current.stop.cancel();
        *current = Reading { stop: CancellationToken::new(), request };
        current.stop.clone()
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
                worker.unload(&shared).await;
            }
        });
    }
}

/// Loads the model, and reads what a request begins with that goes on like this one.
pub(super) async fn prepare(shared: Arc<Shared>, request: ChatRequest, cancel: CancellationToken) {
    let (Some(one), Some(mut other)) = (with_ending(&request, " a"), with_ending(&request, "\nb")) else {
        return;
    };
    // Tools that were chosen by the question are known when that is whole; a template may want them before its words.
    if request.tools.iter().any(|tool| tool.name.as_str() == FINDER) {
        other.tools.retain(|tool| tool.name.as_str() == FINDER);
    }
    let interrupted = shared.read_next(Some(request));
    let stopped = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = interrupted.cancelled() => {}
            () = shared.retired.cancelled() => {}
        }
    };
    ReplyTask::read_ahead(Arc::clone(&shared), one, other, stopped).await;
    shared.used();
}

/// The request with its last message going on in some way. The last word of a draft may be half a word; of a result
/// nothing is known yet.
fn with_ending(request: &ChatRequest, ending: &str) -> Option<ChatRequest> {
    let mut request = request.clone();
    let user = match request.messages.last_mut()? {
        Message::User(user) => user,
        Message::Tool(result) => {
            result.content = vec![Content::Text { text: ending.trim().to_owned() }];
            return Some(request);
        }
        Message::Assistant(_) => return None,
    };
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
