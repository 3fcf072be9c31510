//! Regular expressions of schemas (ECMA 262) as parts of a grammar.
//!
//! Invariant: pure. What is written matches the expression; an expression that a grammar cannot say (looking
//! around, back references, words' edges) gives nothing.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::gbnf::{class, literal};

/// Stands for any character in a translated pattern.
pub(super) const ANY: &str = "lx-any-letter";
/// More repetitions than this are not written.
const MOST_TIMES: u32 = 200;

/// A translated expression.
pub(super) struct Held {
    /// What stands within the quotes.
    pub(super) body: String,
    /// Whether the lengths are kept too.
    pub(super) lengths: bool,
}

/// Longer expressions are not read.
const LONGEST: usize = 4000;
/// Places within an expression that a sampler may have to follow at once.
const MOST_PLACES: u64 = 3000;

/// Translates an expression, for strings that are so long.
pub(super) fn translate(pattern: &str, least: u64, most: Option<u64>) -> Option<Held> {
    if pattern.len() > LONGEST {
        return None;
    }
    let expression = ascii_classes(pattern)?;
    let parsed = ParserBuilder::new().nest_limit(60).build().parse(&expression).ok()?;
    if places(&parsed)? > MOST_PLACES {
        return None;
    }
    let branches: Vec<&Hir> = match parsed.kind() {
        HirKind::Alternation(branches) => branches.iter().collect(),
        _ => vec![&parsed],
    };
    if let [only] = branches.as_slice()
        && let Some(body) = one_class(only, least, most)
    {
        return Some(Held { body, lengths: true });
    }
    let lengths = least == 0 && most.is_none_or(|most| longest(&parsed).is_some_and(|length| length <= most));
    let bodies = branches.into_iter().map(anchored).collect::<Option<Vec<_>>>()?;
    Some(Held { body: bodies.join(" | "), lengths })
}

/// How many places of an expression can be reached with the same text, at most. None where a part that may be empty is
/// repeated: llama.cpp refuses such a rule.
fn places(hir: &Hir) -> Option<u64> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => Some(1),
        HirKind::Capture(capture) => places(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(places).try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
        }
        HirKind::Repetition(repetition) => {
            let once = repetition.max == Some(1);
            if !once && repetition.sub.properties().minimum_len() == Some(0) {
                return None;
            }
            let times = repetition.max.unwrap_or(repetition.min).max(repetition.min).clamp(1, MOST_TIMES);
            Some(places(&repetition.sub)?.saturating_mul(u64::from(times)))
        }
    }
}

/// The most characters of a match, when both ends are anchored. (Bytes here, which are no fewer.)
fn longest(hir: &Hir) -> Option<u64> {
    let look = hir.properties().look_set_prefix().contains(Look::Start)
        && hir.properties().look_set_suffix().contains(Look::End);
    hir.properties().maximum_len().filter(|_| look).map(|length| length as u64)
}

/// `^[a-z]+$`: the lengths can be put into the repetition.
fn one_class(hir: &Hir, least: u64, most: Option<u64>) -> Option<String> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [start, repetition, end] = parts.as_slice() else { return None };
    let edges = (start.kind(), end.kind());
    if !matches!(edges, (HirKind::Look(Look::Start), HirKind::Look(Look::End))) {
        return None;
    }
    let HirKind::Repetition(Repetition { min, max, sub, .. }) = repetition.kind() else { return None };
    let HirKind::Class(letters) = sub.kind() else { return None };
    let least = u32::try_from(least).ok()?.max(*min);
    let most = most.and_then(|most| u32::try_from(most).ok()).into_iter().chain(*max).min();
    if least > MOST_TIMES || most.is_some_and(|most| most < least) {
        return None;
    }
    Some(format!("{}{}", one_letter(letters)?, times(least, most)))
}

/// An expression that is not anchored may stand anywhere in the string.
fn anchored(hir: &Hir) -> Option<String> {
    let whole = [hir.clone()];
    let parts: &[Hir] = match hir.kind() {
        HirKind::Concat(parts) => parts,
        _ => &whole,
    };
    let is = |part: Option<&Hir>, look: Look| part.is_some_and(|part| *part.kind() == HirKind::Look(look));
    let (at_start, at_end) = (is(parts.first(), Look::Start), is(parts.last(), Look::End));
    let from = usize::from(at_start);
    let to = parts.len() - usize::from(at_end);
    let mut out = Vec::new();
    if !at_start {
        out.push(format!("{ANY}*"));
    }
    for part in parts.get(from..to.max(from))? {
        out.push(grouped(part)?);
    }
    if !at_end {
        out.push(format!("{ANY}*"));
    }
    Some(if out.is_empty() { "\"\"".to_owned() } else { out.join(" ") })
}

