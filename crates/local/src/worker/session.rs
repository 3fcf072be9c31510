//! A loaded model with its cache: evaluates prompts and writes replies.
//!
//! Invariant: whatever happens to one reply, the slots say what the cache holds.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llama_cpp_2::model::LlamaModel;

use super::asked::Asked;
use super::backends;
use super::calls::json_force;
use super::cells::{is_cell, position};
use super::constraint::{held_prompt, sampler_of};
use super::guess::Pace;
use super::guesser::Guesser;
use super::images::Images;
use super::keep::Keep;
use super::output::{Abort, Output};
use super::own::{self, Own};
use super::pieces::PieceStream;
use super::prompt::{Force, Prompt, Renderer};
use super::reply::{Reply, Written};
use super::schemas::Detail;
use super::sight::batch_for;
use super::slots::Slots;
use super::text::TextStream;
use super::threads::Threads;
use super::verbatim::{Verbatim, Vocabulary};
use crate::gguf::read_info;
use crate::native::{Context, ContextOptions, DecodeError, NativeError, Purpose, Row, Sampler, Sight, Tile};
use crate::parse::names;
use crate::protocol::{Done, Event, Finish, Generate, Load, Misbehaviour, WorkerError, WorkerUsage};

/// Tokens of a long prompt that are evaluated at once, after which its progress is told.
pub(crate) const CHUNK: u32 = 64;
/// Tokens that are evaluated at once at most. What is left of a prompt is evaluated in one go where it can be: a few tokens
/// cost nearly as much as many, because the whole model is read for them too.
pub(crate) const BATCH: u32 = 2 * CHUNK;
/// Conversations that are kept in the cache side by side, and a sequence for side jobs.
pub(crate) const SEQUENCES: u32 = 5;

/// A loaded model with its cache.
pub(super) struct Session<'model> {
    pub(super) model: &'model LlamaModel,
    pub(super) renderer: Renderer<'model>,
    pub(super) context: Context<'model>,
    /// How it was made.
    pub(super) options: ContextOptions,
    pub(super) slots: Slots,
    /// What is kept beside the cache.
    pub(super) keep: Keep,
    /// The last prompts, to say where a new one differs.
    pub(super) asked: Asked,
    pub(super) abort: &'static Abort,
    /// What guessing costs and brings.
    pub(super) pace: Pace,
    /// Who guesses where the conversation gives nothing.
    pub(super) guesser: Guesser<'model>,
    /// Whether the cache may hold guesses beyond what its slot counts.
    pub(super) unsure: bool,
    /// There when the model asks to be held to what it has read.
    vocabulary: Option<Vocabulary>,
    /// How the next reply is to go wrong, in tests.
    pub(super) misbehaviour: Option<Misbehaviour>,
    /// What it wants to write.
    #[cfg(test)]
    pub(super) script: Option<super::scripted::Script>,
}

