//! Choosing tokens: llama.cpp's `common_sampler`, with the grammar of a format.

use std::ptr::NonNull;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use serde::Serialize;

use super::chat::{Format, c_text, owned};
use super::{Context, NativeError, Row, ffi, raw};

/// How tokens are chosen; what is unset is llama.cpp's default.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SamplerOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_k: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frequency_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) presence_penalty: Option<f32>,
    /// Tokens of thinking at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking_budget: Option<i32>,
    /// A rule of the grammar to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<String>,
    /// A grammar for calls in place of the format's; it waits for the format's triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<String>,
    /// What makes that grammar begin where the format has no trigger: an expression, whose first group the grammar
    /// begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<String>,
    /// A grammar for the whole reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grammar: Option<String>,
}

/// Chooses tokens.
pub(crate) struct Sampler {
    handle: NonNull<ffi::Sampler>,
}

impl Sampler {
    /// A sampler that keeps to the grammar of `format`, when there is one.
    pub(crate) fn new(
        model: &LlamaModel,
        format: Option<&Format>,
        options: &SamplerOptions,
    ) -> Result<Self, NativeError> {
        let options = serde_json::to_string(options).map_err(|error| NativeError(error.to_string()))?;
        let options = c_text(&options)?;
        let format = format.map_or(std::ptr::null(), |format| format.handle.as_ptr().cast_const());
        let mut error = std::ptr::null_mut();
        // SAFETY: model, format and text are alive; the error is ours to take.
        let handle =
            unsafe { ffi::lectern_sampler_new(raw(model), format, options.as_ptr(), &raw mut error) };
        Ok(Self { handle: owned(handle, error)? })
    }

    /// Chooses the token that follows one of the last batch.
    pub(crate) fn sample(&mut self, context: &mut Context<'_>, row: Row) -> Result<LlamaToken, NativeError> {
        let Some(row) = context.row(row) else {
            return Err(NativeError("there are no logits to sample from".to_owned()));
        };
        let mut token = 0;
        // SAFETY: both handles are alive, and the context holds logits of this token.
        let failed = unsafe {
            ffi::take(ffi::lectern_sampler_sample(
                self.handle.as_ptr(),
                context.handle().as_ptr(),
                row,
                &raw mut token,
            ))
        };
        match failed {
            None => Ok(LlamaToken(token)),
            Some(text) => Err(ffi::error_in(&text).unwrap_or(NativeError(text))),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { ffi::lectern_sampler_free(self.handle.as_ptr()) }
    }
}
