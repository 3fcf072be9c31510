//! The turn loop: from one user message until the model stops.
//!
//! Invariant: never two turns in one conversation; each turn ends with exactly one `TurnFinished`, also after an
//! error, a cancel or a panic; each tool call gets exactly one result.

mod ahead;
mod asked;
mod assemble;
mod bound;
mod compose;
mod execute;
mod exposing;
mod fitting;
mod handle;
mod journal;
mod likely;
mod permit;
mod prepare;
mod repeats;
mod run;
mod sample;
mod step;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::event::{Event, EventKind};
use crate::exposure::ExposurePolicy;
use crate::fit::EarlierTurns;
use crate::grants::PermissionBook;
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::message::UserMessage;
use crate::model::{AnswerForm, ChatModel, Sampling, ThinkingOptions, ToolChoice, ToolMode};
use crate::store::{Actor, NewTurn, Store, StoreError, TurnKey};
use crate::tool::ToolProvider;

pub use asked::AnswerRefused;
pub use compose::{SoFar, joined};
pub use handle::{Events, NotAsked, TurnHandle};
pub use likely::likely_request;

/// Steps of a turn at most, unless another limit is given.
pub const DEFAULT_MAX_STEPS: u32 = 20;

/// How many finished turns can still be followed from their start.
const KEPT_FINISHED: usize = 8;

/// All that a turn needs.
#[derive(Clone)]
pub struct TurnInput {
    /// An existing conversation; see [`Store::create_conversation`].
    pub conversation: ConversationId,
    /// What the user wrote.
    pub message: UserMessage,
    /// The model that answers.
    pub model: Arc<dyn ChatModel>,
    /// The tools that are offered; usually a [`crate::ToolSet`].
    pub tools: Arc<dyn ToolProvider>,
    /// Who sends the message, for the audit log.
    pub who: Actor,
    /// The standing permissions, shared by all turns.
    pub permissions: Arc<PermissionBook>,
    /// Where the conversation is kept.
    pub store: Store,
    /// Instructions that stand before the history.
    pub system: Option<String>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Whether and how long the model may think.
    pub thinking: ThinkingOptions,
    /// The form of the answer. Tools are called before, in their own form.
    pub answer: AnswerForm,
    /// Which of the turns before the model gets.
    pub earlier_turns: EarlierTurns,
    /// Tokens of context that this model could have on this machine, when that is more than it has now.
    pub largest_context: Option<u32>,
    /// How tools are brought to the model; see [`crate::ChatRequest::tool_mode`].
    pub tool_mode: ToolMode,
    /// Which of the tools the model gets to see, and when.
    pub exposure: ExposurePolicy,
    /// What the first step has to do about tools; the steps after it are free. [`ToolChoice::None`] is for the exposure
    /// to say, and means no more than `Auto` here.
    pub first_choice: ToolChoice,
    /// For the trace: settings that hold beside these; see [`crate::StepSettings::others`].
    pub others: serde_json::Map<String, serde_json::Value>,
    /// Steps at most; see [`DEFAULT_MAX_STEPS`].
    pub max_steps: u32,
    /// Stops the turn when it fires; [`TurnHandle::cancel`] fires it too.
    pub cancel: CancellationToken,
}

/// Why a turn did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// One runs in this conversation already.
    #[error("a turn already runs in conversation `{conversation}`")]
    Running {
        /// The conversation.
        conversation: ConversationId,
        /// The turn that runs, when it is one of this process.
        turn: Option<TurnId>,
    },
    /// The user's message could not be stored.
    #[error("store the message")]
    Store(#[source] StoreError),
}

/// The turns that run now, at most one in each conversation. Clones share the register.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<Register>>);

#[derive(Default)]
struct Register {
    running: HashMap<ConversationId, TurnHandle>,
    finished: VecDeque<TurnHandle>,
}

impl Turns {
    /// Stores the user's message and starts the turn on the current tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self, input: TurnInput) -> Result<TurnHandle, StartError> {
        // Before anything is stored: without a runtime this panics.
        let runtime = tokio::runtime::Handle::current();
        let mut register = self.register();
        if let Some(running) = register.running.get(&input.conversation) {
            return Err(StartError::Running {
                conversation: input.conversation,
                turn: Some(running.turn().clone()),
            });
        }
        let key = TurnKey { conversation: input.conversation.clone(), turn: TurnId::fresh() };
        let first = begin(&input, &key)?;
        let handle = TurnHandle::new(key.clone(), input.cancel.clone());
        register.running.insert(key.conversation.clone(), handle.clone());
        drop(register);
        let place = Place { turns: self.clone(), handle: handle.clone() };
        runtime.spawn(run::drive(input, key, first, place));
        Ok(handle)
    }

    /// The turn that runs in a conversation.
    pub fn running(&self, conversation: &ConversationId) -> Option<TurnHandle> {
        self.register().running.get(conversation).cloned()
    }

    /// A turn by its id, while it runs and a little longer.
    pub fn get(&self, turn: &TurnId) -> Option<TurnHandle> {
        let register = self.register();
        register.running.values().chain(&register.finished).find(|handle| handle.turn() == turn).cloned()
    }

    /// All turns that run now, e.g. to stop them when the app ends.
    pub fn all_running(&self) -> Vec<TurnHandle> {
        self.register().running.values().cloned().collect()
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        // Nothing that holds the lock leaves the register half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn begin(input: &TurnInput, key: &TurnKey) -> Result<Event, StartError> {
    let message_id = MessageId::fresh();
    let event = Event {
        conversation: key.conversation.clone(),
        turn: key.turn.clone(),
        seq: 0,
        at: clock::now(),
        kind: EventKind::TurnStarted {
            message_id: message_id.clone(),
            message: input.message.clone(),
            model: input.model.info().id.clone(),
        },
    };
    let new = NewTurn { turn: key.clone(), message_id: &message_id, message: &input.message, event: &event };
    input.store.begin_turn(&new).map_err(|error| match error {
        StoreError::Busy(conversation) => StartError::Running { conversation, turn: None },
        error => StartError::Store(error),
    })?;
    Ok(event)
}

/// A running turn's place in the register; given up when the turn ends, however it ends.
struct Place {
    turns: Turns,
    handle: TurnHandle,
}

impl Place {
    /// Makes way for the next turn of the conversation.
    fn leave(&self) {
        let mut register = self.turns.register();
        if register.running.get(self.handle.conversation()).is_some_and(|h| h.turn() == self.handle.turn()) {
            register.running.remove(self.handle.conversation());
            register.finished.push_back(self.handle.clone());
            if register.finished.len() > KEPT_FINISHED {
                register.finished.pop_front();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
        // Already so when the turn came to its end; not when it never began.
        self.handle.log().close();
    }
}
