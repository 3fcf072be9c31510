//! The worker of a model: started, loaded, and its death looked into.
//!
//! Invariant: a file that kills its worker twice is refused; deaths of code that the processor cannot run do not count.

use std::time::Duration;

use lectern_core::{Delta, ModelError, ModelErrorCode};

use super::failure::{bad_file, error};
use super::waiting::Waited;
use super::{ReplyTask, Stop};
use crate::child::{Child, Death};
use crate::gguf::read_info;
use crate::model::Worker;
use crate::protocol::{Event, Load, Request};
use crate::saved::sweep_process;

/// A load that says nothing for so long hangs.
const SILENT_LOAD: Duration = Duration::from_secs(120);

impl ReplyTask {
    /// Loads the model if it is not. A process that dies over it is replaced once: memory that was short or a driver
    /// that failed may be there the next time. A file that kills it each time is refused after that.
    pub(super) async fn ready(&self, worker: &mut Worker, child: &mut Child) -> Result<(), Stop> {
        if worker.loaded {
            return Ok(());
        }
        let mut once_more = true;
        loop {
            let error = match self.load(child).await {
                Ok(notes) => {
                    worker.notes = notes;
                    worker.loaded = true;
                    return Ok(());
                }
                Err(Stop::Dead(error)) if once_more => error,
                Err(Stop::Dead(error)) => {
                    let message = format!("{} (it was tried twice)", error.message);
                    ModelError { message, ..error }
                }
                Err(stop @ (Stop::Failed(_) | Stop::Cancelled(_))) => return Err(stop),
            };
            // One that hangs is alive, and would hang for as long again.
            let ended = child.has_ended();
            if !ended || child.unfit().await.is_none() && !std::mem::take(&mut once_more) {
                return Err(Stop::Dead(error));
            }
            let Ok(fresh) = Child::start(&self.shared.command) else { return Err(Stop::Dead(error)) };
            let death = self.bury(std::mem::replace(child, fresh)).await;
            tracing::warn!(status = death.status, "a model's process died while it loaded; once more");
            self.tell_restart(&death.why("it died while it loaded the model"));
        }
    }

    /// Says that a new process goes on in place of one that died.
    pub(super) fn tell_restart(&self, why: &str) {
        let message = format!("the model's process was started anew: {why}");
        self.send(Ok(Delta::Notice { code: "model_reloaded".to_owned(), message }));
    }

    async fn load(&self, child: &mut Child) -> Result<Vec<String>, Stop> {
        let path = self.shared.path.clone();
        let checked = tokio::task::spawn_blocking(move || read_info(&path)).await;
        if let Ok(Err(fault)) = checked {
            return Err(Stop::Failed(bad_file(&fault)));
        }
        let (path, context, speed) =
            (self.shared.path.clone(), self.shared.context, self.shared.speed.clone());
        let job = child.next_job();
        let format = self.shared.format.clone();
        let cache = self.shared.cache.clone();
        let projector = self.shared.projector.clone();
        child
            .send(&Request::Load(Box::new(Load { job, path, context, speed, format, cache, projector })))
            .await;
        self.send(Ok(Delta::Loading(0.0)));
        loop {
            match self.wait(child, job, Some(SILENT_LOAD)).await {
                Waited::Event(Event::Loading { part, .. }) => self.send(Ok(Delta::Loading(part))),
                Waited::Event(Event::Loaded { notes, .. }) => return Ok(notes),
                Waited::Event(Event::Failed { error, .. }) => return Err(Stop::Failed(self.explain(error))),
                Waited::Event(_) => {}
                Waited::Cancelled => return Err(Stop::Cancelled(job)),
                Waited::Died => return Err(Stop::Dead(self.refused("llama.cpp crashed"))),
                Waited::Silent => return Err(Stop::Dead(self.refused("loading it does not come to an end"))),
            }
        }
    }

    /// Finds out how a worker died, and removes the temporary file that it may have been writing.
    pub(super) async fn bury(&self, child: Child) -> Death {
        let process = child.id();
        let death = child.autopsy().await;
        if let (Some(process), Some(folder)) = (process, &self.shared.cache.folder) {
            sweep_process(folder, process);
        }
        death
    }

    pub(super) async fn take_child(&self, worker: &mut Worker) -> Option<Child> {
        if let Some(mut child) = worker.child.take() {
            if !child.has_ended() {
                return Some(child);
            }
            let death = self.bury(child).await;
            if death.unfit.is_some() {
                self.tell_restart(&death.why("it died at rest"));
            }
        }
        worker.loaded = false;
        match Child::start(&self.shared.command) {
            Ok(child) => Some(child),
            Err(cause) => {
                self.send(Err(error(
                    ModelErrorCode::ModelCrashed,
                    format!("start the model's process: {cause}"),
                )));
                None
            }
        }
    }
}
