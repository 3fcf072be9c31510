//! llama.cpp's backends that are libraries of their own.

use std::ffi::{CString, c_int};
use std::path::Path;

use llama_cpp_sys_2 as sys;

/// How well a library says it suits this processor; 0 when it does not, or is none.
pub(crate) fn score_of(path: &Path) -> i32 {
    // SAFETY: a library of llama.cpp's, from the application's own place; its initialisers may run on any processor, and
    // its function of this name has this type (`ggml_backend_score_t`).
    unsafe {
        let Ok(library) = libloading::Library::new(path) else { return 0 };
        let score = library.get::<unsafe extern "C" fn() -> c_int>(b"ggml_backend_score\0");
        score.map_or(0, |score| score())
    }
}

/// Loads a library for good. One that is missing something is left out; llama.cpp's log says what.
pub(crate) fn load_library(path: &Path) {
    let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return };
    // SAFETY: a path that ends with a zero; llama.cpp keeps what it loads.
    unsafe { sys::ggml_backend_load(path.as_ptr()) };
}
