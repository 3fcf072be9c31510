//! Holds a very small model to what it has read: where it quotes, names a note or fills in an argument, only what
//! stands in the conversation may follow; of a note that was searched for, the best of what was found is quoted first;
//! nothing is said and no note is opened twice, and once something was looked up nothing is written.
//! A model asks for this in its file (`lectern.verbatim`).
//!
//! Invariant: pure, and never a dead end: what may not follow is made unlikely, never impossible, so that a grammar
//! always has the last word.

mod scanner;
mod zone;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use serde_json::Value;

use super::sources::{Sources, Span, is_bullet, is_path_key, is_question_key};
use scanner::{Scanner, Turn};
use zone::{Kind, Zone};

/// Key in a model's file; its text holds, one a line, the beginnings of a line after which a path stands.
const KEY: &str = "lectern.verbatim";
/// Subtracted from the logits of what may not follow.
const PENALTY: f32 = 1e4;
const CALL: &[u8] = b"<tool_call>";
const CALL_END: &[u8] = b"</tool_call>";

/// How each token reads, for a model that asks to be held to what it has read.
pub(super) struct Vocabulary {
    openers: String,
    /// Empty for tokens that end a reply.
    pieces: Vec<Vec<u8>>,
    /// Tokens that stand between messages: a reply does not speak for others.
    marks: Vec<usize>,
}

