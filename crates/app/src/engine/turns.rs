//! Sending a message and following what comes of it.

use std::sync::Arc;

use jiff::tz::TimeZone;
use lectern_core::turn::AnswerRefused;
use lectern_core::{
    ChatModel, ConversationId, Events, MessageId, Part, PermissionAnswer, QuestionAnswer, QuestionId,
    StartError, ToolCallId, ToolChoice, TurnHandle, TurnId, TurnInput, UserMessage, clock,
};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::enclosed::must_see;
use crate::generation::Effective;
use crate::models::Model;
use crate::problem::{of_start, of_store};
use crate::prompt::{system_prompt, today};
use crate::view::{Problem, SendReceipt, SendRequest};

impl Engine {
    /// Stores the message and starts the turn. Servers that are still on their way are waited for, within limits.
    pub async fn send(&self, request: SendRequest) -> Result<SendReceipt, Problem> {
        let empty = request.attachments.is_empty() && request.enclosed.is_empty();
        if request.text.trim().is_empty() && request.prompt.is_none() && empty {
            return Err(Problem::new("empty_message", "there is nothing to send"));
        }
        self.servers_settled().await;
        let enclosed = self.enclosed_parts(&request.enclosed)?;
        let parts = self.parts(&request, enclosed.clone()).await?;
        let model = self.model_for(request.model.as_ref(), request.conversation.as_ref())?;
        self.asked_ahead(&model.id);
        let chat_model = self.0.models.open(&model).await?;
        must_see(&enclosed, chat_model.info())?;
        let turn = self.start_turn(request.conversation, parts, &model, chat_model)?;
        let receipt = SendReceipt { conversation: turn.conversation().clone(), turn: turn.turn().clone() };
        // They are in the conversation now.
        request.enclosed.iter().for_each(|id| self.discard_enclosure(id));
        self.tell_conversations();
        let engine = self.clone();
        tokio::spawn(async move {
            turn.finished().await;
            engine.tell_conversations();
        });
        Ok(receipt)
    }

    /// The events of a turn from `after_seq` + 1 on (-1: from the start), those to come included.
    pub fn attach_turn(&self, turn: &TurnId, after_seq: i64) -> Result<Events, Problem> {
        let from = u64::try_from(after_seq.saturating_add(1)).unwrap_or(0);
        Ok(self.turn(turn)?.events_from(from))
    }

    /// A protocol message that was too long for its event, whole; by the id in the event's `full`.
    pub fn long_message(&self, id: &MessageId) -> Result<serde_json::Value, Problem> {
        let found = self.0.store.long_message(id).map_err(|error| of_store(&error))?;
        found.ok_or_else(|| crate::debug::unknown_message(id))
    }

    /// Stops a turn. One that is over already is left alone.
    pub fn cancel_turn(&self, turn: &TurnId) -> Result<(), Problem> {
        self.turn(turn)?.cancel();
        Ok(())
    }

    /// Answers a question about a call.
    pub fn answer_permission(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        answer: PermissionAnswer,
    ) -> Result<(), Problem> {
        let answered = self.turn(turn)?.answer_permission(call, answer);
        answered.map_err(|error| Problem::new("not_asked", error.to_string()))
    }

    /// Answers a question of a server. An answer that does not fit its form is refused with the reasons, and the
    /// question stays open.
    pub fn answer_question(
        &self,
        turn: &TurnId,
        question: &QuestionId,
        answer: QuestionAnswer,
    ) -> Result<(), Problem> {
        let answered = self.turn(turn)?.answer_question(question, answer);
        answered.map_err(|error| {
            let code = match error {
                AnswerRefused::NotAsked => "not_asked",
                AnswerRefused::DoesNotFit(_) => "answer_does_not_fit",
            };
            Problem::new(code, error.to_string())
        })
    }

    fn turn(&self, turn: &TurnId) -> Result<TurnHandle, Problem> {
        let gone = || {
            Problem::new("unknown_turn", format!("turn `{turn}` is over")).hint("Load the conversation anew.")
        };
        self.0.turns.get(turn).ok_or_else(gone)
    }

    fn start_turn(
        &self,
        conversation: Option<ConversationId>,
        parts: Vec<Part>,
        model: &Model,
        chat_model: Arc<dyn ChatModel>,
    ) -> Result<TurnHandle, Problem> {
        let store = &self.0.store;
        let conversation = match conversation {
            Some(id) => store.conversation(&id).map_err(|error| of_store(&error))?.id,
            None => store.create_conversation().map_err(|error| of_store(&error))?,
        };
        let set = self.effective(model, Some(&conversation))?;
        let input = self.turn_input(conversation, parts, model, &set, chat_model);
        self.0.turns.start(input).map_err(|error: StartError| of_start(&error))
    }

    /// What a turn with this message is started with.
    pub(super) fn turn_input(
        &self,
        conversation: ConversationId,
        parts: Vec<Part>,
        model: &Model,
        set: &Effective,
        chat_model: Arc<dyn ChatModel>,
    ) -> TurnInput {
        let ready = self.ready(model, set, chat_model);
        TurnInput {
            conversation,
            message: UserMessage { parts, context: (!ready.starter).then(|| today(&date_here())) },
            earlier_turns: ready.earlier_turns(),
            model: ready.model,
            tool_mode: ready.tool_mode,
            exposure: ready.exposure,
            first_choice: ToolChoice::Auto,
            others: ready.others,
            tools: self.tool_provider(),
            who: self.0.options.who.clone(),
            permissions: self.permissions(),
            store: self.0.store.clone(),
            system: ready.system,
            sampling: ready.sampling,
            thinking: ready.thinking,
            answer: set.answer(),
            largest_context: ready.largest_context,
            max_steps: ready.max_steps,
            cancel: CancellationToken::new(),
        }
    }
}

/// The starter's template has no place for instructions; it was trained for what it does.
pub(super) fn instructions(starter: bool) -> Option<String> {
    (!starter).then(system_prompt)
}

fn date_here() -> String {
    clock::now().to_zoned(TimeZone::system()).date().to_string()
}
