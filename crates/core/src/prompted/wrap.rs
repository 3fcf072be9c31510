//! Makes a model that knows no tools look like one that does.

use std::sync::Arc;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::model::{ChatModel, ChatRequest, Delta, ModelError, ModelInfo};

/// A model with tools brought by the prompt.
pub struct Prompted {
    model: Arc<dyn ChatModel>,
}

impl Prompted {
    /// Wraps a model.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self { model }
    }
}

impl ChatModel for Prompted {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        self.model.stream(request, cancel)
    }
}
