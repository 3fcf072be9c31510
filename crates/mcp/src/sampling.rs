//! MCP sampling to and from the core's messages (MCP 2025-11-25, Sampling).
//!
//! Invariant: pure. What can't be brought to a model is told in words, never dropped in silence.

use std::collections::HashMap;

use lectern_core::{
    AssistantMessage, Blob, FinishReason, Message, Part, Sample, SampleRequest, Sampling, ServerId,
    ToolAnnotations, ToolCall, ToolChoice, ToolOutcome, ToolResult, ToolSpec, UserMessage,
};
use serde_json::{Value, json};

use crate::outcome;
use crate::requests::{Refusal, shortened};

const MOST_MESSAGES: usize = 500;
const MOST_TOOLS: usize = 100;
/// Bytes of a request as JSON, images included.
const MOST_BYTES: usize = 8 << 20;
/// Tokens of one reply.
const MOST_TOKENS: u64 = 8_192;
/// Tokens when the server names no number.
const USUAL_TOKENS: u64 = 1_024;

/// Reads the parameters of `sampling/createMessage`.
pub(crate) fn read(server: &ServerId, params: &Value) -> Result<SampleRequest, Refusal> {
    let items = params.get("messages").and_then(Value::as_array).filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| Refusal::invalid_params("there are no messages"))?;
    if items.len() > MOST_MESSAGES || params.to_string().len() > MOST_BYTES {
        return Err(Refusal::invalid_params("the messages are too many or too long"));
    }
    let mut names = HashMap::new();
    let mut messages = Vec::new();
    for item in items {
        read_message(item, &mut names, &mut messages)?;
    }
    let tools = params.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let tools = tools.iter().take(MOST_TOOLS).filter_map(|tool| read_tool(server, tool)).collect();
    Ok(SampleRequest {
        system: params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned),
        messages,
        tools,
        tool_choice: match params.pointer("/toolChoice/mode").and_then(Value::as_str) {
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            _ => ToolChoice::Auto,
        },
        sampling: read_sampling(params),
        hints: params
            .pointer("/modelPreferences/hints")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|hint| hint.get("name")?.as_str())
            .take(8)
            .map(|name| shortened(name, 100))
            .collect(),
    })
}

/// The result for the server.
pub(crate) fn result(sample: &Sample) -> Value {
    let mut content: Vec<Value> = sample.message.parts.iter().filter_map(block).collect();
    let content = match content.len() {
        0 => json!({"type": "text", "text": ""}),
        // Before 2025-11-25 there was no list.
        1 => content.remove(0),
        _ => Value::Array(content),
    };
    let stop = match sample.finish {
        FinishReason::Stop => "endTurn",
        FinishReason::ToolCalls => "toolUse",
        FinishReason::Length => "maxTokens",
        FinishReason::Filtered => "contentFilter",
        FinishReason::Cancelled | FinishReason::Failed => "cancelled",
    };
    json!({"role": "assistant", "content": content, "model": sample.model.as_str(), "stopReason": stop})
}

fn block(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": call.id.as_str(), "name": call.tool.as_str(), "input": call.arguments
        })),
        Part::Image(blob) => Some(json!({"type": "image", "data": blob.base64, "mimeType": blob.mime})),
        Part::Thinking(_) | Part::Resource(_) => None,
    }
}

/// One message; results of tools in it become messages of their own.
fn read_message(
    item: &Value,
    names: &mut HashMap<String, String>,
    messages: &mut Vec<Message>,
) -> Result<(), Refusal> {
    let role = item.get("role").and_then(Value::as_str);
    let blocks: Vec<&Value> = match item.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block @ Value::Object(_)) => vec![block],
        _ => return Err(Refusal::invalid_params("a message has no content")),
    };
    let mut parts = Vec::new();
    for block in blocks {
        if block.get("type").and_then(Value::as_str) == Some("tool_result") {
            messages.push(Message::Tool(tool_result(block, names)?));
        } else {
            parts.push(part(block, names)?);
        }
    }
    match role {
        _ if parts.is_empty() => {}
        Some("user") => messages.push(Message::User(UserMessage { parts, context: None })),
        Some("assistant") => {
            messages.push(Message::Assistant(AssistantMessage { parts, ..AssistantMessage::default() }));
        }
        _ => return Err(Refusal::invalid_params("a message is of neither the user nor the assistant")),
    }
    Ok(())
}

