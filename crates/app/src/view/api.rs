//! The local HTTP API as the window has it: whether it runs, its keys, the calls that wait for the user.
//!
//! Invariant: the secret of a key crosses once, in the answer to making it.

use lectern_core::{Timestamp, ToolCall};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Problem;

/// The API as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiView {
    /// Whether the user wants it to run, now and whenever the window is open.
    pub on: bool,
    /// What it does.
    pub state: ApiState,
    /// The address to listen at.
    pub bind: String,
    /// The port.
    pub port: u16,
    /// Whether other computers reach that address.
    pub beyond: bool,
    /// Who may ask from elsewhere.
    pub callers: ApiCallers,
    /// The calls that wait for the user, the oldest first; 20 at most.
    pub waiting: Vec<WaitingCall>,
}

/// What the API does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/api.ts")]
pub enum ApiState {
    /// It is off.
    Off,
    /// It is on its way; the keyring may wait for its user.
    Starting,
    /// It is served.
    Running {
        /// Where this computer asks it, without a path.
        url: String,
    },
    /// Nobody can begin anything any more; what is under way has ten seconds.
    Stopping,
    /// It could not be started.
    Failed {
        /// Why not.
        problem: Problem,
    },
}

/// Where to listen.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiAddress {
    /// The address.
    pub bind: String,
    /// The port, from 1.
    pub port: u16,
    /// Whether the user was warned that other computers will reach it.
    #[serde(default)]
    pub beyond: bool,
}

/// Who may ask beside programs of this computer. A key is needed all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiCallers {
    /// Web pages, by their origin.
    pub origins: Vec<String>,
    /// Names of this computer, beside its addresses.
    pub hosts: Vec<String>,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/api.ts")]
pub enum ApiScope {
    /// Ask models.
    Models,
    /// Run tools of the user's servers.
    Tools,
    /// Answer for the user when a tool needs consent.
    Approvals,
}

/// All keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiKeysView {
    /// In the order in which they were made.
    pub keys: Vec<ApiKeyView>,
    /// Why the keyring could not be read, when it could not.
    pub problem: Option<Problem>,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiKeyView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<ApiScope>,
    /// Whether the user's servers serve each of its requests.
    pub server_tools: bool,
    /// When it was used last since this start; none when it was not.
    #[ts(type = "string | null")]
    pub last_used: Option<Timestamp>,
    /// Where it is.
    pub place: ApiKeyPlace,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/api.ts")]
pub enum ApiKeyPlace {
    /// In the keyring.
    Keyring,
    /// In memory, until Lectern ends.
    Session,
    /// The settings name it and the keyring does not have it, or can't be read: it opens nothing.
    Missing,
}

/// A key to be made.
#[derive(Clone, Debug, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct ApiKeyDraft {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<ApiScope>,
    /// Whether the user's servers serve each of its requests.
    pub server_tools: bool,
}

/// A key that was made.
#[derive(Clone, Serialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct MadeApiKey {
    /// The key.
    pub key: ApiKeyView,
    /// What a client sends; shown once.
    pub secret: String,
    /// Why it is not in the keyring, when it is not.
    pub for_this_session: Option<Problem>,
}

impl std::fmt::Debug for MadeApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeApiKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A call that waits for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/api.ts")]
pub struct WaitingCall {
    /// Names it.
    pub id: String,
    /// The name of the key whose request it belongs to.
    pub key: String,
    /// The session, when it has one.
    pub session: Option<String>,
    /// The call.
    pub call: ToolCall,
    /// When it is denied by itself.
    #[ts(type = "string")]
    pub until: Timestamp,
}
