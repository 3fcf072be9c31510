//! A small model of the same vocabulary that guesses what the large one will say.
//!
//! It is asked where the conversation itself gives no guess. Invariant: as with every guess, only what is evaluated
//! together depends on it, never the text.

use std::sync::atomic::AtomicBool;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::loading::{load_file, with_log};
use super::session::CHUNK;
use super::slots::common_prefix;
use super::threads::Threads;
use super::trust::{Trust, likeliest};
use crate::native::{Context, ContextOptions, Purpose, Row, Tile};
use crate::protocol::{Load, WorkerError};

/// Tokens that are guessed at once.
const GUESSES: usize = 6;

/// The small model with its cache.
pub(super) struct Draft<'model> {
    context: Context<'model>,
    words: usize,
    /// What its cache holds.
    cached: Vec<LlamaToken>,
    trust: Trust,
}

/// Loads the file of the settings, when there is one, and sees that it fits the large model.
pub(super) fn load_draft(
    load: &Load,
    target: &LlamaModel,
    backend: &LlamaBackend,
) -> Result<Option<LlamaModel>, WorkerError> {
    let Some(path) = &load.speed.draft else { return Ok(None) };
    let refused = |reason: String| WorkerError::Refused {
        reason: format!("the draft model `{}` cannot be used: {reason}", path.display()),
    };
    crate::read_info(path).map_err(|error| refused(error.to_string()))?;
    let draft = load_file(path, load, backend).map_err(|error| refused(with_log(&error.to_string())))?;
    check(&draft, target).map_err(refused)?;
    Ok(Some(draft))
}

/// Guesses are tokens, so both models have to mean the same by each.
fn check(draft: &LlamaModel, target: &LlamaModel) -> Result<(), String> {
    if draft.is_recurrent() || draft.is_hybrid() {
        return Err("a recurrent model cannot take guesses back".to_owned());
    }
    let (ours, theirs) = (draft.n_vocab(), target.n_vocab());
    if ours != theirs {
        return Err(format!(
            "its vocabulary has {ours} tokens and that of the model {theirs}; take one of the same family"
        ));
    }
    let read = |model: &LlamaModel, token: i32| model.vocab().token_to_piece(LlamaToken(token), true, None);
    match (0..theirs).find(|token| read(draft, *token) != read(target, *token)) {
        None => Ok(()),
        Some(token) => {
            let word = |model| String::from_utf8_lossy(&read(model, token)).into_owned();
            Err(format!(
                "its token {token} is `{}` and that of the model `{}`; take one of the same family",
                word(draft),
                word(target)
            ))
        }
    }
}

impl<'model> Draft<'model> {
    pub(super) fn new(
        model: &'model LlamaModel,
        load: &Load,
        abort: &'static AtomicBool,
    ) -> Result<Self, WorkerError> {
        let machine = Threads::chosen(&load.speed, model.size());
        let options = ContextOptions {
            tokens: load.context,
            batch: CHUNK,
            sequences: 1,
            threads: machine.threads,
            batch_threads: machine.batch_threads,
            keys: None,
            values: None,
            flash_attention: load.speed.flash_attention,
            tile: Tile::None,
            purpose: Purpose::Text,
            rollback: 0,
        };
        let context = Context::new(model, options, abort)
            .map_err(|error| WorkerError::Load { reason: with_log(&error.to_string()) })?;
        let words = usize::try_from(model.n_vocab()).unwrap_or(0);
        Ok(Self { context, words, cached: Vec::new(), trust: Trust::new() })
    }

    /// What follows this text as the small model sees it; nothing while it pauses, or is not sure.
    pub(super) fn next(&mut self, text: &[LlamaToken], room: usize) -> Vec<LlamaToken> {
        if self.trust.pauses() {
            return Vec::new();
        }
        let mut out = Vec::new();
        // What goes wrong here (no room, a stop) costs a guess.
        if self.read(text) {
            while out.len() < room.min(GUESSES) {
                let Some(token) = likeliest(self.context.logits_mut(Row::Last, self.words)) else { break };
                out.push(token);
                if self.context.decode(0, self.cached.len(), &[token]).is_err() {
                    self.forget_from(self.cached.len());
                    break;
                }
                self.cached.push(token);
            }
        }
        out
    }

    /// So many of its guesses were right.
    pub(super) fn judge(&mut self, guessed: usize, right: usize) {
        self.trust.judge(guessed, right);
    }

    fn read(&mut self, text: &[LlamaToken]) -> bool {
        let common = common_prefix(&self.cached, text);
        // The last one is always read, for what it says of the next.
        self.forget_from(common.min(text.len().saturating_sub(1)));
        for chunk in text[self.cached.len()..].chunks(CHUNK as usize) {
            if self.context.decode(0, self.cached.len(), chunk).is_err() {
                self.forget_from(self.cached.len());
                return false;
            }
            self.cached.extend(chunk);
        }
        true
    }

    fn forget_from(&mut self, place: usize) {
        let kept = if self.context.forget_from(0, place) { place } else { 0 };
        if kept == 0 {
            self.context.forget(0);
        }
        self.cached.truncate(kept);
    }
}
