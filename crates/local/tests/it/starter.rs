use lectern_core::{ChatRequest, Message, Sampling};
use serde_json::json;

use crate::support::{ask, model_at, repository, request, result_of, tool};

/// The model that comes with Lectern, in a real step of a tool loop.
#[tokio::test]
async fn the_starter_calls_a_tool_and_goes_on_from_its_result() {
    let path = repository().join("models/starter/starter.gguf");
    let fixture = model_at(&path).await;
    let text = json!({ "type": "string" });
    let tools = vec![
        tool("list_notes", json!({ "type": "object", "properties": {} })),
        tool(
            "search_notes",
            json!({ "type": "object", "properties": { "query": text }, "required": ["query"] }),
        ),
        tool("read_note", json!({ "type": "object", "properties": { "path": text }, "required": ["path"] })),
    ];
    let mut ask_for = ChatRequest {
        tools,
        sampling: Sampling { temperature: Some(0.0), max_tokens: Some(120), ..Sampling::default() },
        ..request("Search my notes for garden")
    };
    let first = ask(&fixture.model, ask_for.clone()).await;
    assert_eq!(first.error, None);
    let calls = first.tool_calls();
    assert_eq!(calls.len(), 1, "{:?}", first.text);
    println!("{} {:?} {:?}", calls[0].tool, calls[0].arguments, first.usage);
    ask_for.messages.push(Message::Assistant(first.message()));
    let found = "[1] Garden (Home/Garden.md)\nThe tulips are planted along the south wall.";
    ask_for.messages.push(result_of(&calls[0], found));
    let second = ask(&fixture.model, ask_for).await;
    assert_eq!(second.error, None);
    let before = first.usage.prompt_tokens + first.usage.generated_tokens;
    assert!(second.usage.reused_tokens + 1 >= before, "{:?} after {:?}", second.usage, first.usage);
    println!("{:?} {:?}", second.text, second.usage);
}
