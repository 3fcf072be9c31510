//! Reads calls out of a text while it comes. What may become a call is held back; the rest goes out at once.

use super::TextCall;
use super::scan::{Found, Known, at_place, next_place, unclosed, whole};

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum FreeTextPiece {
    /// Text.
    Text(String),
    /// A call.
    Call(TextCall),
}

/// Reads calls out of a growing text.
#[derive(Debug)]
pub struct FreeText {
    known: Known,
    /// Text that was not given out yet.
    held: String,
    line_start: bool,
    /// Whether anything but white space was given out as text.
    spoke: bool,
    calls: usize,
}

impl FreeText {
    /// Reads calls of these tools.
    pub fn new(tools: impl IntoIterator<Item = String>) -> Self {
        let known = Known(tools.into_iter().collect());
        Self { known, held: String::new(), line_start: true, spoke: false, calls: 0 }
    }

    /// Adds text.
    pub fn push(&mut self, text: &str) -> Vec<FreeTextPiece> {
        self.held.push_str(text);
        let mut out = Vec::new();
        self.advance(&mut out);
        out
    }

    /// No more text comes: what is held back is given out, as a call if it is whole, else as text.
    pub fn finish(&mut self) -> Vec<FreeTextPiece> {
        let mut out = Vec::new();
        loop {
            self.advance(&mut out);
            if self.held.trim().is_empty() {
                break;
            }
            // Something incomplete stands at the beginning, perhaps after white space.
            let space = self.held.len() - self.held.trim_start().len();
            match unclosed(&self.held[space..]) {
                Some(calls) => {
                    self.held.clear();
                    self.give_calls(calls, &mut out);
                }
                None => self.give_text(space + first_letter(&self.held[space..]), &mut out),
            }
        }
        if self.calls == 0 && self.spoke {
            self.give_text(self.held.len(), &mut out);
        }
        self.held.clear();
        join(out)
    }

    fn advance(&mut self, out: &mut Vec<FreeTextPiece>) {
        loop {
            let place = next_place(&self.held, self.line_start);
            // White space before a call belongs to the call; after other text it may still precede one.
            let text_end = self.held[..place.unwrap_or(self.held.len())].trim_end().len();
            if text_end > 0 {
                self.give_text(text_end, out);
                continue;
            }
            let Some(place) = place else { return };
            match at_place(&self.held[place..], &self.known) {
                Found::Incomplete => return,
                Found::Text => self.give_text(place + first_letter(&self.held[place..]), out),
                Found::Calls(calls, len) => {
                    self.held.drain(..place + len);
                    self.give_calls(calls, out);
                    self.skip_separator();
                }
            }
        }
    }

    fn give_text(&mut self, len: usize, out: &mut Vec<FreeTextPiece>) {
        let text: String = self.held.drain(..len).collect();
        if text.is_empty() {
            return;
        }
        self.spoke |= !text.trim().is_empty();
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        self.line_start = last_line.trim().is_empty() && (self.line_start || text.contains('\n'));
        out.push(FreeTextPiece::Text(text));
    }

    fn give_calls(&mut self, calls: Vec<TextCall>, out: &mut Vec<FreeTextPiece>) {
        self.calls += calls.len();
        self.line_start = true;
        out.extend(calls.into_iter().map(FreeTextPiece::Call));
    }

    /// Calls are written with semicolons or commas between them too.
    fn skip_separator(&mut self) {
        let rest = self.held.trim_start();
        if rest.starts_with([';', ',']) {
            self.held = rest[1..].to_owned();
        }
    }
}

fn first_letter(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

fn join(pieces: Vec<FreeTextPiece>) -> Vec<FreeTextPiece> {
    let mut out: Vec<FreeTextPiece> = Vec::new();
    for piece in pieces {
        match (out.last_mut(), piece) {
            (Some(FreeTextPiece::Text(last)), FreeTextPiece::Text(text)) => last.push_str(&text),
            (_, piece) => out.push(piece),
        }
    }
    out
}

/// Reads the calls out of a text: of a whole one, or of the beginning of one.
pub fn parse_free_text(
    text: &str,
    tools: impl IntoIterator<Item = String>,
    partial: bool,
) -> (String, Vec<TextCall>) {
    let mut stream = FreeText::new(tools);
    if !partial && let Some(calls) = whole(text, &stream.known) {
        return (String::new(), calls);
    }
    let mut pieces = stream.push(text);
    if !partial {
        pieces.extend(stream.finish());
    }
    let (mut content, mut calls) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            FreeTextPiece::Text(text) => content.push_str(&text),
            FreeTextPiece::Call(call) => calls.push(call),
        }
    }
    (content, calls)
}

#[cfg(test)]
mod tests;
