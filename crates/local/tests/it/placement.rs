//! Tools in the last question: what stands before it is the same whatever the tools are, and calls are read as ever.

use lectern_core::{
    ChatRequest, FinishReason, Message, Sampling, ThinkingOptions, ToolChoice, ToolPlacement, UserMessage,
};
use lectern_test_gguf::{CHATML_TOOLS, Recipe};
use serde_json::{Value, json};

use crate::support::{ask, random_model, request, result_of, tool};
use crate::templates::templates;

fn schema(values: [&str; 2]) -> Value {
    json!({
        "type": "object",
        "properties": { "kind": { "enum": values, "description": "What is looked for." } },
        "required": ["kind"],
    })
}

/// How much of what stands before the last question has to be read anew when the tools are others; and whether a
/// call is made and gone on from.
async fn other_tools(template: &str) -> Result<(u32, u32), String> {
    let ends = ["<|eot_id|>", "</s>", "<end_of_turn>", "<|end|>", "<|call|>", "<|end_of_text|>", "<EOT>"];
    let more_tokens = ends.map(str::to_owned).to_vec();
    let fixture =
        random_model(Recipe { context: 16384, more_tokens, ..Recipe::default() }.template(template)).await;
    let history = ChatRequest {
        system: Some("You look after notes. ".repeat(20)),
        sampling: Sampling {
            seed: Some(5),
            temperature: Some(1.0),
            max_tokens: Some(8),
            ..Sampling::default()
        },
        // Some templates write into every question whether to think, and who has to call has no time to.
        thinking: ThinkingOptions { enabled: Some(false), budget: None },
        ..request("What is there?")
    };
    let failed = |reply: &crate::support::Reply| reply.error.as_ref().map(ToString::to_string);
    let first = ask(&fixture.model, history.clone()).await;
    if let Some(error) = failed(&first) {
        return Err(error);
    }
    let mut next = history;
    next.messages.push(Message::Assistant(lectern_core::AssistantMessage {
        parts: vec![lectern_core::Part::Text { text: "Many notes. ".repeat(20) }],
        ..Default::default()
    }));
    let before = {
        let mut before = next.clone();
        before.messages.push(Message::User(UserMessage::text("Z")));
        ask(&fixture.model, before).await.usage.prompt_tokens
    };
    next.messages.push(Message::User(UserMessage::text("And of the journey?")));
    next.tool_placement = ToolPlacement::LastUser;
    next.tool_choice = ToolChoice::Required;
    next.sampling.max_tokens = Some(900);
    let mut reused = u32::MAX;
    let sets = [
        vec![tool("list", schema(["notes", "folders"]))],
        vec![tool("find", schema(["tags", "words"])), tool("drop", schema(["one", "all"]))],
    ];
    for tools in sets {
        next.tools = tools;
        let reply = ask(&fixture.model, next.clone()).await;
        if let Some(error) = failed(&reply) {
            return Err(error);
        }
        reused = reused.min(reply.usage.reused_tokens);
        let calls = reply.tool_calls();
        if reply.finish == Some(FinishReason::Length) {
            // A format may leave the id of a call to the model, and random weights do not come to an end.
            continue;
        }
        let valid = |call: &lectern_core::ToolCall| {
            let tool = next.tools.iter().find(|tool| tool.name == call.tool);
            tool.is_some_and(|tool| {
                jsonschema::is_valid(&tool.input_schema, &Value::Object(call.arguments.clone()))
            })
        };
        if calls.is_empty() || !calls.iter().all(valid) {
            return Err(format!("{:?} {calls:?} {:?}", reply.finish, reply.text));
        }
        let mut went_on = next.clone();
        went_on.messages.push(Message::Assistant(reply.message()));
        went_on.messages.push(result_of(&calls[0], "done"));
        went_on.tool_choice = ToolChoice::Auto;
        went_on.sampling.max_tokens = Some(5);
        if let Some(error) = failed(&ask(&fixture.model, went_on).await) {
            return Err(format!("with a result: {error}"));
        }
    }
    Ok((reused, before))
}

/// Tokens by which an ending of the shorter prompt is counted to its history: the question, and what opens a reply.
const ENDING: u32 = 160;

#[tokio::test(flavor = "multi_thread")]
async fn other_tools_leave_the_history_as_it_was() {
    let mut all = vec![("tags".to_owned(), CHATML_TOOLS.to_owned())];
    for file in templates().into_iter().flatten() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        all.push((name, std::fs::read_to_string(&file).unwrap()));
    }
    let (mut failed, mut broken) = (Vec::new(), Vec::new());
    for (name, template) in &all {
        match other_tools(template).await {
            Ok((reused, before)) if reused + ENDING >= before => {}
            Ok((reused, before)) => broken.push(format!("{name}: {reused} of {before}")),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    println!(
        "FIGURE tools in the last question: {} templates; anew for other tools: {broken:?}; failed: {failed:?}",
        all.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(broken.len() * 10 <= all.len(), "{broken:?}");
}
