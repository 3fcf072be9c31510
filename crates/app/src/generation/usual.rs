//! What holds for a model of which nothing is set.
//!
//! Invariant: pure; by the kind and the size of the model alone. The table is in docs/tools.md.

use lectern_core::{ToolExposure, ToolSpec};
use serde_json::{Map, Value, json};

/// Parameters up to which a model gets tools only while it decides: with definitions before them all the time they call
/// without need, or answer nothing once a result is there.
const SMALL: u64 = 9_000_000_000;

/// Tools from which on they are chosen by relevance.
const MANY: usize = 24;

/// What is known of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The built-in one, or other weights of it.
    pub starter: bool,
    /// Number of weights; none when unknown.
    pub parameters: Option<u64>,
    /// Tokens that it was trained to keep in view.
    pub trained: Option<u32>,
}

/// The values that hold unless something else is set.
pub fn usual(known: Known) -> Map<String, Value> {
    let values = if known.starter {
        // It can only copy, so the likeliest token is the right one, and a reply that does not end is a loop. It was
        // trained with its tools in their usual place.
        json!({"temperature": 0.0, "max_tokens": 1024, "tools": "always"})
    } else {
        let small = known.parameters.is_some_and(|parameters| parameters <= SMALL);
        json!({"tools": if small { "deciding" } else { "always" }, "relevant_tools": 8, "gate": false})
    };
    values.as_object().cloned().unwrap_or_default()
}

/// The exposure for these tools, where the user left it to us: many tools are chosen by relevance.
pub fn exposure(usual: ToolExposure, tools: &[ToolSpec], context: Option<u32>) -> ToolExposure {
    let bytes: usize =
        tools.iter().map(|spec| spec.description.len() + spec.input_schema.to_string().len()).sum();
    // About four bytes to a token; definitions may take a quarter of the context.
    let too_long = context.is_some_and(|context| bytes > context as usize);
    match usual {
        ToolExposure::Always | ToolExposure::Deciding | ToolExposure::LastUser
            if tools.len() > MANY || too_long =>
        {
            ToolExposure::Relevant
        }
        usual => usual,
    }
}
