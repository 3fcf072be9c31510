//! The last lines of llama.cpp's log, so that a failed load can say why.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use llama_cpp_sys_2 as sys;

const KEPT_LINES: usize = 60;
const LONGEST_LINE: usize = 400;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// From now on keeps warnings and errors of llama.cpp; nothing is printed.
pub(crate) fn capture_log() {
    // SAFETY: the callback takes no data and lives as long as the program.
    unsafe {
        sys::llama_log_set(Some(keep), std::ptr::null_mut());
        #[cfg(feature = "vision")]
        sys::mtmd_helper_log_set(Some(keep), std::ptr::null_mut());
    }
}

/// The lines kept since the last call, oldest first.
pub(crate) fn recent_log() -> Vec<String> {
    LINES.lock().map(|mut lines| lines.drain(..).collect()).unwrap_or_default()
}

unsafe extern "C" fn keep(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    let wanted = matches!(level, sys::GGML_LOG_LEVEL_WARN | sys::GGML_LOG_LEVEL_ERROR);
    if text.is_null() || !wanted {
        return;
    }
    // SAFETY: llama.cpp passes zero-terminated text.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let line: String = text.trim().chars().take(LONGEST_LINE).collect();
    if let (false, Ok(mut lines)) = (line.is_empty(), LINES.lock()) {
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}
