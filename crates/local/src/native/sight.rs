//! The part of a model that sees images: llama.cpp's `mtmd`.
//!
//! Invariant: only bytes that begin like PNG, JPEG, BMP or GIF reach its reader; of others it would start `ffmpeg`.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;

use super::{Context, DecodeError, NativeError, raw};
use crate::images::is_known_kind;

/// Operations between two looks at the abort flag.
const WATCHED: u32 = 16;

/// How it is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SightOptions {
    /// Threads that look at images.
    pub(crate) threads: u32,
    /// Whether a graphics processor may be used.
    pub(crate) gpu: bool,
}

/// The part of a model that sees.
pub(crate) struct Sight<'model> {
    handle: NonNull<sys::mtmd_context>,
    /// What its callback reads; it must not move.
    _watch: Box<Watch>,
    model: PhantomData<&'model LlamaModel>,
}

struct Watch {
    abort: &'static AtomicBool,
    operations: AtomicU32,
}

/// What an image is to the model, piece by piece.
pub(crate) enum Piece {
    /// Words around it.
    Tokens(Vec<LlamaToken>),
    /// What is seen.
    Pixels(Pixels),
}

/// A part of an image, ready to be looked at.
pub(crate) struct Pixels {
    handle: NonNull<sys::mtmd_input_chunk>,
    /// Places of the cache that it takes.
    pub(crate) places: usize,
    /// Positions that it takes.
    pub(crate) positions: usize,
}

/// What was seen in a part of an image; it lives until the next one is looked at.
pub(crate) struct Seen(NonNull<f32>);

impl<'model> Sight<'model> {
    /// Loads the file that belongs to a model. It stops soon after `abort` becomes true.
    pub(crate) fn load(
        path: &Path,
        model: &'model LlamaModel,
        options: SightOptions,
        abort: &'static AtomicBool,
    ) -> Result<Self, NativeError> {
        let path = path.to_str().and_then(|path| CString::new(path).ok());
        let path = path.ok_or_else(|| NativeError("its path cannot be passed on".to_owned()))?;
        let watch = Box::new(Watch { abort, operations: AtomicU32::new(0) });
        let data: *const Watch = &raw const *watch;
        // SAFETY: a function without conditions.
        let mut params = unsafe { sys::mtmd_context_params_default() };
        params.use_gpu = options.gpu;
        params.print_timings = false;
        params.n_threads = i32::try_from(options.threads).unwrap_or(1);
        // It would look at an empty image first.
        params.warmup = false;
        params.cb_eval = Some(looked);
        params.cb_eval_user_data = data.cast_mut().cast();
        params.progress_callback = Some(goes_on);
        params.progress_callback_user_data = data.cast_mut().cast();
        // SAFETY: the model outlives this by the lifetime, `watch` lives as long as the handle.
        let handle = unsafe { sys::mtmd_init_from_file(path.as_ptr(), raw(model), params) };
        let handle = NonNull::new(handle).ok_or_else(|| NativeError("llama.cpp refuses it".to_owned()))?;
        let sight = Self { handle, _watch: watch, model: PhantomData };
        // SAFETY: the handle is alive.
        if unsafe { sys::mtmd_support_vision(handle.as_ptr()) } {
            Ok(sight)
        } else {
            Err(NativeError("it does not see images".to_owned()))
        }
    }

    /// Whether the model reads an image as a whole, each part with what comes after it: then it has to fit into one batch.
    pub(crate) fn needs_whole_images(&self) -> bool {
        // SAFETY: the handle is alive; without a chunk the question is about images.
        unsafe { sys::mtmd_decode_use_non_causal(self.handle.as_ptr(), std::ptr::null()) }
    }

    /// What an image is to the model; its pixels are scaled and cut as the model wants them.
    pub(crate) fn pieces(&self, bytes: &[u8]) -> Result<Vec<Piece>, NativeError> {
        let broken = || NativeError("is damaged".to_owned());
        if !is_known_kind(bytes) {
            return Err(NativeError("is none of PNG, JPEG, BMP and GIF".to_owned()));
        }
        // SAFETY: functions without conditions, and a buffer with its length. No film is made of these kinds.
        let bitmap = unsafe {
            let options = sys::mtmd_helper_init_opt_default();
            sys::mtmd_helper_bitmap_init_from_buf(
                self.handle.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                false,
                options,
            )
            .bitmap
        };
        let bitmap = Owned::new(bitmap, sys::mtmd_bitmap_free).ok_or_else(broken)?;
        // SAFETY: makes an empty list.
        let chunks = unsafe { sys::mtmd_input_chunks_init() };
        let chunks = Owned::new(chunks, sys::mtmd_input_chunks_free).ok_or_else(broken)?;
        let part = sys::mtmd_input_part { text: std::ptr::null(), bitmap: bitmap.get() };
        let parts = [&raw const part];
        // SAFETY: everything lives through the call; one part is passed.
        let code = unsafe {
            sys::mtmd_tokenize_from_parts(
                self.handle.as_ptr(),
                chunks.get(),
                parts.as_ptr().cast_mut(),
                1,
                false,
            )
        };
        if code != 0 {
            return Err(NativeError(format!("cannot be prepared for the model (code {code})")));
        }
        // SAFETY: the list is alive, and places are below its length.
        let count = unsafe { sys::mtmd_input_chunks_size(chunks.get()) };
        (0..count)
            .map(|place| unsafe { piece_of(sys::mtmd_input_chunks_get(chunks.get(), place)) })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(broken)
    }