fn grouped(hir: &Hir) -> Option<String> {
    let body = body(hir)?;
    let simple = matches!(hir.kind(), HirKind::Literal(_) | HirKind::Repetition(_));
    Some(if simple || !body.contains(['|', ' ']) { body } else { format!("({body})") })
}

fn body(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Empty => Some("\"\"".to_owned()),
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            Some(literal(&text.chars().map(escaped).collect::<String>()))
        }
        HirKind::Class(letters) => one_letter(letters),
        HirKind::Look(_) => None,
        HirKind::Repetition(repetition) => {
            let sub = body(&repetition.sub)?;
            Some(format!("({sub}){}", times(repetition.min.min(MOST_TIMES + 1), repetition.max)))
                .filter(|_| repetition.min <= MOST_TIMES)
        }
        HirKind::Capture(capture) => grouped(&capture.sub),
        HirKind::Concat(parts) => {
            parts.iter().map(grouped).collect::<Option<Vec<_>>>().map(|parts| parts.join(" "))
        }
        HirKind::Alternation(branches) => {
            branches.iter().map(grouped).collect::<Option<Vec<_>>>().map(|parts| parts.join(" | "))
        }
    }
}

fn times(least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{}}}", most.min(MOST_TIMES).max(least)),
    }
}

/// A character as it stands in a string of JSON.
fn escaped(letter: char) -> String {
    let quoted = serde_json::Value::String(letter.to_string()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// One character out of a class; those that JSON escapes stand apart.
fn one_letter(class_of: &Class) -> Option<String> {
    let ranges: Vec<(char, char)> = match class_of {
        Class::Unicode(ranges) => ranges.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(ranges) => ranges
            .iter()
            .filter(|range| range.end() < 0x80)
            .map(|range| (char::from(range.start()), char::from(range.end())))
            .collect(),
    };
    let mut plain = Vec::new();
    for (first, last) in &ranges {
        plain.extend(without_escaped(*first, *last));
    }
    let within = |letter: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter));
    let mut choices = Vec::new();
    if !plain.is_empty() {
        choices.push(class(&plain));
    }
    for letter in ['"', '\\', '\n', '\r', '\t'] {
        if within(letter) {
            choices.push(literal(&escaped(letter)));
        }
    }
    match choices.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("({})", several.join(" | "))),
    }
}

/// A range without control characters, quotation marks and backslashes.
fn without_escaped(first: char, last: char) -> Vec<(char, char)> {
    const ALLOWED: [(char, char); 4] = [(' ', '!'), ('#', '['), (']', '~'), ('\u{80}', char::MAX)];
    ALLOWED
        .iter()
        .map(|(from, to)| (first.max(*from), last.min(*to)))
        .filter(|(from, to)| from <= to)
        .collect()
}

/// `\d` and `\w` mean ASCII in a schema. None when a class is written in a way that cannot be turned.
fn ascii_classes(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            match letter {
                '[' if !in_class => in_class = true,
                ']' => in_class = false,
                // A class inside a class, `&&` and `--` mean something to the reader of Rust only.
                '[' => {
                    out.push('\\');
                }
                '&' | '~' | '-' if in_class && letters.peek() == Some(&letter) => return None,
                _ => {}
            }
            out.push(letter);
            continue;
        }
        let turned = match (letters.next()?, in_class) {
            ('d', true) => "0-9",
            ('d', false) => "[0-9]",
            ('w', true) => "0-9A-Za-z_",
            ('w', false) => "[0-9A-Za-z_]",
            ('s', true) => " \\t\\n\\r",
            ('s', false) => "[ \\t\\n\\r]",
            ('D', false) => "[^0-9]",
            ('W', false) => "[^0-9A-Za-z_]",
            ('S', false) => "[^\\s]",
            // `[\s\S]` is any character.
            ('D' | 'W' | 'S', true) => "\\x{0}-\\x{10FFFF}",
            ('/', _) => "/",
            ('b' | 'B' | '1'..='9' | 'k' | 'c', _) => return None,
            (other, _) => {
                out.push('\\');
                out.push(other);
                continue;
            }
        };
        out.push_str(turned);
    }
    Some(out)
}
