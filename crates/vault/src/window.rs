//! Cuts what is shown of a passage: one line, at most so long, around what was asked for.
//! Invariant: what is shown is the note's own text with its white space collapsed; only `…` is added where it was cut.

use std::ops::Range;

use crate::note::Passage;
use crate::search::Mark;

/// A passage on one line, with the units (sentences, items, rows) that are not torn apart if possible.
#[derive(Debug)]
pub struct Window {
    text: String,
    /// Where each source line begins in `text`, and its number.
    lines: Vec<(usize, usize)>,
    last_line: usize,
    units: Vec<Range<usize>>,
}

/// What is shown of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The text, with `…` where it was cut.
    pub text: String,
    /// First and last line, from 1.
    pub lines: (usize, usize),
    /// The bytes of the passage's line that are shown.
    pub bytes: Range<usize>,
}

impl Window {
    /// Collapses a passage onto one line.
    pub fn of(passage: &Passage) -> Self {
        let mut text = String::new();
        let mut lines = Vec::new();
        for (nth, line) in passage.text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            lines.push((text.len(), passage.lines.0 + nth));
            text.push_str(&words.join(" "));
        }
        let units = units(&text, &lines);
        Self { text, lines, last_line: passage.lines.1, units }
    }

    /// The whole passage on one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The part of at most `limit` characters with the greatest weight of marks; the earliest of equals.
    pub(crate) fn best(&self, limit: usize, marks: &[Mark], weight: impl Fn(&[Mark]) -> f32) -> Shown {
        if self.text.chars().count() <= limit {
            return self.show(0..self.text.len());
        }
        let mut best = (-1.0, 0..0);
        for start in 0..self.units.len() {
            let end = self.last_unit(start, limit);
            let bytes = self.units[start].start..self.units[end].end;
            let inside: Vec<Mark> =
                marks.iter().copied().filter(|mark| bytes.contains(&mark.start)).collect();
            let value = weight(&inside);
            if value > best.0 + f32::EPSILON {
                best = (value, start..end + 1);
            }
        }
        let chosen = self.centred(best.1, limit, marks);
        let bytes = self.units[chosen.start].start..self.units[chosen.end - 1].end;
        if self.text[bytes.clone()].chars().count() <= limit {
            return self.show(bytes);
        }
        self.show(self.around_marks(bytes, limit, marks))
    }

    /// The last unit that still fits when `start` is the first.
    fn last_unit(&self, start: usize, limit: usize) -> usize {
        let from = self.units[start].start;
        let fits = |end: &usize| self.text[from..self.units[*end].end].chars().count() <= limit;
        (start..self.units.len()).take_while(fits).last().unwrap_or(start)
    }

    /// Drops what follows the last marked unit as far as units before the first one can take its place.
    fn centred(&self, units: Range<usize>, limit: usize, marks: &[Mark]) -> Range<usize> {
        let marked = |at: &usize| marks.iter().any(|mark| self.units[*at].contains(&mark.start));
        let (Some(first), Some(last)) = (units.clone().find(marked), units.clone().rev().find(marked)) else {
            return units;
        };
        let length =
            |from: usize, to: usize| self.text[self.units[from].start..self.units[to].end].chars().count();
        let (mut from, mut to) = (first, last);
        loop {
            let before = from > 0 && length(from - 1, to) <= limit;
            if before {
                from -= 1;
            }
            let after = to + 1 < self.units.len() && length(from, to + 1) <= limit;
            if after {
                to += 1;
            }
            if !before && !after {
                return from..to + 1;
            }
        }
    }

    /// Cuts one overlong unit at words, around its first mark.
    fn around_marks(&self, unit: Range<usize>, limit: usize, marks: &[Mark]) -> Range<usize> {
        let mark = marks.iter().map(|mark| mark.start).filter(|start| unit.contains(start)).min();
        let chars: Vec<usize> =
            self.text[unit.clone()].char_indices().map(|(at, _)| unit.start + at).collect();
        let at = mark.and_then(|mark| chars.iter().position(|&at| at >= mark)).unwrap_or(0);
        let from = at.saturating_sub(limit / 3).min(chars.len().saturating_sub(limit));
        let to = (from + limit).min(chars.len());
        let start = if from == 0 { unit.start } else { self.word_start(chars[from], chars[at]) };
        let end = if to == chars.len() { unit.end } else { self.word_end(chars[to], chars[at]) };
        start..end.max(start)
    }

    /// The first start of a word at or after `at`, but not behind `until`; scripts without spaces are cut anywhere.
    fn word_start(&self, at: usize, until: usize) -> usize {
        let spaced = self.text[at..until].find(' ').map(|space| at + space + 1);
        spaced.filter(|&start| start - at < 40).unwrap_or(at)
    }

    fn word_end(&self, at: usize, from: usize) -> usize {
        let spaced = self.text[from..at].rfind(' ').map(|space| from + space);
        spaced.filter(|&end| at - end < 40).unwrap_or(at)
    }

    fn show(&self, bytes: Range<usize>) -> Shown {
        let inner = self.text[bytes.clone()].trim();
        let before = if bytes.start > 0 { "… " } else { "" };
        let after = if bytes.end < self.text.len() { " …" } else { "" };
        let line_of =
            |at: usize| self.lines.iter().rev().find(|(start, _)| *start <= at).map(|(_, line)| *line);
        let last = if bytes.end == self.text.len() {
            Some(self.last_line)
        } else {
            line_of(bytes.end.saturating_sub(1))
        };
        let first = line_of(bytes.start).unwrap_or(self.last_line);
        Shown { text: format!("{before}{inner}{after}"), lines: (first, last.unwrap_or(first)), bytes }
    }
}

