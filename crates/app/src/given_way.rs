//! Models that gave way to another one while a turn still used them.
//!
//! Invariant: one that is wanted again is not loaded twice, and what it knows is on disk before its file is opened anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lectern_core::ModelId;
use lectern_local::{Lingering, LocalModel};

use crate::models::Model;

/// Those that are not gone yet.
#[derive(Default)]
pub(crate) struct GivenWay(Mutex<Vec<LetGo>>);

#[derive(Clone)]
struct LetGo {
    model: Model,
    open: Weak<LocalModel>,
    lingering: Lingering,
}

impl GivenWay {
    /// Lets a model go. What it has not saved yet is saved before the next one takes the memory; a turn that uses it
    /// keeps it for as long as it runs.
    pub(crate) async fn put(&self, model: Model, open: Arc<LocalModel>) {
        if Arc::strong_count(&open) == 1 {
            open.unload().await;
            return;
        }
        let lingering = open.lingering();
        let mut all = self.all();
        all.retain(|one| !one.lingering.is_gone());
        all.push(LetGo { model, open: Arc::downgrade(&open), lingering });
    }

    /// The same model, when a turn still uses it. Else its worker has ended when this returns.
    pub(crate) async fn take_back(&self, model: &Model) -> Option<Arc<LocalModel>> {
        let same: Vec<LetGo> = self.all().iter().filter(|one| one.model.loads_like(model)).cloned().collect();
        for one in same {
            if let Some(open) = one.open.upgrade() {
                self.all().retain(|other| !other.open.ptr_eq(&one.open));
                return Some(open);
            }
            one.lingering.unload().await;
        }
        None
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, id: &ModelId) -> bool {
        self.all().iter().any(|one| one.model.id == *id && !one.lingering.is_gone())
    }

    /// What there is to do about them.
    pub(crate) fn lingering(&self) -> Vec<Lingering> {
        self.all().iter().map(|one| one.lingering.clone()).collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<LetGo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
