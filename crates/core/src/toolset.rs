//! Joins several tool providers into one.
//!
//! Invariant: the order of the tools is the order of the providers; of two tools with one name the first one counts.

use std::collections::HashSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::ids::ToolName;
use crate::message::{JsonObject, ToolCall, ToolOutcome, ToolResult};
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

impl ToolSet {
    fn offering(&self, tool: &ToolName) -> Option<&Arc<dyn ToolProvider>> {
        self.providers.iter().find(|provider| provider.tools().iter().any(|spec| spec.name == *tool))
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

    fn withheld(&self, tool: &ToolName) -> Option<String> {
        self.providers.iter().find_map(|provider| provider.withheld(tool))
    }

    fn hands_over(&self, tool: &ToolName) -> bool {
        self.offering(tool).is_some_and(|provider| provider.hands_over(tool))
    }

    fn masked(&self, call: &ToolCall) -> JsonObject {
        match self.offering(&call.tool) {
            Some(provider) => provider.masked(call),
            None => call.arguments.clone(),
        }
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        match self.offering(&call.tool) {
            Some(provider) => provider.call(call, context),
            None => {
                let text = format!("The tool `{}` is no longer there.", call.tool);
                let gone = ToolResult::of(&call, ToolOutcome::Failed, text);
                async move { gone }.boxed()
            }
        }
    }
}
