//! Sessions of `/api`: each has its history, its folder and its own processes of servers that work in folders.
//!
//! Invariant: what a client calls a session never becomes a part of a path: the folder's name is a digest of the key's id
//! and the session's name. So two keys never share a session, two sessions never a folder, and no name can lead elsewhere.
//! A session that is in use is neither swept nor half deleted.

mod places;
mod uses;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use lectern_core::{ConversationId, Message, Store, StoreError, ToolProvider, Turns, clock};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::backend::Backend;
use crate::error::{ApiError, ErrorKind};
use places::Places;
use uses::{InUse, Uses};

/// Characters of a session's name at most.
const LONGEST_NAME: usize = 128;

/// What the name of a session's conversation begins with.
const PREFIX: &str = "api-";

/// The sessions.
pub struct Sessions {
    store: Store,
    /// The turns that run in them.
    pub turns: Turns,
    places: Places,
    uses: Uses,
    limits: SessionLimits,
    begun: watch::Sender<()>,
}

/// How much a session may have, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Bytes in its folder.
    pub bytes: u64,
    /// Files and folders in its folder.
    pub files: u64,
    /// How long it may rest before it is deleted.
    pub idle: Duration,
    /// How often is looked for those that rested too long.
    pub sweeps: Duration,
    /// How long its own processes of servers may rest.
    pub processes: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            files: 100_000,
            idle: Duration::from_secs(24 * 60 * 60),
            sweeps: Duration::from_secs(60),
            processes: Duration::from_secs(10 * 60),
        }
    }
}

/// A session that is in use until the last clone is dropped.
#[derive(Clone)]
pub struct Session {
    /// As the client calls it.
    pub id: String,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its folder.
    pub workspace: PathBuf,
    digest: String,
    used: Arc<InUse>,
}

/// Where a session is, whether there is one or not.
struct Named {
    id: String,
    digest: String,
    conversation: ConversationId,
}

impl Sessions {
    /// Opens what is kept.
    pub fn open(folder: &Path, main: &Store, limits: SessionLimits) -> Result<Self, StoreError> {
        // What is wrong with the folder is told by the store, which can't be opened there.
        let _ = lectern_app::durable::create_private_folder(folder);
        let store = Store::open_beside(&folder.join("sessions.sqlite"), main)?;
        let places = Places::new(folder.join("workspaces"));
        Ok(Self {
            store,
            turns: Turns::default(),
            places,
            uses: Uses::default(),
            limits,
            begun: watch::Sender::default(),
        })
    }

    /// Where they are kept.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The session of this name, for this key; a new one without a name. Its folder is there afterwards.
    pub fn session(&self, key: &str, name: Option<String>) -> Result<Session, ApiError> {
        let id = name.unwrap_or_else(|| format!("sess_{}", uuid::Uuid::new_v4().simple()));
        let Named { id, digest, conversation } = named(key, id)?;
        let used = self.uses.begin(&conversation, || {
            self.store.touch(&conversation).map_err(|error| unkept(&error))?;
            self.places.make(&digest).map_err(|error| no_place(&error))
        })?;
        let workspace = self.places.path(&digest);
        Ok(Session { id, conversation, workspace, digest, used })
    }

    /// A session that is there already.
    pub fn known(&self, key: &str, name: String) -> Result<Session, ApiError> {
        let Named { id, conversation, .. } = named(key, name)?;
        match self.store.conversation(&conversation) {
            Ok(_) => self.session(key, Some(id)),
            Err(StoreError::UnknownConversation(_)) => Err(unknown(&id)),
            Err(error) => Err(unkept(&error)),
        }
    }

    /// Fires when a turn began somewhere, or a session was deleted.
    pub fn begun(&self) -> watch::Receiver<()> {
        self.begun.subscribe()
    }

    /// A turn began.
    pub fn begin_turn(&self) {
        self.begun.send_replace(());
    }

    /// What was said in a session so far.
    pub fn history(&self, session: &Session) -> Result<Vec<Message>, ApiError> {
        self.store.history(&session.conversation).map_err(|error| unkept(&error))
    }

    /// Begins a session anew with what was said elsewhere.
    pub fn begin(&self, session: &Session, earlier: Vec<Message>) -> Result<(), ApiError> {
        self.store.import(&session.conversation, earlier).map_err(|error| unkept(&error))
    }

    /// Waits for the turn of a client that went away to settle. What still runs for somebody stays.
    pub async fn quiet(&self, session: &Session) {
        const SETTLES: Duration = Duration::from_secs(3);
        if let Some(turn) = self.turns.running(&session.conversation)
            && turn.is_cancelled()
        {
            // What does not end in time is told as a turn that runs.
            let _ = tokio::time::timeout(SETTLES, turn.finished()).await;
        }
    }

    /// Stops what runs, and waits for it to be kept, so long at most.
    pub async fn settle(&self, longest: Duration) {
        let running = self.turns.all_running();
        running.iter().for_each(lectern_core::TurnHandle::cancel);
        let settled = futures::future::join_all(running.iter().map(lectern_core::TurnHandle::finished));
        let _ = tokio::time::timeout(longest, settled).await;
    }

