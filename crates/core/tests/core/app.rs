//! A store, a scripted model and scripted tools, put together as a shell would.

use std::sync::Arc;
use std::time::Duration;

use lectern_core::testing::{Reply, ScriptedModel, ScriptedTools};
use lectern_core::{
    Actor, AnswerForm, ConversationId, EarlierTurns, Event, EventKind, ExposurePolicy, Message,
    PermissionAnswer, PermissionBook, Policy, Sampling, Store, ThinkingOptions, ToolCall, ToolChoice,
    ToolMode, ToolResult, TurnHandle, TurnInput, TurnOutcome, Turns, UserMessage,
};
use tokio_util::sync::CancellationToken;

pub struct App {
    pub store: Store,
    pub turns: Turns,
    pub model: Arc<ScriptedModel>,
    pub tools: Arc<ScriptedTools>,
    pub permissions: Arc<PermissionBook>,
    pub conversation: ConversationId,
    pub max_steps: u32,
    pub tool_mode: ToolMode,
    pub exposure: ExposurePolicy,
    pub answer: AnswerForm,
    pub first_choice: ToolChoice,
    pub others: serde_json::Map<String, serde_json::Value>,
}

impl App {
    pub fn start(replies: impl IntoIterator<Item = Reply>, tools: ScriptedTools) -> Self {
        Self::with_model(ScriptedModel::new(replies), tools)
    }

    pub fn with_model(model: ScriptedModel, tools: ScriptedTools) -> Self {
        let store = Store::in_memory().unwrap();
        let conversation = store.create_conversation().unwrap();
        Self {
            store,
            turns: Turns::default(),
            model: Arc::new(model),
            tools: Arc::new(tools),
            permissions: Arc::new(PermissionBook::new(Policy::default())),
            conversation,
            max_steps: 20,
            tool_mode: ToolMode::Native,
            exposure: ExposurePolicy::default(),
            answer: AnswerForm::Free,
            first_choice: ToolChoice::Auto,
            others: serde_json::Map::new(),
        }
    }

    pub fn input(&self, text: &str) -> TurnInput {
        TurnInput {
            conversation: self.conversation.clone(),
            message: UserMessage::text(text),
            model: self.model.clone(),
            tools: self.tools.clone(),
            who: Actor::Cli,
            permissions: self.permissions.clone(),
            store: self.store.clone(),
            system: Some("Be brief.".to_owned()),
            sampling: Sampling::default(),
            thinking: ThinkingOptions::default(),
            answer: self.answer.clone(),
            earlier_turns: EarlierTurns::Sent,
            largest_context: None,
            tool_mode: self.tool_mode,
            exposure: self.exposure.clone(),
            first_choice: self.first_choice.clone(),
            others: self.others.clone(),
            max_steps: self.max_steps,
            cancel: CancellationToken::new(),
        }
    }

    pub fn send(&self, text: &str) -> TurnHandle {
        self.turns.start(self.input(text)).unwrap()
    }

    /// Sends and waits for the end.
    pub async fn ask(&self, text: &str) -> TurnOutcome {
        finish(&self.send(text)).await
    }

    /// What is stored, without ids.
    pub fn messages(&self) -> Vec<Message> {
        self.store.messages(&self.conversation).unwrap().into_iter().map(|stored| stored.message).collect()
    }

    pub fn results(&self) -> Vec<ToolResult> {
        let results = self.messages().into_iter().filter_map(|message| match message {
            Message::Tool(result) => Some(result),
            Message::User(_) | Message::Assistant(_) => None,
        });
        results.collect()
    }
}

/// A minute of the (usually paused) clock is an eternity for a scripted turn.
pub async fn finish(turn: &TurnHandle) -> TurnOutcome {
    tokio::time::timeout(Duration::from_secs(60), turn.finished()).await.expect("the turn hangs")
}

pub async fn all_events(turn: &TurnHandle) -> Vec<Event> {
    finish(turn).await;
    turn.events().ready()
}

/// Waits for an event.
pub async fn until<T>(turn: &TurnHandle, mut wanted: impl FnMut(&EventKind) -> Option<T>) -> T {
    let mut events = turn.events();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        let event = event.expect("the turn waits").expect("the turn ended without it");
        if let Some(found) = wanted(&event.kind) {
            return found;
        }
    }
}

pub async fn permission_request(turn: &TurnHandle) -> ToolCall {
    until(turn, |kind| match kind {
        EventKind::PermissionRequested { call, .. } => Some(call.clone()),
        _ => None,
    })
    .await
}

pub async fn answer(turn: &TurnHandle, answer: PermissionAnswer) {
    let call = permission_request(turn).await;
    turn.answer_permission(&call.id, answer).unwrap();
}
