//! What is asked of a model beside replies: to read what is likely to be asked, to count.
//!
//! Invariant: nothing of it is shown; a worker that dies over it is replaced by the next reply.

use std::sync::Arc;

use lectern_core::{ChatRequest, ModelError, ModelErrorCode};
use tokio_util::sync::CancellationToken;

use super::failure::{error, with_death};
use super::waiting::last_event;
use super::{ReplyTask, Stop};
use crate::child::Child;
use crate::model::ahead::Ticket;
use crate::model::{Shared, Worker};
use crate::protocol::{Event, Request};

impl ReplyTask {
    /// Loads the model and reads what two requests begin with in common, until it is stopped. A load is stopped only
    /// when nobody can ask the model any more.
    pub(in crate::model) async fn read_ahead(
        shared: Arc<Shared>,
        [one, other]: [ChatRequest; 2],
        ticket: &Ticket,
        stopped: impl Future<Output = ()>,
    ) {
        let (out, _unread) = tokio::sync::mpsc::unbounded_channel();
        let other = Self::new(Arc::clone(&shared), other, CancellationToken::new(), out.clone());
        let mut task = Self::new(Arc::clone(&shared), one, shared.retired.clone(), out);
        let mut stopped = std::pin::pin!(stopped);
        let mut worker = tokio::select! {
            biased;
            () = &mut stopped => return,
            worker = shared.worker.lock() => worker,
        };
        if !shared.is_latest(ticket) {
            return;
        }
        let Some(mut child) = task.take_child(&mut worker).await else { return };
        match task.read_common(&mut worker, &mut child, &other, stopped).await {
            Ok(()) | Err(Stop::Failed(_)) => worker.child = Some(child),
            Err(Stop::Dead(_)) => {
                worker.loaded = false;
                task.bury(child).await;
            }
            Err(Stop::Cancelled(job)) => task.settle(&mut worker, child, job).await,
        }
    }

    async fn read_common(
        &self,
        worker: &mut Worker,
        child: &mut Child,
        other: &Self,
        stopped: impl Future<Output = ()>,
    ) -> Result<(), Stop> {
        self.ready(worker, child).await?;
        let job = child.next_job();
        let (one, other) = (self.generate(job), other.generate(job));
        let (one, other) = (Box::new(one), Box::new(other));
        child.send(&Request::ReadAhead { job, one, other }).await;
        tokio::select! {
            biased;
            () = stopped => {
                child.send(&Request::Cancel { job }).await;
                Err(Stop::Cancelled(job))
            }
            last = last_event(child, job) => match last {
                Some(_) => Ok(()),
                None => Err(Stop::Dead(error(ModelErrorCode::ModelCrashed, "it died while it read".to_owned()))),
            },
        }
    }

    /// Counts the tokens of the prompt that this request would have.
    pub(in crate::model) async fn count(
        shared: Arc<Shared>,
        request: ChatRequest,
    ) -> Result<u32, ModelError> {
        // Progress of a load is shown by the reply that follows.
        let (out, _unread) = tokio::sync::mpsc::unbounded_channel();
        let task = Self::new(Arc::clone(&shared), request, CancellationToken::new(), out);
        let mut worker = shared.worker.lock().await;
        let crashed = || error(ModelErrorCode::ModelCrashed, "the model's process did not start".to_owned());
        let mut child = task.take_child(&mut worker).await.ok_or_else(crashed)?;
        match task.counted(&mut worker, &mut child).await {
            Ok(tokens) => {
                worker.child = Some(child);
                Ok(tokens)
            }
            Err(Stop::Failed(error)) => {
                worker.child = Some(child);
                Err(error)
            }
            Err(Stop::Dead(error)) => {
                worker.loaded = false;
                let death = task.bury(child).await;
                Err(with_death(error, &death))
            }
            // Nobody can cancel this task.
            Err(Stop::Cancelled(_)) => Err(crashed()),
        }
    }

    async fn counted(&self, worker: &mut Worker, child: &mut Child) -> Result<u32, Stop> {
        self.ready(worker, child).await?;
        let job = child.next_job();
        child.send(&Request::Count(Box::new(self.generate(job)))).await;
        loop {
            match child.event_of(job).await {
                Some(Event::Counted { tokens, .. }) => return Ok(tokens),
                Some(Event::Failed { error, .. }) => return Err(Stop::Failed(self.explain(error))),
                Some(_) => {}
                None => {
                    let what = "the model's process died while it counted".to_owned();
                    return Err(Stop::Dead(error(ModelErrorCode::ModelCrashed, what)));
                }
            }
        }
    }
}