impl<'model> Session<'model> {
    pub(super) fn new(
        model: &'model LlamaModel,
        sight: Option<Sight<'model>>,
        load: &Load,
        abort: &'static Abort,
        output: &Arc<Output>,
    ) -> Result<Self, NativeError> {
        let machine = Threads::chosen(&load.speed, model.size());
        let options = ContextOptions {
            tokens: load.context,
            batch: batch_for(sight.as_ref()),
            sequences: SEQUENCES,
            threads: machine.threads,
            batch_threads: machine.batch_threads,
            keys: load.speed.keys,
            values: load.speed.values,
            flash_attention: load.speed.attention(),
            tile: tile_of(model, &load.path),
            purpose: Purpose::Text,
            rollback: if load.speed.mtp { own::GUESSES } else { 0 },
        };
        let renderer = Renderer::new(model, load.format.template.as_deref(), Images::new(sight))?;
        let mut context = Context::new(model, options, abort.flag())?;
        let guesser = if load.speed.mtp {
            context.keep_rows();
            Guesser::Own(Own::new(model, options, abort.flag())?)
        } else {
            Guesser::None
        };
        let keep = Keep::new(load, &renderer.templates.source, model.n_vocab(), context.size(), output);
        Ok(Self {
            model,
            renderer,
            context,
            options,
            slots: Slots::new(SEQUENCES),
            keep,
            asked: Asked::default(),
            abort,
            pace: Pace::new(load.speed.lookup, load.speed.guesses),
            guesser,
            unsure: false,
            vocabulary: Vocabulary::of_model(model),
            misbehaviour: None,
            #[cfg(test)]
            script: None,
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

    /// Tokens of the prompt of a request, as it would be rendered now.
    pub(super) fn count_prompt(&mut self, request: &Generate) -> Result<u32, WorkerError> {
        self.renderer.images.take_in(&request.images)?;
        let prompt = self.renderer.prompt(request, &self.teller(request), Detail::Given)?;
        Ok(count(prompt.tokens.len()))
    }

    /// Streams one reply.
    pub(super) fn reply(&mut self, request: &Generate, output: &Output) -> Result<Done, WorkerError> {
        self.renderer.images.take_in(&request.images)?;
        let teller = self.teller(request);
        let (mut prompt, sampler) = held_prompt(&self.renderer, request, &teller)?;
        let images = prompt.tokens.iter().filter(|token| is_cell(**token)).count();
        let mut usage = WorkerUsage {
            prompt: count(prompt.tokens.len()),
            images: count(images),
            ..WorkerUsage::default()
        };
        if prompt.tokens.is_empty() {
            return Err(WorkerError::Refused { reason: "the conversation is empty".to_owned() });
        }
        if prompt.tokens.last().copied().is_some_and(is_cell) {
            let reason = "the model's chat template writes nothing behind an image".to_owned();
            return Err(WorkerError::Refused { reason });
        }
        if usage.prompt >= self.context_size() {
            return Err(WorkerError::ContextFull {
                needed: usage.prompt + 1,
                available: self.context_size(),
            });
        }
        let changed_at = self.asked.compare(request, &prompt.base);
        let (mut reused, mut result) = (None, self.attempt(request, &prompt, sampler, &mut usage, output)?);
        if result.finish == Finish::Stop && !result.called && matches!(prompt.force, Some(Force::Rule(_))) {
            // The template's own parser does not see the call that its grammar led to.
            reused.get_or_insert(usage.reused);
            json_force(&mut prompt, request)?;
            let sampler = sampler_of(self.model, request, &prompt)?;
            result = self.attempt(request, &prompt, sampler, &mut usage, output)?;
        }
        usage.reused = reused.unwrap_or(usage.reused);
        let Written { finish, raw, unread, let_go, .. } = result;
        if let_go {
            prompt
                .notes
                .push("a call was begun that is none of a tool; the rest was written freely".to_owned());
        }
        Ok(Done {
            job: request.job,
            finish,
            usage,
            raw,
            unread,
            open: prompt.open,
            notes: prompt.notes,
            changed_at,
        })
    }

    /// Evaluates the prompt and writes once.
    fn attempt(
        &mut self,
        request: &Generate,
        prompt: &Prompt,
        sampler: Sampler,
        usage: &mut WorkerUsage,
        output: &Output,
    ) -> Result<Written, WorkerError> {
        let started = Instant::now();
        let index = self.settle(request, prompt);
        usage.reused = count(self.slots[index].cached);
        let evaluated = self.evaluate(index, request, prompt, *usage, output);
        usage.prompt_ms += millis(started.elapsed());
        if !evaluated? {
            return Ok(Written::cancelled());
        }
        let verbatim = self.vocabulary.as_ref().map(|words| words.hold(&request.messages, &request.tools));
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
            pieces: PieceStream::new(names(&request.tools), prompt.thinking.clone()),
            next_parse: Instant::now(),
            let_go: false,
            guesses,
        };
        let began = Instant::now();
        let finish = reply.run(usage);
        usage.generation_ms += millis(began.elapsed());
        reply.close(finish?)
    }

    /// Evaluates what is not cached yet. False when it was cancelled.
    fn evaluate(
        &mut self,
        index: usize,
        request: &Generate,
        prompt: &Prompt,
        usage: WorkerUsage,
        output: &Output,
    ) -> Result<bool, WorkerError> {
        let pauses = if self.rewinds() { Vec::new() } else { self.renderer.pauses(request, prompt) };
        self.slots[index].drop_draft();
        let job = request.job;
        self.read_all(index, &pauses, |done| {
            output.send(&Event::Prompt { job, done, total: usage.prompt, reused: usage.reused });
        })
    }

    /// Evaluates all of a slot, and keeps checkpoints at these places. False when it was cancelled.
    pub(super) fn read_all(
        &mut self,
        index: usize,
        pauses: &[usize],
        mut told: impl FnMut(u32),
    ) -> Result<bool, WorkerError> {
        loop {
            let done = self.slots[index].cached;
            told(count(done));
            if pauses.contains(&done) {
                self.checkpoint(index);
            }
            if done == self.slots[index].tokens.len() {
                return Ok(true);
            }
            let pause = pauses.iter().copied().find(|pause| *pause > done);
            if !self.step_to(index, pause.unwrap_or(usize::MAX))? {
                return Ok(false);
            }
        }
    }

    /// Evaluates the next chunk of a slot. False when it was cancelled.
    pub(super) fn step(&mut self, index: usize) -> Result<bool, WorkerError> {
        self.step_to(index, usize::MAX)
    }

    /// The same, but no farther than to this token.
    pub(super) fn step_to(&mut self, index: usize, most: usize) -> Result<bool, WorkerError> {
        loop {
            if self.abort.is_set() {
                return Ok(false);
            }
            let slot = &self.slots[index];
            let start = slot.cached;
            if slot.tokens.get(start).copied().is_some_and(is_cell) {
                return self.look(index);
            }
            let left = slot.tokens.len() - start;
            let step = if left <= BATCH as usize { left } else { CHUNK as usize };
            let end = (start + step).min(most);
            let image = slot.tokens[start..end].iter().position(|token| is_cell(*token));
            let end = image.map_or(end, |place| start + place);
            let began = Instant::now();
            let place = position(&slot.tokens[..start]);
            match self.context.decode(sequence(index), place, &slot.tokens[start..end]) {
                Ok(()) => {
                    self.pace.took(end - start, began.elapsed());
                    if self.guesser.own().is_some() {
                        let batch = self.slots[index].tokens[start..end].to_vec();
                        self.tell_own(index, start, &batch);
                    }
                    self.slots[index].cached = end;
                    return Ok(true);
                }
                Err(error) if self.goes_on(index, start, &error)? => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// What becomes of an evaluation that failed: true when there is room now to try again, false when it was
    /// cancelled.
    fn goes_on(&mut self, index: usize, start: usize, error: &DecodeError) -> Result<bool, WorkerError> {
        match error {
            DecodeError::Full => self.make_room(index).map(|()| true),
            DecodeError::Aborted => {
                self.undo(index, start);
                Ok(false)
            }
            DecodeError::Failed(_) => {
                self.undo(index, 0);
                Err(WorkerError::Compute { reason: error.to_string() })
            }
        }
    }

    /// Reads the part of an image that comes next. False when it was cancelled.
    fn look(&mut self, index: usize) -> Result<bool, WorkerError> {
        let slot = &self.slots[index];
        let start = slot.cached;
        let place = position(&slot.tokens[..start]);
        let Some(look) = self.renderer.images.look(&slot.tokens[start..])? else { return Ok(false) };
        loop {
            match self.renderer.images.put(&look, &mut self.context, sequence(index), place) {
                Ok(()) => {
                    self.slots[index].cached = start + look.places;
                    return Ok(true);
                }
                Err(error) => {
                    // A part of the image may stand already.
                    self.undo(index, start);
                    if !self.goes_on(index, start, &error)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Makes unlikely what may not follow.
    pub(super) fn hold(&mut self, row: Row, verbatim: Option<&Verbatim>) {
        if let (Some(verbatim), Some(vocabulary)) = (verbatim, &self.vocabulary) {
            vocabulary.hold_back(verbatim, self.context.logits_mut(row, vocabulary.len()));
        }
        #[cfg(test)]
        if let Some(script) = &self.script {
            let words = usize::try_from(self.model.n_vocab()).unwrap();
            script.favour(self.context.logits_mut(row, words));
        }
    }
}

/// How the kernels divide the batches of a model. A model that cannot forget a part is never given more than was asked for.
fn tile_of(model: &LlamaModel, path: &Path) -> Tile {
    let forgets = !model.is_recurrent() && !model.is_hybrid();
    // SAFETY: a function without conditions.
    let on_processor = !unsafe { llama_cpp_sys_2::llama_supports_gpu_offload() };
    let shape = || read_info(path).map(|info| info.shape).unwrap_or_default();
    if forgets && on_processor && shape().is_tiled() {
        Tile::of_processor(backends::chosen())
    } else {
        Tile::None
    }
}

/// Refuses settings of the cache that this model cannot have, before llama.cpp does so without a reason.
pub(super) fn check(model: &LlamaModel, load: &Load) -> Result<(), WorkerError> {
    let speed = &load.speed;
    let architecture = model.meta_val_str("general.architecture").unwrap_or_default();
    let width = u32::try_from(model.n_embd()).unwrap_or(0);
    let usual = width.checked_div(model.n_head()).unwrap_or(0);
    let head = |part: &str| {
        let length = model.meta_val_str(&format!("{architecture}.attention.{part}_length"));
        length.ok().and_then(|length| length.parse().ok()).unwrap_or(usual)
    };
    let checked = speed.check(head("key"), head("value"));
    let checked = checked.and_then(|()| {
        if !speed.mtp {
            return Ok(());
        }
        // A file may say that it has the layer and lack its weights.
        let layers = read_info(&load.path).map_or(0, |info| info.shape.ahead.len());
        speed.check_ahead(&architecture, layers)
    });
    checked.map_err(|error| WorkerError::Refused { reason: error.to_string() })
}

pub(super) fn sequence(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(0)
}

pub(super) fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
