//! A loaded model with its cache: evaluates prompts and writes replies.
//!
//! Invariant: whatever happens to one reply, the slots say what the cache holds.

use std::time::{Duration, Instant};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::constraint::{sampler_of, with_detail_taken};
use super::guess::Pace;
use super::output::{Abort, Output};
use super::pieces::PieceStream;
use super::prompt::{Force, Prompt, Renderer, json_force};
use super::reply::{Reply, Written};
use super::slots::Slots;
use super::text::TextStream;
use super::threads::Threads;
use super::verbatim::{Verbatim, Vocabulary};
use crate::native::{Context, ContextOptions, DecodeError, NativeError, Row};
use crate::protocol::{Done, Event, Finish, Generate, Load, Misbehaviour, WorkerError, WorkerUsage};
use crate::speed::SpeedOptions;

/// Tokens between two looks at the abort flag.
pub(crate) const CHUNK: u32 = 64;
/// Conversations that are kept in the cache side by side.
pub(crate) const SEQUENCES: u32 = 4;
/// A shared beginning shorter than this is not worth the copy.
const WORTH_SHARING: usize = 16;
/// A loaded model with its cache.
pub(super) struct Session<'model> {
    pub(super) model: &'model LlamaModel,
    pub(super) renderer: Renderer<'model>,
    pub(super) context: Context<'model>,
    pub(super) slots: Slots,
    pub(super) abort: &'static Abort,
    /// What guessing costs and brings.
    pub(super) pace: Pace,
    /// Whether the cache may hold guesses beyond what its slot counts.
    pub(super) unsure: bool,
    /// There when the model asks to be held to what it has read.
    vocabulary: Option<Vocabulary>,
    /// How the next reply is to go wrong, in tests.
    pub(super) misbehaviour: Option<Misbehaviour>,
}

impl<'model> Session<'model> {
    pub(super) fn new(
        model: &'model LlamaModel,
        load: &Load,
        abort: &'static Abort,
    ) -> Result<Self, NativeError> {
        check(model, &load.speed)?;
        let machine = Threads::chosen(&load.speed, model.size());
        let options = ContextOptions {
            tokens: load.context,
            batch: CHUNK,
            sequences: SEQUENCES,
            threads: machine.threads,
            batch_threads: machine.batch_threads,
            keys: load.speed.keys,
            values: load.speed.values,
            flash_attention: load.speed.attention(),
        };
        Ok(Self {
            model,
            renderer: Renderer::new(model, load.format.template.as_deref())?,
            context: Context::new(model, options, abort.flag())?,
            slots: Slots::new(SEQUENCES),
            abort,
            pace: Pace::new(load.speed.lookup, load.speed.guesses),
            unsure: false,
            vocabulary: Vocabulary::of_model(model),
            misbehaviour: None,
        })
    }

    /// Tokens of context of one conversation.
    pub(super) fn context_size(&self) -> u32 {
        self.context.size()
    }

    /// Tokens of a text that a user typed, and how each reads.
    pub(super) fn typed_tokens(&self, text: &str) -> Vec<(i32, String)> {
        let vocab = self.model.vocab();
        let read = |token| String::from_utf8_lossy(&vocab.token_to_piece(token, true, None)).into_owned();
        self.renderer.tokenize_typed(text).into_iter().map(|token| (token.0, read(token))).collect()
    }

    /// Streams one reply.
    pub(super) fn reply(&mut self, request: &Generate, output: &Output) -> Result<Done, WorkerError> {
        let index = self.slots.of(&request.conversation);
        let (request, mut prompt) = with_detail_taken(&self.renderer, request, &self.slots[index])?;
        let request = &request;
        let mut usage = WorkerUsage { prompt: count(prompt.tokens.len()), ..WorkerUsage::default() };
        if prompt.tokens.is_empty() {
            return Err(WorkerError::Refused { reason: "the conversation is empty".to_owned() });
        }
        if usage.prompt >= self.context_size() {
            return Err(WorkerError::ContextFull {
                needed: usage.prompt + 1,
                available: self.context_size(),
            });
        }
        let (mut reused, mut result) = (None, self.attempt(index, request, &prompt, &mut usage, output)?);
        if result.finish == Finish::Stop && !result.called && matches!(prompt.force, Some(Force::Rule(_))) {
            // The template's own parser does not see the call that its grammar led to.
            reused.get_or_insert(usage.reused);
            prompt.force = Some(json_force(request)?);
            result = self.attempt(index, request, &prompt, &mut usage, output)?;
        }
        usage.reused = reused.unwrap_or(usage.reused);
        let Written { finish, raw, unread, .. } = result;
        Ok(Done { job: request.job, finish, usage, raw, unread })
    }

