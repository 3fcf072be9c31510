//! The passages of a tool's answer, each as a quotation gives it.
//!
//! Invariant: pure; no passage is empty, each line of one ends with a line break, and none but the first lacks the
//! mark of a quotation.

/// What a line begins with that says where the rest of a note is.
const CUT: &str = "[cut here:";

/// Passages: what stands between the headings of hits, and in a note under one heading. Several blank lines are one.
pub(super) fn passages(text: &str) -> Vec<String> {
    let mut passages = Vec::new();
    let mut passage = String::new();
    let mut blank = false;
    for line in text.lines().map(str::trim) {
        let ends = is_heading_of_hit(line) || line.starts_with(CUT) || (blank && is_heading(line));
        if ends && !passage.is_empty() {
            passages.push(std::mem::take(&mut passage));
        }
        if line.is_empty() {
            blank = true;
            continue;
        }
        if !is_heading_of_hit(line) && !line.starts_with(CUT) {
            passage.push_str(match (passage.is_empty(), blank) {
                (true, _) => "",
                (false, false) => "> ",
                (false, true) => ">\n> ",
            });
            passage.push_str(line);
            passage.push('\n');
        }
        blank = false;
    }
    if !passage.is_empty() {
        passages.push(passage);
    }
    passages
}

/// Passages that a search's answer shows of the note at this path.
pub(super) fn passages_of_hit(text: &str, path: &str) -> Vec<String> {
    let ending = format!("({path})");
    let mut shown = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(heading) = lines.next() {
        if !is_heading_of_hit(heading) || !heading.ends_with(&ending) {
            continue;
        }
        let mut hit = String::new();
        while let Some(line) = lines.next_if(|line| !is_heading_of_hit(line)) {
            hit.push_str(line);
            hit.push('\n');
        }
        shown.extend(passages(&hit));
    }
    shown
}

/// Where each line of a passage begins and ends, without the mark; blank lines are none.
pub(super) fn line_starts(passage: &[u8]) -> Vec<(usize, usize)> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in passage.split_inclusive(|byte| *byte == b'\n') {
        let mark = if at > 0 { 2 } else { 0 };
        if line.len() > mark + 1 {
            starts.push((at + mark, at + line.len() - 1));
        }
        at += line.len();
    }
    starts
}

/// `[1] Title (path)`, as the notes server writes it.
fn is_heading_of_hit(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(')')
}

/// A heading of Markdown.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.len() < line.len() && rest.starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_ends_at_the_next_hit_and_the_next_heading() {
        let hits = "[1] A (a.md)\none\n\n[2] B (b.md)\ntwo\nthree\n\n\n(rest)";
        assert_eq!(passages(hits), ["one\n", "two\n> three\n>\n> (rest)\n"]);
        let note = "# T\nfirst\n\nsecond\n\n## Next\nthird\n[cut here: line 9 of 12 is next]";
        assert_eq!(passages(note), ["# T\n> first\n>\n> second\n", "## Next\n> third\n"]);
        assert!(passages(" \n\n").is_empty());
    }

    #[test]
    fn a_hit_is_found_by_its_path() {
        let hits = "[1] A (a.md)\none\n\n[2] Other a (x/a.md)\nno\n\n[3] A (a.md)\ntwo\nthree\n";
        assert_eq!(passages_of_hit(hits, "a.md"), ["one\n", "two\n> three\n"]);
        assert_eq!(passages_of_hit(hits, "x/a.md"), ["no\n"]);
        assert!(passages_of_hit(hits, "b.md").is_empty() && passages_of_hit("", "").is_empty());
    }

    #[test]
    fn lines_are_found_behind_their_marks() {
        let passage = b"> one\n>\n> \xe4\xb8\xa4\n";
        let lines: Vec<&[u8]> =
            line_starts(passage).into_iter().map(|(start, end)| &passage[start..end]).collect();
        assert_eq!(lines, [&b"> one"[..], "两".as_bytes()], "a line of a note may itself be a quotation");
    }
}
