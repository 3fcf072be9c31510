//! `docs/events.md` is written from here, so that it can't be stale.

use std::collections::BTreeSet;
use std::path::Path;

use lectern_core::exposure::{
    ChosenBecause, ChosenTool, Exposure, ExposureReason, GateDecision, LeftOutTool,
};
use lectern_core::fit::{Fit, Shortened, SummaryUsed};
use lectern_core::message::JsonObject;
use lectern_core::{
    AssistantMessage, Event, EventKind, FinishReason, Grant, Message, Part, PermissionAnswer, Progress,
    Question, QuestionAnswer, SampleRequest, Sampling, Source, StepSettings, StepStats, Timestamp, ToolCall,
    ToolChoice, ToolExposure, ToolOutcome, ToolResult, TurnError, TurnErrorCode, TurnOutcome, Usage,
    UserMessage, WireDirection, model::ModelErrorCode,
};
use serde_json::json;

/// Set to write the page instead of comparing it.
const WRITE: &str = "LECTERN_WRITE_DOCS";

const HEAD: &str = "# Events

What a turn tells while it runs. The window gets these objects through its channel, `lectern ask --json` prints each as
one line, the store keeps them and the trace shows them: one shape for all.

Every event has `conversation`, `turn`, `seq`, `at` (UTC) and `kind`; the other fields depend on the kind.

- Within a turn `seq` counts from 0 without a gap. `turn_started` comes first, `turn_finished` last, exactly once.
- Each `step_started` has its `step_finished`. The message in it is whole and stored before any of its tools runs.
- Each tool call of a `step_finished` has exactly one `tool_finished`, whatever came of it. Calls that never ran
  (denied, stopped, unknown tool, wrong arguments) have no `tool_started`. Calls that run side by side finish in any
  order; the stored results stand in the order of the calls.
- Not stored: `model_loading`, `prompt_progress`, `text_delta`, `thinking_delta`, `tool_call_delta`. They are only
  there while the turn runs; `step_finished` has the whole message. So `seq` has gaps in what the store gives back.
- After a crash of Lectern the turn gets its missing `step_finished`, `tool_finished` and `turn_finished` (with the
  code `interrupted`) when the store is opened next.

A reader should pass over kinds and fields that it does not know.

This page is written by a test of `lectern-core`: `LECTERN_WRITE_DOCS=1 cargo test -p lectern-core --test core events`.
";

/// One sentence for each kind. A new kind breaks the build here; give it an example below too.
fn about(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::TurnStarted { .. } => "The turn began; the user's message is stored.",
        EventKind::StepStarted { .. } => {
            "A model call began. The model gets the definitions of `tools`; `exposure` says why these, `settings` what \
             the reply is made with, `fit` what was done so that the request fits the context. All three may be missing."
        }
        EventKind::ModelLoading { .. } => "The model is being loaded; only before the first text of a step.",
        EventKind::PromptProgress { .. } => {
            "So many tokens of the prompt are evaluated; `reused` came from the cache."
        }
        EventKind::TextDelta { .. } => "A piece of the answer.",
        EventKind::ThinkingDelta { .. } => "A piece of the reasoning.",
        EventKind::ToolCallDelta { .. } => {
            "A piece of a call as the model writes it. The first one of a call has no arguments yet; the pieces joined \
             are JSON text."
        }
        EventKind::StepFinished { .. } => {
            "The reply ended and is stored. `message.incomplete` tells that it was stopped or failed; its calls are \
             then left out. `finish` is `stop`, `tool_calls`, `length`, `filtered`, `cancelled` or `failed`."
        }
        EventKind::PermissionRequested { .. } => {
            "The user is asked whether the call may run. The turn waits for the answer or for a stop."
        }
        EventKind::PermissionAnswered { .. } => "The user, or a rule in the meantime, answered.",
        EventKind::ToolStarted { .. } => "A call runs now.",
        EventKind::ToolProgress { .. } => "A call came further; `done` never falls, `total` may be unknown.",
        EventKind::ToolWire { .. } => {
            "A raw JSON-RPC message of a call, for the trace. One of more than 64 kB is kept whole with its turn, up to 20 MB; \
             the event then has `cut`, `bytes`, its `start`, and in `full` the id by which the whole is found."
        }
        EventKind::ToolLog { .. } => "A line that the server logged while the call ran.",
        EventKind::QuestionAsked { .. } => {
            "A server asks the user something while its tool runs: a `form`, a visit to a `url`, or `sampling` (a reply \
             of the model). The call waits for the answer, and its time does not run meanwhile. All text in it is the \
             server's, except in `sampling_reply`: that is the model's reply, which the server gets when the user says \
             yes."
        }
        EventKind::QuestionAnswered { .. } => {
            "A question is over: `accepted`, `declined`, or `cancelled` when it was withdrawn."
        }
        EventKind::SampleFinished { .. } => {
            "The model answered a request of a server that the user had allowed: what was said, by which model, at what \
             cost. The server does not have it yet; the next question asks whether it shall."
        }
        EventKind::ToolFinished { .. } => {
            "A call is settled. `outcome` is `succeeded`, `failed`, `denied` or `cancelled`; all of them are news for \
             the model, none ends the turn."
        }
        EventKind::Retrying { .. } => {
            "The provider of the model gave no reply for now (too many requests, an overload, a broken connection); it \
             is asked again after `after_ms` milliseconds. Only before anything of the reply came; cancel ends the \
             pause. `reason` is one of the codes of a failed turn."
        }
        EventKind::Notice { .. } => "Something worth showing that ends nothing; `code` tells what.",
        EventKind::TurnFinished { .. } => {
            "The turn is over: `completed`, `cancelled`, `step_limit`, or `failed` with an error whose `code` names \
             the kind."
        }
    }
}

