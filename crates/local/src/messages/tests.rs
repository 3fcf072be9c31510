use lectern_core::{Content, ConversationId, Thinking, ToolCallId, ToolChoice, ToolMode};

use super::*;

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        conversation: ConversationId::from("c"),
        system: Some("Be kind.".into()),
        messages,
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        tool_mode: ToolMode::Native,
        ..ChatRequest::default()
    }
}

fn call() -> ToolCall {
    ToolCall {
        id: ToolCallId::from("0199-long-id"),
        tool: "search".into(),
        arguments: [("q".to_owned(), json!("a"))].into_iter().collect(),
        malformed: None,
        provider_data: None,
    }
}

fn history() -> Vec<Message> {
    let reply = AssistantMessage {
        parts: vec![
            Part::Thinking(Thinking { text: "hm".into(), provider_data: None }),
            Part::Text { text: "I look.".into() },
            Part::ToolCall(call()),
        ],
        ..AssistantMessage::default()
    };
    let result = ToolResult {
        call: call().id,
        tool: "search".into(),
        outcome: ToolOutcome::Succeeded,
        content: vec![Content::Text { text: "found".into() }],
        structured: None,
        sources: vec![],
        note: None,
    };
    vec![Message::User(UserMessage::text("Hi")), Message::Assistant(reply), Message::Tool(result)]
}

#[test]
fn a_schema_that_is_too_deep_still_reaches_the_worker() {
    let deep = (0..400).fold(json!({}), |inner, _| json!({ "type": "array", "items": inner }));
    let schema = readable(json!({ "type": "object", "properties": { "a": deep }, "required": ["a"] }));
    let line = json!({ "tools": [{ "function": { "parameters": schema } }] }).to_string();
    assert!(serde_json::from_str::<Value>(&line).is_ok());
    assert_eq!(schema["required"], json!(["a"]));
    let flat = json!({ "type": "object", "properties": { "a": { "enum": [[1, { "b": null }]] } } });
    assert_eq!(readable(flat.clone()), flat);
}

#[test]
fn native_messages_keep_calls_and_results_apart() {
    let messages = messages_of(&request(history()), Form::Native, false, &Names::default());
    assert_eq!(messages[0], json!({"role": "system", "content": "Be kind."}));
    assert_eq!(messages[2]["reasoning_content"], "hm");
    assert_eq!(messages[2]["tool_calls"][0]["id"], "call00000");
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"q\":\"a\"}");
    assert_eq!(
        messages[3],
        json!({"role": "tool", "tool_call_id": "call00000", "name": "search", "content": "found"})
    );
}

#[test]
fn prompted_messages_take_turns() {
    let mut history = history();
    history.push(Message::User(UserMessage::text("And?")));
    let messages = messages_of(&request(history), Form::Prompted(CallForm::Json), false, &Names::default());
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(messages[2]["content"].as_str().unwrap().ends_with("</tool_call>"));
    assert_eq!(messages[3]["content"], "<tool_response>\nfound\n</tool_response>\nAnd?");
}

#[test]
fn the_raw_text_goes_along_until_the_reply_is_changed() {
    let spoken = Spoken {
        text: "I look.".into(),
        thinking: "hm".into(),
        calls: vec![("search".into(), "{ \"q\" : \"a\" }".into())],
    };
    let mut history = history();
    let Message::Assistant(reply) = &mut history[1] else { unreachable!() };
    reply.provider_data = Some(provider_data("raw!", &spoken, &[]));
    let messages = messages_of(&request(history.clone()), Form::Native, false, &Names::default());
    assert_eq!(messages[2]["raw"], "raw!");
    let Message::Assistant(reply) = &mut history[1] else { unreachable!() };
    reply.parts.remove(1);
    assert_eq!(messages_of(&request(history), Form::Native, false, &Names::default())[2].get("raw"), None);
}
