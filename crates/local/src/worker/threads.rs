//! How many threads compute.
//!
//! Invariant: never more than this process may use; what the user set is used as it is.

use crate::speed::SpeedOptions;

/// Threads of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threads {
    /// Those that write.
    pub(super) threads: u32,
    /// Those that read prompts.
    pub(super) batch_threads: u32,
}

/// A model smaller than this is faster on one thread: waking others costs more than they do.
const SMALL_MODEL: u64 = 64 << 20;

impl Threads {
    /// As many as are set, or else as this machine is good for.
    pub(super) fn chosen(options: &SpeedOptions, model_bytes: u64) -> Self {
        let threads = options.threads.unwrap_or_else(|| usual(model_bytes));
        Self { threads, batch_threads: options.batch_threads.unwrap_or(threads) }
    }
}

fn usual(model_bytes: u64) -> u32 {
    if model_bytes < SMALL_MODEL {
        return 1;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One core stays for the window where there are enough.
    let used = if cores > 4 { cores - 1 } else { cores };
    u32::try_from(used).unwrap_or(1)
}