fn part(block: &Value, names: &mut HashMap<String, String>) -> Result<Part, Refusal> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
    let wrong = || Refusal::invalid_params("a part of a message is not what its type says");
    match block.get("type").and_then(Value::as_str) {
        Some("text") => Ok(Part::Text { text: text("text").ok_or_else(wrong)? }),
        Some("image") => {
            let (mime, base64) = text("mimeType").zip(text("data")).ok_or_else(wrong)?;
            Ok(Part::Image(Blob { mime, base64 }))
        }
        Some("tool_use") => {
            let (id, name) = text("id").zip(text("name")).ok_or_else(wrong)?;
            names.insert(id.clone(), name.clone());
            let arguments = block.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
            Ok(Part::ToolCall(ToolCall {
                id: id.into(),
                tool: name.into(),
                arguments,
                malformed: None,
                provider_data: None,
            }))
        }
        Some("audio") => Ok(Part::Text { text: "[a sound, which the model can't hear]".to_owned() }),
        _ => Err(wrong()),
    }
}

fn tool_result(block: &Value, names: &HashMap<String, String>) -> Result<ToolResult, Refusal> {
    let id = block.get("toolUseId").and_then(Value::as_str);
    let name = id.and_then(|id| names.get(id));
    let (id, name) = id.zip(name).ok_or_else(|| {
        Refusal::invalid_params("the result of a tool belongs to no call that stands before it")
    })?;
    let failed = block.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let content = block.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(ToolResult {
        call: id.into(),
        tool: name.as_str().into(),
        outcome: if failed { ToolOutcome::Failed } else { ToolOutcome::Succeeded },
        content: content.iter().map(outcome::content_of).collect(),
        structured: block.get("structuredContent").cloned(),
        sources: Vec::new(),
        note: None,
    })
}

fn read_tool(server: &ServerId, tool: &Value) -> Option<ToolSpec> {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").filter(|name| !name.is_empty())?;
    Some(ToolSpec {
        name: name.as_str().into(),
        server: server.clone(),
        original_name: name,
        title: text("title"),
        description: text("description").unwrap_or_default(),
        input_schema: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"})),
        output_schema: None,
        annotations: ToolAnnotations::default(),
        trusted: false,
    })
}

fn read_sampling(params: &Value) -> Sampling {
    let tokens = params.get("maxTokens").and_then(Value::as_u64).unwrap_or(USUAL_TOKENS);
    let stop = params.get("stopSequences").and_then(Value::as_array).into_iter().flatten();
    #[expect(clippy::cast_possible_truncation, reason = "a temperature needs no more digits")]
    let temperature = params.get("temperature").and_then(Value::as_f64).map(|t| t.clamp(0.0, 2.0) as f32);
    Sampling {
        temperature,
        max_tokens: u32::try_from(tokens.clamp(1, MOST_TOKENS)).ok(),
        stop: stop.filter_map(Value::as_str).take(16).map(str::to_owned).collect(),
        ..Sampling::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lectern_core::Usage;

    #[test]
    fn a_conversation_with_tools_is_read() {
        let params = json!({
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Weather?"}},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "u1", "name": "weather", "input": {"at": "Lyon"}}]},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "sun"}]}]},
            ],
            "systemPrompt": "Be brief.", "maxTokens": 100_000, "temperature": 0.5, "stopSequences": ["x"],
            "tools": [{"name": "weather", "inputSchema": {"type": "object"}}, {"description": "no name"}],
            "toolChoice": {"mode": "required"},
            "modelPreferences": {"hints": [{"name": "large"}]},
        });
        let request = read(&ServerId::from("s"), &params).unwrap();
        assert_eq!(request.messages.len(), 3);
        assert!(
            matches!(&request.messages[2], Message::Tool(result) if result.text() == "sun" && result.tool.as_str() == "weather")
        );
        assert_eq!((request.tools.len(), request.tool_choice), (1, ToolChoice::Required));
        assert_eq!((request.sampling.max_tokens, request.sampling.temperature), (Some(8_192), Some(0.5)));
        assert_eq!(request.hints, ["large"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            json!({}),
            json!({"messages": []}),
            json!({"messages": [{"role": "user"}]}),
            json!({"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]}),
            json!({"messages": [{"role": "user", "content": {"type": "text"}}]}),
            json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "toolUseId": "nobody"}]}]}),
        ] {
            assert_eq!(read(&ServerId::from("s"), &bad).unwrap_err().code, -32602, "{bad}");
        }
    }

    #[test]
    fn a_reply_is_one_block_or_several() {
        let text = Part::Text { text: "hi".to_owned() };
        let call = Part::ToolCall(ToolCall {
            id: "c".into(),
            tool: "t".into(),
            arguments: Default::default(),
            malformed: None,
            provider_data: None,
        });
        let sample = |parts: Vec<Part>, finish| Sample {
            message: AssistantMessage { parts, ..AssistantMessage::default() },
            model: "m".into(),
            finish,
            usage: Usage::default(),
        };
        assert_eq!(
            result(&sample(vec![text.clone()], FinishReason::Stop)),
            json!({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "stopReason": "endTurn"})
        );
        let both = result(&sample(vec![text, call], FinishReason::ToolCalls));
        assert_eq!(both["content"][1], json!({"type": "tool_use", "id": "c", "name": "t", "input": {}}));
        assert_eq!(both["stopReason"], "toolUse");
    }
}
