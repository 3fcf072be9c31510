//! Chat templates, and the parser that belongs to an applied template.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr::NonNull;

use llama_cpp_2::model::LlamaModel;
use serde::Deserialize;
use serde_json::Value;

use super::{NativeError, ffi, raw};

/// The chat templates of a model or of a text.
pub(crate) struct Templates {
    handle: NonNull<ffi::Templates>,
    /// What the template can do, by llama.cpp's names.
    pub(crate) caps: BTreeMap<String, bool>,
    /// Whether the model brings a template; else ChatML stands in.
    pub(crate) explicit: bool,
    /// The text of the template.
    pub(crate) source: String,
}

// SAFETY: the handle owns its C++ objects and nothing in them is tied to a thread.
unsafe impl Send for Templates {}

#[derive(Deserialize)]
struct Description {
    caps: BTreeMap<String, bool>,
    explicit: bool,
    source: String,
}

impl Templates {
    /// The templates of a loaded model, or a text in their place.
    pub(crate) fn of_model(model: &LlamaModel, source: Option<&str>) -> Result<Self, NativeError> {
        Self::new(raw(model), source.unwrap_or_default(), "", "")
    }

    /// A template from its text.
    pub(crate) fn of_text(source: &str, bos: &str, eos: &str) -> Result<Self, NativeError> {
        Self::new(std::ptr::null(), source, bos, eos)
    }

    fn new(
        model: *const llama_cpp_sys_2::llama_model,
        source: &str,
        bos: &str,
        eos: &str,
    ) -> Result<Self, NativeError> {
        let (source, bos, eos) = (c_text(source)?, c_text(bos)?, c_text(eos)?);
        let mut error = std::ptr::null_mut();
        // SAFETY: the texts live through the call, `error` is ours to take, the model is null or alive.
        let handle = unsafe {
            ffi::lectern_templates_new(model, source.as_ptr(), bos.as_ptr(), eos.as_ptr(), &raw mut error)
        };
        let handle = owned(handle, error)?;
        // SAFETY: the handle is alive; the answer is ours.
        let described =
            unsafe { ffi::answer::<Description>(ffi::lectern_templates_describe(handle.as_ptr())) };
        let mut out = Self { handle, caps: BTreeMap::new(), explicit: false, source: String::new() };
        let described = described?;
        (out.caps, out.explicit, out.source) = (described.caps, described.explicit, described.source);
        Ok(out)
    }

    /// Whether the template brings tools to the model.
    pub(crate) fn knows_tools(&self) -> bool {
        self.explicit && self.cap("supports_tools") && self.cap("supports_tool_calls")
    }

    /// Whether the template can hold several calls in one message.
    pub(crate) fn knows_parallel_calls(&self) -> bool {
        self.cap("supports_parallel_tool_calls")
    }

    /// Whether the model can be told how hard to think.
    pub(crate) fn knows_effort(&self) -> bool {
        self.cap("supports_reasoning_effort")
    }

    fn cap(&self, name: &str) -> bool {
        self.caps.get(name).copied().unwrap_or(false)
    }

    /// Renders a request and prepares what parsing and sampling need.
    pub(crate) fn apply(&self, request: &Value) -> Result<(Applied, Format), NativeError> {
        let request = c_text(&request.to_string())?;
        let mut format = std::ptr::null_mut();
        // SAFETY: handle and text are alive; the answer and the format are ours.
        let applied = unsafe {
            ffi::answer::<Applied>(ffi::lectern_apply(
                self.handle.as_ptr(),
                request.as_ptr(),
                &raw mut format,
            ))
        };
        let format = NonNull::new(format).map(|handle| Format { handle });
        match (applied?, format) {
            (applied, Some(format)) => Ok((applied, format)),
            (_, None) => Err(NativeError("the template gave no format".to_owned())),
        }
    }
}

impl Drop for Templates {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { ffi::lectern_templates_free(self.handle.as_ptr()) }
    }
}

/// An applied template.
#[derive(Debug, Deserialize)]
pub(crate) struct Applied {
    /// The text for the model.
    pub(crate) prompt: String,
    /// The end of the prompt, where the answer begins.
    pub(crate) generation_prompt: String,
    /// GBNF, or empty.
    pub(crate) grammar: String,
    /// How many texts or tokens begin that grammar, where it waits for the beginning of a call.
    pub(crate) triggers: usize,
    /// How reasoning begins; empty when the template knows none.
    pub(crate) thinking_start_tag: String,
    /// How it may end.
    pub(crate) thinking_end_tags: Vec<String>,
    /// Texts that end an answer in this format.
    pub(crate) additional_stops: Vec<String>,
    /// Special tokens that the parser must see as text.
    pub(crate) preserved_tokens: Vec<String>,
}

/// Grammar, triggers and parser of an applied template.
pub(crate) struct Format {
    pub(super) handle: NonNull<ffi::Format>,
}

// SAFETY: as for `Templates`.
unsafe impl Send for Format {}

/// What the parser made of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ParsedMessage {
    pub(crate) content: String,
    pub(crate) reasoning: String,
    pub(crate) tool_calls: Vec<ParsedCall>,
}

/// A call; `arguments` is JSON text, unfinished while the text is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ParsedCall {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl ParsedCall {
    /// Whether any argument has begun, or there are none.
    pub(crate) fn has_begun(&self) -> bool {
        !self.name.is_empty() && !matches!(self.arguments.trim(), "" | "{")
    }
}

impl Format {
    /// Parses everything generated so far.
    pub(crate) fn parse(&self, text: &str, partial: bool) -> Result<ParsedMessage, NativeError> {
        // SAFETY: handle and text are alive; the answer is ours.
        unsafe {
            ffi::answer(ffi::lectern_format_parse(
                self.handle.as_ptr(),
                text.as_ptr().cast(),
                text.len(),
                i32::from(partial),
            ))
        }
    }
}

impl Drop for Format {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { ffi::lectern_format_free(self.handle.as_ptr()) }
    }
}

pub(super) fn c_text(text: &str) -> Result<CString, NativeError> {
    CString::new(text).map_err(|_| NativeError("the text holds a zero byte".to_owned()))
}

/// A new handle, or the error that the shim left in its place.
pub(super) fn owned<T>(handle: *mut T, error: *mut std::ffi::c_char) -> Result<NonNull<T>, NativeError> {
    // SAFETY: `error` is null or a text of the shim that nobody else takes.
    let error = unsafe { ffi::take(error) };
    NonNull::new(handle).ok_or_else(|| match error {
        Some(text) => ffi::error_in(&text).unwrap_or(NativeError(text)),
        None => NativeError("out of memory".to_owned()),
    })
}
