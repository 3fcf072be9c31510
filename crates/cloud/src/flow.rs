//! A stream out of a future that says one thing after the other.
//!
//! Invariant: everything happens inside the stream's own polls, so dropping the stream ends the work at once; no more
//! than a few things wait to be read.

use std::future::Future;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use lectern_core::{Delta, ModelError};
use tokio::sync::mpsc;

const WAITING: usize = 64;

/// Where the future says its things. What is said after the stream was dropped goes nowhere.
#[derive(Clone)]
pub(crate) struct Out(mpsc::Sender<Result<Delta, ModelError>>);

impl Out {
    pub(crate) async fn send(&self, item: Result<Delta, ModelError>) {
        // Nobody listens any more: the future is about to be dropped too.
        let _ = self.0.send(item).await;
    }
}

/// The stream of what `work` says.
pub(crate) fn stream_of<F, W>(work: W) -> BoxStream<'static, Result<Delta, ModelError>>
where
    F: Future<Output = ()> + Send + 'static,
    W: FnOnce(Out) -> F,
{
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let mut work = Some(Box::pin(work(Out(sender))));
    stream::poll_fn(move |context| {
        if let Poll::Ready(Some(item)) = receiver.poll_recv(context) {
            return Poll::Ready(Some(item));
        }
        if let Some(running) = &mut work {
            if running.as_mut().poll(context).is_pending() {
                return match receiver.poll_recv(context) {
                    Poll::Ready(Some(item)) => Poll::Ready(Some(item)),
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                };
            }
            work = None;
        }
        receiver.poll_recv(context)
    })
    .boxed()
}