fn object(value: serde_json::Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}

fn call() -> ToolCall {
    ToolCall {
        id: "call_0".into(),
        tool: "notes__read_note".into(),
        arguments: object(json!({"path": "Travel/Lyon.md"})),
        malformed: None,
        provider_data: None,
    }
}

fn message() -> AssistantMessage {
    let parts = vec![Part::Text { text: "I look it up.".to_owned() }, Part::ToolCall(call())];
    AssistantMessage { parts, model: Some("starter".into()), ..AssistantMessage::default() }
}

fn usage() -> Usage {
    Usage {
        prompt_tokens: 412,
        reused_tokens: 396,
        generated_tokens: 21,
        thinking_tokens: None,
        image_tokens: None,
        prompt_ms: Some(40),
        generation_ms: Some(310),
        guessed_tokens: Some(24),
        right_guesses: Some(18),
        changed_at: None,
    }
}

fn result() -> ToolResult {
    let source = Source {
        path: "Travel/Lyon.md".to_owned(),
        title: Some("Lyon".to_owned()),
        heading: Some("Food".to_owned()),
        start_line: Some(3),
        end_line: Some(9),
    };
    let result = ToolResult::of(&call(), ToolOutcome::Succeeded, "# Lyon\n…");
    ToolResult {
        structured: Some(json!({"path": "Travel/Lyon.md", "size": 812})),
        sources: vec![source],
        ..result
    }
}

fn exposure() -> Exposure {
    let chosen = |tool: &str, why, score| ChosenTool { tool: tool.into(), why, score };
    Exposure {
        policy: ToolExposure::Relevant,
        reason: ExposureReason::Policy,
        chosen: vec![
            chosen("notes__search_notes", ChosenBecause::Pinned, None),
            chosen("notes__read_note", ChosenBecause::Relevant, Some(3.5)),
        ],
        left_out: vec![LeftOutTool { tool: "notes__write_note".into(), score: Some(0.5) }],
        left_out_count: 41,
        gate: Some(GateDecision {
            open: true,
            answer: Some(true),
            problem: None,
            took_ms: 90,
            usage: Usage { prompt_tokens: 301, generated_tokens: 1, ..Usage::default() },
        }),
    }
}

fn fit() -> Fit {
    let shortened =
        Shortened { call: "call_0".into(), tool: "notes__read_note".into(), from: 61_200, to: 4_100 };
    let summary = SummaryUsed {
        up_to: "019a-message".into(),
        messages: 12,
        text: "The user plans a trip to Lyon.".to_owned(),
        new: true,
    };
    Fit { tokens: 5_012, exact: true, room: 7_168, shortened: vec![shortened], summary: Some(summary) }
}

fn steps() -> Vec<EventKind> {
    let text = |text: &str| text.to_owned();
    vec![
        EventKind::TurnStarted {
            message_id: "019a-user".into(),
            message: UserMessage::text("Where did we eat in Lyon?"),
            model: "starter".into(),
        },
        EventKind::StepStarted {
            step: 0,
            tools: vec!["notes__search_notes".into(), "notes__read_note".into()],
            exposure: Some(exposure()),
            settings: Some(StepSettings {
                sampling: Sampling { temperature: Some(0.0), max_tokens: Some(1024), ..Sampling::default() },
                context_length: Some(8192),
                ..StepSettings::default()
            }),
            fit: Some(fit()),
        },
        EventKind::ModelLoading { fraction: 0.5 },
        EventKind::PromptProgress { done: 256, total: 412, reused: 128 },
        EventKind::ThinkingDelta { text: text("The note about Lyon") },
        EventKind::TextDelta { text: text("I look") },
        EventKind::ToolCallDelta {
            call: "call_0".into(),
            tool: "notes__read_note".into(),
            arguments: text("{\"path\":"),
        },
        EventKind::StepFinished {
            step: 0,
            message_id: "019a-step".into(),
            message: message(),
            finish: FinishReason::ToolCalls,
            stats: StepStats { usage: usage(), first_delta_ms: Some(55), total_ms: 360 },
        },
    ]
}

fn form() -> Question {
    let schema = json!({"type": "object", "required": ["lines"], "properties":
        {"lines": {"type": "integer", "title": "How many lines", "minimum": 1, "default": 10}}});
    let fields = lectern_core::form::read(&schema).unwrap();
    Question::Form { message: "How much shall I read?".to_owned(), fields, schema }
}