    /// Looks at a part of an image. None when it was stopped.
    pub(crate) fn look(&mut self, pixels: &Pixels) -> Result<Option<Seen>, NativeError> {
        // SAFETY: both handles are alive.
        let code = unsafe { sys::mtmd_encode_chunk(self.handle.as_ptr(), pixels.handle.as_ptr()) };
        if self._watch.abort.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // SAFETY: the handle is alive; the pointer is good until the next call of this function, which needs `&mut`.
        let seen = NonNull::new(unsafe { sys::mtmd_get_output_embd(self.handle.as_ptr()) });
        match (code, seen) {
            (0, Some(seen)) => Ok(Some(Seen(seen))),
            (code, _) => Err(NativeError(format!("llama.cpp could not look at the image (code {code})"))),
        }
    }

    /// Puts what was seen into a sequence, from a position on, so many places at once.
    pub(crate) fn put(
        &mut self,
        seen: &Seen,
        pixels: &Pixels,
        context: &mut Context<'_>,
        sequence: i32,
        position: usize,
    ) -> Result<(), DecodeError> {
        let position = i32::try_from(position).map_err(|_| DecodeError::Full)?;
        let batch = context.batch_size();
        if self.needs_whole_images() && pixels.places > batch {
            // llama.cpp would abort.
            return Err(DecodeError::Failed(-2));
        }
        let mut behind = 0;
        // SAFETY: all handles are alive; what was seen is that of these pixels, by the caller.
        let code = unsafe {
            sys::mtmd_helper_decode_image_chunk(
                self.handle.as_ptr(),
                context.touched().as_ptr(),
                pixels.handle.as_ptr(),
                seen.0.as_ptr(),
                position,
                sequence,
                i32::try_from(batch).unwrap_or(1),
                &raw mut behind,
                None,
                std::ptr::null_mut(),
            )
        };
        match code {
            0 => Ok(()),
            1 => Err(DecodeError::Full),
            2 => Err(DecodeError::Aborted),
            code => Err(DecodeError::Failed(code)),
        }
    }
}

impl Drop for Sight<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { sys::mtmd_free(self.handle.as_ptr()) }
    }
}

impl Drop for Pixels {
    fn drop(&mut self) {
        // SAFETY: a copy of our own, freed once.
        unsafe { sys::mtmd_input_chunk_free(self.handle.as_ptr()) }
    }
}

/// What is freed by a function of its own.
struct Owned<T> {
    handle: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    fn new(handle: *mut T, free: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        NonNull::new(handle).map(|handle| Self { handle, free })
    }

    fn get(&self) -> *mut T {
        self.handle.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: freed once, by the function that belongs to it.
        unsafe { (self.free)(self.handle.as_ptr()) }
    }
}

/// # Safety
/// The chunk is null or alive.
unsafe fn piece_of(chunk: *const sys::mtmd_input_chunk) -> Option<Piece> {
    if chunk.is_null() {
        return None;
    }
    // SAFETY: by the caller's promise; a copy is ours.
    unsafe {
        if sys::mtmd_input_chunk_get_type(chunk) == sys::MTMD_INPUT_CHUNK_TYPE_TEXT {
            let mut count = 0;
            let tokens = sys::mtmd_input_chunk_get_tokens_text(chunk, &raw mut count);
            let tokens = if tokens.is_null() { &[] } else { std::slice::from_raw_parts(tokens, count) };
            return Some(Piece::Tokens(tokens.iter().copied().map(LlamaToken).collect()));
        }
        let places = sys::mtmd_input_chunk_get_n_tokens(chunk);
        let positions = usize::try_from(sys::mtmd_input_chunk_get_n_pos(chunk)).ok()?;
        let handle = NonNull::new(sys::mtmd_input_chunk_copy(chunk))?;
        Some(Piece::Pixels(Pixels { handle, places, positions }))
    }
}

/// Asked before each operation whether it wants to be told of its end, then told; false ends the work.
unsafe extern "C" fn looked(_: *mut sys::ggml_tensor, asks: bool, data: *mut c_void) -> bool {
    // SAFETY: `data` is the watch given to `load`, which lives as long as the work.
    let watch = unsafe { &*data.cast_const().cast::<Watch>() };
    if asks {
        return watch.operations.fetch_add(1, Ordering::Relaxed) % WATCHED == 0;
    }
    !watch.abort.load(Ordering::Relaxed)
}

unsafe extern "C" fn goes_on(_: f32, data: *mut c_void) -> bool {
    // SAFETY: as above.
    !unsafe { &*data.cast_const().cast::<Watch>() }.abort.load(Ordering::Relaxed)
}
