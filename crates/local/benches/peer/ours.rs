//! Our side: the model as the application uses it, over its worker.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt;
use lectern_core::{
    AssistantMessage, ChatModel, ChatRequest, Content, Delta, JsonObject, Message, ModelError, ModelId,
    Opaque, Part, ServerId, ToolAnnotations, ToolCall, ToolCallId, ToolName, ToolOutcome, ToolResult,
    ToolSpec, Usage,
};
use lectern_local::{LocalModel, LocalOptions, WorkerCommand};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A reply and when its parts came.
#[derive(Default)]
pub struct Timed {
    /// Until the first piece of text or of a call.
    pub first: Duration,
    /// From there to the end.
    pub rest: Duration,
    pub text: String,
    pub calls: Vec<(ToolCallId, ToolName, String)>,
    pub data: Option<Opaque>,
    pub usage: Usage,
    pub error: Option<ModelError>,
}

impl Timed {
    pub fn message(&self) -> Message {
        let mut parts = Vec::new();
        if !self.text.is_empty() {
            parts.push(Part::Text { text: self.text.clone() });
        }
        for (id, tool, arguments) in &self.calls {
            let read: Option<JsonObject> = serde_json::from_str(arguments).ok();
            parts.push(Part::ToolCall(ToolCall {
                id: id.clone(),
                tool: tool.clone(),
                malformed: read.is_none().then(|| arguments.clone()),
                arguments: read.unwrap_or_default(),
                provider_data: None,
            }));
        }
        Message::Assistant(AssistantMessage {
            parts,
            provider_data: self.data.clone(),
            ..AssistantMessage::default()
        })
    }

    /// Tokens after the first, in a second.
    pub fn pace(&self) -> f64 {
        f64::from(self.usage.generated_tokens.saturating_sub(1)) / self.rest.as_secs_f64()
    }
}

pub async fn open(path: &Path, options: LocalOptions) -> LocalModel {
    let worker =
        WorkerCommand::new(env!("CARGO_BIN_EXE_lectern-local-worker"), [] as [&str; 0]).allow_misbehaviour();
    LocalModel::open(ModelId::from("bench"), path, options, worker)
        .await
        .expect("the benchmark's own model opens")
}

pub async fn ask(model: &LocalModel, request: &ChatRequest) -> Timed {
    let began = Instant::now();
    let (mut out, mut first) = (Timed::default(), None);
    let mut stream = model.stream(request.clone(), CancellationToken::new());
    while let Some(delta) = stream.next().await {
        let now = Instant::now();
        match delta {
            Ok(Delta::Text(text)) => {
                first.get_or_insert(now);
                out.text.push_str(&text);
            }
            Ok(Delta::ToolCallStarted { id, tool, .. }) => {
                first.get_or_insert(now);
                out.calls.push((id, tool, String::new()));
            }
            Ok(Delta::ToolCallArguments { index, fragment }) => {
                out.calls[index as usize].2.push_str(&fragment);
            }
            Ok(Delta::ProviderData(data)) => out.data = Some(data),
            Ok(Delta::Usage(usage)) => out.usage = usage,
            Ok(_) => {}
            Err(error) => out.error = Some(error),
        }
    }
    let first = first.unwrap_or_else(Instant::now);
    out.first = first - began;
    out.rest = first.elapsed();
    if let Some(error) = &out.error {
        eprintln!("our side failed: {}", error.message);
    }
    out
}

/// What every tool is said to do.
pub const DESCRIPTION: &str = "Works on notes.";

pub fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: ToolName::from(name),
        server: ServerId::from("bench"),
        original_name: name.to_owned(),
        title: None,
        description: DESCRIPTION.to_owned(),
        input_schema: schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        trusted: false,
    }
}

pub fn result(call: &(ToolCallId, ToolName, String), text: &str) -> Message {
    Message::Tool(ToolResult {
        call: call.0.clone(),
        tool: call.1.clone(),
        outcome: ToolOutcome::Succeeded,
        content: vec![Content::Text { text: text.to_owned() }],
        structured: None,
        sources: Vec::new(),
        note: None,
    })
}
