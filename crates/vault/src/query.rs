//! What a question asks for: its words with the forms they may take in a note.
//! Invariant: pure and total. Any text is a query, and no sign in it means anything to the index.

use crate::language::{Language, function_phrase, is_asking_word, is_everyday_character, is_everyday_word};
use crate::text::{Piece, PieceKind, pieces, stem, word};

/// No more terms are looked up; a pasted page is still a query.
const MOST_TERMS: usize = 48;
/// How much a stem counts against the word itself.
const STEM: f32 = 0.9;
/// A name or a code says more about what is looked for than other words, an everyday word less.
const NAME: f32 = 1.4;
const EVERYDAY: f32 = 0.6;
/// A single character says little beside pairs of them.
const CHARACTER: f32 = 0.15;

/// The words of a question that can be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What to look for; fewer than were asked when grammar words were dropped.
    pub terms: Vec<Term>,
    /// Whether the answer is probably a number.
    pub asks_number: bool,
    /// The question, folded, with single spaces: to see whether it names a note.
    pub folded: String,
}

/// One thing to look for: a word, a compound of words, or a pair of characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The words of a compound, or one.
    pub parts: Vec<Part>,
    /// The run of characters that a pair comes from.
    pub run: Option<usize>,
    /// How much it counts: a lone character of a run says little.
    pub weight: f32,
}

/// The forms in which a word may stand in a note, with how much each counts. The first is the word itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Tokens of the index.
    pub forms: Vec<(String, f32)>,
}

impl Query {
    /// Reads a question.
    pub fn parse(text: &str) -> Self {
        let pieces = pieces(text);
        let words: Vec<String> = pieces.iter().map(|piece| word(piece.raw)).collect();
        let language = Language::guess(words.iter().map(String::as_str));
        let groups = groups(&pieces, &words, language);
        let is_grammar = |word: &str| language.is_some_and(|l| l.is_stop_word(word)) || is_asking_word(word);
        let meaningful = |group: &Vec<usize>| group.iter().any(|&at| !is_grammar(&words[at]));
        let any_meaning = groups.iter().any(|g| pieces[g[0]].kind == PieceKind::Word && meaningful(g));
        let runs = pieces.iter().filter(|piece| piece.kind == PieceKind::Run);
        let mut terms = run_terms(runs);
        let keep_all = !any_meaning && terms.is_empty();
        let kept = groups.iter().filter(|group| pieces[group[0]].kind == PieceKind::Word);
        for group in kept.filter(|group| keep_all || meaningful(group)) {
            let parts = group.iter().map(|&at| part(pieces[at].raw)).collect();
            let weight = emphasis(pieces[group[0]].raw, &words[group[0]], group[0] == 0);
            push_new(&mut terms, Term { parts, run: None, weight });
        }
        terms.truncate(MOST_TERMS);
        Self { terms, asks_number: asks_number(&words, text), folded: words.join(" ") }
    }

    /// Every token that a note may have, for the index.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().flat_map(|t| &t.parts).flat_map(|p| &p.forms).map(|(token, _)| token.as_str())
    }
}

fn push_new(terms: &mut Vec<Term>, term: Term) {
    let empty = term.parts.iter().any(|part| part.forms[0].0.is_empty());
    if !empty && !terms.iter().any(|known| known.parts == term.parts) {
        terms.push(term);
    }
}

/// Joins hyphenated words into compounds, but not the inverted verbs of French ("a-t-elle").
fn groups(pieces: &[Piece<'_>], words: &[String], language: Option<Language>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if piece.hyphenated => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    let loose = |group: &Vec<usize>| {
        let last = group.last().map_or("", |&at| words[at].as_str());
        language.is_some_and(|language| language.is_stop_word(last))
    };
    groups
        .into_iter()
        .flat_map(
            |group| if loose(&group) { group.into_iter().map(|at| vec![at]).collect() } else { vec![group] },
        )
        .collect()
}

fn emphasis(raw: &str, word: &str, first: bool) -> f32 {
    let capital = raw.chars().next().is_some_and(char::is_uppercase);
    let code = word.len() > 1 && word.chars().any(char::is_numeric) && word.chars().any(char::is_alphabetic);
    let shouted = raw.chars().filter(|c| c.is_uppercase()).count() > 1;
    if code || shouted || (capital && !first) {
        NAME
    } else if is_everyday_word(word) {
        EVERYDAY
    } else {
        1.0
    }
}

