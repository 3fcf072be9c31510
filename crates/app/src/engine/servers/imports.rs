//! Takes servers over from other hosts, after a look at what they would run.
//!
//! Invariant: a preview adds and starts nothing; only what was chosen is added; no answer and no secret goes into the
//! settings in clear when the keyring can have it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lectern_core::ServerId;
use lectern_core::store::AuditKind;
use lectern_mcp::import::{self, Described, FoundSecret, Input, inputs_of, without_secrets};
use lectern_mcp::placeholder::{Reference, input_key, mapped, references, secret_key};
use lectern_mcp::{ImportedServer, ImportedServers, ServerConfig};

use super::sources::{Source, digest_of_file};
use crate::engine::{Engine, changed_since_shown, unknown_server};
use crate::problem::of_secrets;
use crate::settings::Settings;
use crate::view::{
    ImportPreview, ImportRequest, ImportSource, InputView, PreviewedServer, Problem, ServerView, SkippedView,
};

impl Engine {
    /// What an import would add, in full. Nothing is added or started.
    pub fn preview_import(&self, source: &ImportSource) -> Result<ImportPreview, Problem> {
        let Source { read, digest, .. } = self.read_source(source)?;
        let settings = Settings::read(&self.0.home)?;
        let servers =
            read.servers.iter().map(|server| self.previewed(&server.config, &read.inputs, &settings));
        let skipped = read.skipped.iter();
        Ok(ImportPreview {
            digest,
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

    /// Adds the chosen servers; one of the same name is replaced. A source that is not what was previewed any more is
    /// refused.
    pub async fn import_servers(&self, request: ImportRequest) -> Result<Vec<ServerView>, Problem> {
        let Source { read, bundle, digest } = self.read_source(&request.source)?;
        if digest != request.digest {
            return Err(changed_since_shown());
        }
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
            let unpacked = tokio::task::spawn_blocking(move || {
                // The file may have become another one while it was read.
                bundle.unpack(&path, || digest_of_file(&path).is_ok_and(|now| now == digest))
            });
            unpacked.await.map_err(|error| Problem::new("defect", error.to_string()))??;
        }
        for (key, value) in &secrets {
            self.0.secrets.keep(key, value).await.map_err(|error| of_secrets(&error))?;
        }
        self.change_settings(|settings| {
            for server in &servers {
                let entry = serde_json::Value::Object(server.entry.clone());
                settings.servers.insert(server.config.id.0.clone(), entry);
            }
            settings.add_inputs(&inputs);
        })?;
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

fn input_view(input: Input) -> InputView {
    let Input { id, description, password, default, options, multiple } = input;
    let optional = default.is_some();
    let default = default.filter(|_| !password);
    InputView { id, description, password, default, optional, options, multiple }
}
