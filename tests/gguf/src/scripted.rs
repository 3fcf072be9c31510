//! A model that says what a script says: one reply after the other, whatever it is asked.
//!
//! Its template ends with a token that names the step (as many assistant messages as there are), and each token's output
//! row is the embedding of the one before it, so that the reply follows from that token alone. Any engine that runs
//! GGUF files plays it, with its own sampler, grammar and parser of calls.
//! Invariant: no network, no Python; the same script gives the same bytes. A reply comes in several tokens.

use std::collections::BTreeSet;

use crate::file::{Array, File, Value};
use crate::model::{CHATML_TOOLS, Recipe, SPECIAL_TOKENS, byte_letter};

/// The token that ends a message.
const END: usize = 258;
/// Far above all other chances.
const SURE: f32 = 100.0;

/// The model that says these, one in each step; the last one from then on.
///
/// # Panics
/// When there is no reply at all: a mistake in the test.
pub fn scripted(replies: &[&str]) -> File {
    assert!(!replies.is_empty(), "a script has a reply");
    let mut taken: BTreeSet<String> = SPECIAL_TOKENS.iter().map(|token| (*token).to_owned()).collect();
    let pieces: Vec<Vec<String>> = replies.iter().map(|reply| cut(reply, &mut taken)).collect();
    let starts: Vec<String> = (0..replies.len()).map(|step| format!("<|step-{step}|>")).collect();
    let texts: Vec<String> = pieces.iter().flatten().map(|piece| spelled(piece)).collect();
    let first_text = 256 + SPECIAL_TOKENS.len() + starts.len();
    let chain_length = starts.len() + texts.len();
    let recipe = Recipe {
        template: Some(template(replies.len())),
        // Every byte is a token; what tools return is long.
        context: 131_072,
        blocks: 1,
        width: u32::try_from(chain_length.next_multiple_of(64)).expect("a short script"),
        more_tokens: [starts, texts].concat(),
        ..Recipe::default()
    };
    let mut file = recipe.file();
    file.set("general.name", Value::Str("Scripted".to_owned()));
    say_as_text(&mut file, first_text);
    for part in ["attn_output", "ffn_down"] {
        // What a token is goes through unchanged.
        file.tensor(&format!("blk.0.{part}.weight")).data.fill(0.0);
    }
    chain(&mut file, &pieces, recipe.width as usize);
    file
}

/// Into words, so that a reply is streamed. No two tokens of a vocabulary may be the same, so that words join until they
/// are nobody else's.
///
/// # Panics
/// When a reply is a word that stands alone elsewhere: a mistake in the test.
fn cut(reply: &str, taken: &mut BTreeSet<String>) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut text = String::new();
    for word in reply.split_inclusive(' ') {
        text.push_str(word);
        // The bytes are tokens, too.
        if text.len() > 1 && taken.insert(text.clone()) {
            pieces.push(std::mem::take(&mut text));
        }
    }
    while !text.is_empty() {
        let before = pieces.pop().expect("no reply is a word of another one");
        taken.remove(&before);
        text.insert_str(0, &before);
        if taken.insert(text.clone()) {
            pieces.push(std::mem::take(&mut text));
        }
    }
    pieces
}

/// In the letters of the vocabulary.
fn spelled(text: &str) -> String {
    text.bytes().map(byte_letter).collect()
}

/// The tokens from this one on are plain text, not marks.
fn say_as_text(file: &mut File, first: usize) {
    let kinds = file.metadata.iter_mut().find(|(name, _)| name == "tokenizer.ggml.token_type");
    if let Some((_, Value::Array(Array::I32(kinds)))) = kinds {
        kinds[first..].fill(1);
    }
}

/// Each token of the script has an axis of its own; the output row of the next one lies on it.
fn chain(file: &mut File, pieces: &[Vec<String>], width: usize) {
    let first_start = 256 + SPECIAL_TOKENS.len();
    let first_text = first_start + pieces.len();
    let axis = |token: usize| token - first_start;
    let mut links = Vec::new();
    let mut next = first_text;
    for (step, piece) in pieces.iter().enumerate() {
        let mut before = first_start + step;
        for token in next..next + piece.len() {
            links.push((before, token));
            before = token;
        }
        next += piece.len();
        links.push((before, END));
    }
    let embeddings = &mut file.tensor("token_embd.weight").data;
    for token in first_start..next {
        let row = &mut embeddings[token * width..(token + 1) * width];
        row.fill(0.0);
        row[axis(token)] = 1.0;
    }
    let outputs = &mut file.tensor("output.weight").data;
    outputs.fill(0.0);
    for (before, after) in links {
        outputs[after * width + axis(before)] = SURE;
    }
}

/// Ends with the token of the step.
fn template(steps: usize) -> String {
    let last = steps - 1;
    format!(
        "{CHATML_TOOLS}{{%- if add_generation_prompt %}}{{%- set said = namespace(count=0) %}}\
         {{%- for message in messages %}}{{%- if message.role == 'assistant' %}}\
         {{%- set said.count = said.count + 1 %}}{{%- endif %}}{{%- endfor %}}\
         {{%- if said.count > {last} %}}{{%- set said.count = {last} %}}{{%- endif %}}\
         {{{{- '<|step-' ~ said.count ~ '|>' }}}}{{%- endif %}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_the_same() {
        let mut taken = BTreeSet::new();
        assert_eq!(cut("a b cc", &mut taken), ["a ", "b ", "cc"]);
        assert_eq!(cut("a b dd", &mut taken), ["a b ", "dd"]);
        assert_eq!(cut("b cc", &mut taken), ["b cc"]);
    }

    #[test]
    fn every_token_of_the_script_has_one_successor() {
        let mut file = scripted(&["one two", "three"]);
        let (start, width) = (256 + SPECIAL_TOKENS.len(), 64);
        let outputs = file.tensor("output.weight").data.clone();
        let after = |token: usize| {
            let rows = 0..outputs.len() / width;
            rows.filter(|row| outputs[row * width + token - start] > 0.0).collect::<Vec<_>>()
        };
        // Two starts, then the words.
        assert_eq!(after(start), [start + 2]);
        assert_eq!(after(start + 2), [start + 3]);
        assert_eq!(after(start + 3), [END]);
        assert_eq!(after(start + 1), [start + 4]);
        assert_eq!(after(start + 4), [END]);
    }
}
