//! Keeps conversations: one SQLite file with messages, turns, events, drafts of running steps, the audit log and what
//! the user approved.
//!
//! Invariant: no call waits for anything but the disk, and what a turn writes together is stored together or not at
//! all. After [`Store::open`] no turn of a dead process is left unfinished.

mod approvals;
mod audit;
mod beside;
mod branch;
mod conversations;
mod fits;
mod images;
mod instance;
mod long;
mod read;
mod recovery;
mod schema;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode};

use crate::clock;
use crate::ids::{ConversationId, TurnId};

pub use approvals::{ApprovedServer, KnownTool};
pub(crate) use audit::Decided;
pub use audit::{
    AUDIT_ARGUMENTS, AUDIT_KEPT, Actor, AuditDecision, AuditEntry, AuditKind, AuditOutcome, AuditQuery,
};
pub use branch::StoredPage;
pub use conversations::StoredConversation;
pub use fits::StoredSummary;
pub use read::{StoredMessage, StoredTurn};
pub(crate) use write::{NewTurn, TurnWrite};

use instance::Instance;

/// A handle on the stored conversations; clones share one connection. Calls are short (one transaction) and may be
/// made from async code.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    // A std mutex: nothing awaits while it is held.
    connection: Mutex<Connection>,
    instance: Instance,
    /// The store that has the audit log, when it is not this one.
    main: Option<Store>,
}

/// Why the store gave nothing back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file can't be opened at all.
    #[error("open the conversations in `{}`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file is no database, or a broken one. It is left as it is.
    #[error("`{}` is damaged or not a file of conversations", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A newer Lectern wrote the file.
    #[error("`{}` was written by a newer Lectern (version {found} of the file, this one knows {known})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The latest version that this Lectern knows.
        known: u32,
    },
    /// There is no such conversation, or it was deleted.
    #[error("no conversation `{0}`")]
    UnknownConversation(ConversationId),
    /// A turn runs in this conversation, perhaps in another process.
    #[error("a turn already runs in conversation `{0}`")]
    Busy(ConversationId),
    /// SQLite refused.
    #[error("read or write the conversations")]
    Sql(#[from] rusqlite::Error),
    /// A stored message can't be read.
    #[error("read the stored {what}")]
    Unreadable {
        /// What it was.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

impl StoreError {
    /// The way out, one sentence, when there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open { .. } => Some("Check that the folder exists and that you may write to it."),
            Self::Damaged { .. } => Some(
                "Move the file aside to begin anew; a copy of it may be repairable with `sqlite3 FILE .recover`.",
            ),
            Self::Newer { .. } => Some("Update Lectern, or name another home with --home."),
            Self::Busy(_) => Some("Wait for the answer, or stop it."),
            Self::UnknownConversation(_) | Self::Sql(_) | Self::Unreadable { .. } => None,
        }
    }
}

impl Store {
    /// Opens or makes the file. Turns that a crash interrupted are repaired, conversations deleted 30 days ago are
    /// purged. Two processes may have the same file open.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, None)
    }

    fn open_with(path: &Path, main: Option<Self>) -> Result<Self, StoreError> {
        let connection =
            Connection::open(path).map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        Self::set_up(connection, path, Instance::register(path), main)
    }

    /// A store that ends with the last handle on it.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        Self::set_up(connection, Path::new(":memory:"), Instance::alone(), None)
    }

    fn set_up(
        mut connection: Connection,
        path: &Path,
        instance: Instance,
        main: Option<Self>,
    ) -> Result<Self, StoreError> {
        schema::prepare(&mut connection, path).map_err(|error| name_damage(error, path))?;
        let store = Self(Arc::new(Inner { connection: Mutex::new(connection), instance, main }));
        store.recover_interrupted().map_err(|error| name_damage(error, path))?;
        store.purge_deleted(clock::now())?;
        Ok(store)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock was held rolled its transaction back; the connection is still good.
        self.0.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn instance(&self) -> &Instance {
        &self.0.instance
    }
}

/// Gives an error that means a damaged file the file's name.
fn name_damage(error: StoreError, path: &Path) -> StoreError {
    let StoreError::Sql(source) = error else { return error };
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, source },
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::Open { path, source }
        }
        _ => StoreError::Sql(source),
    }
}

fn from_millis(millis: i64) -> crate::Timestamp {
    crate::Timestamp::from_millisecond(millis).unwrap_or(crate::Timestamp::UNIX_EPOCH)
}

fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Unreadable { what, source })
}

/// Names a turn in its conversation.
#[derive(Clone, Debug)]
pub(crate) struct TurnKey {
    pub conversation: ConversationId,
    pub turn: TurnId,
}
