//! Why something did not come from elsewhere: said so that a person can do something about it.
//!
//! Invariant: no token and no query of an address in any message.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::target::TargetError;
use crate::units::{bytes, time};

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// What was typed names nothing.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is no such thing.
    #[error("{host} has no {what}")]
    NotFound {
        /// Who was asked.
        host: String,
        /// E.g. `repository a/b`.
        what: String,
    },
    /// The hub lets only those in who accepted a licence, or whom it knows.
    #[error("{host} does not give out {what} to {}", if *.with_token { "this token" } else { "just anybody" })]
    Refused {
        /// Who was asked.
        host: String,
        /// What for.
        what: String,
        /// Where the licence can be accepted.
        page: Option<String>,
        /// Whether a token was shown.
        with_token: bool,
    },
    /// Too many requests.
    #[error("{host} says that it was asked too often{}", waiting(*.wait))]
    TooMany {
        /// Who was asked.
        host: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// The server has a problem of its own.
    #[error("{host} has a problem of its own (status {status})")]
    Server {
        /// Who was asked.
        host: String,
        /// The status, 5xx.
        status: u16,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// An answer that makes no sense here.
    #[error("{host} gave an answer that makes no sense here: {what}")]
    Senseless {
        /// Who was asked.
        host: String,
        /// Which.
        what: String,
    },
    /// There is no way to the server.
    #[error("{host} can't be reached: {reason}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// Why.
        reason: String,
    },
    /// The connection ended too early.
    #[error("the connection to {host} broke off: {reason}")]
    Cut {
        /// Who was asked.
        host: String,
        /// How.
        reason: String,
    },
    /// Nothing came.
    #[error("{host} sent nothing for {}", time(*.silence))]
    Silent {
        /// Who was asked.
        host: String,
        /// For how long.
        silence: Duration,
    },
    /// It leads from page to page.
    #[error("{host} leads from one address to the next and never to a file")]
    Redirects {
        /// Who was asked.
        host: String,
    },
    /// It leads to where nobody checks who reads along.
    #[error("{host} leads from https to {to}, where it could be changed on the way")]
    Downgrade {
        /// Who was asked.
        host: String,
        /// Where it leads.
        to: String,
    },
    /// It is a page.
    #[error("{host} sent a page of the web instead of a model")]
    Page {
        /// Who was asked.
        host: String,
    },
    /// It is something else.
    #[error("what {host} sent is no GGUF file")]
    NoGguf {
        /// Who was asked.
        host: String,
    },
    /// It comes compressed.
    #[error("{host} sends the file compressed ({coding}) although it was asked not to")]
    Compressed {
        /// Who was asked.
        host: String,
        /// E.g. `gzip`.
        coding: String,
    },
    /// It has another size than was said.
    #[error("{name} has {} instead of {}", bytes(*.found), bytes(*.expected))]
    Size {
        /// The file.
        name: String,
        /// What the host said.
        expected: u64,
        /// What it sends.
        found: u64,
    },
    /// It has other contents than was said.
    #[error("the checksum of {name} is wrong: {found} instead of {expected}")]
    Checksum {
        /// The file.
        name: String,
        /// SHA-256 that the host said.
        expected: String,
        /// SHA-256 of what came.
        found: String,
    },
    /// A repository without models.
    #[error("{0} has no GGUF files")]
    NoModels(String),
    /// A repository without this model.
    #[error("{repository} has no {wanted}")]
    NoSuchModel {
        /// The repository.
        repository: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        there: Vec<String>,
    },
    /// The files of a split model are not all there.
    #[error("{name} has {count} files, and number {missing} is not in the repository")]
    Incomplete {
        /// The model.
        name: String,
        /// How many files it should have.
        count: u32,
        /// Which one is missing.
        missing: u32,
    },
    /// The disk is full, or would be.
    #[error("{} {} needed in {} and {} {} free", bytes(*.needed), are(*.needed), .folder.display(), bytes(*.free), are(*.free))]
    NoSpace {
        /// Where.
        folder: PathBuf,
        /// With a reserve.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// A file could not be read or written.
    #[error("{}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: Arc<io::Error>,
    },
    /// There is no such download.
    #[error("there is no download `{0}`")]
    NoDownload(String),
    /// It was done already.
    #[error("{0} is done")]
    IsDone(String),
}

