//! Finds the passages that answer a question.
//! Invariant: never fails on what was asked, only on a broken index; the same question over the same notes gives
//! the same answer.
//!
//! FTS5 finds candidates with any of the words. They are ranked again by how much of the question they cover, each
//! word weighted by its rarity: in the best window of the passage, elsewhere in it, in its headings, in the title
//! and path, elsewhere in the note.

use std::collections::HashMap;

use crate::index::{Index, IndexError, Stored};
use crate::language::is_quantity;
use crate::note::PassageKind;
use crate::path::NotePath;
use crate::query::{Part, Query, Term};
use crate::text::{fold, tokens};
use crate::window::Window;

/// The longest passage that is shown, in characters.
pub const LONGEST_SHOWN: usize = 400;
const MOST_CANDIDATES: usize = 200;
/// Below this share of the question, a passage is about something else.
const LEAST_COVERAGE: f32 = 0.24;
/// Below this share, other spellings of the unknown words are tried.
const SURE_COVERAGE: f32 = 0.4;

const IN_PASSAGE: f32 = 0.7;
const IN_HEADING: f32 = 0.9;
const IN_TITLE: f32 = 0.9;
/// A question that has the whole title in it is about that note.
const IN_NAMED_TITLE: f32 = 1.0;
const IN_NOTE: f32 = 0.3;
/// How much a pair of characters counts whose characters stand apart.
const APART: f32 = 0.6;
/// Each further passage of one note counts a little less, for variety.
const AGAIN: f32 = 0.9;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Where the note is.
    pub path: NotePath,
    /// The note's title.
    pub title: String,
    /// The headings above the passage, outermost first.
    pub trail: Vec<String>,
    /// First and last line of what is shown, from 1.
    pub lines: (usize, usize),
    /// What the passage says, on one line.
    pub passage: String,
    /// How much of the question it covers; comparable within one search only.
    pub score: f32,
}

/// Searches the notes below `folder` (an empty text means all of them).
///
/// # Errors
/// When the index cannot be read.
pub fn search(index: &Index, question: &str, folder: &str, limit: usize) -> Result<Vec<Hit>, IndexError> {
    let mut query = Query::parse(question);
    let weights = weights(index, &query)?;
    let mut hits = ranked(index, &query, &weights, folder)?;
    if hits.first().is_none_or(|hit| hit.coverage < SURE_COVERAGE) && widen(index, &mut query, &weights)? {
        let wider = self::weights(index, &query)?;
        let again = ranked(index, &query, &wider, folder)?;
        if again.first().map(|hit| hit.coverage) > hits.first().map(|hit| hit.coverage) {
            hits = again;
        }
    }
    Ok(choose(hits, limit))
}

#[derive(Debug)]
struct Candidate {
    note: i64,
    coverage: f32,
    hit: Hit,
}

/// How rare a term is, and whether the notes know it at all.
#[derive(Debug, Clone, Copy)]
struct Weight {
    value: f32,
    known: bool,
}

fn weights(index: &Index, query: &Query) -> Result<Vec<Weight>, IndexError> {
    let passages = index.passages()? as f32;
    let rarity = |count: u64| (1.0 + (passages - count as f32 + 0.5).max(0.5) / (count as f32 + 0.5)).ln();
    let mut counts = Vec::new();
    for term in &query.terms {
        let mut parts = Vec::new();
        for part in &term.parts {
            let mut most = 0;
            for (token, _) in &part.forms {
                most = most.max(index.frequency(token)?);
            }
            parts.push(most);
        }
        counts.push(parts.into_iter().min().unwrap_or(0));
    }
    let weigh = |(term, &count): (&Term, &u64)| {
        // A pair of characters that no note has is mostly the end of one word and the start of the next.
        let stray = count == 0
            && term.run.is_some()
            && query.terms.iter().zip(&counts).any(|(other, &count)| other.run == term.run && count > 0);
        let value = match (stray, count) {
            (true, _) => 0.0,
            (false, 0) => rarity(1) * 0.5,
            (false, count) => rarity(count),
        };
        Weight { value: value * term.weight, known: count > 0 }
    };
    Ok(query.terms.iter().zip(&counts).map(weigh).collect())
}

