//! Where Lectern keeps what is the user's: conversations, settings, models, the sample vault.
//!
//! Invariant: every path below the home is named here and nowhere else.

use std::path::{Path, PathBuf};

use etcetera::AppStrategy;
use etcetera::app_strategy::{AppStrategyArgs, choose_native_strategy};

use lectern_core::ServerId;
use lectern_mcp::LogFile;

use crate::durable;
use crate::view::Problem;

/// The folder that holds everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The environment variable that names another home.
    pub const VARIABLE: &str = "LECTERN_HOME";

    /// The home that was asked for, else the one of [`Home::VARIABLE`], else the platform's data folder.
    /// The folder is made when it is missing.
    pub fn open(asked: Option<&Path>) -> Result<Self, Problem> {
        let path = match asked {
            Some(path) => path.to_owned(),
            None => match std::env::var_os(Self::VARIABLE).filter(|value| !value.is_empty()) {
                Some(value) => PathBuf::from(value),
                None => platform_folder()?,
            },
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        durable::create_private_folder(&path).map_err(|error| cannot_use(&path, &error.to_string()))?;
        if !path.is_dir() {
            return Err(cannot_use(&path, "not a folder"));
        }
        Ok(Self(path))
    }

    /// The files that no tool writes without the user's word for that very call: who can write them decides what runs.
    pub(crate) const GUARDED: [&str; 3] = ["settings.json", ".settings.lock", "conversations.sqlite"];

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the user chose.
    pub fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// Held while the settings change, so that two processes don't undo each other's changes.
    pub fn settings_lock(&self) -> PathBuf {
        self.0.join(".settings.lock")
    }

    /// The conversations.
    pub fn store(&self) -> PathBuf {
        self.0.join("conversations.sqlite")
    }

    /// Model files that Lectern itself put there.
    pub fn models(&self) -> PathBuf {
        self.0.join("models")
    }

    /// Models that were deleted and can still come back.
    pub fn models_trash(&self) -> PathBuf {
        self.models().join(".trash")
    }

    /// How fast models were on this machine.
    pub fn benches(&self) -> PathBuf {
        self.0.join("benches.json")
    }

    /// Code for processors that this machine's turned out not to run.
    pub fn unfit_code(&self) -> PathBuf {
        self.0.join("unfit-code.json")
    }

    /// The user's own list of good models, over the one that came with Lectern.
    pub fn curated(&self) -> PathBuf {
        self.0.join("curated.json")
    }

    /// Images that wait to be sent.
    pub fn enclosed(&self) -> PathBuf {
        self.0.join("enclosed")
    }

    /// What models computed for conversations: as private as those, and replaceable.
    pub fn states(&self) -> PathBuf {
        self.0.join("cache").join("kv")
    }

    /// The vault that came with Lectern.
    pub fn sample_vault(&self) -> PathBuf {
        self.0.join("sample-vault")
    }

    /// Which version of the sample vault was copied.
    pub fn sample_vault_mark(&self) -> PathBuf {
        self.0.join(".sample-vault")
    }

    /// What was typed in `lectern chat`.
    pub fn chat_history(&self) -> PathBuf {
        self.0.join("chat-history")
    }

    /// The folder that `${LECTERN_WORKSPACE}` means for the window and the command line.
    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Sessions of the local API, and their folders.
    pub fn api(&self) -> PathBuf {
        self.0.join("api")
    }

    /// The unpacked bundles of servers.
    pub fn bundles(&self) -> PathBuf {
        self.0.join("bundles")
    }

    /// Where servers' logs and other things that may be lost are kept.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// What a server wrote to stderr and logged, over all processes of the app.
    pub fn server_log(&self, server: &ServerId) -> LogFile {
        LogFile::of(&self.logs(), server)
    }

    /// The messages between Lectern and a server, if the settings say that they are kept.
    pub fn server_traffic(&self, server: &ServerId) -> LogFile {
        LogFile::of_traffic(&self.logs(), server)
    }
}

fn platform_folder() -> Result<PathBuf, Problem> {
    let names = AppStrategyArgs {
        top_level_domain: "org".to_owned(),
        author: "Lectern".to_owned(),
        app_name: "Lectern".to_owned(),
    };
    choose_native_strategy(names).map(|folders| folders.data_dir()).map_err(|error| {
        Problem::new("no_home", format!("no place for Lectern's data: {error}"))
            .hint(format!("Name a folder with --home or {}.", Home::VARIABLE))
    })
}

fn cannot_use(path: &Path, reason: &str) -> Problem {
    Problem::new("no_home", format!("can't use {} as Lectern's home: {reason}", path.display()))
        .hint(format!("Name another folder with --home or {}.", Home::VARIABLE))
}

/// A home in a folder that goes when the folder's handle is dropped.
#[cfg(test)]
pub(crate) fn temporary() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::open(Some(folder.path())).unwrap();
    (folder, home)
}
