//! What is common to the readers of replies: bytes in, deltas out.
//!
//! Invariant: pure. The same bytes give the same deltas however they are cut, except that neighbouring pieces of text
//! may be cut elsewhere; calls that may have to be asked for anew are kept back until it is known.

use lectern_core::{Delta, FinishReason};
use serde_json::{Value, json};

use crate::documents::{Several, several};
use crate::fault::{Fault, FaultKind, Said};
use crate::sse::{Splitter, TooLong};

/// Bytes of something odd that are kept.
const ODD: usize = 64 << 10;
/// Characters of a provider's word for an end that are shown.
const LONGEST_WORD: usize = 60;

/// Reads the documents of one reply.
pub(crate) trait Reader: Send {
    /// Takes one document in: an event of a stream, or a whole answer. A fault ends the reply.
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<Taken, Fault>;

    /// Whether a document is the provider's mark for the end of the stream.
    fn is_end_mark(&self, data: &[u8]) -> bool;

    /// That mark came.
    fn end_mark(&mut self) {}

    /// The body is over.
    fn verdict(&mut self) -> Verdict;
}

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was read.
    Read,
    /// It is none: no object of JSON.
    NoDocument,
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
    progress: Progress<R>,
    /// What ended the reading; nothing is read behind it.
    failed: Option<Fault>,
}

impl<R: Reader> Body<R> {
    pub(crate) fn new(reader: R) -> Self {
        let progress = Progress { reader, events: 0, ended: false, odd: None };
        Self { splitter: Splitter::default(), progress, failed: None }
    }

    /// Whether the provider said that nothing follows.
    pub(crate) fn ended(&self) -> bool {
        self.progress.ended
    }

    /// Takes bytes in; what can be told already goes to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let Self { splitter, progress, failed } = self;
        if let Some(fault) = failed {
            return Err(fault.clone());
        }
        let mut read = Ok(());
        let pushed = splitter.push(bytes, &mut |data| progress.event(data, &mut read, out));
        let done = read.and(pushed.map_err(|TooLong| too_long()));
        *failed = done.as_ref().err().cloned();
        done
    }

    /// The body is over. Gives the reader back, for what it knows besides.
    pub(crate) fn finish(self, out: &mut Vec<Delta>) -> (R, Verdict) {
        let Self { splitter, mut progress, failed } = self;
        if let Some(fault) = failed {
            let verdict = broken(&mut progress.reader, fault);
            return (progress.reader, verdict);
        }
        let mut read = Ok(());
        let rest = splitter.finish(&mut |data| progress.event(data, &mut read, out));
        let rest = read.and(rest.map_err(|TooLong| too_long()));
        let verdict = match rest.and_then(|rest| progress.rest(&rest, out)) {
            Ok(()) => progress.reader.verdict(),
            Err(fault) => broken(&mut progress.reader, fault),
        };
        (progress.reader, verdict)
    }
}

fn broken<R: Reader>(reader: &mut R, fault: Fault) -> Verdict {
    Verdict { end: Err(fault), again: None, ..reader.verdict() }.without_calls()
}

/// How far the reading has come.
struct Progress<R> {
    reader: R,
    /// Documents so far.
    events: usize,
    /// The provider said that nothing follows.
    ended: bool,
    /// The first event that was no document: a word to keep the connection open, or a page in place of an answer.
    odd: Option<Vec<u8>>,
}

impl<R: Reader> Progress<R> {
    fn event(&mut self, data: &[u8], read: &mut Result<(), Fault>, out: &mut Vec<Delta>) {
        let data = data.trim_ascii();
        if read.is_ok() && !data.is_empty() {
            *read = self.documents(data, out);
        }
    }

    fn documents(&mut self, data: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        if self.reader.is_end_mark(data) {
            self.ended = true;
            self.reader.end_mark();
            return Ok(());
        }
        match self.reader.document(data, out)? {
            Taken::Read => {
                self.events += 1;
                Ok(())
            }
            Taken::NoDocument => self.no_document(data, out),
        }
    }

    /// Several documents where one should be, or none.
    fn no_document(&mut self, data: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let may_hold = matches!(data[0], b'{' | b'[');
        let found = if may_hold { several(data) } else { Several::default() };
        if found == Several::default() {
            let is_value = serde_json::from_slice::<Value>(data).is_ok();
            if self.odd.is_none() && !is_value {
                self.odd = Some(data[..data.len().min(ODD)].to_vec());
            }
            return Ok(());
        }
        for object in &found.objects {
            if object.len() == data.len() || self.reader.document(object, out)? == Taken::NoDocument {
                return Err(no_answer(object));
            }
            self.events += 1;
        }
        if found.cut {
            // What came before the cut is an answer, if a broken one.
            return Err(if self.events > 0 { cut_off() } else { no_answer(data) });
        }
        if found.end_mark {
            self.ended = true;
            self.reader.end_mark();
        }
        Ok(())
    }

    /// What stood beside the events: an error behind them, or the whole answer where there were none.
    fn rest(&mut self, rest: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let rest = rest.trim_ascii();
        if rest.is_empty() {
            let odd = self.odd.take().filter(|_| self.events == 0);
            return odd.map_or(Ok(()), |odd| Err(no_answer(&odd)));
        }
        if matches!(rest[0], b'{' | b'[') {
            return self.documents(rest, out);
        }
        // Words beside good events mean nothing; llama-server once wrote its errors like this.
        match rest.strip_prefix(b"error:").and_then(|error| serde_json::from_slice::<Value>(error).ok()) {
            Some(error) if error.get("error").is_some() => Err(Fault::from_stream(&error)),
            Some(error) => Err(Fault::from_stream(&json!({ "error": error }))),
            None if self.events > 0 => Ok(()),
            None => Err(no_answer(rest)),
        }
    }
}

/// The word that a part of an answer was held back, by the provider's word for the reason.
pub(crate) fn withheld(word: &str) -> Delta {
    let word: String = word.chars().take(LONGEST_WORD).collect();
    Delta::Notice {
        code: format!("withheld_{}", word.to_lowercase()),
        message: format!("the provider withheld the rest of the answer ({word})"),
    }
}

/// The word that an answer ended for a reason that nobody knew when this was written.
pub(crate) fn unknown_end(word: &str) -> Delta {
    let word: String = word.chars().take(LONGEST_WORD).collect();
    let message =
        format!("the answer ended for a reason that is not known here ({word}); it may be incomplete");
    Delta::Notice { code: "unknown_end".to_owned(), message }
}

/// What can't be read.
pub(crate) fn no_answer(body: &[u8]) -> Fault {
    let said = Said::read(&body[..body.len().min(64 << 10)]);
    let kind = FaultKind::NoAnswer { html: said.html };
    Fault { said: Some(Box::new(said)), ..Fault::of(kind) }
}

pub(crate) fn too_long() -> Fault {
    Fault::of(FaultKind::Broken { why: "it is longer than it may be".to_owned() })
}

fn cut_off() -> Fault {
    Fault::of(FaultKind::Broken { why: "it was cut off in the middle".to_owned() })
}
