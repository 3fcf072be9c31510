//! Takes servers over from other hosts, after a look at what they would run.
//!
//! Invariant: a preview adds and starts nothing; only what was chosen is added; no answer and no secret goes into the
//! settings in clear when the keyring can have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lectern_core::ServerId;
use lectern_core::store::AuditKind;
use lectern_mcp::bundle::Bundle;
use lectern_mcp::import::{self, Described, FoundSecret, Input, inputs_of, without_secrets};
use lectern_mcp::placeholder::{Reference, input_key, mapped, references, secret_key};
use lectern_mcp::{ImportedServer, ImportedServers, ServerConfig};

use super::bundles::Bundled;
use super::hosts;
use crate::engine::{Engine, unknown_server};
use crate::problem::{chain, of_secrets};
use crate::settings::Settings;
use crate::vaults::reason;
use crate::view::{
    ImportPreview, ImportRequest, ImportSource, InputView, PreviewedServer, Problem, ServerView, SkippedView,
};

/// Bytes of a file.
const LONGEST: u64 = 10 << 20;

impl Engine {
    /// What an import would add, in full. Nothing is added or started.
    pub fn preview_import(&self, source: &ImportSource) -> Result<ImportPreview, Problem> {
        let (read, _) = self.read_source(source)?;
        let settings = Settings::read(&self.0.home)?;
        let servers =
            read.servers.iter().map(|server| self.previewed(&server.config, &read.inputs, &settings));
        let skipped = read.skipped.iter();
        Ok(ImportPreview {
            servers: servers.collect(),
            skipped: skipped
                .map(|skipped| SkippedView { name: skipped.name.clone(), reason: skipped.reason.clone() })
                .collect(),
        })
    }

    /// What a server of the settings would run.
    pub fn preview_server(&self, id: &ServerId) -> Result<PreviewedServer, Problem> {
        let settings = Settings::read(&self.0.home)?;
        let inputs = import::read_inputs(&settings.inputs);
        match settings.server(id.as_str()) {
            Some(Ok(config)) => Ok(self.previewed(&config, &inputs, &settings)),
            Some(Err(_)) | None => Err(unknown_server(id)),
        }
    }

    /// Adds the chosen servers; one of the same name is replaced.
    pub async fn import_servers(&self, request: ImportRequest) -> Result<Vec<ServerView>, Problem> {
        let (read, bundle) = self.read_source(&request.source)?;
        let chosen = chosen(&read, &request.chosen)?;
        let settings = Settings::read(&self.0.home)?;
        let mut importing = Importing { settings: &settings, secrets: BTreeMap::new(), inputs: Vec::new() };
        let servers: Vec<ImportedServer> =
            chosen.into_iter().map(|server| importing.take(server, &read.inputs, &request)).collect();
        let Importing { secrets, inputs, .. } = importing;
        if let (Some(bundle), ImportSource::File { path }, false) =
            (bundle, &request.source, servers.is_empty())
        {
            let path = PathBuf::from(path);
            let unpacked = tokio::task::spawn_blocking(move || bundle.unpack(&path)).await;
            unpacked.map_err(|error| Problem::new("defect", error.to_string()))??;
        }
        for (key, value) in &secrets {
            self.0.secrets.keep(key, value).await.map_err(|error| of_secrets(&error))?;
        }
        let (settings, ()) = Settings::change(&self.0.home, |settings| {
            for server in &servers {
                let entry = serde_json::Value::Object(server.entry.clone());
                settings.servers.insert(server.config.id.0.clone(), entry);
            }
            settings.add_inputs(&inputs);
        })?;
        self.state().settings = settings;
        let mut views = Vec::new();
        for server in servers {
            self.approve(&server.config)?;
            self.note(AuditKind::Server, &server.config.id, None, "imported")?;
            views.push(self.run_server(server.config).await?);
        }
        Ok(views)
    }

    fn previewed(&self, config: &ServerConfig, inputs: &[Input], settings: &Settings) -> PreviewedServer {
        let Described { command_line, args, env_names, url, header_names, cwd, secrets, warnings } =
            import::describe(config);
        PreviewedServer {
            name: config.id.0.clone(),
            command_line,
            args,
            env_names,
            url,
            header_names,
            cwd,
            secrets,
            inputs: inputs_of(config, inputs).into_iter().map(input_view).collect(),
            exists: settings.servers.contains_key(config.id.as_str()),
            warnings,
        }
    }

