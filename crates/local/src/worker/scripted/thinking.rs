//! Thinking: on, off, within a budget; and what of it the history keeps, as each template wants it.

use lectern_core::{AssistantMessage, ChatRequest, Message, Part, ToolCall, UserMessage};
use serde_json::{Value, json};

use super::{Scene, Spelling, Written, asked, tool};
use crate::messages::{Form, messages_of};
use crate::names::Names;
use crate::native::Templates;
use crate::native::samples::real_templates;
use crate::protocol::{Generate, Thinking};

const LONG: &str = "First I think of this, then of that, and then of something else again.";

/// What stands in a history: between the steps of a turn, and in a later turn.
struct Kept {
    /// The beginning of the file's name.
    name: &'static str,
    between: bool,
    later: bool,
    /// How a thought and a call are written while the turn lasts.
    bytes: &'static str,
}

const fn kept(name: &'static str, between: bool, later: bool, bytes: &'static str) -> Kept {
    Kept { name, between, later, bytes }
}

/// Templates whose models think.
const THINKERS: [Kept; 12] = [
    kept(
        "Qwen-Qwen3-0.6B",
        true,
        false,
        "<|im_start|>assistant\n<think>\nTHOUGHT-ONE\n</think>\n\n<tool_call>\n{\"name\": \"notes__find\", ",
    ),
    kept("Qwen3.5", true, false, "<think>\nTHOUGHT-ONE\n</think>\n\n<tool_call>\n<function=notes__find>\n"),
    kept("Qwen-QwQ", false, false, "<|im_start|>assistant\n<tool_call>\n{\"name\": \"notes__find\", "),
    kept("deepseek-ai-DeepSeek-R1-Distill-Qwen", false, false, "<｜Assistant｜><｜tool▁calls▁begin｜>"),
    kept("deepseek-ai-DeepSeek-V3.1", false, false, "<｜Assistant｜><think></think><｜tool▁calls▁begin｜>"),
    kept(
        "GLM-4.6",
        true,
        false,
        "<|assistant|>\n<think>THOUGHT-ONE</think>\n<tool_call>notes__find\n<arg_key>q<",
    ),
    kept(
        "ByteDance-Seed-OSS",
        true,
        true,
        "assistant\n<seed:think>THOUGHT-ONE</seed:think>\n<seed:tool_call>\n",
    ),
    kept(
        "NVIDIA-Nemotron-Nano-v2",
        false,
        false,
        "<SPECIAL_11>Assistant\n<TOOLCALL>[{\"name\": \"notes__find\", ",
    ),
    kept("NVIDIA-Nemotron-3-Nano", true, false, "<think>\nTHOUGHT-ONE\n</think>\n<tool_call>\n<function="),
    kept(
        "MiniMax-M2",
        true,
        false,
        "<think>\nTHOUGHT-ONE\n</think>\n\n\n<minimax:tool_call>\n<invoke name=\"notes__find\">",
    ),
    kept(
        "openai-gpt-oss",
        true,
        false,
        "<|channel|>analysis<|message|>THOUGHT-ONE<|end|><|start|>assistant to=functions.notes__find<|channel|>commentary",
    ),
    kept("HuggingFaceTB-SmolLM3", false, false, ""),
];

fn thinkers() -> Vec<(String, String)> {
    let mut all = real_templates();
    all.retain(|(name, _)| THINKERS.iter().any(|thinker| name.starts_with(thinker.name)));
    all
}

/// How thinking begins and ends in the prompt of a request, and whether it has begun already.
fn tags(scene_template: &str, enabled: bool) -> Option<(String, String, bool)> {
    let templates = Templates::of_text(scene_template, "", "").unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "Hello" }], "enable_thinking": enabled });
    let applied = templates.apply(&body).unwrap().0;
    let start = applied.thinking_start_tag.trim().to_owned();
    let end = applied.thinking_end_tags.first()?.trim().to_owned();
    let begun = applied.generation_prompt.trim_end().ends_with(&start);
    (!start.is_empty()).then_some((start, end, begun))
}

fn with_thinking(enabled: Option<bool>, budget: Option<u32>) -> Generate {
    Generate { thinking: Thinking { enabled, budget }, ..asked(&[]) }
}