impl Fault {
    /// A file that could not be read or written; a full disk is told apart.
    pub fn file(path: impl Into<PathBuf>, cause: io::Error) -> Self {
        let path = path.into();
        if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let folder = path.parent().map_or_else(|| path.clone(), ToOwned::to_owned);
            let free = fs4::available_space(&folder).unwrap_or(0);
            return Self::NoSpace { folder, needed: 1 << 20, free };
        }
        Self::File { path, cause: Arc::new(cause) }
    }

    /// A short name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Target(_) => "bad_target",
            Self::NotFound { .. } => "not_found",
            Self::Refused { .. } => "access_refused",
            Self::TooMany { .. } => "too_many_requests",
            Self::Server { .. }
            | Self::Senseless { .. }
            | Self::Redirects { .. }
            | Self::Downgrade { .. } => "server_failed",
            Self::Unreachable { .. } | Self::Cut { .. } | Self::Silent { .. } => "unreachable",
            Self::Page { .. } | Self::NoGguf { .. } => "not_a_model",
            Self::Compressed { .. } => "compressed",
            Self::Size { .. } => "file_changed",
            Self::Checksum { .. } => "bad_checksum",
            Self::NoModels(_) | Self::NoSuchModel { .. } | Self::Incomplete { .. } => "no_such_file",
            Self::NoSpace { .. } => "no_space",
            Self::File { .. } => "bad_folder",
            Self::NoDownload(_) => "unknown_download",
            Self::IsDone(_) => "download_done",
        }
    }

    /// The way out.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Target(_) => {
                "Name a repository like Qwen/Qwen3-4B-GGUF, or the address of a GGUF file.".into()
            }
            Self::NotFound { .. } => "Check the spelling; a private repository needs a token.".into(),
            Self::Refused { page: Some(page), with_token: false, .. } => format!(
                "Accept the licence at {page}, make a token there, and keep it: lectern models token."
            ),
            Self::Refused { page: Some(page), with_token: true, .. } => {
                format!("Accept the licence at {page} with the account that the token belongs to.")
            }
            Self::Refused { page: None, .. } => "Download the file with a browser and add it.".into(),
            Self::TooMany { .. } => "Try again later, or keep a token: lectern models token.".into(),
            Self::Server { .. } => "Try again later; what is here already is kept.".into(),
            Self::Senseless { .. } | Self::Redirects { .. } | Self::Downgrade { .. } => {
                "Check the address; a mirror can be set by `model_hub` in the settings.".into()
            }
            Self::Unreachable { .. } | Self::Cut { .. } | Self::Silent { .. } => {
                "Check the connection and go on; what is here already is kept.".into()
            }
            Self::Page { .. } => "Open the address in a browser: it may want you to sign in.".into(),
            Self::NoGguf { .. } => "Choose a GGUF file; other formats can't be run.".into(),
            Self::Compressed { .. } => "Download the file with a browser and add it.".into(),
            Self::Size { .. } => {
                "It was changed on the server. Cancel this download and begin it again.".into()
            }
            Self::Checksum { .. } => "What came was deleted. Download it again, or from elsewhere.".into(),
            Self::NoModels(_) => "Look for a repository with GGUF in its name.".into(),
            Self::NoSuchModel { there, .. } => format!("There are: {}.", listed(there)),
            Self::Incomplete { .. } => "Choose another file.".into(),
            Self::NoSpace { .. } => "Make room, or choose another folder or a smaller model.".into(),
            Self::File { .. } => "Check that the folder is there and can be written.".into(),
            Self::NoDownload(_) => "`lectern models downloads` shows them.".into(),
            Self::IsDone(_) => return None,
        })
    }

    /// Whether it may be different in a moment.
    pub fn passes(&self) -> bool {
        match self {
            Self::TooMany { wait, .. } => wait.is_none_or(|wait| wait <= LONGEST_WAIT),
            Self::Server { wait, .. } => wait.is_none_or(|wait| wait <= LONGEST_WAIT),
            Self::Unreachable { .. } | Self::Cut { .. } | Self::Silent { .. } => true,
            Self::Target(_)
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Senseless { .. }
            | Self::Redirects { .. }
            | Self::Downgrade { .. }
            | Self::Page { .. }
            | Self::NoGguf { .. }
            | Self::Compressed { .. }
            | Self::Size { .. }
            | Self::Checksum { .. }
            | Self::NoModels(_)
            | Self::NoSuchModel { .. }
            | Self::Incomplete { .. }
            | Self::NoSpace { .. }
            | Self::File { .. }
            | Self::NoDownload(_)
            | Self::IsDone(_) => false,
        }
    }

    /// How long the server wants to be left alone.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::TooMany { wait, .. } | Self::Server { wait, .. } => *wait,
            _ => None,
        }
    }
}

/// Who wants to be left alone for longer is told to the user.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);

fn waiting(wait: Option<Duration>) -> String {
    wait.map(|wait| format!(" and wants {} of quiet", time(wait))).unwrap_or_default()
}

fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
