//! One reply while it is written: choose a token, show what is new, evaluate it, until the end.
//!
//! Invariant: what was shown is never taken back; the slot's tokens are exactly the prompt's and the reply's.

use std::time::{Duration, Instant};

use llama_cpp_2::token::LlamaToken;

use super::constraint::free_sampler;
use super::guess::Guesses;
use super::output::Output;
use super::pieces::PieceStream;
use super::prompt::{Force, Prompt};
use super::session::Session;
use super::slots::Record;
use super::text::TextStream;
use super::verbatim::Verbatim;
use crate::native::{NativeError, ParsedMessage, Row, Sampler};
use crate::protocol::{Event, Finish, Generate, Misbehaviour, Piece, WorkerError, WorkerUsage};

/// Parsing may take one part in this many of the time.
const PARSE_SHARE: u32 = 5;

/// One reply while it is written.
pub(super) struct Reply<'a, 'model> {
    pub(super) session: &'a mut Session<'model>,
    pub(super) sampler: Sampler,
    pub(super) verbatim: Option<Verbatim>,
    pub(super) index: usize,
    pub(super) prompt: &'a Prompt,
    pub(super) request: &'a Generate,
    pub(super) output: &'a Output,
    pub(super) text: TextStream,
    pub(super) pieces: PieceStream,
    pub(super) next_parse: Instant,
    /// Whether the grammar was given up.
    pub(super) let_go: bool,
    /// Where the next tokens may be found already; none where that cannot be used.
    pub(super) guesses: Option<Guesses>,
}

impl Reply<'_, '_> {
    /// Writes until the end.
    pub(super) fn run(&mut self, usage: &mut WorkerUsage) -> Result<Finish, WorkerError> {
        let finish = self.write(usage);
        self.session.drop_guesses(self.index);
        finish
    }

    fn write(&mut self, usage: &mut WorkerUsage) -> Result<Finish, WorkerError> {
        let vocab = self.session.model.vocab();
        let room = self.session.context_size() as usize;
        let limit = self.request.sampling.max_tokens.unwrap_or(u32::MAX);
        let mut batch = Batch::default();
        loop {
            if self.session.abort.is_set() {
                return Ok(Finish::Cancelled);
            }
            if usage.generated >= limit || self.session.slots[self.index].tokens.len() >= room {
                return Ok(Finish::Length);
            }
            self.misbehave(usage.generated);
            self.session.hold(batch.row(), self.verbatim.as_ref());
            let token = self.choose(batch.row())?;
            usage.generated += 1;
            self.session.slots[self.index].tokens.push(token);
            let preserved = self.prompt.shows(token);
            let piece = vocab.token_to_piece(token, preserved, None);
            self.verbatim.iter_mut().for_each(|verbatim| verbatim.push(&piece));
            self.text.push(&piece);
            if vocab.is_eog(token) || self.text.stopped() {
                return Ok(Finish::Stop);
            }
            self.show();
            self.learn(token);
            if batch.confirm(token) {
                self.session.slots[self.index].cached += 1;
                usage.right += 1;
                continue;
            }
            let room = (limit - usage.generated) as usize;
            self.judge(&batch);
            match self.next_batch(room)? {
                Some(next) => batch = next,
                None => return Ok(Finish::Cancelled),
            }
            usage.guessed += batch.guessed();
        }
    }

