//! Sorts listed tools into those that are offered and those that wait for the user.
//!
//! Invariant: a tool that is withheld is never offered and never called; its place among the names stays taken.

use lectern_core::{ToolName, ToolSpec};
use serde_json::Value;

use super::{Approval, Standing, ToolDefinition};
use crate::config::ServerConfig;

/// A tool that the user has not seen as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReview {
    /// The tool.
    pub spec: ToolSpec,
    /// Why.
    pub standing: Standing,
    /// Its definition as it is now.
    pub definition: ToolDefinition,
}

impl ToolReview {
    /// Why it can't be called, when it can't.
    pub(crate) fn withheld(&self, tool: &ToolName) -> Option<String> {
        if self.spec.name != *tool {
            return None;
        }
        let why = match &self.standing {
            Standing::Known | Standing::New => return None,
            Standing::Changed { .. } => "has changed since the user approved its server",
            Standing::Invisible => "has invisible characters in its definition",
        };
        Some(format!(
            "The tool `{tool}` {why}. It is switched off until the user has looked at it in the settings; nothing was done."
        ))
    }

    /// The same for a list of what is wrong with a server.
    fn reason(&self) -> Option<String> {
        let name = super::visible(&self.spec.original_name);
        match &self.standing {
            Standing::Known | Standing::New => None,
            Standing::Changed { before: Value::Null } => {
                Some(format!("tool `{name}`: not known to be as approved"))
            }
            Standing::Changed { .. } => Some(format!("tool `{name}`: changed since it was approved")),
            Standing::Invisible => Some(format!("tool `{name}`: invisible characters in its definition")),
        }
    }
}

/// The tools that are offered, those that were not seen as they are, and what to say about those that are withheld.
pub(crate) fn review(
    approval: &dyn Approval,
    config: &ServerConfig,
    listed: Vec<(ToolSpec, ToolDefinition)>,
) -> (Vec<ToolSpec>, Vec<ToolReview>, Vec<String>) {
    let (specs, definitions): (Vec<ToolSpec>, Vec<ToolDefinition>) = listed.into_iter().unzip();
    let mut standings = approval.review(config, &definitions).into_iter();
    let (mut offered, mut unseen) = (Vec::new(), Vec::new());
    for (mut spec, definition) in specs.into_iter().zip(definitions) {
        // An answer that is missing is no approval.
        let standing = standings.next().unwrap_or(Standing::Changed { before: Value::Null });
        if standing == Standing::Known {
            offered.push(spec);
            continue;
        }
        // What it claims of itself was approved by nobody.
        spec.trusted = false;
        if !standing.is_withheld() {
            offered.push(spec.clone());
        }
        unseen.push(ToolReview { spec, standing, definition });
    }
    let reasons = unseen.iter().filter_map(ToolReview::reason).collect();
    (offered, unseen, reasons)
}
