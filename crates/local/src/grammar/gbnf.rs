//! The text of a grammar as llama.cpp reads it (GBNF): rules, literals, classes of characters.
//!
//! Invariant: pure; equal bodies share a rule, so that tools with equal arguments cost no more than one.

use std::collections::{BTreeMap, HashMap};

/// Rules under names of our own, which no rule of llama.cpp has.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    bodies: Vec<(String, String)>,
    by_body: HashMap<String, String>,
    size: usize,
    work: usize,
    pythonic: bool,
}

/// Parts of schemas that are looked at for one grammar, each as often as it is; what is beyond stays open. A schema of
/// some lines can describe more than any machine can write down.
const MOST_WORK: usize = 300_000;
/// Bytes of a grammar: the sampler has to read it before the first token.
const LARGEST: usize = 2_000_000;

impl Rules {
    /// Rules for values as Python writes them.
    pub(super) fn pythonic() -> Self {
        Self { pythonic: true, ..Self::default() }
    }

    /// Whether values are written as in Python, not as in JSON.
    pub(super) fn is_pythonic(&self) -> bool {
        self.pythonic
    }

    /// The rule with this body.
    pub(crate) fn add(&mut self, body: String) -> String {
        if let Some(name) = self.by_body.get(&body) {
            return name.clone();
        }
        let name = format!("lx{}", self.bodies.len());
        self.size += body.len() + name.len();
        self.by_body.insert(body.clone(), name.clone());
        self.bodies.push((name.clone(), body));
        name
    }

    /// Bytes of the text, about.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Notes so much work. False when it has become too much.
    pub(super) fn works(&mut self, parts: usize) -> bool {
        self.work = self.work.saturating_add(parts);
        self.work <= MOST_WORK && self.size <= LARGEST
    }

    /// Whether there is room for more.
    pub(super) fn has_room(&self) -> bool {
        self.work <= MOST_WORK && self.size <= LARGEST
    }

    /// All rules, one to a line.
    pub(crate) fn text(&self) -> String {
        self.bodies.iter().map(|(name, body)| format!("{name} ::= {body}\n")).collect()
    }

    /// White space between the parts of JSON.
    pub(crate) fn space(&mut self) -> String {
        self.add(r#"" "? | "\n" [ \t]{0,20}"#.to_owned())
    }
}

/// Text that stands as it is.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() => out.push_str(&format!("\\U{:08X}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// A character inside `[...]`.
pub(crate) fn in_class(letter: char) -> String {
    match letter {
        '\\' | ']' | '[' | '"' => format!("\\{letter}"),
        '^' | '-' => format!("\\x{:02X}", u32::from(letter)),
        letter if letter.is_control() || letter.is_whitespace() || !letter.is_ascii() => {
            format!("\\U{:08X}", u32::from(letter))
        }
        letter => letter.to_string(),
    }
}

/// `[...]` of ranges.
pub(crate) fn class(ranges: &[(char, char)]) -> String {
    let one = |(first, last): &(char, char)| {
        if first == last { in_class(*first) } else { format!("{}-{}", in_class(*first), in_class(*last)) }
    };
    format!("[{}]", ranges.iter().map(one).collect::<String>())
}

/// One of these texts, each with what follows it. Common beginnings are written once, so that the sampler follows
/// one path however many there are.
pub(crate) fn one_of(rules: &mut Rules, entries: &BTreeMap<String, String>) -> Option<String> {
    let entries: Vec<(&str, &str)> =
        entries.iter().map(|(text, then)| (text.as_str(), then.as_str())).collect();
    (!entries.is_empty()).then(|| branch(rules, &entries, 0))
}

/// Texts share so many beginnings of one another at most.
const DEEPEST: usize = 100;

/// The entries are sorted, so those with the same beginning stand together.
fn branch(rules: &mut Rules, entries: &[(&str, &str)], depth: usize) -> String {
    if depth == DEEPEST {
        let one = |(text, then): &(&str, &str)| format!("{} {then}", literal(text));
        return entries.iter().map(one).collect::<Vec<_>>().join(" | ");
    }
    let mut choices = Vec::new();
    let mut at = 0;
    while let Some((text, then)) = entries.get(at) {
        let Some(first) = text.chars().next() else {
            choices.push(if then.is_empty() { "\"\"".to_owned() } else { (*then).to_owned() });
            at += 1;
            continue;
        };
        let same = entries[at..].iter().take_while(|(text, _)| text.starts_with(first)).count();
        let group = &entries[at..at + same];
        at += same;
        if let [(text, then)] = group {
            choices.push(format!("{} {then}", literal(text)));
            continue;
        }
        let shared = shared_beginning(group);
        let rests: Vec<(&str, &str)> = group.iter().map(|(text, then)| (&text[shared..], *then)).collect();
        let beginning = literal(&text[..shared]);
        let rest = branch(rules, &rests, depth + 1);
        let rest = rules.add(rest);
        choices.push(format!("{beginning} {rest}"));
    }
    choices.join(" | ")
}

fn shared_beginning(entries: &[(&str, &str)]) -> usize {
    let Some(((first, _), others)) = entries.split_first() else { return 0 };
    let shared = |other: &str| {
        first
            .char_indices()
            .zip(other.chars())
            .find(|((_, a), b)| a != b)
            .map_or(first.len().min(other.len()), |((at, _), _)| at)
    };
    others.iter().map(|(other, _)| shared(other)).min().unwrap_or(first.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_written_once() {
        let mut rules = Rules::default();
        let entries = [("notes__read", "a"), ("notes__rename", "b"), ("now", "c"), ("no", "d")];
        let entries = entries.map(|(text, then)| (text.to_owned(), then.to_owned())).into();
        let choices = one_of(&mut rules, &entries).unwrap();
        assert_eq!(choices, "\"no\" lx1");
        assert_eq!(rules.text(), "lx0 ::= \"ad\" a | \"name\" b\nlx1 ::= d | \"tes__re\" lx0 | \"w\" c\n");
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(literal("a\"b\\\n\u{1}é"), "\"a\\\"b\\\\\\n\\U00000001é\"");
        assert_eq!(class(&[('a', 'z'), ('-', '-'), (']', ']')]), "[a-z\\x2D\\]]");
    }
}