    /// Evaluates the prompt and writes once.
    fn attempt(
        &mut self,
        index: usize,
        request: &Generate,
        prompt: &Prompt,
        usage: &mut WorkerUsage,
        output: &Output,
    ) -> Result<Written, WorkerError> {
        let started = Instant::now();
        let sampler = sampler_of(self.model, request, prompt)?;
        usage.reused = count(self.prepare(index, prompt.tokens.clone()));
        let evaluated = self.evaluate(index, request.job, *usage, output);
        usage.prompt_ms += millis(started.elapsed());
        if !evaluated? {
            return Ok(Written::cancelled());
        }
        let verbatim = self.vocabulary.as_ref().map(|words| words.hold(&request.messages));
        let guesses = self.guesses(index);
        let mut reply = Reply {
            session: self,
            sampler,
            verbatim,
            index,
            prompt,
            request,
            output,
            text: TextStream::new(prompt.stops.iter().cloned()),
            pieces: PieceStream::default(),
            next_parse: Instant::now(),
            guesses,
        };
        let began = Instant::now();
        let finish = reply.run(usage);
        usage.generation_ms += millis(began.elapsed());
        reply.close(finish?)
    }

    /// Makes the cache hold the beginning of these tokens and nothing else; gives its length.
    fn prepare(&mut self, index: usize, tokens: Vec<LlamaToken>) -> usize {
        let mut kept = self.slots[index].reusable(&tokens);
        if kept < self.slots[index].cached && !self.context.forget_from(sequence(index), kept) {
            // Recurrent models cannot forget a part.
            kept = 0;
        }
        if kept == 0 {
            self.context.forget(sequence(index));
            kept = self.share(index, &tokens);
        }
        self.slots[index].begin(tokens, kept);
        kept
    }

    /// Takes a shared beginning (instructions, tools) over from another conversation.
    fn share(&mut self, index: usize, tokens: &[LlamaToken]) -> usize {
        if self.model.is_recurrent() || self.model.is_hybrid() {
            return 0;
        }
        match self.slots.best_donor(index, tokens) {
            Some((donor, shared)) if shared >= WORTH_SHARING => {
                self.context.share_prefix(sequence(donor), sequence(index), shared);
                shared
            }
            Some(_) | None => 0,
        }
    }

    /// Evaluates what is not cached yet. False when it was cancelled.
    fn evaluate(
        &mut self,
        index: usize,
        job: u64,
        usage: WorkerUsage,
        output: &Output,
    ) -> Result<bool, WorkerError> {
        loop {
            let done = count(self.slots[index].cached);
            output.send(&Event::Prompt { job, done, total: usage.prompt, reused: usage.reused });
            if self.slots[index].cached == self.slots[index].tokens.len() {
                return Ok(true);
            }
            if !self.step(index)? {
                return Ok(false);
            }
        }
    }

    /// Evaluates the next chunk of a slot. False when it was cancelled.
    pub(super) fn step(&mut self, index: usize) -> Result<bool, WorkerError> {
        loop {
            if self.abort.is_set() {
                return Ok(false);
            }
            let slot = &self.slots[index];
            let start = slot.cached;
            let end = slot.tokens.len().min(start + CHUNK as usize);
            let began = Instant::now();
            match self.context.decode(sequence(index), start, &slot.tokens[start..end]) {
                Ok(()) => {
                    self.pace.took(end - start, began.elapsed());
                    self.slots[index].cached = end;
                    return Ok(true);
                }
                Err(DecodeError::Full) => self.make_room(index)?,
                Err(DecodeError::Aborted) => {
                    self.undo(index, start);
                    return Ok(false);
                }
                Err(error @ DecodeError::Failed(_)) => {
                    self.undo(index, 0);
                    return Err(WorkerError::Compute { reason: error.to_string() });
                }
            }
        }
    }

    fn make_room(&mut self, index: usize) -> Result<(), WorkerError> {
        let Some(victim) = self.slots.oldest_filled(index) else {
            let needed = count(self.slots[index].tokens.len());
            return Err(WorkerError::ContextFull { needed, available: self.context_size() });
        };
        self.context.forget(sequence(victim));
        self.slots.clear(victim);
        Ok(())
    }

    /// Makes unlikely what may not follow.
    pub(super) fn hold(&mut self, row: Row, verbatim: Option<&Verbatim>) {
        if let (Some(verbatim), Some(vocabulary)) = (verbatim, &self.vocabulary) {
            vocabulary.hold_back(verbatim, self.context.logits_mut(row, vocabulary.len()));
        }
    }

    /// Part of an aborted chunk may be in the cache.
    pub(super) fn undo(&mut self, index: usize, start: usize) {
        let kept = if self.context.forget_from(sequence(index), start) {
            start
        } else {
            self.context.forget(sequence(index));
            0
        };
        self.slots[index].cached = kept;
    }
}

/// Refuses settings of the cache that this model cannot have, before llama.cpp does so without a reason.
fn check(model: &LlamaModel, speed: &SpeedOptions) -> Result<(), NativeError> {
    let architecture = model.meta_val_str("general.architecture").unwrap_or_default();
    let width = u32::try_from(model.n_embd()).unwrap_or(0);
    let usual = width.checked_div(model.n_head()).unwrap_or(0);
    let head = |part: &str| {
        let length = model.meta_val_str(&format!("{architecture}.attention.{part}_length"));
        length.ok().and_then(|length| length.parse().ok()).unwrap_or(usual)
    };
    speed.check(head("key"), head("value")).map_err(|error| NativeError(error.to_string()))
}

pub(super) fn sequence(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(0)
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