fn ranked(
    index: &Index,
    query: &Query,
    weights: &[Weight],
    folder: &str,
) -> Result<Vec<Candidate>, IndexError> {
    let total: f32 = weights.iter().map(|weight| weight.value).sum();
    if total <= 0.0 {
        return Ok(Vec::new());
    }
    let stored = index.candidates(query.tokens(), folder, MOST_CANDIDATES)?;
    let read: Vec<Reading> = stored.into_iter().map(|stored| Reading::new(stored, query)).collect();
    let mut notes: HashMap<i64, Vec<f32>> = HashMap::new();
    for reading in &read {
        let best = notes.entry(reading.stored.note).or_insert_with(|| vec![0.0; query.terms.len()]);
        for (best, body) in best.iter_mut().zip(&reading.body) {
            *best = best.max(*body);
        }
    }
    let mut candidates: Vec<Candidate> = read
        .into_iter()
        .map(|reading| {
            let note = notes.get(&reading.stored.note).map_or(&[][..], Vec::as_slice);
            reading.score(query, weights, total, note)
        })
        .filter(|candidate| candidate.coverage >= LEAST_COVERAGE)
        .collect();
    sort(&mut candidates);
    Ok(candidates)
}

fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let place = |c: &Candidate| (c.hit.path.clone(), c.hit.lines);
        b.hit.score.total_cmp(&a.hit.score).then_with(|| place(a).cmp(&place(b)))
    });
}

/// The best hits, with some variety among the notes.
fn choose(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Hit> {
    let mut chosen = Vec::new();
    while chosen.len() < limit && !candidates.is_empty() {
        let best = candidates.remove(0);
        for other in candidates.iter_mut().filter(|other| other.note == best.note) {
            other.hit.score *= AGAIN;
        }
        sort(&mut candidates);
        chosen.push(best.hit);
    }
    chosen
}

/// Adds tokens of the notes that begin like an unknown word, or differ from it by a slip. True if any was found.
fn widen(index: &Index, query: &mut Query, weights: &[Weight]) -> Result<bool, IndexError> {
    let mut found = false;
    for (term, _) in query.terms.iter_mut().zip(weights).filter(|(_, weight)| !weight.known) {
        if term.run.is_some() {
            found |= apart(term);
            continue;
        }
        for part in &mut term.parts {
            let word = part.forms[0].0.clone();
            if index.frequency(&word)? > 0 {
                continue;
            }
            for (token, weight) in similar(index, &word)? {
                part.forms.push((token, weight));
                found = true;
            }
        }
    }
    Ok(found)
}

/// Lets the two characters of a pair stand apart. True if that is something else than before.
fn apart(term: &mut Term) -> bool {
    let [Part { forms }] = term.parts.as_slice() else { return false };
    let chars: Vec<String> = forms[0].0.chars().map(String::from).collect();
    let split = chars.len() == 2;
    if split {
        term.parts = chars.into_iter().map(|c| Part { forms: vec![(c, APART)] }).collect();
    }
    split
}

fn similar(index: &Index, word: &str) -> Result<Vec<(String, f32)>, IndexError> {
    let length = word.chars().count();
    if length < 3 || word.bytes().any(|b| b.is_ascii_digit()) {
        return Ok(Vec::new());
    }
    let begun = index.vocabulary(word, 12)?;
    if !begun.is_empty() {
        return Ok(begun.into_iter().map(|token| (token, 0.7)).collect());
    }
    let slips = match length {
        ..4 => return Ok(Vec::new()),
        4..8 => 1,
        _ => 2,
    };
    let first: String = word.chars().take(1).collect();
    let near = |token: &String| {
        token.chars().count().abs_diff(length) <= slips && strsim::osa_distance(token, word) <= slips
    };
    Ok(index
        .vocabulary(&first, 200_000)?
        .into_iter()
        .filter(near)
        .take(12)
        .map(|token| (token, 0.6))
        .collect())
}

/// A candidate with what it says of each term.
struct Reading {
    stored: Stored,
    window: Window,
    /// Strength of each term in the whole passage, in its window, in its headings, in its title and path.
    body: Vec<f32>,
    heading: Vec<f32>,
    title: Vec<f32>,
    marks: Vec<Mark>,
}

/// A place where a term stands in the passage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub term: usize,
    pub part: usize,
    pub strength: f32,
    pub position: usize,
    pub start: usize,
}

impl Reading {
    fn new(stored: Stored, query: &Query) -> Self {
        let marks = |text: &str| marks(text, &stored, query);
        let window = Window::of(&stored.passage);
        let in_body = marks(window.text());
        let heading = strengths(&marks(&stored.passage.trail.join(" / ")), query);
        let title = strengths(&marks(&format!("{} / {}", stored.title, stored.path)), query);
        let body = strengths(&in_body, query);
        Self { window, body, heading, title, marks: in_body, stored }
    }

