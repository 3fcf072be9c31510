//! What is asked of models and providers outside of turns: the list of a provider, the test of a model.
//!
//! Invariant: a test is no part of a conversation; it ends when it is cancelled.

use std::time::Instant;

use futures::StreamExt;
use lectern_core::{
    ChatModel, ChatRequest, Delta, Message, ModelId, Purpose, Sampling, ToolAnnotations, ToolMode, ToolSpec,
    UserMessage, clock,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::Engine;
use crate::providers::{of_model, usual_facts};
use crate::settings::ModelEntry;
use crate::view::{ModelFacts, ModelTest, OfferedModel, Problem, ProviderId, TestedCall, TestedReply};

/// Tokens of a test's reply at most; models that think need some before they answer.
const MOST_TOKENS: u32 = 1_024;
/// The tool of a test. It does not exist: the call is looked at, not run.
const TOOL: &str = "weather_in";

impl Engine {
    /// The models that a provider offers, by its own word.
    pub async fn provider_models(&self, id: &ProviderId) -> Result<Vec<OfferedModel>, Problem> {
        let entry = self.provider_entry(id)?;
        let listed = self.0.providers.listed(&entry).await;
        let listed = listed.inspect_err(|problem| {
            self.0.providers.failed(id, problem);
            self.tell_providers();
        })?;
        let settings = self.state().settings.clone();
        let added = |model: &str| {
            let same = |known: &&ModelEntry| known.remote().is_some_and(|remote| remote.is(id, model));
            settings.models.iter().find(same).map(|entry| entry.id.clone())
        };
        let offered = listed.into_iter().map(|listed| OfferedModel {
            added: added(&listed.id),
            model: listed.id,
            name: listed.name,
            facts: ModelFacts { context_length: listed.context_length, ..usual_facts(entry.kind) },
        });
        Ok(offered.collect())
    }

    /// Tests a model with one tiny question and one that needs a tool. Nothing of it is kept.
    pub async fn test_model(&self, id: &ModelId, cancel: CancellationToken) -> Result<ModelTest, Problem> {
        let model = self.listed(id)?;
        let open = self.0.models.open(&model).await?;
        let at = clock::now();
        let mut answer =
            ask(&*open, request("Answer with the one word “ready”.", Vec::new()), &cancel).await?;
        answer.passed = answer.problem.is_none() && !answer.text.trim().is_empty();
        if answer.problem.is_none() && !answer.passed {
            answer.problem = Some(Problem::new("test_no_text", "the model wrote nothing"));
        }
        let call = match answer.problem.is_none() && open.info().tool_mode != ToolMode::Off {
            true => Some(self.tested_call(&*open, &cancel).await?),
            false => None,
        };
        self.tell_providers();
        Ok(ModelTest { model: model.id, at, answer, call })
    }

    async fn tested_call(
        &self,
        model: &dyn ChatModel,
        cancel: &CancellationToken,
    ) -> Result<TestedReply, Problem> {
        let question = format!("What is the weather in Oslo? Call the tool {TOOL}.");
        let asked = ChatRequest { tool_mode: model.info().tool_mode, ..request(&question, vec![tool()]) };
        let mut reply = ask(model, asked, cancel).await?;
        let fits = |call: &TestedCall| {
            let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
            call.tool.as_str() == TOOL && arguments.is_some_and(|arguments| arguments["city"].is_string())
        };
        reply.passed = reply.problem.is_none() && matches!(reply.calls.as_slice(), [call] if fits(call));
        if reply.problem.is_none() && !reply.passed {
            let message = match reply.calls.len() {
                0 => "the model did not call the tool that it was asked to call",
                1 => "the model called the tool in another way than it was asked to",
                _ => "the model called more tools than it was asked to",
            };
            reply.problem = Some(Problem::new("test_no_call", message).hint(
                "Answers may be fine, but notes can't be looked up with it. Choose a model that calls tools, or set its tool mode to `prompted`.",
            ));
        }
        Ok(reply)
    }
}

fn request(question: &str, tools: Vec<ToolSpec>) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::User(UserMessage::text(question))],
        tools,
        purpose: Purpose::Side,
        sampling: Sampling { max_tokens: Some(MOST_TOKENS), ..Sampling::default() },
        ..ChatRequest::default()
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: TOOL.into(),
        server: "lectern".into(),
        original_name: TOOL.to_owned(),
        title: None,
        description: "The weather in a city.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city's name"}},
            "required": ["city"],
        }),
        output_schema: None,
        annotations: ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() },
        trusted: true,
    }
}

/// One reply, whole. A provider's error is in it; only being cancelled is an error here.
async fn ask(
    model: &dyn ChatModel,
    request: ChatRequest,
    cancel: &CancellationToken,
) -> Result<TestedReply, Problem> {
    let begin = Instant::now();
    let millis = || u32::try_from(begin.elapsed().as_millis()).unwrap_or(u32::MAX);
    let mut reply = TestedReply::default();
    let mut stream = model.stream(request, cancel.clone());
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(delta) => {
                if delta.is_seen() {
                    reply.first_ms.get_or_insert_with(millis);
                }
                take(&mut reply, delta);
            }
            Err(error) => reply.problem = Some(of_model(&error)),
        }
    }
    if cancel.is_cancelled() {
        return Err(Problem::new("cancelled", "the test was stopped"));
    }
    reply.total_ms = millis();
    Ok(reply)
}

fn take(reply: &mut TestedReply, delta: Delta) {
    match delta {
        Delta::Text(text) => reply.text.push_str(&text),
        Delta::Thinking(text) => reply.thinking.push_str(&text),
        // Calls come in the order of their numbers.
        Delta::ToolCallStarted { tool, .. } => {
            reply.calls.push(TestedCall { tool, arguments: String::new() })
        }
        Delta::ToolCallArguments { index, fragment } => {
            if let Some(call) = reply.calls.get_mut(index as usize) {
                call.arguments.push_str(&fragment);
            }
        }
        Delta::Usage(usage) => reply.usage = usage,
        Delta::Loading(_)
        | Delta::PromptProgress { .. }
        | Delta::ProviderData(_)
        | Delta::Retrying { .. }
        | Delta::Notice { .. }
        | Delta::Finished(_) => {}
    }
}
