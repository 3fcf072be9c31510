//! The end of a worker, and what it has to forget before: also of a model that nobody can ask any more.
//!
//! Invariant: what was deleted is not saved, whoever ends the worker and however late.

use std::sync::Weak;

use lectern_core::ConversationId;

use super::{Shared, Worker};
use crate::protocol::Request;
use crate::saved::forget_conversations;

/// A model for as long as anything of it lives: a turn may still use it, and its worker saves what it knows when the
/// last one has let go of it.
#[derive(Clone, Debug)]
pub struct Lingering(pub(super) Weak<Shared>);

impl Lingering {
    /// Whether its worker has ended for good.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Ends the worker; see [`crate::LocalModel::unload`]. When it is ending already, this waits for it.
    pub async fn unload(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.unload().await;
        }
    }

    /// Forgets what was deleted meanwhile ([`crate::LocalOptions::deleted`]), in memory and on disk. Without it that
    /// happens before the worker ends.
    pub async fn forget_deleted(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.forget_deleted().await;
        }
    }

    /// Forgets what the worker keeps of a conversation; see [`crate::LocalModel::forget`].
    pub async fn forget(&self, conversation: Option<&ConversationId>) {
        if let Some(shared) = self.0.upgrade() {
            shared.forget(conversation).await;
        }
    }
}

impl Shared {
    pub(super) async fn unload(&self) {
        self.interrupt();
        self.worker.lock().await.unload(self).await;
    }

    pub(super) async fn forget_deleted(&self) {
        let mut worker = self.worker.lock().await;
        let jobs = worker.tell_deleted(self).await;
        if let Some(child) = &mut worker.child {
            for job in jobs {
                child.event_of(job).await;
            }
        }
    }

    pub(super) async fn forget(&self, conversation: Option<&ConversationId>) {
        let mut worker = self.worker.lock().await;
        if let Some(child) = &mut worker.child
            && !child.has_ended()
        {
            let job = child.next_job();
            let conversation = conversation.map(|id| id.0.clone());
            child.send(&Request::Forget { job, conversation }).await;
            child.event_of(job).await;
        }
    }
}

impl Worker {
    /// Ends the worker after it has saved what it keeps, but for what was deleted.
    pub(super) async fn unload(&mut self, shared: &Shared) {
        self.loaded = false;
        // It does what it was told before it sees that no more will come.
        self.tell_deleted(shared).await;
        if let Some(child) = self.child.take() {
            child.finish().await;
        }
        // What was deleted while it saved.
        let (late, told) = shared.deleted.since(self.told);
        self.told = told;
        if let Some(folder) = &shared.cache.folder
            && let Err(error) = forget_conversations(folder, late.iter().map(String::as_str))
        {
            tracing::warn!(%error, "a state of a deleted conversation");
        }
    }

    /// Tells it to forget what was deleted since it was told the last time; gives the numbers of the jobs.
    pub(super) async fn tell_deleted(&mut self, shared: &Shared) -> Vec<u64> {
        let (names, told) = shared.deleted.since(self.told);
        let mut jobs = Vec::new();
        let Some(child) = &mut self.child else { return jobs };
        if child.has_ended() {
            return jobs;
        }
        self.told = told;
        for conversation in names {
            let job = child.next_job();
            child.send(&Request::Forget { job, conversation: Some(conversation) }).await;
            jobs.push(job);
        }
        jobs
    }
}