    fn read_source(&self, source: &ImportSource) -> Result<(ImportedServers, Option<Bundled>), Problem> {
        let mut bundle = None;
        let mut read = match source {
            ImportSource::File { path } if Bundle::is_bundle(Path::new(path)) => {
                let (bundled, read) = Bundled::open(&self.0.home, Path::new(path))?;
                bundle = Some(bundled);
                read
            }
            ImportSource::Text { text } => {
                import::read_snippet(text).map_err(|error| unreadable("the text", &error))?
            }
            ImportSource::File { path } => read_file(Path::new(path))?,
            ImportSource::Known { host } => {
                let path = hosts::file_of(*host)
                    .ok_or_else(|| Problem::new("bad_import", "that host has no servers on this machine"))?;
                read_file(&path)?
            }
        };
        self.keep_away_from_vaults(&mut read);
        Ok((read, bundle))
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

/// What is collected while chosen servers are made ready.
struct Importing<'a> {
    settings: &'a Settings,
    /// By their names in the keyring.
    secrets: BTreeMap<String, String>,
    inputs: Vec<Input>,
}

impl Importing<'_> {
    fn take(&mut self, server: ImportedServer, inputs: &[Input], request: &ImportRequest) -> ImportedServer {
        let mut config = server.config.clone();
        for input in inputs_of(&config, inputs) {
            let answer = request.inputs.get(&input.id).filter(|answer| !answer.is_empty()).cloned();
            if input.multiple {
                config = with_several(&config, &input, answer.as_deref());
                continue;
            }
            let id = self.id_for(&input.id, &config);
            if id != input.id {
                let (theirs, ours) = (format!("${{input:{}}}", input.id), format!("${{input:{id}}}"));
                config = mapped(&config, &|text| text.replace(&theirs, &ours));
            }
            if let Some(answer) = answer.or_else(|| input.default.clone()) {
                self.secrets.insert(input_key(&id), answer);
            }
            self.inputs.push(Input { id, ..input });
        }
        if request.secrets_to_keyring {
            let (without, found) = without_secrets(&config);
            config = without;
            for FoundSecret { name, value, .. } in found {
                self.secrets.insert(secret_key(&name), value);
            }
        }
        server.with(config)
    }

    /// The input's own id, unless a server that is there already means something else by it.
    fn id_for(&self, id: &str, config: &ServerConfig) -> String {
        let others = self.settings.servers.keys().filter(|other| *other != config.id.as_str());
        let used = others
            .filter_map(|other| self.settings.server(other)?.ok())
            .any(|other| references(&other).contains(&Reference::Input(id.to_owned())));
        if used { format!("{}/{id}", config.id) } else { id.to_owned() }
    }
}

/// The configuration with the values of an input that may have several, each an argument of its own. They are no
/// secrets: folders and files.
fn with_several(config: &ServerConfig, input: &Input, answer: Option<&str>) -> ServerConfig {
    let answer = answer.or(input.default.as_deref()).unwrap_or_default();
    let values: Vec<&str> = answer.lines().map(str::trim).filter(|value| !value.is_empty()).collect();
    let placeholder = format!("${{input:{}}}", input.id);
    let mut config = config.clone();
    if let Some(program) = config.program_mut() {
        let args = std::mem::take(&mut program.args).into_iter();
        program.args = args
            .flat_map(|arg| match arg == placeholder {
                true => values.iter().map(|value| (*value).to_owned()).collect(),
                false => vec![arg],
            })
            .collect();
    }
    let joined = values.join(",");
    mapped(&config, &|text| text.replace(&placeholder, &joined))
}

fn chosen(read: &ImportedServers, names: &[String]) -> Result<Vec<ImportedServer>, Problem> {
    names
        .iter()
        .map(|name| {
            let found = read.servers.iter().find(|server| server.config.id.as_str() == name);
            found.cloned().ok_or_else(|| {
                let message = format!("there is no server `{name}` to import that can be run");
                Problem::new("unknown_server", message)
            })
        })
        .collect()
}

fn read_file(path: &Path) -> Result<ImportedServers, Problem> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    // A file may also hold what people paste.
    let read =
        lectern_mcp::read_config(&text).or_else(|error| import::read_snippet(&text).map_err(|_| error));
    let mut read = read.map_err(|error| unreadable(&name, &error))?;
    if let Some(workspace) = workspace_of(path) {
        name_workspace(&mut read, &workspace);
    }
    Ok(read)
}

/// The text of a file that somebody named; not of one without an end.
pub(super) fn read_text(path: &Path) -> Result<String, Problem> {
    use std::io::Read as _;
    let problem = |reason: String| Problem::new("bad_import", format!("{}: {reason}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| problem(reason(&error)))?;
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

fn input_view(input: Input) -> InputView {
    InputView { id: input.id, description: input.description, password: input.password }
}
