//! Failures of workers in the words of the core: a code, a sentence, a hint.
//!
//! Invariant: every failure says what to do where there is something to do.

use lectern_core::{ModelError, ModelErrorCode};
use serde_json::json;

use super::ReplyTask;
use crate::child::Death;
use crate::gguf::{FileFault, ModelFileError};
use crate::protocol::WorkerError;

impl ReplyTask {
    pub(super) fn refused(&self, reason: &str) -> ModelError {
        bad_file(&ModelFileError::new(&self.shared.path, FileFault::Refused(reason.to_owned())))
    }

    pub(super) fn explain(&self, failure: WorkerError) -> ModelError {
        match failure {
            WorkerError::Load { reason } => self.refused(&reason),
            WorkerError::ContextFull { needed, available } => ModelError {
                hint: Some(
                    "Start a new conversation, or give the model a larger context in Settings.".to_owned(),
                ),
                detail: Some(json!({ "needed": needed, "available": available })),
                ..error(ModelErrorCode::ContextFull, failure_text(needed, available))
            },
            WorkerError::Refused { reason } => error(ModelErrorCode::BadRequest, reason),
            WorkerError::Compute { reason } => error(ModelErrorCode::ModelCrashed, reason),
            WorkerError::Cancelled => error(ModelErrorCode::ModelCrashed, "the load was stopped".to_owned()),
        }
    }
}

fn failure_text(needed: u32, available: u32) -> String {
    WorkerError::ContextFull { needed, available }.to_string()
}

pub(super) fn error(code: ModelErrorCode, message: String) -> ModelError {
    ModelError { code, message, hint: None, detail: None }
}

pub(super) fn bad_file(fault: &ModelFileError) -> ModelError {
    ModelError {
        hint: Some("Choose another model file, or download this one again.".to_owned()),
        ..error(ModelErrorCode::BadModelFile, fault.to_string())
    }
}

pub(super) fn with_death(mut error: ModelError, death: &Death) -> ModelError {
    error.message = format!("{} ({})", error.message, death.status);
    error.hint.get_or_insert_with(|| match &death.unfit {
        Some(kind) => format!(
            "This processor cannot run the code for {kind}. Send the message again; the next best is used."
        ),
        None => "Send the message again; the model is started anew.".to_owned(),
    });
    error.detail = Some(json!({ "status": death.status, "log": death.lines }));
    error
}
