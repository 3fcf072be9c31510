//! Ctrl-C: the first one stops what runs, the second one ends the process.
//!
//! Invariant: the only place that listens to signals.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Listens for the life of the process. Clones are the same listener.
#[derive(Clone)]
pub struct Interrupts(Arc<Mutex<CancellationToken>>);

impl Interrupts {
    /// Starts to listen.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn listen() -> Self {
        let current = Arc::new(Mutex::new(CancellationToken::new()));
        let listener = Self(Arc::clone(&current));
        tokio::spawn(async move {
            let Some(mut signals) = Signals::new() else { return };
            while signals.next().await {
                let token = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if token.is_cancelled() {
                    // Servers and the model's worker end with their parent.
                    std::process::exit(130);
                }
                token.cancel();
            }
        });
        listener
    }

    /// What the next Ctrl-C cancels; in place of what the one before would have.
    pub fn next(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }
}

/// Ctrl-C, and the request to end. Made once: what comes between two waits is not lost.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt()).ok()?;
        let terminate = signal(SignalKind::terminate()).ok()?;
        Some(Self { interrupt, terminate })
    }

    async fn next(&mut self) -> bool {
        tokio::select! {
            one = self.interrupt.recv() => one.is_some(),
            other = self.terminate.recv() => other.is_some(),
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Option<Self> {
        Some(Self)
    }

    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