/// Sentences, and lines that are items or rows.
fn units(text: &str, lines: &[(usize, usize)]) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = lines
        .iter()
        .map(|(start, _)| *start)
        .filter(|&start| start == 0 || is_item(&text[start..]))
        .collect();
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        let ends = matches!(previous, '。' | '！' | '？')
            || (c == ' ' && matches!(previous, '.' | '!' | '?' | ';' | ':'));
        if ends {
            starts.push(at + usize::from(c == ' '));
        }
        previous = c;
    }
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|&start| start < text.len());
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

fn is_item(line: &str) -> bool {
    line.starts_with('|') || crate::note::item_mark(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::PassageKind;

    fn window(text: &str) -> Window {
        let lines = (10, 9 + text.lines().count());
        Window::of(&Passage { kind: PassageKind::Body, trail: Vec::new(), lines, text: text.into() })
    }

    fn mark(window: &Window, word: &str) -> Mark {
        Mark { term: 0, part: 0, strength: 1.0, position: 0, start: window.text().find(word).unwrap() }
    }

    #[test]
    fn short_passages_are_shown_whole_on_one_line() {
        let shown = window("- a\n  b\n\n- c").best(400, &[], |_| 0.0);
        assert_eq!((shown.text.as_str(), shown.lines), ("- a b - c", (10, 13)));
    }

    #[test]
    fn long_passages_are_cut_around_the_match() {
        let text = (0..30).map(|n| format!("- item number {n} of the list")).collect::<Vec<_>>().join("\n");
        let window = window(&text);
        let mark = mark(&window, "number 17 ");
        let shown = window.best(100, &[mark], |marks| marks.len() as f32);
        assert!(shown.text.contains("number 17 of the list"), "{shown:?}");
        assert!(shown.text.starts_with("… - item") && shown.text.ends_with("list …"), "{shown:?}");
        assert!(shown.text.chars().count() <= 104);
        assert!((10 + 15..=10 + 17).contains(&shown.lines.0) && shown.lines.1 >= 27, "{shown:?}");
    }

    #[test]
    fn one_endless_sentence_is_cut_at_words() {
        let text = (0..200).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
        let window = window(&text);
        let mark = mark(&window, "word150");
        let shown = window.best(80, &[mark], |marks| marks.len() as f32);
        assert!(shown.text.contains("word150"), "{shown:?}");
        let inner = shown.text.trim_matches(['…', ' ']);
        assert!(text.contains(inner), "{shown:?}");
        assert!(shown.text.chars().count() <= 84, "{shown:?}");
    }

    #[test]
    fn chinese_without_spaces_is_cut_too() {
        let window = window(&"红烧肉要用冰糖".repeat(200));
        let shown = window.best(50, &[mark(&window, "冰糖")], |marks| marks.len() as f32);
        assert!(shown.text.contains("冰糖") && shown.text.chars().count() <= 54, "{shown:?}");
    }
}
