//! A stretch of a reply that must be a copy, and what may follow in it.
//!
//! Invariant: pure; a place that is left agrees with all that was written in the stretch.

use super::super::sources::{Sources, Span};

/// A stretch of the reply that must be a copy.
pub(super) struct Zone {
    kind: Kind,
    /// The places in the sources that agree with what was written so far.
    places: Vec<Span>,
    started: bool,
    escaped: bool,
}

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The name of a tool, or a string in the arguments of a call.
    Argument,
    /// A quotation: lines of one passage, in its order, from any line on.
    Quote,
    /// The path of a note in the answer.
    Path,
}

/// What a byte does to one place.
enum Step {
    /// It is copied.
    On(Span),
    /// It comes after the end of the copy.
    Left,
    Against,
}

impl Zone {
    /// None when there is nothing to copy.
    pub(super) fn new(kind: Kind, places: Vec<Span>) -> Option<Self> {
        (!places.is_empty()).then_some(Self { kind, places, started: false, escaped: false })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether these bytes may follow. No bytes stand for the end of the reply.
    pub(super) fn allows(&self, piece: &[u8], sources: &Sources) -> bool {
        self.places.iter().any(|place| self.follows(*place, piece, sources))
    }

    /// Whether a copy is whole.
    pub(super) fn is_whole(&self) -> bool {
        self.places.iter().any(|place| place.at == place.end)
    }

    /// Takes in a byte and says whether the zone goes on: not when the copy is over, nor when the model went its own way.
    pub(super) fn take(&mut self, byte: u8, sources: &Sources) -> bool {
        let Some(byte) = self.unescape(byte) else { return true };
        let (kind, started) = (self.kind, self.started);
        self.places.retain_mut(|place| match step(kind, *place, started, byte, sources) {
            Step::On(next) => {
                *place = next;
                true
            }
            Step::Left | Step::Against => false,
        });
        self.started = true;
        !self.places.is_empty()
    }

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
            match step(self.kind, place, started, byte, sources) {
                Step::On(next) => place = next,
                Step::Left => return true,
                Step::Against => return false,
            }
            started = true;
        }
        true
    }

    fn may_end(&self, place: Span, started: bool, sources: &Sources) -> bool {
        let at_end = place.at == place.end;
        started
            && match self.kind {
                Kind::Argument | Kind::Path => at_end || (!place.whole && sources.is_boundary(place)),
                Kind::Quote => at_end || sources.byte(place) == b'\n' || sources.after_line(place),
            }
    }
}

fn step(kind: Kind, place: Span, started: bool, byte: u8, sources: &Sources) -> Step {
    let line_begins = kind == Kind::Quote && started && sources.after_line(place);
    if line_begins && byte != b'>' {
        // Without a blank line Markdown would count what follows as quoted.
        return if byte == b'\n' { Step::Left } else { Step::Against };
    }
    if place.at == place.end {
        return if kind == Kind::Path && started { Step::Left } else { Step::Against };
    }
    match sources.byte(place) == byte {
        true => Step::On(place.next()),
        false => Step::Against,
    }
}

fn plain(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        other => other,
    }
}
