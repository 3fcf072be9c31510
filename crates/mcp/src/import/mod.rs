//! Reads the configurations of other hosts: `mcpServers` (Claude Desktop, Cursor, `.mcp.json`), `servers` and `inputs`
//! (VS Code), and what people paste.
//!
//! Invariant: reading starts nothing and trusts nothing. What can't be used is left out with a reason.

mod command_line;
mod document;
mod inputs;
mod preview;
mod secrets;
mod snippet;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::config::ServerConfig;
use crate::entry::{Entry, Origin, read_entry};

pub use inputs::{Input, of_server as inputs_of, read as read_inputs};
pub use preview::{Described, describe};
pub use secrets::{FoundSecret, found_secrets, without_secrets};
pub use snippet::read_snippet;

/// Characters of a name.
const LONGEST_NAME: usize = 64;

/// One server that was found elsewhere, under its name, with what it asks for.
pub fn one_server(name: &str, entry: &Value, inputs: Vec<Input>) -> ImportedServers {
    ImportedServers { inputs, ..snippet::named(name, entry) }
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedServers {
    /// The servers that can be run.
    pub servers: Vec<ImportedServer>,
    /// The others.
    pub skipped: Vec<SkippedServer>,
    /// What the user has to be asked for, as far as the file says.
    pub inputs: Vec<Input>,
}

/// A server that could be run.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedServer {
    /// What would run. Never trusted.
    pub config: ServerConfig,
    /// Its JSON, without what only its owner may say about it.
    pub entry: Entry,
}

impl ImportedServer {
    /// The same server with another configuration; what else its JSON says stays.
    pub fn with(self, config: ServerConfig) -> Self {
        let mut entry = self.entry;
        crate::entry::write_entry(&config, &mut entry);
        Self { config, entry }
    }
}

/// A server that can't be run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedServer {
    /// Its name in the file.
    pub name: String,
    /// Why, a lowercase fragment.
    pub reason: String,
}

/// Why a file can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not JSON.
    #[error("not valid JSON: {0}")]
    NotJson(String),
    /// It is JSON, but of another kind.
    #[error("neither `mcpServers` nor `servers` in it")]
    NoServers,
    /// Longer than a configuration ever is.
    #[error("longer than 10 MB")]
    TooLong,
    /// More servers than anybody has.
    #[error("more than {0} servers")]
    TooMany(usize),
    /// A pasted text that is neither JSON nor a command nor an address.
    #[error("neither JSON, nor a command line, nor an address")]
    Unknown,
}

/// Reads a configuration; comments and commas at the end of lists are allowed, as VS Code writes them. Placeholders
/// (`${NAME}`, `${input:…}`) stay; they are resolved when a server starts.
pub fn read_config(text: &str) -> Result<ImportedServers, ConfigError> {
    document::read(text).map(servers_of)
}

fn servers_of(document: document::Document) -> ImportedServers {
    let mut imported =
        ImportedServers { inputs: inputs::read(&document.inputs), ..ImportedServers::default() };
    let mut seen = BTreeSet::new();
    for (name, entry) in document.servers {
        match server(&name, entry) {
            Ok(server) if seen.insert(server.config.id.clone()) => imported.servers.push(server),
            Ok(server) => {
                let reason = format!("there is another server called `{}` in it", server.config.id);
                imported.skipped.push(SkippedServer { name: shown(&name), reason });
            }
            Err(reason) => imported.skipped.push(SkippedServer { name: shown(&name), reason }),
        }
    }
    imported
}

fn server(name: &str, entry: Value) -> Result<ImportedServer, String> {
    let Value::Object(mut entry) = entry else { return Err("not an object".into()) };
    let mut config = read_entry("", &entry, Origin::Elsewhere)?;
    let name = clean_name(name);
    config.id = if name.is_empty() { snippet::name_for(&config) } else { name }.into();
    for ours in ["trusted", "timeout_s"] {
        entry.shift_remove(ours);
    }
    // Written anew, so that what is kept is what was read and shown.
    let own: Option<Entry> = entry.shift_remove(crate::entry::OWN).and_then(|own| match own {
        Value::Object(own) => Some(own),
        _ => None,
    });
    if let Some(own) = own {
        let limits = ["signIn", "toolTimeouts", "totalTimeout", "maxConcurrent", "resultBudget"];
        let kept = own.into_iter().filter(|(name, _)| limits.contains(&name.as_str())).collect();
        entry.insert(crate::entry::OWN.to_owned(), Value::Object(kept));
    }
    for dialect in ["name", "environment", "transport"] {
        entry.shift_remove(dialect);
    }
    crate::entry::write_entry(&config, &mut entry);
    Ok(ImportedServer { config, entry })
}

/// A name without what can't be seen, and not longer than a name is.
pub fn clean_name(name: &str) -> String {
    let visible: String =
        name.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c)).collect();
    // A placeholder is ended by a brace, and secrets are called after their server.
    let visible = visible.replace(['{', '}', '$'], "_");
    let short: String = visible.trim().chars().take(LONGEST_NAME).collect();
    short.trim_end().to_owned()
}

/// Characters that are not seen, or that turn the writing around.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn shown(name: &str) -> String {
    let name = clean_name(name);
    if name.is_empty() { "(no name)".into() } else { name }
}

#[cfg(test)]
mod tests;
