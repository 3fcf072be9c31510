//! Which servers there are: those of the vaults, and those of the settings or of a file.
//!
//! Invariant: nothing is started here, and a server never takes the name of a vault.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lectern_mcp::{Answers, HostOptions, Root, ServerConfig};

use crate::engine::unknown_server;
use crate::home::Home;
use crate::options::EngineOptions;
use crate::problem::chain;
use crate::secrets::Keyring;
use crate::settings::Settings;
use crate::vaults::{self, Vault};
use crate::view::Problem;

/// What there is to serve and to start.
#[derive(Default)]
pub(in crate::engine) struct Planned {
    pub(in crate::engine) vaults: Vec<Vault>,
    pub(in crate::engine) configs: Vec<ServerConfig>,
    pub(in crate::engine) unusable: Vec<Unusable>,
}

/// An entry of the settings that can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Unusable {
    pub(in crate::engine) id: String,
    pub(in crate::engine) reason: String,
}

/// What is served, and the servers for it and beside it.
pub(in crate::engine) fn planned(
    home: &Home,
    settings: &Settings,
    options: &EngineOptions,
    executable: &Path,
) -> Result<Planned, Problem> {
    if options.without_servers {
        return Ok(Planned { vaults: vaults::of_settings(home, settings), ..Planned::default() });
    }
    let (others, mut unusable) = match &options.mcp_config {
        Some(path) => (servers_of_file(path)?, Vec::new()),
        None => of_settings(settings),
    };
    let taken = others.iter().map(|config| config.id.0.clone()).collect();
    let vaults = if !options.vaults.is_empty() {
        vaults::of_folders(&options.vaults, taken)?
    } else if options.mcp_config.is_some() {
        Vec::new()
    } else {
        vaults::of_settings(home, settings)
    };
    let mut configs: Vec<ServerConfig> = vaults.iter().map(|vault| vault_config(vault, executable)).collect();
    let names: BTreeSet<String> = vaults.iter().map(|vault| vault.server.0.clone()).collect();
    for config in others {
        if names.contains(config.id.as_str()) {
            let reason = "a vault has this name; give the server another one".to_owned();
            unusable.push(Unusable { id: config.id.0, reason });
        } else {
            configs.push(config);
        }
    }
    if let Some(only) = &options.only {
        configs.retain(|config| config.id == *only);
        unusable.retain(|unusable| unusable.id == only.as_str());
        if configs.is_empty() && unusable.is_empty() {
            return Err(unknown_server(only));
        }
    }
    Ok(Planned { vaults, configs, unusable })
}

/// The servers of the settings, and the entries that can't be run.
pub(super) fn of_settings(settings: &Settings) -> (Vec<ServerConfig>, Vec<Unusable>) {
    let (mut configs, mut unusable) = (Vec::new(), Vec::new());
    for id in settings.servers.keys() {
        match settings.server(id) {
            Some(Ok(config)) => configs.push(config),
            Some(Err(reason)) => unusable.push(Unusable { id: id.clone(), reason }),
            None => {}
        }
    }
    (configs, unusable)
}

/// The notes server of a vault: this executable again.
pub(in crate::engine) fn vault_config(vault: &Vault, executable: &Path) -> ServerConfig {
    let arguments = ["vault".to_owned(), vault.path.display().to_string()];
    let mut config = ServerConfig::new(vault.server.clone(), executable.display().to_string(), arguments);
    config.trusted = true;
    config
}

/// What the host may do.
pub(in crate::engine) fn host_options(home: &Home, settings: &Settings, secrets: Keyring) -> HostOptions {
    HostOptions {
        log_dir: Some(home.logs()),
        traffic_dir: settings.keep_traffic.then(|| home.logs()),
        answers: Answers { elicitation: true, sampling: true },
        secrets: Some(Arc::new(secrets)),
        ..HostOptions::default()
    }
}

/// The vaults, as the folders that servers may be told about.
pub(in crate::engine) fn roots(vaults: &[Vault]) -> Vec<Root> {
    let root = |vault: &Vault| {
        let name = vault.path.file_name().map(|name| name.to_string_lossy().into_owned());
        Root { uri: vaults::file_uri(&vault.path), name }
    };
    vaults.iter().map(root).collect()
}

fn servers_of_file(path: &Path) -> Result<Vec<ServerConfig>, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_mcp_config", format!("{}: {reason}", path.display()))
            .hint(r#"The file looks like {"mcpServers": {"ID": {"command": "…", "args": ["…"]}}}."#)
    };
    let text = std::fs::read_to_string(path).map_err(|error| problem(vaults::reason(&error)))?;
    let read = lectern_mcp::read_config(&text).map_err(|error| problem(chain(&error)))?;
    match read.skipped.first() {
        // Somebody named this file for this run; a server that is quietly missing would be a riddle.
        Some(skipped) => Err(problem(format!("server `{}`: {}", skipped.name, skipped.reason))),
        None => Ok(read.servers.into_iter().map(|server| server.config).collect()),
    }
}
