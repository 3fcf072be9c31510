//! What a shell shows: plain data, made by the engine, drawn by the window and printed by the command line.
//!
//! Invariant: no secrets, no open handles; everything here may cross to a web page.

mod api;
mod audit;
mod drops;
mod enclosed;
mod generation;
mod hub;
mod import;
mod metrics;
mod models;
mod providers;
mod resources;
mod servers;
mod watch;

use lectern_core::{
    ConversationId, Event, Message, MessageId, ModelId, ServerId, Timestamp, ToolMode, TurnId,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use api::*;
pub use audit::*;
pub use drops::*;
pub use enclosed::*;
pub use generation::*;
pub use hub::*;
pub use import::*;
pub use metrics::*;
pub use models::*;
pub use providers::*;
pub use resources::*;
pub use servers::*;
pub use watch::*;

/// All that the window needs to draw its frame.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct AppView {
    /// Version of the app.
    pub version: String,
    /// Where conversations, models and settings are kept.
    pub home: String,
    /// The model that answers next.
    pub model: ModelId,
    /// All models.
    pub models: Vec<ModelView>,
    /// Where remote models are asked.
    pub providers: Vec<ProviderView>,
    /// All downloads of models, the oldest first.
    pub downloads: Vec<DownloadView>,
    /// All servers.
    pub servers: Vec<ServerView>,
    /// All vaults.
    pub vaults: Vec<VaultView>,
}

/// One model of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct ModelView {
    /// Its id.
    pub id: ModelId,
    /// A name for people.
    pub name: String,
    /// The file; none for the built-in and for remote models.
    pub path: Option<String>,
    /// Size in bytes, all files of a split model together.
    pub size: Option<u64>,
    /// E.g. `llama`.
    pub architecture: Option<String>,
    /// Number of weights.
    pub parameters: Option<u64>,
    /// E.g. `Q4_K_M`.
    pub quantisation: Option<String>,
    /// Context length in tokens.
    pub context_length: Option<u32>,
    /// How tools are brought to it.
    pub tool_mode: ToolMode,
    /// Whether it sees images.
    pub vision: bool,
    /// Whether it is the small built-in one.
    pub starter: bool,
    /// Where its file came from.
    pub origin: ModelOrigin,
    /// What is particular to a model of a provider; none for one that runs here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub remote: Option<RemoteView>,
    /// Whether its file is gone.
    pub missing: bool,
    /// Whether it suits this machine; none when its file can't be read.
    pub advice: Option<AdviceView>,
    /// The test of this model on this machine, when one was made.
    pub bench: Option<BenchView>,
    /// Why it can't be used, when it can't.
    pub problem: Option<Problem>,
}

/// One folder of notes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct VaultView {
    /// The folder.
    pub path: String,
    /// The server that serves it.
    pub server: ServerId,
    /// Whether it is the sample that came with Lectern.
    pub sample: bool,
}

/// An error as a code, a sentence and a way out. The window never reads the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct Problem {
    /// E.g. `bad_model_file`; the window chooses its words by this.
    pub code: String,
    /// What happened, in English, naming the thing.
    pub message: String,
    /// The way out, one sentence.
    pub hint: Option<String>,
    /// More, for those who want to see it (log lines, exit code).
    pub detail: Option<String>,
}

/// One line of the conversation list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct ConversationSummary {
    /// Its id.
    pub id: ConversationId,
    /// Its title; empty until the first message.
    pub title: String,
    /// When it was begun.
    #[ts(type = "string")]
    pub created_at: Timestamp,
    /// When it last changed.
    #[ts(type = "string")]
    pub updated_at: Timestamp,
    /// Whether a turn runs now.
    pub running: bool,
}

/// A conversation, or the part of it that is shown.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct ConversationView {
    /// Its line in the list.
    pub summary: ConversationSummary,
    /// The messages of the active branch, oldest first; whole turns.
    pub messages: Vec<MessageView>,
    /// How many turns stand before them.
    #[serde(default)]
    pub earlier: u32,
    /// The model of this conversation; none for the one that answers everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub model: Option<ModelId>,
    /// What stands for the oldest messages where the model reads them, when they no longer fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub summarised: Option<SummaryView>,
    /// The stored events of each turn (deltas left out: `step_finished` has the whole message), oldest first. A turn
    /// that runs now is there as far as it has come; the window then subscribes to the rest by `attach_turn`.
    pub turns: Vec<TurnView>,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct MessageView {
    /// Its id.
    pub id: MessageId,
    /// The turn that made it.
    pub turn: TurnId,
    /// When it was stored.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// The message.
    pub message: Message,
}

/// A turn as the store replays it.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct TurnView {
    /// Its id.
    pub id: TurnId,
    /// Its events.
    pub events: Vec<Event>,
}

/// What to send.
#[derive(Clone, Debug, Default, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct SendRequest {
    /// An existing conversation; none begins a new one.
    pub conversation: Option<ConversationId>,
    /// The user's text; may be empty when a prompt is run.
    pub text: String,
    /// A prompt of a server, which stands before the text.
    #[serde(default)]
    #[ts(optional)]
    pub prompt: Option<PromptRun>,
    /// Resources that go along.
    #[serde(default)]
    #[ts(as = "Option<Vec<Attachment>>", optional)]
    pub attachments: Vec<Attachment>,
    /// The model that answers this message; none for that of the conversation.
    #[serde(default)]
    #[ts(optional)]
    pub model: Option<ModelId>,
    /// Images and documents that go along, by their ids.
    #[serde(default)]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub enclosed: Vec<String>,
}

/// What came of sending.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct SendReceipt {
    /// The conversation, new or old.
    pub conversation: ConversationId,
    /// The turn that runs now.
    pub turn: TurnId,
}

/// News that belongs to no turn.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/view.ts")]
pub enum AppNews {
    /// A server changed its state or its tools.
    ServerChanged {
        /// The server as it is now.
        server: Box<ServerView>,
    },
    /// Servers were added, removed, or brought back.
    ServersChanged {
        /// All of them.
        servers: Vec<ServerView>,
    },
    /// The list of models or the chosen one changed.
    ModelsChanged {
        /// The chosen one.
        model: ModelId,
        /// All of them.
        models: Vec<ModelView>,
    },
    /// Providers were added, changed or removed, or somebody signed in or out.
    ProvidersChanged {
        /// All of them.
        providers: Vec<ProviderView>,
    },
    /// Downloads were added, ended, or taken off the list.
    DownloadsChanged {
        /// All of them, the oldest first.
        downloads: Vec<DownloadView>,
    },
    /// A download got further or changed its state; a few times a second at most.
    DownloadChanged {
        /// The download as it is now.
        download: Box<DownloadView>,
    },
    /// The list of vaults changed.
    VaultsChanged {
        /// All of them.
        vaults: Vec<VaultView>,
    },
    /// A conversation was added, renamed, finished a turn, or was deleted.
    ConversationsChanged {
        /// All of them, the newest first.
        conversations: Vec<ConversationSummary>,
    },
}

/// The text of a note, for a citation that was clicked.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/view.ts")]
pub struct NoteView {
    /// The vault's folder.
    pub vault: String,
    /// Path within the vault.
    pub path: String,
    /// The Markdown.
    pub text: String,
}
