//! Where servers to import are read from: a text, a file, a bundle, another host.
//!
//! Invariant: nothing is added or started here. What was read has a digest, so that only what was shown is imported.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use lectern_core::ServerId;
use lectern_mcp::ImportedServers;
use lectern_mcp::bundle::Bundle;
use lectern_mcp::import;
use lectern_mcp::placeholder::mapped;
use sha2::{Digest, Sha256};

use super::bundles::Bundled;
use super::hosts;
use crate::engine::Engine;
use crate::problem::chain;
use crate::vaults::reason;
use crate::view::{ImportSource, Problem};

/// Bytes of a file.
const LONGEST: u64 = 10 << 20;

/// What a source holds.
pub(super) struct Source {
    pub(super) read: ImportedServers,
    pub(super) bundle: Option<Bundled>,
    /// SHA-256 of the whole of it, in hex.
    pub(super) digest: String,
}

impl Engine {
    pub(super) fn read_source(&self, source: &ImportSource) -> Result<Source, Problem> {
        let mut source = match source {
            ImportSource::File { path } if Bundle::is_bundle(Path::new(path)) => {
                let path = Path::new(path);
                let digest = digest_of_file(path)?;
                let (bundle, read) = Bundled::open(&self.0.home, path)?;
                Source { read, bundle: Some(bundle), digest }
            }
            ImportSource::Text { text } => {
                let read = import::read_snippet(text).map_err(|error| unreadable("the text", &error))?;
                Source { read, bundle: None, digest: digest_of_text(text) }
            }
            ImportSource::File { path } => read_file(Path::new(path))?,
            ImportSource::Known { host } => {
                let path = hosts::file_of(*host)
                    .ok_or_else(|| Problem::new("bad_import", "that host has no servers on this machine"))?;
                read_file(&path)?
            }
        };
        self.keep_away_from_vaults(&mut source.read);
        Ok(source)
    }

    /// A server never takes the name of a vault.
    fn keep_away_from_vaults(&self, read: &mut ImportedServers) {
        let names: BTreeSet<String> = read.servers.iter().map(|server| server.config.id.0.clone()).collect();
        for server in &mut read.servers {
            if self.is_built_in(server.config.id.as_str()) {
                let stem = server.config.id.0.clone();
                let mut numbered = (2..).map(|n| format!("{stem}-{n}"));
                let free = numbered.find(|name| !self.is_built_in(name) && !names.contains(name));
                server.config.id = ServerId(free.unwrap_or(stem));
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Source, Problem> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    // A file may also hold what people paste.
    let read =
        lectern_mcp::read_config(&text).or_else(|error| import::read_snippet(&text).map_err(|_| error));
    let mut read = read.map_err(|error| unreadable(&name, &error))?;
    if let Some(workspace) = workspace_of(path) {
        name_workspace(&mut read, &workspace);
    }
    Ok(Source { read, bundle: None, digest: digest_of_text(&text) })
}

fn digest_of_text(text: &str) -> String {
    hex(Sha256::new().chain_update(text.as_bytes()))
}

/// SHA-256 of a file, in hex.
pub(super) fn digest_of_file(path: &Path) -> Result<String, Problem> {
    let mut hash = Sha256::new();
    let read = File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut hash));
    read.map_err(|error| Problem::new("bad_import", format!("{}: {}", path.display(), reason(&error))))?;
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a file that somebody named; not of one without an end.
pub(super) fn read_text(path: &Path) -> Result<String, Problem> {
    use std::io::Read as _;
    let problem = |reason: String| Problem::new("bad_import", format!("{}: {reason}", path.display()));
    let file = File::open(path).map_err(|error| problem(reason(&error)))?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| problem(reason(&error)))?;
    if bytes.len() as u64 > LONGEST {
        return Err(problem("longer than 10 MB".to_owned()));
    }
    decoded(bytes).ok_or_else(|| problem("not text".to_owned()))
}

/// UTF-8, or UTF-16 as some editors on Windows write it.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let units = |of: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect()
    };
    match bytes.get(..2) {
        Some([0xff, 0xfe]) => String::from_utf16(&units(u16::from_le_bytes)).ok(),
        Some([0xfe, 0xff]) => String::from_utf16(&units(u16::from_be_bytes)).ok(),
        Some(_) | None => String::from_utf8(bytes).ok(),
    }
}

/// The folder that `${workspaceFolder}` means in a file of a project.
fn workspace_of(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let folder = path.parent()?;
    match folder.file_name()?.to_str()? {
        ".vscode" | ".cursor" => folder.parent().map(Path::to_owned),
        _ if path.file_name()? == ".mcp.json" => Some(folder.to_owned()),
        _ => None,
    }
}

fn name_workspace(read: &mut ImportedServers, workspace: &Path) {
    let folder = workspace.display().to_string();
    let name = workspace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for server in &mut read.servers {
        let config = mapped(&server.config, &|text| {
            text.replace("${workspaceFolder}", &folder).replace("${workspaceFolderBasename}", &name)
        });
        if config != server.config {
            *server = server.clone().with(config);
        }
    }
}

fn unreadable(what: &str, error: &import::ConfigError) -> Problem {
    Problem::new("bad_import", format!("{what}: {}", chain(error)))
        .hint(r#"It looks like {"mcpServers": {"ID": {"command": "…", "args": ["…"]}}}."#)
}
