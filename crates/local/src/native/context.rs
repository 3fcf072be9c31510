//! A context: the cache of keys and values for a few sequences, and evaluating tokens into it.

mod state;
mod tile;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;

use super::{NativeError, ffi, raw};
use crate::speed::{FlashAttention, KvType};
pub(crate) use state::Part;
pub(crate) use tile::Tile;

/// The size of a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextOptions {
    /// Tokens, all sequences together.
    pub(crate) tokens: u32,
    /// Tokens evaluated in one call at most.
    pub(crate) batch: u32,
    /// Sequences.
    pub(crate) sequences: u32,
    /// Threads that write.
    pub(crate) threads: u32,
    /// Threads that read prompts.
    pub(crate) batch_threads: u32,
    /// How keys are kept; llama.cpp's default when unset.
    pub(crate) keys: Option<KvType>,
    /// How values are kept; llama.cpp's default when unset.
    pub(crate) values: Option<KvType>,
    /// Whether attention is computed in one piece.
    pub(crate) flash_attention: FlashAttention,
    /// How the kernels divide a batch.
    pub(crate) tile: Tile,
    /// What is computed.
    pub(crate) purpose: Purpose,
    /// The last so many tokens of a sequence can be taken back also where there are recurrent layers, as far as llama.cpp
    /// can do that with this kind of model. Each costs one more state of every sequence.
    pub(crate) rollback: u32,
}

impl ContextOptions {
    /// Whether flash attention may take many tokens at once (`ggml_compute_forward_flash_attn_ext_f16` in
    /// `ggml-cpu/ops.cpp`): keys and values are kept alike, and not in blocks.
    fn attends_in_tiles(&self) -> bool {
        let keys = self.keys.unwrap_or(KvType::F16);
        self.flash_attention != FlashAttention::Off
            && self.values.unwrap_or(KvType::F16) == keys
            && matches!(keys, KvType::F16 | KvType::F32)
    }
}

/// What a context computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The model.
    Text,
    /// Only its layer that predicts one token more.
    Prediction,
}

/// Why tokens were not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The abort flag was set.
    #[error("stopped")]
    Aborted,
    /// The cache has no room for them.
    #[error("the cache is full")]
    Full,
    /// llama.cpp failed.
    #[error("llama.cpp could not evaluate the prompt (code {0})")]
    Failed(i32),
}

/// Which tokens of the last batch have logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logits {
    None,
    Last,
    Each(usize),
}

/// A token of the last batch, whose logits say what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// The last one.
    Last,
    /// This one, counted from 0; for batches that were evaluated with [`Context::decode_each`].
    At(usize),
}

/// A context of a model.
pub(crate) struct Context<'model> {
    handle: NonNull<sys::llama_context>,
    batch: sys::llama_batch,
    capacity: usize,
    tile: Tile,
    /// Whether attention may be computed in tiles.
    in_tiles: bool,
    logits: Logits,
    model: PhantomData<&'model LlamaModel>,
}

impl<'model> Context<'model> {
    /// Makes a context whose work stops soon after `abort` becomes true.
    pub(crate) fn new(
        model: &'model LlamaModel,
        options: ContextOptions,
        abort: &'static AtomicBool,
    ) -> Result<Self, NativeError> {
        // SAFETY: a function without conditions.
        let mut params = unsafe { sys::llama_context_default_params() };
        params.n_ctx = options.tokens;
        params.n_batch = options.batch;
        params.n_ubatch = options.batch;
        params.n_seq_max = options.sequences;
        params.n_threads = i32::try_from(options.threads).unwrap_or(1);
        params.n_threads_batch = i32::try_from(options.batch_threads).unwrap_or(1);
        if let Some(keys) = options.keys {
            params.type_k = ggml_type(keys);
        }
        if let Some(values) = options.values {
            params.type_v = ggml_type(values);
        }
        params.flash_attn_type = match options.flash_attention {
            FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
            FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
            FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        };
        // The sequences share one cache, so that one conversation may use all of it.
        params.kv_unified = true;
        params.n_rs_seq = options.rollback;
        params.ctx_type = match options.purpose {
            Purpose::Text => sys::LLAMA_CONTEXT_TYPE_DEFAULT,
            Purpose::Prediction => sys::LLAMA_CONTEXT_TYPE_MTP,
        };
        params.swa_full = true;
        params.no_perf = true;
        params.abort_callback = Some(is_set);
        params.abort_callback_data = std::ptr::from_ref(abort).cast_mut().cast();
        // SAFETY: the model outlives the context by the lifetime; the flag is static.
        let handle = unsafe { sys::llama_init_from_model(raw(model), params) };
        let handle = NonNull::new(handle)
            .ok_or_else(|| NativeError("the context could not be made (not enough memory?)".to_owned()))?;
        let capacity = options.batch.max(1);
        // SAFETY: room for `capacity` tokens of one sequence each; freed in `drop`.
        let batch = unsafe { sys::llama_batch_init(i32::try_from(capacity).unwrap_or(i32::MAX), 0, 1) };
        let (capacity, tile) = (capacity as usize, options.tile);
        let in_tiles = options.attends_in_tiles();
        Ok(Self { handle, batch, capacity, tile, in_tiles, logits: Logits::None, model: PhantomData })
    }

