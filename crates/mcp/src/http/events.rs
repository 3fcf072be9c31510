//! Reads what a server answers: a bounded body, or a stream of events.
//!
//! The events are parsed by `sse-stream`, which gives each block as it came, so that ids and pauses without data are
//! seen too; here the limit is added, which a parser of a stream without an end needs.
//!
//! Invariant: no body and no event, however long, takes more memory than the limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};

/// A pause that a server asks for is at most this long.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the answer has more than the {0} bytes that are allowed")]
    TooLong(usize),
    #[error("the answer is not valid UTF-8")]
    NotText,
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// A whole body.
pub(crate) async fn body(mut response: Response, limit: usize) -> Result<Vec<u8>, ReadError> {
    let mut whole = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| ReadError::Broken(cause(&error)))? {
        if whole.len() + chunk.len() > limit {
            return Err(ReadError::TooLong(limit));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole)
}

/// The first characters of a body, for people; nothing when it can't be read.
pub(crate) async fn excerpt(mut response: Response) -> String {
    const LONGEST: usize = 16 << 10;
    let mut start = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            start.extend_from_slice(&chunk);
            if start.len() > LONGEST {
                break;
            }
        }
    };
    // A body that never ends is cut where it is, soon: whoever waits wants to hear of the status.
    let _ = tokio::time::timeout(Duration::from_secs(1), read).await;
    start.truncate(LONGEST);
    String::from_utf8_lossy(&start).into_owned()
}

/// One block of a stream.
#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) kind: Option<String>,
    pub(super) id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// What it carries; none when it only sets the id or the pause.
    pub(super) data: Option<String>,
}

type Blocks = Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>;

/// A stream of events.
pub(super) struct Events {
    blocks: Blocks,
    /// Bytes since the last event.
    unread: Arc<AtomicUsize>,
}

#[derive(Debug, thiserror::Error)]
enum ChunkError {
    #[error("too long")]
    TooLong(usize),
    #[error("{0}")]
    Broken(String),
}

impl Events {
    pub(super) fn new(response: Response, limit: usize) -> Self {
        let unread = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&unread);
        let chunks = response.bytes_stream().map(move |chunk| -> Result<Bytes, ChunkError> {
            let chunk = chunk.map_err(|error| ChunkError::Broken(cause(&error)))?;
            let before = counted.fetch_add(chunk.len(), Ordering::Relaxed);
            if before + chunk.len() > limit { Err(ChunkError::TooLong(limit)) } else { Ok(chunk) }
        });
        Self { blocks: Box::pin(SseByteStream::new(chunks)), unread }
    }

    /// The next event; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(block) = self.blocks.next().await else { return Ok(None) };
        self.unread.store(0, Ordering::Relaxed);
        let Sse { event, data, id, retry } = block.map_err(read_error)?;
        Ok(Some(Event {
            kind: event,
            // A server may write anything there; what no header can carry can't be given back.
            id: id.filter(|id| id.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && id.len() <= 1_024),
            retry: retry.map(|pause| Duration::from_millis(pause).min(LONGEST_PAUSE)),
            data: data.filter(|data| !data.trim().is_empty()),
        }))
    }
}

fn read_error(error: sse_stream::Error) -> ReadError {
    match error {
        sse_stream::Error::Utf8Parse(_) => ReadError::NotText,
        sse_stream::Error::Body(source) => match source.downcast_ref::<ChunkError>() {
            Some(ChunkError::TooLong(limit)) => ReadError::TooLong(*limit),
            Some(ChunkError::Broken(why)) => ReadError::Broken(why.clone()),
            None => ReadError::Broken(source.to_string()),
        },
        other => ReadError::Broken(other.to_string()),
    }
}

/// The innermost cause of an error of the client, without the address, which may hold secrets.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(source) = at.source() {
        at = source;
    }
    let text = at.to_string();
    if error.is_timeout() && !text.contains("timed out") { format!("timed out: {text}") } else { text }
}
