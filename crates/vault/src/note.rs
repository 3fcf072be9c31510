//! Reads the structure of a note: front matter, title, headings, and the passages between them.
//! Invariant: pure and total. Any text is a note; line numbers count from 1 in the text as given.

use std::ops::Range;

/// A block that is longer is cut between its lines, so that one long list does not match everything.
const LONGEST_PASSAGE: usize = 1_200;
/// Front matter that is not closed within so many lines is no front matter.
const LONGEST_FRONT_MATTER: usize = 200;

/// What the index and the reader need to know of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// From the front matter, else the first top heading, else the file name.
    pub title: String,
    /// Tags of the front matter, as written.
    pub tags: Vec<String>,
    /// The headings in order.
    pub headings: Vec<Heading>,
    /// The blocks of text in order.
    pub passages: Vec<Passage>,
    /// How many lines the note has.
    pub lines: usize,
}

/// A heading and the lines it governs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: usize,
    /// The words of the heading.
    pub text: String,
    /// The line of the heading, from 1.
    pub line: usize,
}

/// A block: a paragraph, a list, a table, a code block, or the front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// What it is.
    pub kind: PassageKind,
    /// The headings above it, outermost first.
    pub trail: Vec<String>,
    /// First and last line, from 1.
    pub lines: (usize, usize),
    /// The source lines, untouched, joined by `\n`.
    pub text: String,
}

/// What a passage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassageKind {
    /// Something a person wrote to be read.
    Body,
    /// The fields above the note.
    FrontMatter,
    /// The heading of a note without any text.
    Heading,
}

impl Note {
    /// Reads a note; `stem` is its file name without the extension.
    pub fn parse(text: &str, stem: &str) -> Self {
        let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).lines().collect();
        let front = front_matter(&lines);
        let mut blocks =
            Blocks { lines: &lines, headings: Vec::new(), trail: Vec::new(), passages: Vec::new() };
        if front.end > 0 {
            blocks.push(PassageKind::FrontMatter, 1..front.end - 1);
        }
        blocks.read(front.end);
        let Blocks { headings, mut passages, .. } = blocks;
        let fields = &lines[front.start..front.end];
        let title = field(fields, "title")
            .or_else(|| headings.iter().find(|h| h.level == 1).map(|h| h.text.clone()))
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| stem.to_owned());
        if passages.iter().all(|p| p.kind != PassageKind::Body)
            && let Some(heading) = headings.first()
        {
            let text = lines.get(heading.line - 1).copied().unwrap_or_default().to_owned();
            let lines = (heading.line, heading.line);
            passages.push(Passage { kind: PassageKind::Heading, trail: Vec::new(), lines, text });
        }
        Self { title, tags: tags(fields), headings, passages, lines: lines.len() }
    }

    /// The lines (from 1, end excluded) of the section under the first heading that reads `wanted`.
    ///
    /// Case, accents and Markdown signs are forgiven; a heading that only starts with it comes second.
    pub fn section(&self, wanted: &str) -> Option<Range<usize>> {
        let plain = |text: &str| crate::text::fold(text.trim().trim_matches(['#', '*', '_', ' ', '`']));
        let wanted = plain(wanted.rsplit(['>', '›']).next().unwrap_or(wanted));
        let exact = self.headings.iter().position(|h| plain(&h.text) == wanted);
        let found = exact.or_else(|| {
            self.headings.iter().position(|h| !wanted.is_empty() && plain(&h.text).starts_with(&wanted))
        })?;
        let heading = &self.headings[found];
        let end = self.headings[found + 1..].iter().find(|h| h.level <= heading.level);
        Some(heading.line..end.map_or(self.lines + 1, |h| h.line))
    }
}

impl Note {
    /// The headings above a line (from 1), outermost first; a heading is above itself.
    pub fn trail_at(&self, line: usize) -> Vec<String> {
        let mut trail: Vec<&Heading> = Vec::new();
        for heading in self.headings.iter().take_while(|heading| heading.line <= line) {
            trail.retain(|above| above.level < heading.level);
            trail.push(heading);
        }
        trail.into_iter().map(|heading| heading.text.clone()).collect()
    }
}

/// The lines of the front matter with its fences, or an empty range at 0.
fn front_matter(lines: &[&str]) -> Range<usize> {
    if lines.first().is_none_or(|line| line.trim_end() != "---") {
        return 0..0;
    }
    let close =
        lines.iter().take(LONGEST_FRONT_MATTER).skip(1).position(|l| matches!(l.trim_end(), "---" | "..."));
    close.map_or(0..0, |at| 0..at + 2)
}

