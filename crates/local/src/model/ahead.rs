//! Getting ready for a request whose last message is still being written, and giving memory back after a rest.
//!
//! Invariant: what a user waits for never waits for this: a reply stops the reading, unless it would have to read the
//! same itself, and lets a load come to its end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use lectern_core::exposure::FINDER;
use lectern_core::{ChatRequest, Content, Message, Part, Purpose};
use tokio_util::sync::CancellationToken;
use unicode_segmentation::UnicodeSegmentation;

use super::Shared;
use super::reply::ReplyTask;

/// What is being read ahead.
#[derive(Default)]
pub(super) struct Reading {
    stop: CancellationToken,
    /// What it will most likely become; none when nothing is being read.
    request: Option<ChatRequest>,
    stage: Stage,
    /// Counts what was asked for.
    number: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// What all have in common that the request may become.
    #[default]
    Common,
    /// The request as it is now.
    Whole,
}

/// Something to read, and how to know that it is not to be read any more.
pub(super) struct Ticket {
    stop: CancellationToken,
    number: u64,
}

impl Reading {
    /// Whether this request needs what is being read, and would have to read it itself.
    fn serves(&self, request: &ChatRequest) -> bool {
        let Some(likely) = &self.request else { return false };
        // Nobody waits for a title, and what is being read is soon wanted.
        let side = request.purpose == Purpose::Side && request.conversation != likely.conversation;
        side || (!self.stop.is_cancelled() && goes_on(likely, request) && self.whole_serves(likely, request))
    }

    /// Nothing is to be read any more.
    fn end(&mut self) {
        self.stop.cancel();
        self.request = None;
    }

    /// Whether nothing else was asked for since.
    fn is_of(&self, ticket: &Ticket) -> bool {
        self.number == ticket.number && !ticket.stop.is_cancelled()
    }

    fn whole_serves(&self, likely: &ChatRequest, request: &ChatRequest) -> bool {
        self.stage == Stage::Common || likely.messages == request.messages
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
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).end();
    }

    /// The same, unless what is being read is the beginning of what is waited for.
    pub(super) fn interrupt_for(&self, request: &ChatRequest) {
        let mut current = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.serves(request) {
            current.end();
        }
    }

    /// This is to be read now. What is being read goes on where it is the beginning of it.
    fn read_next(&self, request: ChatRequest) -> Ticket {
        let mut current = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = current.stage == Stage::Common && current.serves(&request);
        if !goes_on {
            current.stop.cancel();
        }
        let stop = if goes_on { current.stop.clone() } else { CancellationToken::new() };
        let number = current.number + 1;
        *current = Reading { stop, request: Some(request), stage: Stage::Common, number };
        Ticket { stop: current.stop.clone(), number }
    }

    /// Whether nothing else was asked for since.
    pub(super) fn is_latest(&self, ticket: &Ticket) -> bool {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).is_of(ticket)
    }

    /// The common part is read; the rest is to be read too, unless something else counts.
    fn read_on(&self, ticket: &Ticket) -> bool {
        let mut current = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = current.is_of(ticket);
        if latest {
            current.stage = Stage::Whole;
        }
        latest
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

/// Loads the model and reads what a request begins with that goes on like this one; then the request as it is, which
/// many are sent as. Of several that go on from each other the last one counts, and what the first has begun stays.
pub(super) async fn prepare(shared: Arc<Shared>, request: ChatRequest, cancel: CancellationToken) {
    let (Some(one), Some(mut other)) = (with_ending(&request, " a"), with_ending(&request, "\nb")) else {
        return;
    };
    // Tools that were chosen by the question are known when that is whole; a template may want them before its words.
    if request.tools.iter().any(|tool| tool.name.as_str() == FINDER) {
        other.tools.retain(|tool| tool.name.as_str() == FINDER);
    }
    let may_be_whole = may_be_whole(&request);
    let ticket = shared.read_next(request.clone());
    let stopped = async || {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = ticket.stop.cancelled() => {}
            () = shared.retired.cancelled() => {}
        }
    };
    ReplyTask::read_ahead(Arc::clone(&shared), [one, other], &ticket, stopped()).await;
    if may_be_whole && !cancel.is_cancelled() && shared.read_on(&ticket) {
        let both = [request.clone(), request];
        ReplyTask::read_ahead(Arc::clone(&shared), both, &ticket, stopped()).await;
    }
    shared.used();
}

/// Whether somebody may send this as it is: there are words, and the last one is not followed by a space.
fn may_be_whole(request: &ChatRequest) -> bool {
    let Some(Message::User(user)) = request.messages.last() else { return false };
    let text = user.parts.iter().rev().find_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
    });
    text.is_some_and(|text| text.chars().next_back().is_some_and(|last| !last.is_whitespace()))
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
    text.truncate(settled(text));
    text.push_str(ending);
    Some(request)
}

/// Bytes of a draft that will stay when it goes on: up to the last space; where words are written without spaces, up to
/// the last few of them, because a token may hold more than one.
fn settled(text: &str) -> usize {
    const HELD_BACK: usize = 4;
    let mut end = text.len();
    for (at, segment) in text.split_word_bound_indices().rev().take(HELD_BACK) {
        end = at;
        if segment.chars().all(char::is_whitespace) {
            break;
        }
    }
    text[..end].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_word_is_held_back() {
        let kept = |text: &str| text[..settled(text)].to_owned();
        assert_eq!(kept("What do the notes sa"), "What do the notes");
        assert_eq!(kept("What do the notes  "), "What do the notes");
        assert_eq!(kept("What"), "");
        assert_eq!(kept(""), "");
        assert_eq!(kept("笔记里关于里昂旅行的天气"), "笔记里关于里昂旅", "words without spaces between");
        assert_eq!(kept("ภาษาไทย 你"), "ภาษาไทย");
    }
}
