//! Copies of a sequence: in memory, and in files.
//!
//! Invariant: llama.cpp aborts on a copy that is cut short, so callers pass back only bytes that a copy gave, or a
//! file whose digest was checked.

use std::path::Path;

use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;

use super::Context;

/// What of a sequence is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything.
    Whole,
    /// What cannot forget a part: recurrent states. Of other models this is everything.
    Recurrent,
}

impl Part {
    fn flags(self) -> u32 {
        match self {
            // `LLAMA_STATE_SEQ_FLAGS_NONE` and `LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY` of llama.h.
            Self::Whole => 0,
            Self::Recurrent => 1,
        }
    }
}

impl Context<'_> {
    /// Bytes of a copy.
    pub(crate) fn copy_size(&mut self, sequence: i32, part: Part) -> usize {
        // SAFETY: the handle is alive.
        unsafe { sys::llama_state_seq_get_size_ext(self.handle.as_ptr(), sequence, part.flags()) }
    }

    /// Copies a sequence; none when llama.cpp cannot.
    pub(crate) fn copy(&mut self, sequence: i32, part: Part) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.copy_size(sequence, part)];
        // SAFETY: the handle is alive and the buffer as long as llama.cpp said.
        let written = unsafe {
            sys::llama_state_seq_get_data_ext(
                self.handle.as_ptr(),
                bytes.as_mut_ptr(),
                bytes.len(),
                sequence,
                part.flags(),
            )
        };
        bytes.truncate(written);
        (written > 0).then_some(bytes)
    }

    /// Puts a copy back. False when there is no room for it; the sequence is empty then.
    #[must_use]
    pub(crate) fn put_back(&mut self, sequence: i32, bytes: &[u8], part: Part) -> bool {
        self.logits = super::Logits::None;
        // SAFETY: the handle is alive; the bytes are a whole copy.
        let read = unsafe {
            sys::llama_state_seq_set_data_ext(
                self.handle.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                sequence,
                part.flags(),
            )
        };
        if read == 0 {
            self.forget(sequence);
        }
        read > 0
    }

    /// Writes a sequence to a file. False when that failed.
    #[must_use]
    pub(crate) fn save(&mut self, sequence: i32, path: &Path, tokens: &[LlamaToken]) -> bool {
        let Some(path) = c_path(path) else { return false };
        let ids: Vec<i32> = tokens.iter().map(|token| token.0).collect();
        // SAFETY: the handle is alive, the path ends with a zero, the list has the length that is given.
        let written = unsafe {
            sys::llama_state_seq_save_file(
                self.handle.as_ptr(),
                path.as_ptr(),
                sequence,
                ids.as_ptr(),
                ids.len(),
            )
        };
        written > 0
    }

    /// Reads a sequence of so many tokens from a file that was checked. False when there is no room for it; the
    /// sequence is empty then.
    #[must_use]
    pub(crate) fn load(&mut self, sequence: i32, path: &Path, tokens: usize) -> bool {
        let Some(path) = c_path(path) else { return false };
        self.logits = super::Logits::None;
        let mut ids = vec![0; tokens.max(1)];
        let mut count = 0;
        // SAFETY: the handle is alive, the path ends with a zero, the list has the length that is given.
        let read = unsafe {
            sys::llama_state_seq_load_file(
                self.handle.as_ptr(),
                path.as_ptr(),
                sequence,
                ids.as_mut_ptr(),
                tokens,
                &raw mut count,
            )
        };
        if read == 0 || count != tokens {
            self.forget(sequence);
            return false;
        }
        true
    }
}

fn c_path(path: &Path) -> Option<std::ffi::CString> {
    std::ffi::CString::new(path.to_str()?).ok()
}
