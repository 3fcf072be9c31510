//! Whether a header can be that of a model that chats.
//!
//! Invariant: only what llama.cpp itself requires, or what no real model is; it must not refuse a file that runs.

use std::collections::HashSet;

use super::fault::FileFault;
use super::read::{Array, Header, Value};

/// llama.cpp's `LLAMA_MAX_LAYERS`; more aborts.
const MOST_BLOCKS: i128 = 512;
/// llama.cpp's `LLAMA_MAX_EXPERTS`; more aborts.
const MOST_EXPERTS: i128 = 1024;
/// The longest real context is 10 million tokens.
const LONGEST_CONTEXT: i128 = 1 << 28;
const WIDEST: i128 = 1 << 20;

impl Header {
    /// Checks the header of a model that is to be loaded.
    pub(super) fn check(&self) -> Result<(), FileFault> {
        let architecture = self.text("general.architecture")?;
        self.check_purpose(architecture)?;
        let prefix = format!("{architecture}.");
        if !self.metadata.keys().any(|key| key.starts_with(&prefix)) {
            return Err(implausible(
                "general.architecture",
                architecture,
                "but nothing in the header belongs to that",
            ));
        }
        self.check_number(&format!("{architecture}.block_count"), 1..=MOST_BLOCKS, "not 1 to 512 layers")?;
        self.check_number(&format!("{architecture}.embedding_length"), 1..=WIDEST, "not a sensible width")?;
        self.check_number(
            &format!("{architecture}.context_length"),
            1..=LONGEST_CONTEXT,
            "not a sensible context",
        )?;
        self.check_optional(&format!("{architecture}.expert_count"), 0..=MOST_EXPERTS, "too many experts")?;
        self.check_optional(&format!("{architecture}.feed_forward_length"), 0..=1 << 24, "too wide")?;
        self.check_heads(architecture)?;
        self.check_rope(architecture)?;
        self.check_vocabulary()?;
        self.check_template()
    }

    fn check_purpose(&self, architecture: &str) -> Result<(), FileFault> {
        let unsuitable = |what: &str| Err(FileFault::Unsuitable(what.to_owned()));
        if architecture == "clip" || self.str("general.type") == Some("mmproj") {
            return unsuitable("this is the image part of a model; choose the language model beside it");
        }
        if self.str("general.type") == Some("adapter") {
            return unsuitable("this is an adapter (LoRA), not a whole model");
        }
        match self.int("split.no") {
            Some(part) if part > 0 => {
                unsuitable("this is a later part of a split model; choose its first part")
            }
            Some(_) | None if self.tensors.is_empty() => unsuitable("the file holds no weights"),
            Some(_) | None => Ok(()),
        }
    }

    fn check_heads(&self, architecture: &str) -> Result<(), FileFault> {
        let key = format!("{architecture}.attention.head_count");
        // Models without attention say 0.
        if !self.tensors.iter().any(|tensor| tensor.name.ends_with(".attn_q.weight")) {
            return Ok(());
        }
        self.check_number(&key, 1..=WIDEST, "but the model has attention")?;
        self.check_optional(&format!("{key}_kv"), 1..=WIDEST, "but the model has attention")
    }

    fn check_rope(&self, architecture: &str) -> Result<(), FileFault> {
        let key = format!("{architecture}.rope.scaling.type");
        match self.str(&key) {
            None | Some("none" | "linear" | "yarn" | "longrope") => Ok(()),
            Some(other) => Err(implausible(&key, other, "which llama.cpp does not know")),
        }
    }

    fn check_vocabulary(&self) -> Result<(), FileFault> {
        let model = self.text("tokenizer.ggml.model")?;
        if model == "none" || model == "no_vocab" {
            return Err(FileFault::Unsuitable("the file holds no vocabulary".to_owned()));
        }
        let Some(Value::Array(Array::Str(tokens))) = self.metadata.get("tokenizer.ggml.tokens") else {
            return Err(FileFault::Missing("tokenizer.ggml.tokens".to_owned()));
        };
        if tokens.is_empty() {
            return Err(FileFault::Unsuitable("the vocabulary is empty".to_owned()));
        }
        let mut seen = HashSet::with_capacity(tokens.len());
        if let Some(twice) = tokens.iter().find(|token| !seen.insert(token.as_slice())) {
            let text = String::from_utf8_lossy(twice);
            return Err(FileFault::Damaged(format!("the token `{text}` stands in the vocabulary twice")));
        }
        self.check_rows(tokens.len() as u64)
    }

    /// Every token needs a row in the embeddings.
    fn check_rows(&self, tokens: u64) -> Result<(), FileFault> {
        let embeddings = self.tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
        match embeddings {
            Some(tensor) if tensor.shape[1] != tokens => Err(FileFault::Damaged(format!(
                "the vocabulary has {tokens} tokens but the embeddings {} rows",
                tensor.shape[1]
            ))),
            Some(_) | None => Ok(()),
        }
    }

    fn check_template(&self) -> Result<(), FileFault> {
        match self.metadata.get("tokenizer.chat_template") {
            None | Some(Value::Str(_)) => Ok(()),
            Some(_) => Err(FileFault::Damaged("the chat template is not text".to_owned())),
        }
    }

    fn check_number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<i128>,
        why: &'static str,
    ) -> Result<(), FileFault> {
        if !self.metadata.contains_key(key) {
            return Err(FileFault::Missing(key.to_owned()));
        }
        self.check_optional(key, range, why)
    }

    fn check_optional(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<i128>,
        why: &'static str,
    ) -> Result<(), FileFault> {
        match self.metadata.get(key) {
            None => Ok(()),
            Some(Value::Int(value)) if range.contains(value) => Ok(()),
            Some(Value::Int(value)) => Err(implausible(key, &value.to_string(), why)),
            // One number for each layer; some layers may have none.
            Some(Value::Array(Array::Int(values))) => {
                match values.iter().find(|value| !(0..=*range.end()).contains(&i128::from(**value))) {
                    None => Ok(()),
                    Some(value) => Err(implausible(key, &value.to_string(), why)),
                }
            }
            Some(Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Array(_)) => {
                Err(implausible(key, "not a whole number", why))
            }
        }
    }

    /// A required text.
    pub(super) fn text(&self, key: &str) -> Result<&str, FileFault> {
        self.str(key).ok_or_else(|| FileFault::Missing(key.to_owned()))
    }

    /// A text, when there is one.
    pub(super) fn str(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key) {
            Some(Value::Str(text)) => Some(text),
            Some(Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Array(_)) | None => None,
        }
    }

    /// An integer, when there is one; of an array its largest.
    pub(super) fn int(&self, key: &str) -> Option<i128> {
        match self.metadata.get(key) {
            Some(Value::Int(int)) => Some(*int),
            Some(Value::Array(Array::Int(values))) => values.iter().copied().max().map(i128::from),
            Some(Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Array(_)) | None => None,
        }
    }
}

fn implausible(key: &str, value: &str, why: &'static str) -> FileFault {
    FileFault::Implausible { key: key.to_owned(), value: value.to_owned(), why }
}
