//! Ranks tools by how well they fit a question: BM25 over their names, descriptions and the names of their arguments.
//!
//! Invariant: pure and deterministic; equal scores keep the order of the tools.

use std::collections::HashMap;

use serde_json::Value;

use super::words::words;
use crate::tool::ToolSpec;

/// How soon further occurrences of a word count less (Robertson and Zaragoza 2009, the usual value).
const K1: f32 = 1.2;

/// How much a long description counts against a tool (same source).
const B: f32 = 0.75;

/// A word in the name says as much as this many in the description.
const NAME_WEIGHT: f32 = 3.0;

/// Arguments of a schema that are looked at.
const MAX_PROPERTIES: usize = 64;

/// Tools as they are compared with questions.
pub(super) struct Ranking {
    documents: Vec<Document>,
    /// How many tools have each word.
    found_in: HashMap<String, u32>,
    usual_length: f32,
}

impl Ranking {
    /// Of these tools.
    pub(super) fn of(tools: &[ToolSpec]) -> Self {
        let documents: Vec<Document> = tools.iter().map(Document::of).collect();
        let mut found_in: HashMap<String, u32> = HashMap::new();
        for word in documents.iter().flat_map(|document| document.weights.keys()) {
            *found_in.entry(word.clone()).or_default() += 1;
        }
        let length = documents.iter().map(|document| document.length).sum::<f32>();
        let usual_length = (length / (documents.len() as f32).max(1.0)).max(1.0);
        Self { documents, found_in, usual_length }
    }

    /// How well each tool fits, in the order of the tools; 0 when nothing does.
    pub(super) fn scores(&self, question: &[(String, f32)]) -> Vec<f32> {
        let count = self.documents.len() as f32;
        let score = |document: &Document| {
            let length = 1.0 - B + B * document.length / self.usual_length;
            let of_word = |(word, weight): &(String, f32)| {
                let Some(times) = document.weights.get(word) else { return 0.0 };
                let found = self.found_in.get(word.as_str()).copied().unwrap_or(0) as f32;
                let rarity = ((count - found + 0.5) / (found + 0.5) + 1.0).ln();
                weight * rarity * times * (K1 + 1.0) / (times + K1 * length)
            };
            question.iter().map(of_word).sum()
        };
        self.documents.iter().map(score).collect()
    }
}

/// The words of a question, each once, with how much they count.
pub(super) fn query(texts: impl IntoIterator<Item = (String, f32)>) -> Vec<(String, f32)> {
    let mut out: Vec<(String, f32)> = Vec::new();
    for (text, weight) in texts {
        for word in words(&text) {
            match out.iter_mut().find(|(known, _)| *known == word) {
                Some((_, known)) => *known = known.max(weight),
                None => out.push((word, weight)),
            }
        }
    }
    out
}

/// A tool as a bag of words.
struct Document {
    weights: HashMap<String, f32>,
    length: f32,
}

impl Document {
    fn of(spec: &ToolSpec) -> Self {
        let mut document = Self { weights: HashMap::new(), length: 0.0 };
        document.add(spec.name.as_str(), NAME_WEIGHT);
        document.add(spec.title.as_deref().unwrap_or_default(), 1.0);
        document.add(&spec.description, 1.0);
        let properties = spec.input_schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten().take(MAX_PROPERTIES) {
            document.add(name, 1.0);
            document.add(schema.get("description").and_then(Value::as_str).unwrap_or_default(), 0.5);
        }
        document
    }

    fn add(&mut self, text: &str, weight: f32) {
        for word in words(text) {
            *self.weights.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}
