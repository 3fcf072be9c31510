//! Brings one file here: asks for what is missing, goes on after a break, checks what came.
//!
//! A part is gone on with only when the server can tell whether the file is still the same (`If-Range`, RFC 9110,
//! section 13.1.5), or the checksum of the whole is known. Invariant: a file that is called whole has the size and the
//! checksum that the host named, as far as it named them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Response, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::hub::{check_magic, content_range, refuse_page};
use crate::record::FileRecord;
use crate::sink::{Sink, Written, read_written};
use crate::units::time;
use crate::web::{Reply, Rest, Web, host_of, mark_of, plain};

/// How often, and how patiently.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Tries without a single byte before it is given up.
    pub tries: u32,
    /// The first pause; each is twice as long as the one before.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

/// What the disk keeps free.
#[derive(Clone, Copy, Debug)]
pub struct Reserve(pub u64);

/// Bytes between two looks at the free space.
const SPACE_STEP: u64 = 64 << 20;
/// Bytes that tell what a file is.
const MAGIC_BYTES: usize = 4;

/// How far it is, for those who watch.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Bytes of the present file.
    pub(crate) done: AtomicU64,
    // A std mutex: nothing awaits while it is held.
    notice: Mutex<Option<String>>,
}

impl Live {
    pub(crate) fn notice(&self) -> Option<String> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn say(&self, text: Option<String>) {
        *self.notice.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn set(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
    }
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Whole,
    Stopped,
}

/// One file on its way.
pub(crate) struct Transfer<'a> {
    pub(crate) web: &'a Web,
    pub(crate) file: &'a mut FileRecord,
    pub(crate) part: &'a Path,
    pub(crate) live: &'a Live,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) retry: Retry,
    pub(crate) reserve: Reserve,
    /// Keeps what was learned of the file.
    pub(crate) keep: &'a (dyn Fn(&FileRecord) -> Result<(), Fault> + Sync),
}

/// What came of one request.
enum Attempt {
    Whole(Written),
    /// What is here can't be gone on with.
    Anew(&'static str),
    Stopped,
}

impl Transfer<'_> {
    /// Does not return before the file is whole, was stopped, or can't be had.
    pub(crate) async fn run(&mut self) -> Result<Ended, Fault> {
        let Some(mut there) = self.found().await? else { return Ok(Ended::Stopped) };
        let (mut tries, mut anew) = (0, 0);
        let mut continued = there.bytes > 0;
        loop {
            self.live.set(there.bytes);
            let before = there.bytes;
            let failed = match self.attempt(&mut there).await {
                Ok(Attempt::Stopped) => return Ok(Ended::Stopped),
                Ok(Attempt::Whole(written)) => match self.verify(&written) {
                    Ok(()) => return Ok(Ended::Whole),
                    Err(fault) => {
                        self.discard();
                        if !continued {
                            return Err(fault);
                        }
                        // The first part may be of another file than the rest; from one piece it may be right.
                        (continued, there) = (false, Written::default());
                        self.live.say(Some("the checksum was wrong; it starts anew".into()));
                        continue;
                    }
                },
                Ok(Attempt::Anew(why)) => {
                    self.live.say(Some(why.to_owned()));
                    (continued, there, anew) = (false, Written::default(), anew + 1);
                    self.file.mark = None;
                    if anew <= self.retry.tries {
                        continue;
                    }
                    let host = host_of(&self.file.url);
                    Fault::Senseless { host, what: "it changes with every request".into() }
                }
                Err(fault) => fault,
            };
            continued |= there.bytes > 0;
            tries = if there.bytes > before { 1 } else { tries + 1 };
            if !failed.passes() || tries > self.retry.tries {
                return Err(failed);
            }
            if !self.pause(tries, &failed).await {
                return Ok(Ended::Stopped);
            }
        }
    }

    /// What an earlier run left; none when it was stopped.
    async fn found(&mut self) -> Result<Option<Written>, Fault> {
        let length = std::fs::metadata(self.part).map_or(0, |meta| meta.len());
        let known = self.file.mark.is_some() || self.file.sha256.is_some();
        let fits = self.file.size.is_none_or(|size| length <= size);
        if length == 0 || !known || !fits {
            return Ok(Some(Written::default()));
        }
        let read = read_written(self.part.to_owned(), self.stop.clone()).await;
        read.map_err(|error| Fault::file(self.part, error))
    }

