//! The functions of the shim (`shim/shim.h`).

use std::ffi::{c_char, c_int};

use llama_cpp_sys_2::{llama_context, llama_model, llama_token};

use super::NativeError;

#[repr(C)]
pub(super) struct Templates {
    _private: [u8; 0],
}

#[repr(C)]
pub(super) struct Format {
    _private: [u8; 0],
}

#[repr(C)]
pub(super) struct Sampler {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn lectern_free(text: *mut c_char);
    pub(super) fn lectern_templates_new(
        model: *const llama_model,
        source: *const c_char,
        bos: *const c_char,
        eos: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Templates;
    pub(super) fn lectern_templates_free(templates: *mut Templates);
    pub(super) fn lectern_templates_describe(templates: *const Templates) -> *mut c_char;
    pub(super) fn lectern_apply(
        templates: *const Templates,
        request: *const c_char,
        format: *mut *mut Format,
    ) -> *mut c_char;
    pub(super) fn lectern_format_parse(
        format: *const Format,
        text: *const c_char,
        length: usize,
        partial: c_int,
    ) -> *mut c_char;
    pub(super) fn lectern_format_free(format: *mut Format);
    pub(super) fn lectern_sampler_new(
        model: *const llama_model,
        format: *const Format,
        options: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Sampler;
    pub(super) fn lectern_sampler_sample(
        sampler: *mut Sampler,
        context: *mut llama_context,
        index: i32,
        token: *mut llama_token,
    ) -> *mut c_char;
    pub(super) fn lectern_sampler_free(sampler: *mut Sampler);
    pub(super) fn lectern_keep_rows(context: *mut llama_context, outputs_only: i32);
    pub(super) fn lectern_rows(context: *mut llama_context) -> *const f32;
}

/// Takes over a text that the shim returned.
///
/// # Safety
/// `text` is null or comes from the shim and is not used again.
pub(super) unsafe fn take(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a zero-terminated text of the shim, by the caller's promise.
    let out = unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: freed once, here.
    unsafe { lectern_free(text) };
    Some(out)
}

/// The answer of the shim: JSON, or an object with `error`.
///
/// # Safety
/// As for [`take`].
pub(super) unsafe fn answer<T: serde::de::DeserializeOwned>(text: *mut c_char) -> Result<T, NativeError> {
    // SAFETY: by the caller's promise.
    let text = unsafe { take(text) }.ok_or_else(|| NativeError("out of memory".to_owned()))?;
    if let Some(error) = error_in(&text) {
        return Err(error);
    }
    serde_json::from_str(&text).map_err(|error| NativeError(format!("the shim's answer: {error}")))
}

/// The error in an answer of the shim, when it is one.
pub(super) fn error_in(text: &str) -> Option<NativeError> {
    #[derive(serde::Deserialize)]
    struct Failure {
        error: String,
    }
    serde_json::from_str::<Failure>(text).ok().map(|failure| NativeError(failure.error))
}