impl Vocabulary {
    /// None when the model's file does not ask for it.
    pub(super) fn of_model(model: &LlamaModel) -> Option<Self> {
        let openers = model.meta_val_str(KEY).ok()?;
        let vocab = model.vocab();
        let pieces = (0..model.n_vocab()).map(LlamaToken).map(|token| match vocab.is_eog(token) {
            true => Vec::new(),
            false => vocab.token_to_piece(token, true, None),
        });
        let pieces: Vec<_> = pieces.collect();
        let is_mark = |index: &usize| {
            let token = i32::try_from(*index).map(LlamaToken);
            !pieces[*index].is_empty()
                && token.is_ok_and(|token| vocab.token_to_piece(token, false, None).is_empty())
        };
        let marks = (0..pieces.len()).filter(is_mark).collect();
        Some(Self { openers, pieces, marks })
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// For a reply to these messages, with these tools.
    pub(super) fn hold(&self, messages: &[Value], tools: &[Value]) -> Verbatim {
        Verbatim::new(&self.openers, messages, tools)
    }

    /// Makes unlikely what may not follow.
    pub(super) fn hold_back(&self, verbatim: &Verbatim, logits: &mut [f32]) {
        for mark in &self.marks {
            if let Some(logit) = logits.get_mut(*mark) {
                *logit -= PENALTY;
            }
        }
        if !verbatim.is_strict() {
            return;
        }
        for (logit, piece) in logits.iter_mut().zip(&self.pieces) {
            if !verbatim.allows(piece) {
                *logit -= PENALTY;
            }
        }
    }
}

/// Follows one reply and says which pieces may come next.
pub(super) struct Verbatim {
    sources: Sources,
    /// Beginnings of a line after which the path of a note stands.
    openers: Vec<Vec<u8>>,
    written: Vec<u8>,
    line: usize,
    call: Option<Scanner>,
    zone: Option<Zone>,
    /// Where the path began that is being named, after its opener.
    path: Option<usize>,
    /// Lines that were quoted, and paths that were named after an opener: neither comes again.
    quoted: Vec<Vec<u8>>,
    named: Vec<Vec<u8>>,
    /// What a line cannot begin with, since nothing is left that could follow it.
    closed: Vec<u8>,
}

impl Verbatim {
    /// For a reply to these messages. `openers` come from the model's file, one a line.
    fn new(openers: &str, messages: &[Value], tools: &[Value]) -> Self {
        let openers = openers.split('\n').filter(|opener| !opener.is_empty());
        let openers: Vec<_> = openers.map(|opener| opener.as_bytes().to_vec()).collect();
        let sources = Sources::new(messages, tools, &openers, CALL);
        Self {
            zone: Zone::new(Kind::Path, sources.beginnings()),
            sources,
            openers,
            written: Vec::new(),
            line: 0,
            call: None,
            path: None,
            quoted: Vec::new(),
            named: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// Whether anything is to be held back now.
    fn is_strict(&self) -> bool {
        self.zone.is_some() || (!self.closed.is_empty() && self.call.is_none())
    }

    /// Whether these bytes may follow. No bytes stand for the end of the reply.
    fn allows(&self, piece: &[u8]) -> bool {
        let held = self.zone.as_ref().is_some_and(|zone| !zone.allows(piece, &self.sources));
        !held && (self.call.is_some() || !self.opens_closed(piece))
    }

    /// Whether a line begins in this piece with what has nothing left to follow it.
    fn opens_closed(&self, piece: &[u8]) -> bool {
        let before = if self.written.len() == self.line { Some(&b'\n') } else { None };
        let bytes = before.into_iter().chain(piece);
        bytes.clone().zip(bytes.skip(1)).any(|(before, byte)| *before == b'\n' && self.closed.contains(byte))
    }

    /// Takes in what was written.
    pub(super) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            self.push_byte(*byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        self.written.push(byte);
        if self.call.is_some() {
            self.push_in_call(byte);
            return;
        }
        self.advance(byte);
        if byte == b'\n' {
            self.end_line();
        }
        if self.written.ends_with(CALL) {
            self.call = Some(Scanner::default());
            self.zone = None;
        } else if self.zone.as_ref().is_none_or(|zone| zone.kind() == Kind::Path && zone.is_whole()) {
            self.begin_in_line(byte);
        }
    }

    fn push_in_call(&mut self, byte: u8) {
        let Some(scanner) = &mut self.call else { return };
        match scanner.take(byte) {
            Turn::ValueBegins => self.begin_argument(),
            Turn::ValueEnds => self.zone = None,
            Turn::Inside => self.advance(byte),
            Turn::Other if self.written.ends_with(CALL_END) => self.call = None,
            Turn::Other => {}
        }
    }

    fn begin_argument(&mut self) {
        let Some(scanner) = &self.call else { return };
        let places = match scanner.key.as_str() {
            _ if scanner.names_tool() => self.sources.tools(),
            key if is_path_key(key) => self.sources.paths_to_read(),
            key if is_question_key(key) => self.sources.questions(),
            _ => self.sources.words(),
        };
        self.zone = Zone::new(Kind::Argument, places);
    }

    fn begin_in_line(&mut self, byte: u8) {
        let line = &self.written[self.line..];
        if line == b"> " {
            self.zone = Zone::new(Kind::Quote, self.to_quote());
        } else if let Some(opener) = self.openers.iter().find(|opener| *opener == line) {
            let list = is_bullet(opener);
            let mut places = match list {
                true => self.sources.next_path(&self.named),
                false => self.sources.paths_to_cite(&self.named),
            };
            if list && !places.is_empty() && !self.named.is_empty() {
                places.extend(self.sources.more());
            }
            self.zone = Zone::new(Kind::Path, places);
            self.path = Some(self.written.len());
        } else if byte == b'/' && self.zone.is_none() {
            self.zone = Zone::new(Kind::Path, self.sources.paths_begun(line));
        }
    }

    /// Where a quotation may begin: behind the path of a note that was searched for, with the best of what was found.
    fn to_quote(&self) -> Vec<Span> {
        let cited = self.named.last().filter(|_| self.quoted.is_empty());
        let best = cited.map_or_else(Vec::new, |path| self.sources.best_found(path));
        if best.is_empty() { self.sources.lines(&self.quoted) } else { best }
    }

    /// Keeps the places that agree with this byte; none left: the copy is over, or the model goes its own way.
    fn advance(&mut self, byte: u8) {
        let Some(zone) = &mut self.zone else { return };
        if let Some(start) = self.path.filter(|_| zone.is_whole()) {
            self.named.push(self.written[start..self.written.len() - 1].to_vec());
        }
        if !zone.take(byte, &self.sources) {
            self.zone = None;
            self.path = None;
        }
    }

    /// A quotation may go on over lines; everything else ends with its line.
    fn end_line(&mut self) {
        if let Some(quoted) = self.written[self.line..].strip_prefix(b"> ") {
            self.quoted.push(quoted.trim_ascii_end().to_vec());
        }
        self.line = self.written.len();
        if self.zone.as_ref().is_some_and(|zone| zone.kind() != Kind::Quote) {
            self.zone = None;
        }
        self.path = None;
        self.closed.clear();
        if self.zone.is_none() && !self.quoted.is_empty() && self.sources.lines(&self.quoted).is_empty() {
            self.closed.push(b'>');
        }
        if !self.named.is_empty() && self.sources.next_path(&self.named).is_empty() {
            self.closed
                .extend(self.openers.iter().filter(|opener| is_bullet(opener)).map(|opener| opener[0]));
        }
    }
}

#[cfg(test)]
mod tests;