fn field(fields: &[&str], name: &str) -> Option<String> {
    let value = fields.iter().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then_some(value)
    })?;
    let value = value.trim().trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn tags(fields: &[&str]) -> Vec<String> {
    let clean = |tag: &str| tag.trim().trim_matches(['[', ']', '"', '\'', '#', '-', ' ']).to_owned();
    let Some(at) = fields.iter().position(|line| line.trim_start().to_ascii_lowercase().starts_with("tags:"))
    else {
        return Vec::new();
    };
    let inline = fields[at].split_once(':').map_or("", |(_, value)| value);
    let below = fields[at + 1..].iter().copied().take_while(|line| line.trim_start().starts_with("- "));
    inline.split(',').chain(below).map(clean).filter(|tag| !tag.is_empty()).collect()
}

struct Blocks<'a> {
    lines: &'a [&'a str],
    headings: Vec<Heading>,
    trail: Vec<(usize, String)>,
    passages: Vec<Passage>,
}

impl Blocks<'_> {
    fn read(&mut self, from: usize) {
        let mut block = from..from;
        let mut at = from;
        while let Some(&line) = self.lines.get(at) {
            if let Some(fence) = fence(line) {
                // "Run this:" and the code below it belong together.
                if !self.introduces(&block) {
                    self.finish(&mut block, at);
                }
                at = self.fence_end(at, fence);
                self.finish(&mut block, at);
                continue;
            }
            if let Some((level, text)) = self.heading_at(at, &block) {
                self.finish(&mut block, at);
                self.enter(level, text, at);
                // A setext heading has its underline below.
                at += if line.trim_start().starts_with('#') { 1 } else { 2 };
                block = at..at;
                continue;
            }
            if self.ends_block(at, &block) {
                self.finish(&mut block, at);
            }
            at += 1;
            block.end = at;
        }
        self.finish(&mut block, self.lines.len());
    }

    fn fence_end(&self, at: usize, fence: &str) -> usize {
        let close = self.lines[at + 1..].iter().position(|line| {
            let line = line.trim();
            line.starts_with(fence) && line.trim_start_matches(&fence[..1]).is_empty()
        });
        close.map_or(self.lines.len(), |close| at + close + 2)
    }

    fn heading_at(&self, at: usize, block: &Range<usize>) -> Option<(usize, String)> {
        let line = self.lines[at].trim_start();
        let level = line.chars().take_while(|&c| c == '#').count();
        if (1..=6).contains(&level) && line[level..].chars().next().is_none_or(char::is_whitespace) {
            return Some((level, line[level..].trim().trim_end_matches('#').trim_end().to_owned()));
        }
        let under = self.lines.get(at + 1)?.trim_end();
        let plain = !line.is_empty()
            && block.is_empty()
            && item_mark(line).is_none()
            && !line.starts_with(['|', '>']);
        let level = if under.len() > 1 && under.chars().all(|c| c == '=') {
            1
        } else if under.len() > 2 && under.chars().all(|c| c == '-') {
            2
        } else {
            return None;
        };
        plain.then(|| (level, line.trim_end().to_owned()))
    }

    fn enter(&mut self, level: usize, text: String, at: usize) {
        self.trail.retain(|(above, _)| *above < level);
        self.trail.push((level, text.clone()));
        self.headings.push(Heading { level, text, line: at + 1 });
    }

    /// Whether the line at `at` starts a new block.
    fn ends_block(&self, at: usize, block: &Range<usize>) -> bool {
        let line = self.lines[at].trim();
        let Some(last) = self.lines[block.clone()].iter().rev().find(|l| !l.trim().is_empty()) else {
            return true;
        };
        let last = last.trim();
        let introduced = self.introduces(block);
        let listed = item_mark(line).is_some() || line.starts_with('|');
        if self.lines[at - 1].trim().is_empty() {
            // "Exercises:", an empty line and a list belong together.
            let goes_on = introduced && listed;
            return !line.is_empty() && !goes_on;
        }
        let was_listed = item_mark(self.lines[block.start].trim()).is_some() || last.starts_with('|');
        listed && !was_listed && !introduced && item_mark(last).is_none() && self.starts_paragraph(block)
    }

    fn introduces(&self, block: &Range<usize>) -> bool {
        let last = self.lines[block.clone()].iter().rev().find(|line| !line.trim().is_empty());
        last.is_some_and(|line| line.trim_end().ends_with([':', '：']))
    }

    fn starts_paragraph(&self, block: &Range<usize>) -> bool {
        !self.lines[block.clone()].iter().any(|line| item_mark(line.trim()).is_some())
    }

    fn finish(&mut self, block: &mut Range<usize>, at: usize) {
        let mut lines = block.start..at.max(block.start);
        while !lines.is_empty() && self.lines[lines.start].trim().is_empty() {
            lines.start += 1;
        }
        while !lines.is_empty() && self.lines[lines.end - 1].trim().is_empty() {
            lines.end -= 1;
        }
        for part in self.parts(lines) {
            self.push(PassageKind::Body, part);
        }
        *block = at..at;
    }

    /// Cuts an overlong block between lines.
    fn parts(&self, lines: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut start = lines.start;
        let mut length = 0;
        for at in lines.clone() {
            length += self.lines[at].len();
            if length > LONGEST_PASSAGE && at > start {
                parts.push(start..at);
                start = at;
                length = self.lines[at].len();
            }
        }
        parts.push(start..lines.end);
        parts
    }

    fn push(&mut self, kind: PassageKind, lines: Range<usize>) {
        let text = self.lines[lines.clone()].join("\n");
        let empty = !text.chars().any(char::is_alphanumeric);
        if empty {
            return;
        }
        let trail = self.trail.iter().map(|(_, text)| text.clone()).collect();
        self.passages.push(Passage { kind, trail, lines: (lines.start + 1, lines.end), text });
    }
}

