//! From the bytes of tokens to text: whole characters only, and never a stop text nor the beginning of one.
//!
//! Invariant: pure. What was given out once is never taken back.

/// Collects the bytes of tokens into text.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    stops: Vec<String>,
    /// All whole characters so far, up to a stop.
    text: String,
    /// How much of `text` may be shown.
    shown: usize,
    /// Bytes of an unfinished character.
    rest: Vec<u8>,
    stopped: bool,
}

impl TextStream {
    /// A stream that ends at any of these texts.
    pub(super) fn new(stops: impl IntoIterator<Item = String>) -> Self {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        Self { stops, ..Self::default() }
    }

    /// Adds the bytes of a token.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.stopped {
            return;
        }
        self.rest.extend_from_slice(bytes);
        self.take_whole_characters();
        self.look_for_stops();
    }

    /// No more bytes will come: everything may be shown.
    pub(super) fn finish(&mut self) {
        if !self.stopped && !self.rest.is_empty() {
            self.rest.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.shown = self.text.len();
    }

    /// Whether a stop text has come.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    /// What may be shown: everything but what may become a stop text.
    pub(super) fn text(&self) -> &str {
        &self.text[..self.shown]
    }

    /// A sequence that is no character counts as one, whatever its length: so does llama.cpp's grammar, and a
    /// limit on the length of a string must hold for what we make of it.
    fn take_whole_characters(&mut self) {
        let mut at = 0;
        while let Some(first) = self.rest.get(at) {
            let claimed = match first {
                0..0xc0 => 1,
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
            };
            let tail =
                self.rest[at + 1..].iter().take(claimed - 1).take_while(|byte| **byte & 0xc0 == 0x80).count();
            let end = at + 1 + tail;
            if tail + 1 < claimed && end == self.rest.len() {
                break;
            }
            let letter = std::str::from_utf8(&self.rest[at..end]).unwrap_or("\u{fffd}");
            self.text.push_str(letter);
            at = end;
        }
        self.rest.drain(..at);
    }

    fn look_for_stops(&mut self) {
        // A stop may have begun in what is held back, which starts at `shown`.
        let new = &self.text[self.shown..];
        if let Some(at) = self.stops.iter().filter_map(|stop| new.find(stop.as_str())).min() {
            self.text.truncate(self.shown + at);
            self.shown = self.text.len();
            self.stopped = true;
            return;
        }
        let held = self.stops.iter().map(|stop| overlap(new, stop)).max().unwrap_or(0);
        self.shown = self.text.len() - held;
    }
}

/// The longest end of `text` that is the beginning of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    (1..stop.len().min(text.len() + 1))
        .rev()
        .find(|len| stop.is_char_boundary(*len) && text.ends_with(&stop[..*len]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(stops: &[&str]) -> TextStream {
        TextStream::new(stops.iter().map(|stop| (*stop).to_owned()))
    }

    #[test]
    fn a_character_over_tokens_comes_whole() {
        let mut text = stream(&[]);
        for byte in "né🦀".bytes() {
            text.push(&[byte]);
            assert!("né🦀".starts_with(text.text()));
        }
        assert_eq!(text.text(), "né🦀");
    }

    #[test]
    fn broken_bytes_become_replacement_characters() {
        let mut text = stream(&[]);
        // Beyond Unicode, a surrogate, a beginning without its end.
        text.push(&[b'a', 0xf7, 0xbf, 0xbf, 0xbf, b'b', 0xed, 0xa0, 0x80, 0xe2, 0x82, b'c', 0xf0, 0x9f]);
        assert_eq!(text.text(), "a\u{fffd}b\u{fffd}\u{fffd}c");
        text.finish();
        assert_eq!(text.text(), "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}");
    }

    #[test]
    fn a_stop_over_tokens_is_never_shown() {
        let mut text = stream(&["END", "\n\n"]);
        let shown: Vec<String> = ["one E", "N", "X two", " E", "ND three"]
            .iter()
            .map(|piece| {
                text.push(piece.as_bytes());
                text.text().to_owned()
            })
            .collect();
        assert_eq!(shown, ["one ", "one ", "one ENX two", "one ENX two ", "one ENX two "]);
        assert!(text.stopped());
    }

    #[test]
    fn held_back_text_comes_at_the_end() {
        let mut text = stream(&["END"]);
        text.push(b"the EN");
        assert_eq!(text.text(), "the ");
        text.finish();
        assert_eq!(text.text(), "the EN");
    }

    proptest! {
        #[test]
        fn splitting_does_not_matter(
            words in prop::collection::vec("[abé🦀]{1,4}", 1..12),
            stop in "[abé]{1,3}",
            cuts in prop::collection::vec(1usize..5, 1..40),
        ) {
            let whole = words.concat();
            let expected = whole.find(&stop).map_or(whole.as_str(), |at| &whole[..at]);
            let mut text = stream(&[&stop]);
            let (mut bytes, mut cuts) = (whole.as_bytes(), cuts.iter().cycle());
            let mut before = 0;
            while !bytes.is_empty() {
                let (head, tail) = bytes.split_at((*cuts.next().unwrap()).min(bytes.len()));
                text.push(head);
                bytes = tail;
                prop_assert!(text.text().len() >= before);
                prop_assert!(expected.starts_with(text.text()));
                before = text.text().len();
            }
            text.finish();
            prop_assert_eq!(text.text(), expected);
        }
    }
}