    fn score(self, query: &Query, weights: &[Weight], total: f32, note: &[f32]) -> Candidate {
        let weight = |marks: &[Mark]| -> f32 {
            strengths(marks, query)
                .iter()
                .zip(weights)
                .map(|(strength, weight)| strength * weight.value)
                .sum()
        };
        let shown = self.window.best(LONGEST_SHOWN, &self.marks, weight);
        let inside: Vec<Mark> =
            self.marks.iter().copied().filter(|mark| shown.bytes.contains(&mark.start)).collect();
        let named = self.named_in(query);
        let title = if named { IN_NAMED_TITLE } else { IN_TITLE };
        let strongest = |at: usize, shown: f32| {
            let elsewhere = note.get(at).copied().unwrap_or(0.0) * IN_NOTE;
            shown
                .max(self.body[at] * IN_PASSAGE)
                .max(self.heading[at] * IN_HEADING)
                .max(self.title[at] * title)
                .max(elsewhere)
        };
        let in_window = strengths(&inside, query);
        let each = in_window.iter().enumerate().map(|(at, &shown)| strongest(at, shown) * weights[at].value);
        let coverage = each.sum::<f32>() / total;
        let kind = match self.stored.passage.kind {
            PassageKind::Body => 1.0,
            PassageKind::FrontMatter => 0.6,
            PassageKind::Heading => 0.9,
        };
        let score = (coverage + neighbours(&inside) * 0.12 + self.bonus(query, named, &shown.text)) * kind;
        let hit = Hit {
            path: self.stored.path,
            title: self.stored.title,
            trail: self.stored.passage.trail,
            lines: shown.lines,
            passage: shown.text,
            score,
        };
        Candidate { note: self.stored.note, coverage, hit }
    }

    /// Whether the question has the whole title of the note in it.
    fn named_in(&self, query: &Query) -> bool {
        let title = fold(&self.stored.title);
        let words = crate::text::pieces(&title).iter().map(|piece| piece.raw).collect::<Vec<_>>().join(" ");
        let unspaced = words.chars().any(crate::text::is_unspaced);
        words.chars().count() > 2
            && if unspaced {
                query.folded.contains(&words)
            } else {
                format!(" {} ", query.folded).contains(&format!(" {words} "))
            }
    }

    fn bonus(&self, query: &Query, named: bool, shown: &str) -> f32 {
        let number = query.asks_number && has_quantity(shown);
        f32::from(u8::from(named)) * 0.08 + f32::from(u8::from(number)) * 0.1
    }
}

fn has_quantity(text: &str) -> bool {
    text.chars().any(|c| c.is_numeric() || "二三四五六七八九十百千两".contains(c))
        || crate::text::pieces(text).iter().any(|piece| is_quantity(&crate::text::word(piece.raw)))
}

/// Where the terms of the query stand in a text.
fn marks(text: &str, stored: &Stored, query: &Query) -> Vec<Mark> {
    let mut wanted: HashMap<&str, Vec<(usize, usize, f32)>> = HashMap::new();
    for (term, part, forms) in parts(query) {
        for (form, strength) in &forms.forms {
            wanted.entry(form).or_default().push((term, part, *strength));
        }
    }
    let mut marks = Vec::new();
    for token in tokens(text, stored.language) {
        for &(term, part, strength) in wanted.get(token.text.as_str()).into_iter().flatten() {
            marks.push(Mark { term, part, strength, position: token.position, start: token.start });
        }
    }
    marks
}

fn parts(query: &Query) -> impl Iterator<Item = (usize, usize, &Part)> {
    query
        .terms
        .iter()
        .enumerate()
        .flat_map(|(at, term)| term.parts.iter().enumerate().map(move |(nth, p)| (at, nth, p)))
}

/// How strongly each term stands in a text: a compound counts little unless all its parts are there, a pair of
/// characters nothing.
fn strengths(marks: &[Mark], query: &Query) -> Vec<f32> {
    let strength = |(at, term): (usize, &Term)| {
        let best = |part: usize| {
            let of_part = marks.iter().filter(|mark| mark.term == at && mark.part == part);
            of_part.map(|mark| mark.strength).fold(0.0, f32::max)
        };
        let each = (0..term.parts.len()).map(best);
        if term.run.is_some() {
            return each.fold(1.0, f32::min);
        }
        let share = each.sum::<f32>() / term.parts.len() as f32;
        if term.parts.len() > 1 { share * share } else { share }
    };
    query.terms.iter().enumerate().map(strength).collect()
}

/// The share of neighbouring terms of the question that are also neighbours in the passage.
fn neighbours(marks: &[Mark]) -> f32 {
    let close =
        |a: &Mark, b: &Mark| b.term == a.term + 1 && (1..=3).contains(&b.position.saturating_sub(a.position));
    let mut pairs: Vec<usize> = Vec::new();
    for a in marks {
        if marks.iter().any(|b| close(a, b)) && !pairs.contains(&a.term) {
            pairs.push(a.term);
        }
    }
    pairs.len() as f32 / (pairs.len() as f32 + 3.0)
}
