//! Takes thoughts out of a text that begins with `<think>`, as servers send it that do not know the model's form.
//!
//! The templates of some models (DeepSeek R1, QwQ) open the thoughts themselves: their replies have the closing tag alone.
//! Text that was told can't be taken back, so the beginning of such a model's reply is kept until the tag comes.
//!
//! Invariant: pure. Only a reply that begins with the tag, or has the closing one alone, is touched, and nothing of it is
//! lost but the tags and the blanks behind them.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// Bytes that are kept until a closing tag comes.
const KEPT: usize = 1 << 20;

/// Text or thoughts.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Text(String),
    Thought(String),
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    place: Place,
    /// What may become a tag, or thoughts.
    kept: String,
    /// The model's template opens the thoughts.
    opened: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Begin,
    Thoughts,
    /// The thoughts are over, and no text has come yet.
    Closed,
    Text,
}

impl Splitter {
    /// The reply is one of this model.
    pub(super) fn of_model(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        let names = ["deepseek-r1", "deepseek_r1", "r1-distill", "qwq", "-thinking"];
        self.opened = names.iter().any(|part| name.contains(part));
    }

    /// Reads on.
    pub(super) fn push(&mut self, text: String) -> Vec<Said> {
        if self.place == Place::Text {
            return said(Said::Text, text).into_iter().collect();
        }
        self.kept.push_str(&text);
        let mut out = Vec::new();
        if self.place == Place::Begin {
            out.extend(self.begin());
        }
        if self.place == Place::Thoughts {
            out.extend(self.thoughts());
        }
        if self.place == Place::Closed {
            out.extend(self.closed());
        }
        out
    }

    /// No tag is expected any more where none has begun: thoughts come in a field of their own, a call comes, or the
    /// reply is over.
    pub(super) fn settle(&mut self) -> Option<Said> {
        let rest = std::mem::take(&mut self.kept);
        match self.place {
            Place::Begin | Place::Text => {
                self.place = Place::Text;
                said(Said::Text, rest)
            }
            Place::Thoughts => said(Said::Thought, rest),
            Place::Closed => None,
        }
    }

    fn begin(&mut self) -> Option<Said> {
        let text = self.kept.trim_start();
        if let Some(rest) = text.strip_prefix(OPEN) {
            self.kept = rest.to_owned();
            self.place = Place::Thoughts;
            return None;
        }
        if OPEN.starts_with(text) {
            return None;
        }
        let closes = text.split_once(CLOSE).is_some_and(|(before, _)| !before.contains(OPEN));
        if closes {
            self.place = Place::Thoughts;
            return None;
        }
        if self.opened && self.kept.len() < KEPT {
            return None;
        }
        self.place = Place::Text;
        said(Said::Text, std::mem::take(&mut self.kept))
    }

    fn thoughts(&mut self) -> Option<Said> {
        if let Some((thought, rest)) = self.kept.split_once(CLOSE) {
            let (thought, rest) = (thought.to_owned(), rest.to_owned());
            self.kept = rest;
            self.place = Place::Closed;
            return said(Said::Thought, thought);
        }
        let tail = (1..CLOSE.len()).rev().find(|len| self.kept.ends_with(&CLOSE[..*len])).unwrap_or(0);
        let rest = self.kept.split_off(self.kept.len() - tail);
        said(Said::Thought, std::mem::replace(&mut self.kept, rest))
    }

    fn closed(&mut self) -> Option<Said> {
        let text = self.kept.trim_start().to_owned();
        self.kept.clear();
        if !text.is_empty() {
            self.place = Place::Text;
        }
        said(Said::Text, text)
    }
}

fn said(kind: fn(String) -> Said, text: String) -> Option<Said> {
    (!text.is_empty()).then(|| kind(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> (String, String) {
        read_with(Splitter::default(), text, size)
    }

    fn read_with(mut splitter: Splitter, text: &str, size: usize) -> (String, String) {
        let chars: Vec<char> = text.chars().collect();
        let mut all: Vec<Said> =
            chars.chunks(size).flat_map(|piece| splitter.push(piece.iter().collect())).collect();
        all.extend(splitter.settle());
        let (mut thoughts, mut words) = (String::new(), String::new());
        for said in all {
            match said {
                Said::Text(text) => words.push_str(&text),
                Said::Thought(text) => thoughts.push_str(&text),
            }
        }
        (thoughts, words)
    }

    #[test]
    fn only_a_reply_that_begins_with_thoughts_is_split() {
        for (text, thoughts, words) in [
            ("\n<think>\nHm </thin </think>\n\nYes </think>.", "\nHm </thin ", "Yes </think>."),
            ("<think></think>Yes", "", "Yes"),
            ("Use <think>x</think>", "", "Use <think>x</think>"),
            (" <thin", "", " <thin"),
            ("<thinking>x", "", "<thinking>x"),
            ("<think>never closed </th", "never closed </th", ""),
            ("  ", "", "  "),
            ("", "", ""),
        ] {
            for size in 1..=text.chars().count().max(1) {
                assert_eq!(read(text, size), (thoughts.to_owned(), words.to_owned()), "{text} in {size}");
            }
        }
    }

    #[test]
    fn a_closing_tag_alone_ends_thoughts_that_the_template_opened() {
        for (text, thoughts, words) in [
            ("Hm, two.</think>\n\nTwo.", "Hm, two.", "Two."),
            ("Two.", "", "Two."),
            ("<think>Hm.</think>Two.", "Hm.", "Two."),
        ] {
            for size in 1..=text.chars().count() {
                let mut splitter = Splitter::default();
                splitter.of_model("DeepSeek-R1-Distill-Qwen-7B");
                assert_eq!(
                    read_with(splitter, text, size),
                    (thoughts.to_owned(), words.to_owned()),
                    "{text} in {size}"
                );
            }
        }
        // In one piece it can be told of every model.
        assert_eq!(read("Hm.</think>Two.", 99), ("Hm.".to_owned(), "Two.".to_owned()));
    }

    #[test]
    fn a_tag_behind_thoughts_of_their_own_is_text() {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.settle(), None);
        assert_eq!(splitter.push("<think>".to_owned()), [Said::Text("<think>".to_owned())]);
    }
}