fn fence(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

/// The mark of a list item at the start of a trimmed line.
pub fn item_mark(line: &str) -> Option<&str> {
    let mark = line.split_once(char::is_whitespace).map(|(mark, _)| mark)?;
    let number = mark
        .strip_suffix(['.', ')'])
        .is_some_and(|n| (1..=9).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()));
    (number || matches!(mark, "-" | "*" | "+")).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        Note::parse(text, "stem").passages.into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn title_comes_from_front_matter_then_heading_then_file_name() {
        assert_eq!(Note::parse("---\ntitle: \"A\"\n---\n# B\n", "c").title, "A");
        assert_eq!(Note::parse("## x\n# B\n", "c").title, "B");
        assert_eq!(Note::parse("text", "c").title, "c");
        assert_eq!(Note::parse("", "c").title, "c");
    }

    #[test]
    fn passages_know_their_trail_and_lines() {
        let note = Note::parse("# A\n\none\ntwo\n\n## B\n- x\n- y\n\n# C\nlast", "s");
        let seen: Vec<_> =
            note.passages.iter().map(|p| (p.trail.join("/"), p.lines, p.text.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("A".to_owned(), (3, 4), "one\ntwo"),
                ("A/B".to_owned(), (7, 8), "- x\n- y"),
                ("C".to_owned(), (11, 11), "last")
            ]
        );
    }

    #[test]
    fn a_list_stays_with_the_line_that_introduces_it() {
        assert_eq!(texts("Do this:\n\n- a\n- b\n\nAfter."), ["Do this:\n\n- a\n- b", "After."]);
        assert_eq!(texts("Words.\n- a\n- b"), ["Words.", "- a\n- b"]);
    }

    #[test]
    fn code_is_one_block_and_hides_headings() {
        let note = Note::parse("```sh\n# no heading\n\nls\n```\nafter", "s");
        assert!(note.headings.is_empty());
        assert_eq!(note.passages[0].text, "```sh\n# no heading\n\nls\n```");
        assert_eq!(note.passages[1].text, "after");
    }

    #[test]
    fn code_stays_with_the_line_that_introduces_it() {
        assert_eq!(texts("Run this:\n\n```\nls\n```\nDone."), ["Run this:\n\n```\nls\n```", "Done."]);
    }

    #[test]
    fn an_unclosed_fence_runs_to_the_end() {
        assert_eq!(texts("```\na\n\nb"), ["```\na\n\nb"]);
    }

    #[test]
    fn tags_are_read_inline_and_as_a_list() {
        assert_eq!(Note::parse("---\ntags: [a, \"b c\"]\n---\n", "s").tags, ["a", "b c"]);
        assert_eq!(Note::parse("---\ntags:\n  - a\n  - b\ndate: 1\n---\n", "s").tags, ["a", "b"]);
    }

    #[test]
    fn a_note_with_only_a_heading_has_that_as_its_passage() {
        assert_eq!(texts("# Films\n"), ["# Films"]);
    }

    #[test]
    fn setext_headings_and_rules() {
        let note = Note::parse("Top\n===\ntext\n\n---\n\nmore\n", "s");
        assert_eq!(note.title, "Top");
        assert_eq!(note.passages.len(), 2);
    }

    #[test]
    fn sections_end_at_the_next_heading_of_the_same_level() {
        let note = Note::parse("# A\n## Étapes\nx\n### deep\ny\n## Z\n", "s");
        assert_eq!(note.section("etapes"), Some(2..6));
        assert_eq!(note.section("## Z"), Some(6..7));
        assert_eq!(note.section("none"), None);
    }

    #[test]
    fn long_lists_are_cut_between_lines() {
        let list = "- some words that make the line longer\n".repeat(100);
        let note = Note::parse(&list, "s");
        assert!(note.passages.len() > 2);
        assert!(note.passages.windows(2).all(|w| w[0].lines.1 + 1 == w[1].lines.0));
    }
}