    /// Tokens that one sequence may have.
    pub(crate) fn size(&self) -> u32 {
        // SAFETY: the handle is alive.
        unsafe { sys::llama_n_ctx_seq(self.handle.as_ptr()) }
    }

    /// Tokens at the end of a sequence that can be taken back where there are recurrent layers; 0 without these.
    pub(crate) fn rollback(&self) -> usize {
        // SAFETY: the handle is alive.
        unsafe { sys::llama_n_rs_seq(self.handle.as_ptr()) as usize }
    }

    /// Keeps from now on what each token of a batch is after the last layer.
    pub(crate) fn keep_rows(&mut self) {
        // SAFETY: the handle is alive.
        unsafe { ffi::lectern_keep_rows(self.handle.as_ptr(), 0) }
    }

    /// That of the first tokens of the last batch, so many numbers for each; empty when it was not kept.
    pub(crate) fn rows(&mut self, tokens: usize, width: usize) -> &[f32] {
        // SAFETY: llama.cpp keeps a row for each token of the batch, and the batch had at least so many.
        unsafe {
            let rows = ffi::lectern_rows(self.handle.as_ptr());
            if rows.is_null() { &[] } else { std::slice::from_raw_parts(rows, tokens * width) }
        }
    }

    /// Evaluates tokens of a sequence from a position on, as many as one batch holds.
    pub(crate) fn decode(
        &mut self,
        sequence: i32,
        position: usize,
        tokens: &[LlamaToken],
    ) -> Result<(), DecodeError> {
        self.evaluate(sequence, position, tokens, Logits::Last)
    }

    /// The same, with logits of each token.
    pub(crate) fn decode_each(
        &mut self,
        sequence: i32,
        position: usize,
        tokens: &[LlamaToken],
    ) -> Result<(), DecodeError> {
        self.evaluate(sequence, position, tokens, Logits::Each(tokens.len()))
    }

    fn evaluate(
        &mut self,
        sequence: i32,
        position: usize,
        tokens: &[LlamaToken],
        logits: Logits,
    ) -> Result<(), DecodeError> {
        if tokens.is_empty() || tokens.len() > self.capacity {
            return Err(DecodeError::Failed(-1));
        }
        self.logits = Logits::None;
        let end = tokens.len();
        let filling = self.tile.filling(end, position, self.in_tiles).min(self.capacity - end);
        let last = tokens.iter().rev().take(1).cycle();
        for (index, token) in tokens.iter().chain(last).take(end + filling).enumerate() {
            let position = i32::try_from(position + index).map_err(|_| DecodeError::Full)?;
            let wanted = index + 1 == end || (index < end && logits != Logits::Last);
            // SAFETY: the arrays hold `capacity` entries and `index` is below it.
            unsafe {
                *self.batch.token.add(index) = token.0;
                *self.batch.pos.add(index) = position;
                *self.batch.n_seq_id.add(index) = 1;
                **self.batch.seq_id.add(index) = sequence;
                *self.batch.logits.add(index) = i8::from(wanted);
            }
        }
        let mut code = self.submit(end + filling);
        if filling > 0 && code == 0 {
            // What only filled the tile is forgotten; no token before it has seen it.
            let _ = self.forget_from(sequence, position + end);
        } else if filling > 0 && code == 1 {
            code = self.submit(end);
        }
        done(code)?;
        self.logits = logits;
        Ok(())
    }

    /// Lets someone else evaluate a batch, the last token of which asks for logits; what llama.cpp says of it.
    pub(super) fn submitted(
        &mut self,
        submit: impl FnOnce(*mut sys::llama_context) -> i32,
    ) -> Result<(), DecodeError> {
        self.logits = Logits::None;
        done(submit(self.handle.as_ptr()))?;
        self.logits = Logits::Last;
        Ok(())
    }