    async fn attempt(&mut self, there: &mut Written) -> Result<Attempt, Fault> {
        if there.bytes > 0 && self.file.size == Some(there.bytes) {
            return Ok(Attempt::Whole(there.clone()));
        }
        self.check_space(there.bytes)?;
        let rest =
            (there.bytes > 0).then(|| Rest { from: there.bytes, unless_changed: self.file.mark.clone() });
        let url = self.file.url.clone();
        let reply = tokio::select! {
            reply = self.web.get(&url, rest.as_ref(), &self.file.name) => reply?,
            () = self.stop.cancelled() => return Ok(Attempt::Stopped),
        };
        if let Some(why) = self.read_head(&reply, there)? {
            return match why {
                Head::Anew(why) => Ok(Attempt::Anew(why)),
                Head::Whole => Ok(Attempt::Whole(there.clone())),
            };
        }
        self.check_space(there.bytes)?;
        self.receive(reply.response, there).await
    }

    /// What the head of an answer says of what is here.
    fn read_head(&mut self, reply: &Reply, there: &mut Written) -> Result<Option<Head>, Fault> {
        let (headers, host) = (reply.response.headers(), &reply.host);
        let mark = mark_of(headers);
        let length = reply.response.content_length();
        match reply.response.status() {
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let whole = self.file.size.is_none() && total_behind_star(headers) == Some(there.bytes);
                return Ok(Some(if whole {
                    Head::Whole
                } else {
                    Head::Anew("the server has no such rest; it starts anew")
                }));
            }
            StatusCode::PARTIAL_CONTENT => {
                let range = content_range(headers);
                let other =
                    |new: &Option<String>, old: &Option<String>| new.is_some() && old.is_some() && new != old;
                if other(&mark, &self.file.mark) || other(&reply.sha256, &self.file.sha256) {
                    return Ok(Some(Head::Anew("the file changed on the server; it starts anew")));
                }
                let Some((first, total)) = range.filter(|(first, _)| *first == there.bytes) else {
                    self.file.mark = None;
                    return Ok(Some(Head::Anew(
                        "the server sent another part than it was asked for; it starts anew",
                    )));
                };
                self.learn_size(total.or(length.map(|length| first + length)))?;
            }
            _ => {
                refuse_page(headers, host)?;
                if there.bytes > 0 {
                    let same = mark.is_some() && mark == self.file.mark;
                    let why = match same {
                        true => "the server can't go on in the middle of a file; it starts anew",
                        false => "the file changed on the server; it starts anew",
                    };
                    self.live.say(Some(why.to_owned()));
                    *there = Written::default();
                    self.live.set(0);
                }
                self.file.mark = mark;
                self.learn_anew(reply);
                self.learn_size(length)?;
                (self.keep)(self.file)?;
            }
        }
        Ok(None)
    }

    /// A whole answer of the hub says what the file is now; it may have changed since it was listed.
    fn learn_anew(&mut self, reply: &Reply) {
        if reply.sha256.is_some() {
            self.file.sha256.clone_from(&reply.sha256);
            self.file.size = reply.size;
        } else if self.file.sha256.is_none() {
            // Only an earlier answer of the same server said how long it is.
            self.file.size = None;
        }
    }

    fn learn_size(&mut self, found: Option<u64>) -> Result<(), Fault> {
        match (self.file.size, found) {
            (Some(expected), Some(found)) if expected != found => {
                Err(Fault::Size { name: self.file.name.clone(), expected, found })
            }
            (None, Some(found)) => {
                self.file.size = Some(found);
                (self.keep)(self.file)
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Writes what comes, behind what is here.
    async fn receive(&mut self, mut response: Response, there: &mut Written) -> Result<Attempt, Fault> {
        let host = host_of(&self.file.url);
        let mut begin = (there.bytes == 0).then(Vec::new);
        let mut come = there.bytes;
        let sink = Sink::open(self.part, std::mem::take(there));
        let ended = loop {
            let chunk = tokio::select! {
                biased;
                () = self.stop.cancelled() => break Ok(false),
                chunk = response.chunk() => chunk,
            };
            match chunk {
                Ok(Some(chunk)) => match self.take(chunk, &mut begin, &mut come, &sink, &host).await {
                    Ok(true) => {}
                    Ok(false) => break Ok(true),
                    Err(fault) => break Err(fault),
                },
                Ok(None) => break Ok(true),
                Err(error) if error.is_timeout() => {
                    break Err(Fault::Silent { host: host.clone(), silence: self.web.silence() });
                }
                Err(error) => break Err(Fault::Cut { host: host.clone(), reason: plain(&error) }),
            }
        };
        *there = sink.close().await.map_err(|error| self.of_disk(error))?;
        self.live.set(there.bytes);
        if !ended? {
            return Ok(Attempt::Stopped);
        }
        if let Some(begin) = begin {
            // It ended within the bytes that tell what it is.
            check_magic(&begin, &host)?;
        }
        match self.file.size {
            Some(size) if there.bytes < size => {
                Err(Fault::Cut { host, reason: format!("{} bytes are missing", size - there.bytes) })
            }
            Some(_) | None => Ok(Attempt::Whole(there.clone())),
        }
    }

    /// False when the file can't be written.
    async fn take(
        &self,
        chunk: Bytes,
        begin: &mut Option<Vec<u8>>,
        come: &mut u64,
        sink: &Sink,
        host: &str,
    ) -> Result<bool, Fault> {
        let chunk = match begin.take() {
            None => chunk,
            Some(mut held) => {
                held.extend_from_slice(&chunk);
                if held.len() < MAGIC_BYTES {
                    *begin = Some(held);
                    return Ok(true);
                }
                check_magic(&held, host)?;
                Bytes::from(held)
            }
        };
        let before = *come;
        *come += chunk.len() as u64;
        if let Some(expected) = self.file.size.filter(|size| *come > *size) {
            return Err(Fault::Size { name: self.file.name.clone(), expected, found: *come });
        }
        if *come / SPACE_STEP > before / SPACE_STEP {
            self.check_space(*come)?;
        }
        let taken = sink.put(chunk).await;
        self.live.set(*come);
        Ok(taken)
    }

    fn verify(&self, written: &Written) -> Result<(), Fault> {
        let Some(expected) = &self.file.sha256 else { return Ok(()) };
        let found = written.sha256();
        if *expected == found {
            return Ok(());
        }
        Err(Fault::Checksum { name: self.file.name.clone(), expected: expected.clone(), found })
    }

    /// Bytes of which nobody knows what they are go.
    fn discard(&mut self) {
        let _ = std::fs::remove_file(self.part);
        self.file.mark = None;
        self.live.set(0);
        // The next run begins anew either way: there is no part.
        let _ = (self.keep)(self.file);
    }

    fn check_space(&self, there: u64) -> Result<(), Fault> {
        let folder = self.part.parent().unwrap_or(Path::new("."));
        // A file system that does not tell is found out by writing.
        let Ok(free) = fs4::available_space(folder) else { return Ok(()) };
        let needed =
            self.file.size.map_or(0, |size| size.saturating_sub(there)).saturating_add(self.reserve.0);
        if free < needed {
            return Err(Fault::NoSpace { folder: folder.to_owned(), needed, free });
        }
        Ok(())
    }

    /// A disk that others filled meanwhile: what is needed is the rest of the file. What came stays.
    fn of_disk(&self, error: std::io::Error) -> Fault {
        match Fault::file(self.part, error) {
            Fault::NoSpace { folder, needed, free } => {
                let here = std::fs::metadata(self.part).map_or(0, |meta| meta.len());
                let rest =
                    self.file.size.map(|size| size.saturating_sub(here).saturating_add(self.reserve.0));
                Fault::NoSpace { folder, needed: rest.unwrap_or(needed), free }
            }
            other => other,
        }
    }

    /// Waits before the next try; false when it was stopped.
    async fn pause(&self, tries: u32, why: &Fault) -> bool {
        let doubled = self.retry.first.saturating_mul(1 << (tries - 1).min(16)).min(self.retry.longest);
        let wait = why.wait().unwrap_or(doubled);
        self.live.say(Some(format!("{why}; next try in {}", time(wait))));
        let stopped = tokio::time::timeout(wait, self.stop.cancelled()).await.is_ok();
        if !stopped {
            self.live.say(None);
        }
        !stopped
    }
}

enum Head {
    Anew(&'static str),
    Whole,
}

/// The size in `Content-Range: bytes */10` of an answer 416.
fn total_behind_star(headers: &reqwest::header::HeaderMap) -> Option<u64> {
    let text = headers.get(reqwest::header::CONTENT_RANGE)?.to_str().ok()?;
    text.trim().strip_prefix("bytes */")?.parse().ok()
}
