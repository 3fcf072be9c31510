//! Servers of other hosts on their way into the settings.
//!
//! Invariant: nothing here runs anything; what a server would run is shown whole, its secrets by name only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Where servers come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/import.ts")]
pub enum ImportSource {
    /// A pasted text.
    Text {
        /// JSON in any shape that is known.
        text: String,
    },
    /// A file: JSON, or an `.mcpb` bundle.
    File {
        /// Its path.
        path: String,
    },
    /// The settings of another host on this machine.
    Known {
        /// Which.
        host: KnownHost,
    },
}

/// Hosts whose settings can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/import.ts")]
pub enum KnownHost {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
}

/// Settings of another host that were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct FoundHost {
    /// Whose.
    pub host: KnownHost,
    /// The file.
    pub path: String,
    /// How many servers it names.
    pub servers: u32,
}

/// What an import would add. Nothing was added or started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct ImportPreview {
    /// Names the whole source as it was read; the import must say it.
    pub digest: String,
    /// What can be added.
    pub servers: Vec<PreviewedServer>,
    /// What can't.
    pub skipped: Vec<SkippedView>,
}

/// A server that can't be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct SkippedView {
    /// Its name there.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A server that an import would add: exactly what would run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct PreviewedServer {
    /// Its name there, by which it is chosen.
    pub name: String,
    /// The whole command line, secrets masked; none for an address.
    pub command_line: Option<String>,
    /// Its arguments, secrets masked.
    pub args: Vec<String>,
    /// Names of its environment.
    pub env_names: Vec<String>,
    /// The address.
    pub url: Option<String>,
    /// Names of its headers.
    pub header_names: Vec<String>,
    /// Its working folder.
    pub cwd: Option<String>,
    /// Names of the values that look like secrets and can go into the keyring.
    pub secrets: Vec<String>,
    /// What it asks the user for.
    pub inputs: Vec<InputView>,
    /// Whether a server of this name is there already; it would be replaced.
    pub exists: bool,
    /// What the user should know before saying yes.
    pub warnings: Vec<String>,
}

/// A value that a server asks the user for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct InputView {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub description: String,
    /// Whether it is a secret.
    pub password: bool,
    /// What holds when nothing is answered; none when there is nothing, and when it is a secret.
    pub default: Option<String>,
    /// Whether it may stay without an answer.
    pub optional: bool,
    /// What may be chosen; anything when empty.
    pub options: Vec<String>,
    /// Whether several values may be given, one a line.
    pub multiple: bool,
}

/// What to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/import.ts")]
pub struct ImportRequest {
    /// The same source as of the preview.
    pub source: ImportSource,
    /// The preview's digest: what is not as it was shown is not imported.
    pub digest: String,
    /// Names of the chosen servers.
    pub chosen: Vec<String>,
    /// Answers to the inputs, by id.
    pub inputs: BTreeMap<String, String>,
    /// Whether what looks like a secret goes into the keyring instead of the settings.
    pub secrets_to_keyring: bool,
}
