//! Holds a very small model to what it has read: where it quotes, names a note or fills in an argument, only what
//! stands in the conversation may follow. A model asks for this in its file (`lectern.verbatim`).
//!
//! Invariant: pure, and never a dead end: what may not follow is made unlikely, never impossible, so that a grammar
//! always has the last word.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use serde_json::Value;

use super::sources::{Sources, Span};

/// Key in a model's file; its text holds, one a line, the beginnings of a line after which a path stands.
const KEY: &str = "lectern.verbatim";
/// Subtracted from the logits of what may not follow.
const PENALTY: f32 = 1e4;
const CALL: &[u8] = b"<tool_call>";
const CALL_END: &[u8] = b"</tool_call>";
/// Arguments of these names are paths.
const PATH_KEYS: [&str; 6] = ["path", "file", "filepath", "filename", "uri", "file_path"];

/// How each token reads, for a model that asks to be held to what it has read.
pub(super) struct Vocabulary {
    openers: String,
    /// Empty for tokens that end a reply.
    pieces: Vec<Vec<u8>>,
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
        Some(Self { openers, pieces: pieces.collect() })
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// For a reply to these messages.
    pub(super) fn hold(&self, messages: &[Value]) -> Verbatim {
        Verbatim::new(&self.openers, messages)
    }

    /// Makes unlikely what may not follow.
    pub(super) fn hold_back(&self, verbatim: &Verbatim, logits: &mut [f32]) {
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
}

/// A stretch of the reply that must be a copy.
struct Zone {
    kind: Kind,
    /// The places in the sources that agree with what was written so far.
    places: Vec<Span>,
    started: bool,
    escaped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A string in the arguments of a call.
    Argument,
    /// A quotation, up to the end of the line.
    Quote,
    /// The path of a note in the answer.
    Path,
}

impl Verbatim {
    /// For a reply to these messages. `openers` come from the model's file, one a line.
    fn new(openers: &str, messages: &[Value]) -> Self {
        let openers = openers.split('\n').filter(|opener| !opener.is_empty());
        Self {
            sources: Sources::new(messages),
            openers: openers.map(|opener| opener.as_bytes().to_vec()).collect(),
            written: Vec::new(),
            line: 0,
            call: None,
            zone: None,
        }
    }

    /// Whether anything is to be held back now.
    fn is_strict(&self) -> bool {
        self.zone.is_some()
    }

    /// Whether these bytes may follow. No bytes stand for the end of the reply.
    fn allows(&self, piece: &[u8]) -> bool {
        let Some(zone) = &self.zone else { return true };
        zone.places.iter().any(|place| zone.follows(*place, piece, &self.sources))
    }

    /// Takes in what was written.
    pub(super) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            self.push_byte(*byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        self.written.push(byte);
        if let Some(scanner) = &mut self.call {
            let turn = scanner.take(byte);
            match turn {
                Turn::ValueBegins => self.begin_argument(),
                Turn::ValueEnds => self.zone = None,
                Turn::Inside => self.advance(byte),
                Turn::Other if self.written.ends_with(CALL_END) => self.call = None,
                Turn::Other => {}
            }
            return;
        }
        self.advance(byte);
        if byte == b'\n' {
            self.line = self.written.len();
            self.zone = None;
        }
        if self.written.ends_with(CALL) {
            self.call = Some(Scanner::default());
            self.zone = None;
        } else if self.zone.is_none() {
            self.begin_in_line();
        }
    }

    fn begin_argument(&mut self) {
        let key = self.call.as_ref().map_or("", |scanner| scanner.key.as_str());
        let places = match PATH_KEYS.contains(&key) {
            true => self.sources.paths_to_read(),
            false => self.sources.words(),
        };
        self.begin(Kind::Argument, places);
    }

    fn begin_in_line(&mut self) {
        let line = &self.written[self.line..];
        if line == b"> " {
            let places = self.sources.lines();
            self.begin(Kind::Quote, places);
        } else if self.openers.iter().any(|opener| opener == line) {
            let places = self.sources.paths();
            self.begin(Kind::Path, places);
        }
    }

    fn begin(&mut self, kind: Kind, places: Vec<Span>) {
        let zone = Zone { kind, places, started: false, escaped: false };
        self.zone = (!zone.places.is_empty()).then_some(zone);
    }

    /// Keeps the places that agree with this byte; none left: the model goes its own way.
    fn advance(&mut self, byte: u8) {
        let Some(zone) = &mut self.zone else { return };
        let Some(byte) = zone.unescape(byte) else { return };
        zone.started = true;
        let sources = &self.sources;
        zone.places.retain_mut(|place| {
            let same = place.at < place.end && sources.byte(*place) == byte;
            place.at += usize::from(same);
            same
        });
        if zone.places.is_empty() {
            self.zone = None;
        }
    }
}

impl Zone {
    /// The byte that a byte of the reply stands for; none in the middle of an escape.
    fn unescape(&mut self, byte: u8) -> Option<u8> {
        if self.kind != Kind::Argument {
            return Some(byte);
        }
        if self.escaped {
            self.escaped = false;
            return Some(plain(byte));
        }
        self.escaped = byte == b'\\';
        (!self.escaped).then_some(byte)
    }

    /// Whether a piece of the reply agrees with a place.
    fn follows(&self, mut place: Span, piece: &[u8], sources: &Sources) -> bool {
        if piece.is_empty() {
            return self.may_end(place, self.started, sources);
        }
        let (mut escaped, mut started) = (self.escaped, self.started);
        for byte in piece {
            let mut byte = *byte;
            if self.kind == Kind::Argument {
                if !escaped && byte == b'\\' {
                    escaped = true;
                    continue;
                }
                if !escaped && byte == b'"' {
                    return self.may_end(place, started, sources);
                }
                byte = if std::mem::take(&mut escaped) { plain(byte) } else { byte };
            }
            if self.kind != Kind::Argument && place.at == place.end {
                return started && (self.kind == Kind::Path || byte == b'\n');
            }
            if place.at == place.end || sources.byte(place) != byte {
                return false;
            }
            place.at += 1;
            started = true;
        }
        true
    }

    fn may_end(&self, place: Span, started: bool, sources: &Sources) -> bool {
        started && (place.at == place.end || (!place.whole && sources.is_boundary(place)))
    }
}

fn plain(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        other => other,
    }
}

/// Finds the strings of the arguments in the JSON of a call.
#[derive(Default)]
struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    value: bool,
    key: String,
}

enum Turn {
    ValueBegins,
    ValueEnds,
    /// A byte of a value.
    Inside,
    Other,
}

impl Scanner {
    fn take(&mut self, byte: u8) -> Turn {
        if self.in_string {
            return self.take_in_string(byte);
        }
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.value = byte == b'[' && self.value;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' => self.value = true,
            b',' => self.value = false,
            b'"' => {
                self.in_string = true;
                if self.is_argument() {
                    return Turn::ValueBegins;
                }
                self.key.clear();
            }
            _ => {}
        }
        Turn::Other
    }

    fn take_in_string(&mut self, byte: u8) -> Turn {
        let argument = self.is_argument();
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return if argument { Turn::ValueEnds } else { Turn::Other };
        }
        if argument {
            return Turn::Inside;
        }
        self.key.push(char::from(byte));
        Turn::Other
    }

    fn is_argument(&self) -> bool {
        self.value && self.depth >= 2
    }
}

#[cfg(test)]
mod tests;
