//! The layer of a model that predicts one token more (multi-token prediction), with a cache of its own.
//!
//! It reads each token together with what the model made of the token before it.

use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;

use super::context::{Context, ContextOptions, DecodeError, Purpose, Row};
use super::{NativeError, ffi, raw};

/// The layer with its cache, for one text.
pub(crate) struct Predictor<'model> {
    context: Context<'model>,
    batch: NonNull<sys::llama_batch_ext>,
    batch_size: usize,
    width: usize,
}

impl<'model> Predictor<'model> {
    /// The model was loaded with that layer.
    pub(crate) fn new(
        model: &'model LlamaModel,
        options: ContextOptions,
        abort: &'static AtomicBool,
    ) -> Result<Self, NativeError> {
        let options = ContextOptions { purpose: Purpose::Prediction, sequences: 1, rollback: 0, ..options };
        let context = Context::new(model, options, abort)?;
        // SAFETY: the handle is alive; the batch is freed in `drop`, before the context.
        let batch = unsafe { sys::llama_batch_ext_init(context.handle().as_ptr()) };
        let batch = NonNull::new(batch).ok_or_else(|| NativeError("no batch for predictions".to_owned()))?;
        // SAFETY: the handle and the model are alive.
        let width = unsafe {
            ffi::lectern_keep_rows(context.handle().as_ptr(), 1);
            sys::llama_model_n_embd_out(raw(model))
        };
        let width = usize::try_from(width).unwrap_or(0);
        Ok(Self { context, batch, batch_size: options.batch.max(1) as usize, width })
    }

    /// Numbers of what the model made of one token.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Tokens that can be read at once.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Reads tokens from a position on, each with the row of the token before it.
    pub(crate) fn read(
        &mut self,
        position: usize,
        tokens: &[LlamaToken],
        rows: &[f32],
    ) -> Result<(), DecodeError> {
        if tokens.is_empty() || tokens.len() > self.batch_size || rows.len() != tokens.len() * self.width {
            return Err(DecodeError::Failed(-1));
        }
        let batch = self.batch.as_ptr();
        // SAFETY: the batch is alive.
        unsafe { sys::llama_batch_ext_clear(batch) };
        for (index, (token, row)) in tokens.iter().zip(rows.chunks_exact(self.width)).enumerate() {
            let position = i32::try_from(position + index).map_err(|_| DecodeError::Full)?;
            let row = sys::llama_embd { data: row.as_ptr(), n_rows: 1, n_embd: self.width };
            // SAFETY: the batch is alive, and copies the row.
            let added = unsafe {
                let place = sys::llama_batch_ext_add_token(batch, 0, token.0);
                place >= 0
                    && sys::llama_batch_ext_set_pos(batch, place, &raw const position)
                    && sys::llama_batch_ext_set_embd_token(batch, place, row)
                    && sys::llama_batch_ext_set_output_logits(batch, place, index + 1 == tokens.len())
            };
            if !added {
                return Err(DecodeError::Failed(-1));
            }
        }
        self.context.submitted(|context| {
            // SAFETY: both are alive.
            unsafe { sys::llama_process(context, sys::LLAMA_PROCESS_TYPE_DECODE, batch) }
        })
    }

    /// What may follow the last token that was read.
    pub(crate) fn logits(&mut self, vocabulary: usize) -> &[f32] {
        self.context.logits_mut(Row::Last, vocabulary)
    }

    /// What the layer made of the last token that was read.
    pub(crate) fn row(&mut self) -> Vec<f32> {
        self.context.rows(1, self.width).to_vec()
    }

    /// Forgets what was read from a position on.
    pub(crate) fn forget_from(&mut self, position: usize) {
        if !self.context.forget_from(0, position) {
            self.context.forget(0);
        }
    }
}

impl Drop for Predictor<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once, while the context lives.
        unsafe { sys::llama_batch_ext_free(self.batch.as_ptr()) };
    }
}
