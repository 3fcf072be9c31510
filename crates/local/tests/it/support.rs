//! What the tests share: models on disk, requests, and replies gathered from their deltas.

use std::path::{Path, PathBuf};

use futures::StreamExt;
use lectern_core::{
    AssistantMessage, ChatModel, ChatRequest, Content, ConversationId, Delta, FinishReason, Message,
    ModelError, ModelId, Opaque, Part, Sampling, ServerId, ToolAnnotations, ToolCall, ToolCallId, ToolChoice,
    ToolMode, ToolName, ToolOutcome, ToolResult, ToolSpec, Usage, UserMessage,
};
use lectern_local::{LocalModel, LocalOptions, WorkerCommand};
use lectern_test_gguf::Recipe;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub fn worker() -> WorkerCommand {
    WorkerCommand::new(env!("CARGO_BIN_EXE_lectern-local-worker"), [] as [&str; 0])
}

/// A model on disk that goes with the test.
pub struct Fixture {
    pub model: LocalModel,
    _folder: Option<TempDir>,
}

pub async fn random_model(recipe: Recipe) -> Fixture {
    random_model_with(recipe, LocalOptions::default(), worker()).await
}

pub async fn random_model_with(recipe: Recipe, options: LocalOptions, worker: WorkerCommand) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.gguf");
    std::fs::write(&path, recipe.bytes()).unwrap();
    let model = open(&path, options, worker).await;
    Fixture { model, _folder: Some(folder) }
}

pub async fn model_at(path: &Path) -> Fixture {
    Fixture { model: open(path, LocalOptions::default(), worker()).await, _folder: None }
}

pub async fn model_with(path: &Path, options: LocalOptions) -> Fixture {
    Fixture { model: open(path, options, worker()).await, _folder: None }
}

pub async fn open(path: &Path, options: LocalOptions, worker: WorkerCommand) -> LocalModel {
    LocalModel::open(ModelId::from("test"), path, options, worker).await.unwrap()
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn request(text: &str) -> ChatRequest {
    ChatRequest {
        conversation: ConversationId::from("one"),
        system: None,
        messages: vec![Message::User(UserMessage::text(text))],
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        tool_mode: ToolMode::Native,
        sampling: Sampling { seed: Some(7), max_tokens: Some(24), ..Sampling::default() },
        ..ChatRequest::default()
    }
}

pub fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: ToolName::from(name),
        server: ServerId::from("test"),
        original_name: name.to_owned(),
        title: None,
        description: format!("The tool {name}."),
        input_schema: schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        trusted: false,
    }
}

pub fn result_of(call: &ToolCall, text: &str) -> Message {
    Message::Tool(ToolResult {
        call: call.id.clone(),
        tool: call.tool.clone(),
        outcome: ToolOutcome::Succeeded,
        content: vec![Content::Text { text: text.to_owned() }],
        structured: None,
        sources: vec![],
        note: None,
    })
}

/// A reply, gathered.
#[derive(Debug, Default)]
pub struct Reply {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<(ToolCallId, ToolName, String)>,
    pub data: Option<Opaque>,
    pub usage: Usage,
    pub finish: Option<FinishReason>,
    pub error: Option<ModelError>,
    pub deltas: Vec<Delta>,
    pub notices: Vec<(String, String)>,
}

impl Reply {
    pub fn take(&mut self, delta: Result<Delta, ModelError>) {
        assert!(self.finish.is_none() && self.error.is_none(), "{delta:?} came after the end");
        match delta {
            Ok(delta) => {
                self.deltas.push(delta.clone());
                self.take_delta(delta);
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn take_delta(&mut self, delta: Delta) {
        match delta {
            Delta::Text(text) => self.text.push_str(&text),
            Delta::Thinking(text) => self.thinking.push_str(&text),
            Delta::ToolCallStarted { index, id, tool, .. } => {
                assert_eq!(index as usize, self.calls.len(), "calls begin in order");
                self.calls.push((id, tool, String::new()));
            }
            Delta::ToolCallArguments { index, fragment } => self.calls[index as usize].2.push_str(&fragment),
            Delta::ProviderData(data) => self.data = Some(data),
            Delta::Usage(usage) => self.usage = usage,
            Delta::Finished(finish) => self.finish = Some(finish),
            Delta::Loading(_) | Delta::PromptProgress { .. } | Delta::Retrying { .. } => {}
            Delta::Notice { code, message } => self.notices.push((code, message)),
        }
    }

    /// The message as the turn would store it.
    pub fn message(&self) -> AssistantMessage {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Part::Thinking(lectern_core::Thinking {
                text: self.thinking.clone(),
                provider_data: None,
            }));
        }
        if !self.text.is_empty() {
            parts.push(Part::Text { text: self.text.clone() });
        }
        parts.extend(self.tool_calls().into_iter().map(Part::ToolCall));
        AssistantMessage { parts, provider_data: self.data.clone(), ..AssistantMessage::default() }
    }

    pub fn tool_calls(&self) -> Vec<ToolCall> {
        let call = |(id, tool, arguments): &(ToolCallId, ToolName, String)| ToolCall {
            id: id.clone(),
            tool: tool.clone(),
            arguments: serde_json::from_str(arguments).unwrap_or_default(),
            malformed: serde_json::from_str::<serde_json::Map<_, _>>(arguments)
                .is_err()
                .then(|| arguments.clone()),
            provider_data: None,
        };
        self.calls.iter().map(call).collect()
    }

    /// The share of the prompt that came from the cache.
    pub fn reuse(&self) -> f64 {
        f64::from(self.usage.reused_tokens) / f64::from(self.usage.prompt_tokens.max(1))
    }
}

pub async fn ask(model: &LocalModel, request: ChatRequest) -> Reply {
    ask_with(model, request, CancellationToken::new()).await
}

pub async fn ask_with(model: &LocalModel, request: ChatRequest, cancel: CancellationToken) -> Reply {
    let mut reply = Reply::default();
    let mut stream = model.stream(request, cancel);
    while let Some(delta) = stream.next().await {
        reply.take(delta);
    }
    assert!(reply.finish.is_some() || reply.error.is_some(), "the stream ended without an end: {reply:?}");
    reply
}
