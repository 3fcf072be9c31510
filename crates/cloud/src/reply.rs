//! What is common to the readers of replies: bytes in, deltas out.
//!
//! Invariant: pure. The same bytes give the same deltas however they are cut, except that neighbouring pieces of text
//! may be cut elsewhere; calls that may have to be asked for anew are kept back until it is known.

use std::borrow::Cow;

use lectern_core::{Delta, FinishReason};
use serde_json::{Value, json};

use crate::fault::{Fault, FaultKind, Said};
use crate::sse::{Splitter, TooLong};

/// Reads the documents of one reply.
pub(crate) trait Reader: Send {
    /// Takes one document in: an event of a stream, or a whole answer. A fault ends the reply.
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault>;

    /// Whether a document is the provider's mark for the end of the stream.
    fn is_end_mark(&self, data: &[u8]) -> bool;

    /// That mark came.
    fn end_mark(&mut self) {}

    /// The body is over.
    fn verdict(&mut self) -> Verdict;
}

/// What a reply came to.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Why it ended, or why it is none.
    pub(crate) end: Result<FinishReason, Fault>,
    /// What was kept back, in order; to be told if the verdict stands.
    pub(crate) held: Vec<Delta>,
    /// Why it may be worth asking once more, if nothing was shown yet.
    pub(crate) again: Option<Fault>,
    /// Calls that came and are none, because the reply failed. For those who look into it only.
    pub(crate) unmade: Vec<Delta>,
}

impl Verdict {
    /// It stands.
    pub(crate) fn stands(end: Result<FinishReason, Fault>, held: Vec<Delta>) -> Self {
        Self { end, held, again: None, unmade: Vec::new() }
    }

    /// Calls of a reply that failed are none; what was kept back of its text is kept.
    pub(crate) fn without_calls(mut self) -> Self {
        let is_call =
            |delta: &Delta| matches!(delta, Delta::ToolCallStarted { .. } | Delta::ToolCallArguments { .. });
        let (calls, held) = self.held.into_iter().partition(is_call);
        self.held = held;
        self.unmade.extend::<Vec<_>>(calls);
        self
    }
}

/// Reads one body.
pub(crate) struct Body<R> {
    splitter: Splitter,
    reader: R,
    /// Events so far.
    pub(crate) events: usize,
    /// The provider said that nothing follows.
    pub(crate) ended: bool,
    /// What ended the reading; nothing is read behind it.
    failed: Option<Fault>,
}

impl<R: Reader> Body<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { splitter: Splitter::default(), reader, events: 0, ended: false, failed: None }
    }

    /// Takes bytes in; what can be told already goes to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let Self { splitter, reader, events, ended, failed } = self;
        if let Some(fault) = failed {
            return Err(fault.clone());
        }
        let mut read = Ok(());
        let pushed = splitter.push(bytes, &mut |data| take(reader, data, events, ended, &mut read, out));
        let done = read.and(pushed.map_err(|TooLong| too_long()));
        *failed = done.as_ref().err().cloned();
        done
    }

    /// The body is over. Gives the reader back, for what it knows besides.
    pub(crate) fn finish(self, out: &mut Vec<Delta>) -> (R, Verdict) {
        let Self { splitter, mut reader, mut events, mut ended, failed } = self;
        if let Some(fault) = failed {
            let verdict = broken(&mut reader, fault);
            return (reader, verdict);
        }
        let mut read = Ok(());
        let rest =
            splitter.finish(&mut |data| take(&mut reader, data, &mut events, &mut ended, &mut read, out));
        let verdict = match read.and(rest.map_err(|TooLong| too_long())) {
            Ok(rest) => match no_events(&mut reader, &rest, events, out) {
                Ok(()) => reader.verdict(),
                Err(fault) => broken(&mut reader, fault),
            },
            Err(fault) => broken(&mut reader, fault),
        };
        (reader, verdict)
    }
}

fn broken<R: Reader>(reader: &mut R, fault: Fault) -> Verdict {
    Verdict { end: Err(fault), again: None, ..reader.verdict() }.without_calls()
}

fn take<R: Reader>(
    reader: &mut R,
    data: &[u8],
    events: &mut usize,
    ended: &mut bool,
    read: &mut Result<(), Fault>,
    out: &mut Vec<Delta>,
) {
    let data = data.trim_ascii();
    if read.is_err() || data.is_empty() {
        return;
    }
    if reader.is_end_mark(data) {
        *ended = true;
        reader.end_mark();
        return;
    }
    *events += 1;
    *read = reader.document(data, out);
}

/// What stood beside the events: an error behind them, or the whole answer where there were none.
fn no_events<R: Reader>(
    reader: &mut R,
    rest: &[u8],
    events: usize,
    out: &mut Vec<Delta>,
) -> Result<(), Fault> {
    let rest = rest.trim_ascii();
    if rest.is_empty() {
        return Ok(());
    }
    match rest[0] {
        b'{' | b'[' => documents(rest).iter().try_for_each(|document| reader.document(document, out)),
        // Words beside good events mean nothing; llama-server once wrote its errors like this.
        _ => match rest.strip_prefix(b"error:").and_then(|error| serde_json::from_slice::<Value>(error).ok())
        {
            Some(error) if error.get("error").is_some() => Err(Fault::from_stream(&error)),
            Some(error) => Err(Fault::from_stream(&json!({ "error": error }))),
            None if events > 0 => Ok(()),
            None => Err(no_answer(rest)),
        },
    }
}

/// One document, a list of them, or one behind the other.
fn documents(rest: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let all = serde_json::Deserializer::from_slice(rest).into_iter().collect::<Result<Vec<Value>, _>>();
    let items = match all {
        Ok(all) if matches!(all[..], [Value::Object(_)]) => return vec![Cow::Borrowed(rest)],
        Ok(all) => all.into_iter().flat_map(|one| match one {
            Value::Array(items) => items,
            other => vec![other],
        }),
        // The reader says what is wrong with it.
        Err(_) => return vec![Cow::Borrowed(rest)],
    };
    items.map(|item| Cow::Owned(item.to_string().into_bytes())).collect()
}

/// What can't be read.
pub(crate) fn no_answer(body: &[u8]) -> Fault {
    let said = Said::read(&body[..body.len().min(64 << 10)]);
    let kind = FaultKind::NoAnswer { html: said.html };
    Fault { said: Some(Box::new(said)), ..Fault::of(kind) }
}

fn too_long() -> Fault {
    Fault::of(FaultKind::Broken { why: "it is longer than it may be".to_owned() })
}
