//! Chance that can be repeated, and requests.

use futures::StreamExt;
use lectern_core::{
    AssistantMessage, ChatModel, ChatRequest, Delta, Message, ModelError, ModelInfo, Part, ToolAnnotations,
    ToolCall, ToolMode, ToolSpec, UserMessage,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A small generator (SplitMix64): the same seed, the same numbers.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    /// Cuts bytes at up to twenty places.
    pub fn cuts<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = (0..=self.roll(20)).map(|_| self.roll(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }
}

pub fn info(id: &str) -> ModelInfo {
    ModelInfo {
        id: id.into(),
        name: id.to_owned(),
        tool_mode: ToolMode::Native,
        context_length: None,
        vision: true,
        remote: true,
    }
}

pub fn tool(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        server: "test".into(),
        original_name: name.to_owned(),
        title: None,
        description: format!("Does {name}."),
        input_schema: schema,
        output_schema: None,
        annotations: ToolAnnotations { read_only: Some(true), ..Default::default() },
        trusted: true,
    }
}

pub fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments: arguments.as_object().unwrap().clone(),
        malformed: None,
        provider_data: None,
    }
}

pub fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text))
}

pub fn says(parts: Vec<Part>, model: &str) -> Message {
    Message::Assistant(AssistantMessage { parts, model: Some(model.into()), ..Default::default() })
}

pub fn ask(text: &str) -> ChatRequest {
    ChatRequest { messages: vec![user(text)], ..ChatRequest::default() }
}

/// Everything that a model says to a request.
pub async fn all(model: &dyn ChatModel, request: ChatRequest) -> Vec<Result<Delta, ModelError>> {
    model.stream(request, CancellationToken::new()).collect().await
}

pub fn text_of(deltas: &[Result<Delta, ModelError>]) -> String {
    let text = |delta: &Result<Delta, ModelError>| match delta {
        Ok(Delta::Text(text)) => Some(text.clone()),
        _ => None,
    };
    deltas.iter().filter_map(text).collect()
}

pub fn error_of(deltas: &[Result<Delta, ModelError>]) -> ModelError {
    deltas.last().unwrap().clone().unwrap_err()
}
