//! Stands for a model that can't be used: every reply is the reason.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use lectern_core::{ChatModel, ChatRequest, Delta, ModelError, ModelErrorCode, ModelId, ModelInfo, ToolMode};
use tokio_util::sync::CancellationToken;

use crate::view::Problem;

/// A model that can't answer, and why.
pub struct Unusable {
    info: ModelInfo,
    problem: Problem,
    code: ModelErrorCode,
}

impl Unusable {
    /// With the reason.
    pub fn new(id: ModelId, problem: Problem) -> Self {
        let info = ModelInfo {
            name: id.0.clone(),
            id,
            tool_mode: ToolMode::Native,
            context_length: None,
            // So that a question with images is kept, and the reason told.
            vision: true,
            remote: false,
        };
        Self { info, problem, code: ModelErrorCode::BadModelFile }
    }

    /// A model of a provider, with the reason.
    pub fn remote(info: ModelInfo, problem: Problem) -> Self {
        let code = match problem.code.as_str() {
            "bad_provider" | "bad_address" | "unknown_provider" | "no_project" => ModelErrorCode::BadRequest,
            _ => ModelErrorCode::Unauthorized,
        };
        Self { info, problem, code }
    }
}

impl ChatModel for Unusable {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, _: ChatRequest, _: CancellationToken) -> BoxStream<'static, Result<Delta, ModelError>> {
        let error = ModelError {
            code: self.code,
            message: self.problem.message.clone(),
            hint: self.problem.hint.clone(),
            detail: None,
        };
        stream::iter([Err(error)]).boxed()
    }
}