    /// The tools as this session has them.
    pub fn tools(&self, session: &Session, backend: &dyn Backend) -> Arc<dyn ToolProvider> {
        session.used.tools(|| backend.tools_in(&session.workspace))
    }

    /// Whether the session's folder has more than it may.
    pub async fn is_full(&self, session: &Session) -> bool {
        let (places, digest, limits) = (self.places.clone(), session.digest.clone(), self.limits);
        let measured =
            tokio::task::spawn_blocking(move || places.is_beyond(&digest, limits.bytes, limits.files));
        measured.await.unwrap_or(false)
    }

    /// Deletes a session with all it has, and stops what runs in it. An error when somebody else uses it on.
    pub async fn delete(&self, session: Session) -> Result<ConversationId, ApiError> {
        const STOPS: Duration = Duration::from_secs(5);
        if let Some(turn) = self.turns.running(&session.conversation) {
            turn.cancel();
            let _ = tokio::time::timeout(STOPS, turn.finished()).await;
        }
        let Session { conversation, digest, used, id, .. } = session;
        drop(used);
        let deadline = tokio::time::Instant::now() + STOPS;
        loop {
            let gone = self.uses.end(&conversation, || self.remove(&conversation, &digest));
            match gone {
                Some(gone) => return gone.map(|()| conversation),
                None if tokio::time::Instant::now() > deadline => return Err(busy(&id)),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Deletes what rested too long, and folders of no session; the conversations that are gone.
    pub fn sweep(&self) -> Result<Vec<ConversationId>, StoreError> {
        let idle = jiff::SignedDuration::try_from(self.limits.idle).unwrap_or(jiff::SignedDuration::MAX);
        let then = || clock::now().saturating_sub(idle).unwrap_or(lectern_core::Timestamp::MIN);
        let mut gone = Vec::new();
        for conversation in self.store.unused_since(then())? {
            let Some(digest) = conversation.as_str().strip_prefix(PREFIX).map(str::to_owned) else {
                continue;
            };
            if self.turns.running(&conversation).is_some() {
                continue;
            }
            let swept = self.uses.end(&conversation, || {
                // It may have been used since it was listed.
                let rests = self.store.unused_since(then()).is_ok_and(|all| all.contains(&conversation));
                rests.then(|| self.remove(&conversation, &digest))
            });
            match swept.flatten() {
                Some(Ok(())) => gone.push(conversation),
                Some(Err(error)) => tracing::warn!(%error, "a session that rested too long"),
                None => {}
            }
        }
        self.sweep_folders();
        self.uses.rest(self.limits.processes);
        Ok(gone)
    }

    fn sweep_folders(&self) {
        for digest in self.places.all() {
            let conversation = ConversationId(format!("{PREFIX}{digest}"));
            self.uses.end(&conversation, || {
                let known = self.store.conversation(&conversation);
                if matches!(known, Err(StoreError::UnknownConversation(_)))
                    && let Err(error) = self.places.remove(&digest)
                {
                    tracing::warn!(%error, "a folder of no session");
                }
            });
        }
    }

    fn remove(&self, conversation: &ConversationId, digest: &str) -> Result<(), ApiError> {
        // The folder first: one that is left behind by a crash still has a session that is swept.
        self.places.remove(digest).map_err(|error| no_place(&error))?;
        let erased = self.store.erase(conversation).map(drop).map_err(|error| unkept(&error));
        self.begun.send_replace(());
        erased
    }
}

/// There is no session of this name.
pub fn unknown(id: &str) -> ApiError {
    let id = crate::fields::shortened(id);
    ApiError::not_found("session_not_found", format!("there is no session `{id}`"))
}

fn named(key: &str, id: String) -> Result<Named, ApiError> {
    check_name(&id)?;
    let digest = digest(key, &id);
    let conversation = ConversationId(format!("{PREFIX}{digest}"));
    Ok(Named { id, digest, conversation })
}

/// Names that could mean anything but themselves somewhere are refused, although they are never a path here.
fn check_name(name: &str) -> Result<(), ApiError> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain = name.chars().all(good) && !name.starts_with('.') && !name.contains("..");
    if !name.is_empty() && name.len() <= LONGEST_NAME && plain {
        return Ok(());
    }
    let message =
        format!("`session_id` has to be 1 to {LONGEST_NAME} of the characters a-z, A-Z, 0-9, _, - and .");
    Err(ApiError::invalid("invalid_session_id", "session_id", message))
}

fn digest(key: &str, id: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(key.len().to_le_bytes());
    hasher.update(key);
    hasher.update(id);
    hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn busy(id: &str) -> ApiError {
    let message = format!("something still runs in the session `{id}`");
    ApiError::new(StatusCode::CONFLICT, ErrorKind::InvalidRequestError, "session_busy", message)
        .at("session_id")
}

fn unkept(error: &StoreError) -> ApiError {
    tracing::warn!(%error, "a session");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ApiError::failed(status, "internal_error", "the session could not be read or kept")
}

fn no_place(error: &std::io::Error) -> ApiError {
    tracing::warn!(%error, "the folder of a session");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ApiError::failed(status, "internal_error", "the session's folder could not be used")
}

#[cfg(test)]
mod tests;
