//! The worker's two lines to the application: events out, requests in.
//!
//! Invariant: nothing but events goes out on the private descriptor. What libraries print to standard output
//! ends up in standard error.

use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::protocol::{Event, Request};

/// Where events go.
pub(super) struct Output(Mutex<File>);

impl Output {
    /// Takes standard output for events; what others print there goes to standard error from now on.
    pub(super) fn take_stdout() -> std::io::Result<Self> {
        private_stdout().map(|file| Self(Mutex::new(file)))
    }

    /// For tests: events go to a file.
    #[cfg(test)]
    pub(super) fn to(file: File) -> Self {
        Self(Mutex::new(file))
    }

    /// Sends an event. An application that no longer reads is gone, and so is this process soon.
    pub(super) fn send(&self, event: &Event) {
        if let (Ok(mut line), Ok(mut file)) = (serde_json::to_vec(event), self.0.lock()) {
            line.push(b'\n');
            let _ = file.write_all(&line);
        }
    }
}

#[cfg(unix)]
fn private_stdout() -> std::io::Result<File> {
    use std::os::fd::{AsFd, AsRawFd};

    let private = std::io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both descriptors are open; standard output becomes a copy of standard error.
    if unsafe { libc::dup2(std::io::stderr().as_raw_fd(), std::io::stdout().as_raw_fd()) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(File::from(private))
}

#[cfg(windows)]
fn private_stdout() -> std::io::Result<File> {
    use std::os::windows::io::AsHandle;

    // Stray prints are told apart on the other side, by their shape.
    std::io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Whether the running job is to stop.
pub(super) struct Abort {
    running: AtomicU64,
    cancelled: AtomicU64,
    flag: AtomicBool,
    /// The application has gone; every job is to stop.
    ended: AtomicBool,
}

impl Abort {
    pub(super) const fn new() -> Self {
        Self {
            running: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            flag: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// A job begins; it may have been cancelled while it waited.
    pub(super) fn begin(&self, job: u64) {
        self.running.store(job, Ordering::SeqCst);
        let cancelled = self.cancelled.load(Ordering::SeqCst) == job || self.ended.load(Ordering::SeqCst);
        self.flag.store(cancelled, Ordering::SeqCst);
    }

    fn cancel(&self, job: u64) {
        self.cancelled.store(job, Ordering::SeqCst);
        if self.running.load(Ordering::SeqCst) == job {
            self.flag.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The flag itself, for llama.cpp's callback.
    pub(super) fn flag(&'static self) -> &'static AtomicBool {
        &self.flag
    }
}

/// What the process gets to save its states when the application has gone.
const FAREWELL: Duration = Duration::from_secs(8);

/// Reads requests until the application goes away. Then the running job is stopped and states are saved; soon after
/// that the process ends, whatever it is doing.
pub(super) fn read_requests(requests: Sender<Request>, abort: &Abort) -> ! {
    let mut lines = std::io::stdin().lock().lines();
    while let Some(Ok(line)) = lines.next() {
        match serde_json::from_str(&line) {
            Ok(Request::Cancel { job }) => abort.cancel(job),
            Ok(request) => {
                if requests.send(request).is_err() {
                    break;
                }
            }
            Err(_) => {}
        }
    }
    drop(requests);
    abort.flag.store(true, Ordering::SeqCst);
    abort.ended.store(true, Ordering::SeqCst);
    std::thread::sleep(FAREWELL);
    exit_now()
}

/// Ends the process without running destructors under the feet of a thread that computes.
pub(super) fn exit_now() -> ! {
    #[cfg(unix)]
    // SAFETY: ends the process; nothing runs afterwards.
    unsafe {
        libc::_exit(0)
    }
    #[cfg(not(unix))]
    std::process::exit(0)
}