    /// Evaluates the first tokens of the batch; what llama.cpp says of it.
    fn submit(&mut self, tokens: usize) -> i32 {
        self.batch.n_tokens = i32::try_from(tokens).unwrap_or(0);
        // SAFETY: the handle is alive and the batch filled so far.
        unsafe { sys::llama_decode(self.handle.as_ptr(), self.batch) }
    }

    /// Forgets a sequence from a position on. False when this kind of model cannot forget a part.
    #[must_use]
    pub(crate) fn forget_from(&mut self, sequence: i32, position: usize) -> bool {
        self.logits = Logits::None;
        let position = i32::try_from(position).unwrap_or(i32::MAX);
        // SAFETY: the handle is alive; the memory refuses what it cannot do.
        unsafe {
            sys::llama_memory_seq_rm(sys::llama_get_memory(self.handle.as_ptr()), sequence, position, -1)
        }
    }

    /// Forgets a whole sequence.
    pub(crate) fn forget(&mut self, sequence: i32) {
        let _ = self.forget_from(sequence, 0);
    }

    /// Lets `to` (which must be empty) begin with the first tokens of `from`.
    pub(crate) fn share_prefix(&mut self, from: i32, to: i32, tokens: usize) {
        let end = i32::try_from(tokens).unwrap_or(i32::MAX);
        // SAFETY: the handle is alive and both sequences are within its number of sequences.
        unsafe {
            sys::llama_memory_seq_cp(sys::llama_get_memory(self.handle.as_ptr()), from, to, 0, end);
        }
    }

    /// What a token of the last batch makes of each next one; empty when that was not asked for.
    pub(crate) fn logits_mut(&mut self, row: Row, vocabulary: usize) -> &mut [f32] {
        let Some(row) = self.row(row) else { return &mut [] };
        // SAFETY: this token of the batch asked for logits, one for each entry of the vocabulary.
        unsafe {
            let logits = sys::llama_get_logits_ith(self.handle.as_ptr(), row);
            if logits.is_null() { &mut [] } else { std::slice::from_raw_parts_mut(logits, vocabulary) }
        }
    }

    /// llama.cpp's number of a token that has logits.
    pub(super) fn row(&self, row: Row) -> Option<i32> {
        match (self.logits, row) {
            (Logits::None, _) | (Logits::Last, Row::At(_)) => None,
            (Logits::Last | Logits::Each(_), Row::Last) => Some(-1),
            (Logits::Each(rows), Row::At(row)) => i32::try_from(row).ok().filter(|_| row < rows),
        }
    }

    pub(super) fn handle(&self) -> NonNull<sys::llama_context> {
        self.handle
    }

    /// The handle for someone who evaluates by himself; no logits are there afterwards.
    #[cfg(feature = "vision")]
    pub(super) fn touched(&mut self) -> NonNull<sys::llama_context> {
        self.logits = Logits::None;
        self.handle
    }

    /// Tokens that one batch holds.
    #[cfg(feature = "vision")]
    pub(super) fn batch_size(&self) -> usize {
        self.capacity
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: both freed once.
        unsafe {
            sys::llama_batch_free(self.batch);
            sys::llama_free(self.handle.as_ptr());
        }
    }
}

/// What the codes of `llama_decode` mean (llama.h).
fn done(code: i32) -> Result<(), DecodeError> {
    match code {
        0 => Ok(()),
        1 => Err(DecodeError::Full),
        2 => Err(DecodeError::Aborted),
        code => Err(DecodeError::Failed(code)),
    }
}

unsafe extern "C" fn is_set(flag: *mut c_void) -> bool {
    // SAFETY: `flag` is the static flag given to `Context::new`.
    unsafe { &*flag.cast::<AtomicBool>() }.load(Ordering::Relaxed)
}

fn ggml_type(kind: KvType) -> sys::ggml_type {
    match kind {
        KvType::F32 => sys::GGML_TYPE_F32,
        KvType::F16 => sys::GGML_TYPE_F16,
        KvType::Bf16 => sys::GGML_TYPE_BF16,
        KvType::Q8_0 => sys::GGML_TYPE_Q8_0,
        KvType::Q5_1 => sys::GGML_TYPE_Q5_1,
        KvType::Q5_0 => sys::GGML_TYPE_Q5_0,
        KvType::Q4_1 => sys::GGML_TYPE_Q4_1,
        KvType::Q4_0 => sys::GGML_TYPE_Q4_0,
        KvType::Iq4Nl => sys::GGML_TYPE_IQ4_NL,
    }
}
