//! How tools are described to a model whose template knows none.

use serde_json::{Value, json};

/// The instructions that list the tools and the form of a call.
pub fn instructions(tools: &[Value]) -> String {
    let mut out = String::from(
        "You can use tools. To call a tool, answer with nothing but the call, in this form:\n\
         <tool_call>\n{\"name\": \"the tool's name\", \"arguments\": {\"argument\": \"value\"}}\n</tool_call>\n\
         Then stop and wait for the result. Several calls may follow each other. When you know enough, answer \
         in plain text.\n\nThe tools:\n",
    );
    for tool in tools {
        if let Some(function) = tool.get("function") {
            out.push_str(&function.to_string());
            out.push('\n');
        }
    }
    out
}

/// The JSON Schema of one call of any of the tools, to force one.
pub(crate) fn any_call_schema(tools: &[Value]) -> Value {
    let one = |tool: &Value| {
        let function = tool.get("function")?;
        let empty = || json!({ "type": "object", "properties": {} });
        Some(json!({
            "type": "object",
            "properties": {
                "name": { "const": function.get("name")? },
                "arguments": function.get("parameters").cloned().unwrap_or_else(empty),
            },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        }))
    };
    let calls: Vec<Value> = tools.iter().filter_map(one).collect();
    json!({ "anyOf": calls })
}
