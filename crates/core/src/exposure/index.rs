//! The short list of names that stands for many tools, and the tool that finds others of it.
//!
//! Invariant: the list depends on the tools alone, so it stays the same while they do, and it has a bounded length.

use std::fmt::Write as _;

use serde_json::json;

use crate::ids::ToolName;
use crate::tool::{ToolAnnotations, ToolSpec};

/// The public name of the tool that finds others.
pub const FINDER: &str = "lectern__find_tools";

/// The argument of the finder.
pub(crate) const FINDER_QUERY: &str = "query";

/// Bytes of the list at most; about 3,000 tokens.
const LONGEST: usize = 12 * 1024;

/// The list of all tools by name.
pub(crate) fn index(tools: &[ToolSpec]) -> String {
    let mut out = format!(
        "There are {} tools. The definitions that fit a question best are shown with it. To see others, call \
         `{FINDER}` with a name of this list or with words:",
        tools.len()
    );
    for (written, spec) in tools.iter().enumerate() {
        let separator = if starts_group(tools, written) { "\n- " } else { ", " };
        if out.len() + spec.name.as_str().len() > LONGEST {
            let _ = write!(out, "\n- and {} more", tools.len() - written);
            break;
        }
        out.push_str(separator);
        out.push_str(spec.name.as_str());
    }
    out
}

/// Tools of one server share a line.
fn starts_group(tools: &[ToolSpec], at: usize) -> bool {
    match (at.checked_sub(1).and_then(|before| tools.get(before)), tools.get(at)) {
        (Some(before), Some(here)) => before.server != here.server,
        (None, _) | (_, None) => true,
    }
}

/// The tool that finds others. The turn answers it itself.
pub(crate) fn finder() -> ToolSpec {
    ToolSpec {
        name: FINDER.into(),
        server: "lectern".into(),
        original_name: "find_tools".to_owned(),
        title: None,
        description:
            "Shows the definitions of tools from the list of names. Call it when the tool you need is in \
                      the list but not defined yet."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                FINDER_QUERY: {"type": "string", "description": "Names from the list, or words that say what is needed"},
            },
            "required": [FINDER_QUERY],
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() },
        trusted: true,
    }
}

/// Whether a call is for the finder, and no server has a tool of that name.
pub(crate) fn is_finder(tool: &ToolName, tools: &[ToolSpec]) -> bool {
    tool.as_str() == FINDER && !tools.iter().any(|spec| spec.name == *tool)
}
