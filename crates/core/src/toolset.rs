//! Joins several tool providers into one.
//!
//! Invariant: the order of the tools is the order of the providers; of two tools with one name the first one counts.

use std::collections::HashSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::message::{ToolCall, ToolOutcome, ToolResult};
use crate::tool::{CallContext, ToolProvider, ToolSpec};

/// Several providers as one.
#[derive(Clone, Default)]
pub struct ToolSet {
    providers: Vec<Arc<dyn ToolProvider>>,
}

impl ToolSet {
    /// The providers in the order in which their tools are offered.
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Self {
        Self { providers: providers.into_iter().collect() }
    }
}

impl ToolProvider for ToolSet {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let mut seen = HashSet::new();
        let mut out = Vec::new();
        for provider in &self.providers {
            for spec in provider.tools().iter() {
                if seen.insert(spec.name.clone()) {
                    out.push(spec.clone());
                }
            }
        }
        out.into()
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let offers =
            |provider: &&Arc<dyn ToolProvider>| provider.tools().iter().any(|spec| spec.name == call.tool);
        match self.providers.iter().find(offers) {
            Some(provider) => provider.call(call, context),
            None => {
                let text = format!("The tool `{}` is no longer there.", call.tool);
                let gone = ToolResult::of(&call, ToolOutcome::Failed, text);
                async move { gone }.boxed()
            }
        }
    }
}