fn spoken(text: &str) -> AssistantMessage {
    AssistantMessage {
        parts: vec![Part::Text { text: text.to_owned() }],
        model: Some("starter".into()),
        ..AssistantMessage::default()
    }
}

fn sampling() -> Question {
    let request = SampleRequest {
        system: None,
        messages: vec![Message::User(UserMessage::text("Sum this note up."))],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling { max_tokens: Some(100), ..Sampling::default() },
        hints: Vec::new(),
    };
    Question::Sampling { request: Box::new(request), model: Some("starter".into()) }
}

fn tools() -> Vec<EventKind> {
    let progress = Progress { done: 2.0, total: Some(5.0), message: Some("reading".to_owned()) };
    let wire = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_note"}});
    vec![
        EventKind::PermissionRequested {
            call: call(),
            choices: vec![Grant::Once, Grant::Conversation, Grant::Always],
        },
        EventKind::PermissionAnswered {
            call: "call_0".into(),
            answer: PermissionAnswer::Allow { grant: Grant::Conversation },
        },
        EventKind::ToolStarted { call: call() },
        EventKind::ToolWire { call: "call_0".into(), direction: WireDirection::Sent, message: wire },
        EventKind::ToolProgress { call: "call_0".into(), progress },
        EventKind::ToolLog { call: "call_0".into(), line: "index is warm".to_owned() },
        EventKind::QuestionAsked {
            call: "call_0".into(),
            question_id: "019a-question".into(),
            server: "notes".into(),
            question: form(),
        },
        EventKind::QuestionAnswered {
            call: "call_0".into(),
            question_id: "019a-question".into(),
            answer: QuestionAnswer::Accepted { content: Some(object(json!({"lines": 20}))) },
        },
        EventKind::QuestionAsked {
            call: "call_0".into(),
            question_id: "019a-visit".into(),
            server: "notes".into(),
            question: Question::Url {
                message: "Sign in to your notes".to_owned(),
                url: "https://notes.example/sign-in?for=lectern".to_owned(),
                elicitation_id: Some("e-1".to_owned()),
            },
        },
        EventKind::QuestionAnswered {
            call: "call_0".into(),
            question_id: "019a-visit".into(),
            answer: QuestionAnswer::Declined,
        },
        EventKind::QuestionAsked {
            call: "call_0".into(),
            question_id: "019a-sample".into(),
            server: "notes".into(),
            question: sampling(),
        },
        EventKind::SampleFinished {
            call: "call_0".into(),
            question_id: "019a-sample".into(),
            message: spoken("Bread and cheese."),
            finish: FinishReason::Stop,
            stats: StepStats { usage: usage(), first_delta_ms: None, total_ms: 360 },
        },
        EventKind::QuestionAsked {
            call: "call_0".into(),
            question_id: "019a-reply".into(),
            server: "notes".into(),
            question: Question::SamplingReply {
                message: spoken("Bread and cheese."),
                model: "starter".into(),
                finish: FinishReason::Stop,
            },
        },
        EventKind::ToolFinished { message_id: "019a-result".into(), result: result() },
        EventKind::Retrying {
            after_ms: 34_400,
            attempt: 1,
            reason: ModelErrorCode::RateLimited,
            message: "too many requests to aiplatform.googleapis.com in this minute".to_owned(),
        },
        EventKind::Notice {
            code: "result_cut".to_owned(),
            message: "result of `notes__read_note`: [cut: 262144 of 300000 bytes are shown]".to_owned(),
        },
    ]
}

fn endings() -> Vec<EventKind> {
    let failed = TurnError {
        code: TurnErrorCode::Model(ModelErrorCode::ModelCrashed),
        message: "the model's process ended (signal 9)".to_owned(),
        hint: Some("Ask again; the model is started anew.".to_owned()),
        detail: None,
    };
    let outcomes = [TurnOutcome::Completed, TurnOutcome::Failed { error: failed }];
    outcomes.map(|outcome| EventKind::TurnFinished { outcome }).to_vec()
}

fn page() -> String {
    let kinds: Vec<EventKind> = [steps(), tools(), endings()].concat();
    let mut page = HEAD.to_owned();
    let mut told = BTreeSet::new();
    for (seq, kind) in (0..).zip(kinds) {
        let explanation = about(&kind);
        let at: Timestamp = "2026-11-20T22:30:00.123Z".parse().unwrap();
        let event =
            Event { conversation: "019a-conversation".into(), turn: "019a-turn".into(), seq, at, kind };
        let value = serde_json::to_value(&event).unwrap();
        let name = value["kind"].as_str().unwrap().to_owned();
        if told.insert(name.clone()) {
            page.push_str(&format!("\n## {name}\n\n{explanation}\n"));
        }
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event, "reads back what it writes");
        page.push_str(&format!("\n```json\n{line}\n```\n"));
    }
    assert_eq!(told.len(), 21, "each kind has an example");
    page
}

#[test]
fn the_page_about_events_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    assert_eq!(written, page(), "run the test with {WRITE}=1");
}