fn part(raw: &str) -> Part {
    let mut forms = vec![(word(raw), 1.0)];
    for language in Language::ALL {
        if let Some(stem) = stem(raw, language)
            && !forms.iter().any(|(form, _)| *form == stem)
        {
            forms.push((stem, STEM));
        }
    }
    Part { forms }
}

/// Pairs of neighbouring characters, after the phrases that only ask are taken out.
fn run_terms<'a>(runs: impl Iterator<Item = &'a Piece<'a>>) -> Vec<Term> {
    let segments: Vec<Vec<char>> = runs.flat_map(|run| segments(run.raw)).collect();
    let pairs = segments.iter().any(|segment| segment.len() > 1);
    let mut terms = Vec::new();
    for (run, segment) in segments.iter().enumerate() {
        let term = |token: String, run, weight| Term {
            parts: vec![Part { forms: vec![(token, 1.0)] }],
            run,
            weight,
        };
        for pair in segment.windows(2) {
            push_new(&mut terms, term(word(&pair.iter().collect::<String>()), Some(run), 1.0));
        }
        // A word of one character is in no pair, so each counts a little by itself.
        for c in segment.iter().filter(|c| !pairs || !is_everyday_character(**c)) {
            push_new(&mut terms, term(word(&c.to_string()), None, if pairs { CHARACTER } else { 0.5 }));
        }
    }
    terms
}

fn segments(run: &str) -> Vec<Vec<char>> {
    let mut segments = vec![Vec::new()];
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        match function_phrase(rest) {
            Some(phrase) => {
                segments.push(Vec::new());
                rest = &rest[phrase.len()..];
            }
            None => {
                if let Some(segment) = segments.last_mut() {
                    segment.push(first);
                }
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    segments.retain(|segment| !segment.is_empty());
    // A question of nothing but such phrases is still looked for as it stands.
    if segments.is_empty() { vec![run.chars().collect()] } else { segments }
}

fn asks_number(words: &[String], text: &str) -> bool {
    let has = |word: &str| words.iter().any(|w| w == word);
    let how_many = words
        .windows(2)
        .any(|w| w[0] == "how" && matches!(w[1].as_str(), "much" | "many" | "long" | "old" | "far"));
    how_many
        || [
            "when", "combien", "quand", "cuanto", "cuantos", "quanto", "quanti", "wieviel", "hoeveel",
            "wann", "cuando",
        ]
        .iter()
        .any(|word| has(word))
        || words.windows(2).any(|w| w[0] == "wie" && w[1].starts_with("viel"))
        || ["多少", "几", "什么时候", "多久", "多大", "多长", "多高"]
            .iter()
            .any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn firsts(text: &str) -> Vec<String> {
        Query::parse(text)
            .terms
            .iter()
            .map(|t| t.parts.iter().map(|p| p.forms[0].0.as_str()).collect::<Vec<_>>().join("-"))
            .collect()
    }

    #[test]
    fn grammar_words_are_dropped_while_others_remain() {
        assert_eq!(firsts("Do my notes say anything about skydiving?"), ["skydiving"]);
        assert_eq!(firsts("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(
            firsts("Qu'est-ce que j'ai noté sur la plongée sous-marine ?"),
            ["plongee", "sous-marine"]
        );
        assert_eq!(firsts("la facture a-t-elle dépassé le devis"), ["facture", "depasse", "devis"]);
    }

    #[test]
    fn chinese_questions_keep_what_they_name() {
        assert_eq!(
            firsts("红烧肉要用多少冰糖？"),
            ["红烧", "烧肉", "肉要", "要用", "红", "烧", "肉", "冰糖", "冰", "糖"]
        );
        assert_eq!(firsts("笔记里有没有提到潜水？"), ["潜水", "潜", "水"]);
        assert_eq!(firsts("水"), ["水"]);
        assert_eq!(firsts("什么"), ["什么", "什", "么"]);
    }

    #[test]
    fn numbers_are_expected_where_asked_for() {
        assert!(Query::parse("How many herons?").asks_number);
        assert!(Query::parse("收了多少个辣椒").asks_number);
        assert!(!Query::parse("which colour").asks_number);
    }

    proptest! {
        #[test]
        fn any_text_is_a_query(text in "\\PC{0,200}") {
            let query = Query::parse(&text);
            prop_assert!(query.terms.len() <= MOST_TERMS);
            prop_assert!(query.tokens().all(|token| !token.is_empty() && !token.contains(['"', ' ', '*'])));
        }
    }
}