    fn choose(&mut self, row: Row) -> Result<LlamaToken, WorkerError> {
        let failed = |error: NativeError| WorkerError::Compute { reason: format!("choose a token: {error}") };
        match self.sampler.sample(&mut self.session.context, row) {
            Ok(token) => Ok(token),
            // One token began a call and went on as none of the tools is called: that is text.
            Err(_) if self.prompt.trigger.is_some() && self.prompt.force.is_none() && !self.let_go => {
                self.let_go = true;
                self.sampler = free_sampler(self.session.model, self.request)?;
                self.sampler.sample(&mut self.session.context, row).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn learn(&mut self, token: LlamaToken) {
        #[cfg(test)]
        self.session.script.iter_mut().for_each(|script| script.push(token));
        if let Some((matched, right)) = self.guesses.as_mut().and_then(|guesses| guesses.push(token)) {
            self.session.pace.guessed(matched, right);
        }
    }

    /// Evaluates the newest token, and with it what may follow. None when it was cancelled.
    fn next_batch(&mut self, room: usize) -> Result<Option<Batch>, WorkerError> {
        let room = room.min(self.session.most_guesses());
        let next = match &self.guesses {
            Some(guesses) => guesses.next(self.session.pace.worth(guesses.matched(), room)),
            None => Vec::new(),
        };
        let (next, drafted) = match self.session.drafted(self.index, &next, room) {
            Some(drafted) => (drafted, true),
            None => (next, false),
        };
        let evaluated = self.session.advance(self.index, next)?;
        Ok(evaluated.map(|batch| Batch { drafted, ..batch }))
    }

    fn judge(&mut self, batch: &Batch) {
        if batch.drafted {
            self.session.judge(batch.guesses.len(), batch.right);
        }
    }

    /// Parses and sends what is new, unless parsing would take too large a share of the time. A forced call is
    /// short and comes whole: it may have to be written again.
    fn show(&mut self) {
        let began = Instant::now();
        if began < self.next_parse || matches!(self.prompt.force, Some(Force::Rule(_) | Force::Json(_))) {
            return;
        }
        if let Some(Force::Answer(_)) = self.prompt.force {
            let pieces = self.pieces.grow(&plain(self.text.text()), false);
            return self.send(pieces);
        }
        let pieces = self.pieces.read(&self.prompt.format, self.text.text());
        self.send(pieces);
        let now = Instant::now();
        self.next_parse = now + (now - began) * (PARSE_SHARE - 1);
    }

    fn send(&self, pieces: Vec<Piece>) {
        if !pieces.is_empty() {
            self.output.send(&Event::Pieces { job: self.request.job, pieces });
        }
    }

    /// Sends the rest and notes what the cache holds.
    pub(super) fn close(&mut self, finish: Finish) -> Result<Written, WorkerError> {
        let stopped = self.text.stopped();
        self.text.finish();
        let raw = self.text.text().to_owned();
        if let Some(Force::Json(_)) = self.prompt.force {
            // Written in another form than the template's: the next prompt renders it anew.
            return Ok(Written { finish, called: true, unread: Some(raw.clone()), raw, let_go: false });
        }
        let parsed = match self.prompt.force {
            Some(Force::Answer(_)) => Ok(plain(&raw)),
            Some(Force::Rule(_) | Force::Json(_)) | None => self.parsed(&raw, finish),
        };
        let called = parsed.as_ref().is_ok_and(|message| !message.tool_calls.is_empty());
        let again = finish == Finish::Stop && !called && matches!(self.prompt.force, Some(Force::Rule(_)));
        let (pieces, unread) = if again {
            (Vec::new(), None)
        } else {
            self.pieces.end(parsed.as_ref().ok(), Some(&self.prompt.format), &raw)
        };
        self.send(pieces);
        let record = (!stopped && !again).then(|| Record {
            place: self.request.messages.len(),
            raw: raw.clone(),
            base: self.prompt.base.clone(),
        });
        let vocab = self.session.model.vocab();
        let slot = &mut self.session.slots[self.index];
        let ended = slot.tokens.last().is_some_and(|token| vocab.is_eog(*token));
        slot.set_record(record, ended);
        Ok(Written { finish, called, raw, unread, let_go: self.let_go })
    }

    /// What the template's parser makes of the whole. llama.cpp's grammars let more white space stand around the end of
    /// a call than its parsers take.
    fn parsed(&self, raw: &str, finish: Finish) -> Result<ParsedMessage, NativeError> {
        let format = &self.prompt.format;
        let parsed = format.parse(raw, finish != Finish::Stop);
        let end = raw.trim_end();
        let Some(close) = end.rfind("</").filter(|_| parsed.is_err() && finish == Finish::Stop) else {
            return parsed;
        };
        let (before, close) = (end[..close].trim_end(), &end[close..]);
        let tidy = [end.to_owned(), format!("{before}\n{close}"), format!("{before}{close}")];
        tidy.iter().find_map(|text| format.parse(text, false).ok()).map_or(parsed, Ok)
    }

    fn misbehave(&self, generated: u32) {
        match self.session.misbehaviour {
            Some(Misbehaviour::AbortInReply) if generated == 3 => std::process::abort(),
            Some(Misbehaviour::HangInReply) if generated == 3 => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            Some(
                Misbehaviour::Abort
                | Misbehaviour::AbortInReply
                | Misbehaviour::HangInReply
                | Misbehaviour::AbortInLoad
                | Misbehaviour::Print,
            )
            | None => {}
        }
    }
}

/// An answer in a form is text, whatever it looks like.
fn plain(text: &str) -> ParsedMessage {
    ParsedMessage { content: text.to_owned(), ..ParsedMessage::default() }
}

/// What was evaluated last: the newest token of the reply, and guesses of what follows it.
#[derive(Debug, Default)]
pub(super) struct Batch {
    guesses: Vec<LlamaToken>,
    /// Guesses that were right so far.
    right: usize,
    /// Whether a model made them.
    drafted: bool,
}

impl Batch {
    pub(super) fn of(guesses: Vec<LlamaToken>) -> Self {
        Self { guesses, right: 0, drafted: false }
    }

    /// The token whose logits say what comes next.
    fn row(&self) -> Row {
        if self.guesses.is_empty() { Row::Last } else { Row::At(self.right) }
    }

    /// Whether this token, which was chosen just now, is evaluated already.
    fn confirm(&mut self, token: LlamaToken) -> bool {
        let right = self.guesses.get(self.right) == Some(&token);
        self.right += usize::from(right);
        right
    }

    fn guessed(&self) -> u32 {
        u32::try_from(self.guesses.len()).unwrap_or(u32::MAX)
    }
}

/// How one attempt came out.
pub(super) struct Written {
    pub(super) finish: Finish,
    pub(super) called: bool,
    pub(super) raw: String,
    pub(super) unread: Option<String>,
    /// Whether the grammar was given up.
    pub(super) let_go: bool,
}

impl Written {
    pub(super) fn cancelled() -> Self {
        Self { finish: Finish::Cancelled, called: false, raw: String::new(), unread: None, let_go: false }
    }
}