#[test]
fn a_budget_ends_a_thought_and_none_leaves_it_whole() {
    for (name, source) in thinkers() {
        let Some((start, end, begun)) = tags(&source, true) else { continue };
        let scene = Scene::new(&source);
        let open = if begun { "" } else { start.as_str() };
        // Where each part of a reply is a message of its own, another begins here.
        let between = if name.starts_with("openai-gpt-oss") {
            "<|start|>assistant<|channel|>final<|message|>"
        } else {
            "\n\n"
        };
        let script = format!("{open}\n{LONG}\n{end}{between}The answer.");
        let write = |enabled, budget| -> Written {
            scene.write(&with_thinking(enabled, budget), &script, Spelling::Special).unwrap()
        };
        for budget in [None, Some(4000)] {
            let written = write(None, budget);
            assert_eq!(
                (written.thinking.trim(), written.text.trim()),
                (LONG, "The answer."),
                "{name} {budget:?}"
            );
        }
        for (budget, most) in [(Some(12), 12), (Some(0), 0)] {
            let written = write(None, budget);
            // A letter is a token here; an unfinished one at the end counts too.
            assert!(written.thinking.trim().len() <= most + 4, "{name} {budget:?}: {:?}", written.thinking);
            assert!(LONG.starts_with(written.thinking.trim()), "{name} {budget:?}: {:?}", written.thinking);
        }
        // A template that cannot leave a thought out begins it; then it is ended at once.
        let begun = tags(&source, false).is_some_and(|(.., begun)| begun);
        let answer = format!("{}The answer.", if begun { end.clone() + "\n\n" } else { String::new() });
        let off = scene.write(&with_thinking(Some(false), None), &answer, Spelling::Special).unwrap();
        assert_eq!((off.thinking.trim(), off.text.trim()), ("", "The answer."), "{name}: {:?}", off.raw);
        let stubborn = scene.write(&with_thinking(Some(false), None), &script, Spelling::Special).unwrap();
        assert_eq!(stubborn.thinking.trim(), "", "{name}: {:?}", stubborn.raw);
    }
}

/// A conversation: a question, a call with a thought before it and its result; with `asked_again` an answer and a second
/// question follow.
fn conversation(asked_again: bool) -> ChatRequest {
    let thinking =
        |text: &str| Part::Thinking(lectern_core::Thinking { text: text.into(), provider_data: None });
    let reply = |parts| Message::Assistant(AssistantMessage { parts, ..AssistantMessage::default() });
    let call = ToolCall {
        id: "1".into(),
        tool: "notes__find".into(),
        arguments: json!({ "q": "x" }).as_object().unwrap().clone(),
        malformed: None,
        provider_data: None,
    };
    let result = lectern_core::ToolResult {
        call: "1".into(),
        tool: "notes__find".into(),
        outcome: lectern_core::ToolOutcome::Succeeded,
        content: vec![lectern_core::Content::Text { text: "found".into() }],
        structured: None,
        sources: Vec::new(),
        note: None,
    };
    let mut messages = vec![
        Message::User(UserMessage::text("Question one")),
        reply(vec![thinking("THOUGHT-ONE"), Part::ToolCall(call)]),
        Message::Tool(result),
    ];
    if asked_again {
        messages.push(reply(vec![thinking("THOUGHT-TWO"), Part::Text { text: "Answer one".into() }]));
        messages.push(Message::User(UserMessage::text("Question two")));
    }
    ChatRequest { messages, ..ChatRequest::default() }
}

fn rendered(source: &str, request: &ChatRequest) -> String {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] });
    let messages: Vec<Value> = messages_of(request, Form::Native, false, &Names::default());
    let body = json!({ "messages": messages, "tools": [tool("notes__find", schema)] });
    Templates::of_text(source, "", "").unwrap().apply(&body).unwrap().0.prompt
}

#[test]
fn the_history_keeps_thoughts_as_its_template_wants() {
    for (name, source) in thinkers() {
        let wanted = THINKERS.iter().find(|thinker| name.starts_with(thinker.name)).unwrap();
        let steps = rendered(&source, &conversation(false));
        let later = rendered(&source, &conversation(true));
        assert_eq!(steps.contains("THOUGHT-ONE"), wanted.between, "{name}: {steps}");
        for thought in ["THOUGHT-ONE", "THOUGHT-TWO"] {
            assert_eq!(later.contains(thought), wanted.later, "{name}: {later}");
        }
        assert!(steps.contains(wanted.bytes), "{name}: {steps}");
    }
}
