//! What the user chose: models, vaults, servers, standing permissions. One JSON file.
//!
//! Invariant: a file that can't be read is never overwritten, and keys we don't know are kept.

mod api;
mod model;
mod provider;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use lectern_core::{ModelId, Rule, ServerId};
use lectern_mcp::ServerConfig;
use lectern_mcp::entry::{Entry, OWN, Origin, entry_of, read_entry, write_entry};
use lectern_mcp::import::Input;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::durable;
use crate::home::Home;
pub use crate::states::StatesEntry;
use crate::view::Problem;
pub use api::ApiEntry;
pub use model::{ModelEntry, ModelOptions, ModelSource, RemoteEntry};
pub use provider::{Agreed, Login, ProviderEntry};

/// The version of the file that this Lectern writes.
const VERSION: u32 = 1;

/// The settings file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Version of the file's shape.
    #[serde(default = "version")]
    pub version: u32,
    /// The model that answers next; none for the starter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// The models that the user added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelEntry>,
    /// Where remote models are asked. Their secrets are in the keyring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderEntry>,
    /// Folders whose models are on the list, beside Lectern's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_folders: Vec<PathBuf>,
    /// Files in such folders that the user took off the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_models: Vec<PathBuf>,
    /// A mirror of Hugging Face: the address that stands for `https://huggingface.co`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_hub: Option<String>,
    /// The user's own vaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vaults: Vec<VaultEntry>,
    /// Whether the sample vault is offered.
    #[serde(default = "yes")]
    pub sample_vault: bool,
    /// MCP servers by our id, in the shape that other hosts use too.
    /// An entry that can't be read harms nobody but itself; see [`Settings::server`].
    #[serde(default, rename = "mcpServers", skip_serializing_if = "Map::is_empty")]
    pub servers: Map<String, Value>,
    /// What servers ask the user for, as VS Code describes it; the answers are in the keyring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Value>,
    /// Whether each message between Lectern and its servers is kept in the folder of logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_traffic: bool,
    /// What models keep of conversations that are not in use.
    #[serde(default, skip_serializing_if = "StatesEntry::is_default")]
    pub states: StatesEntry,
    /// How the built-in model is used.
    #[serde(default, skip_serializing_if = "ModelOptions::is_empty")]
    pub starter: ModelOptions,
    /// The user's own presets: values of several settings by the names of [`crate::view::SettingKey`].
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub presets: Map<String, Value>,
    /// Standing permissions and prohibitions, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The local HTTP API.
    #[serde(default, skip_serializing_if = "ApiEntry::is_default")]
    pub api: ApiEntry,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One of the user's own vaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VaultEntry {
    /// The folder.
    pub path: PathBuf,
    /// The server that serves it; keeps its id for as long as the vault is there.
    pub server: ServerId,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: VERSION,
            model: None,
            models: Vec::new(),
            providers: Vec::new(),
            model_folders: Vec::new(),
            hidden_models: Vec::new(),
            model_hub: None,
            vaults: Vec::new(),
            sample_vault: true,
            servers: Map::new(),
            inputs: Vec::new(),
            keep_traffic: false,
            states: StatesEntry::default(),
            starter: ModelOptions::default(),
            presets: Map::new(),
            rules: Vec::new(),
            api: ApiEntry::default(),
            other: Map::new(),
        }
    }
}

impl Settings {
    /// A server of the settings. The error says in a lowercase fragment why it can't be run.
    pub fn server(&self, id: &str) -> Option<Result<ServerConfig, String>> {
        self.servers.get(id).map(|value| match value {
            Value::Object(entry) => read_entry(id, entry, Origin::Settings),
            _ => Err("not an object".to_owned()),
        })
    }

    /// Writes a server into the settings; what else its entry says stays.
    pub fn put_server(&mut self, config: &ServerConfig) {
        match self.entry_mut(config.id.as_str()) {
            Some(entry) => write_entry(config, entry),
            None => _ = self.servers.insert(config.id.0.clone(), Value::Object(entry_of(config))),
        }
    }

    /// Describes inputs, over older descriptions.
    pub fn add_inputs(&mut self, inputs: &[Input]) {
        for input in inputs {
            self.inputs.retain(|known| known.get("id").and_then(Value::as_str) != Some(&input.id));
            self.inputs.push(input.to_value());
        }
    }

    /// The JSON of a server.
    pub fn entry_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.servers.get_mut(id).and_then(Value::as_object_mut)
    }

    /// A field of our own of a server, e.g. what was approved.
    pub fn own_field(&self, id: &str, name: &str) -> Option<&Value> {
        self.servers.get(id)?.get(OWN)?.get(name)
    }

    /// Sets a field of our own of a server; none takes it out. Does nothing when there is no such server.
    pub fn set_own_field(&mut self, id: &str, name: &str, value: Option<Value>) {
        let Some(entry) = self.entry_mut(id) else { return };
        if !entry.get(OWN).is_some_and(Value::is_object) {
            entry.insert(OWN.to_owned(), Value::Object(Map::new()));
        }
        let Some(own) = entry.get_mut(OWN).and_then(Value::as_object_mut) else { return };
        match value {
            Some(value) => _ = own.insert(name.to_owned(), value),
            None => _ = own.shift_remove(name),
        }
        if own.is_empty() {
            entry.shift_remove(OWN);
        }
    }

    /// Reads the settings; a missing file gives the defaults.
    pub fn read(home: &Home) -> Result<Self, Problem> {
        let path = home.settings();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(&path, &error.to_string())),
        };
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let settings: Self = serde_json::from_str(text).map_err(|error| broken(&path, &error))?;
        if settings.version > VERSION {
            return Err(from_the_future(&path, settings.version));
        }
        Ok(settings)
    }

    /// Changes the settings: reads the file anew, changes it and writes it, alone among all processes.
    pub fn change<T>(home: &Home, change: impl FnOnce(&mut Self) -> T) -> Result<(Self, T), Problem> {
        let _lock = lock(&home.settings_lock())?;
        let mut settings = Self::read(home)?;
        let before = settings.clone();
        let given = change(&mut settings);
        if settings != before || !home.settings().exists() {
            settings.version = VERSION;
            settings.write(&home.settings())?;
        }
        Ok((settings, given))
    }

    fn write(&self, path: &Path) -> Result<(), Problem> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Problem::new("settings_not_written", format!("write the settings: {error}")))?;
        text.push('\n');
        durable::write(path, text.as_bytes()).map_err(|error| {
            Problem::new("settings_not_written", format!("write {}: {error}", path.display()))
                .hint("Check that the disk has room and that the folder can be written.")
        })
    }
}

/// The lock ends with the file handle, also when the process dies.
fn lock(path: &Path) -> Result<File, Problem> {
    let failed =
        |error: io::Error| Problem::new("settings_not_written", format!("lock {}: {error}", path.display()));
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

fn broken(path: &Path, error: &serde_json::Error) -> Problem {
    // serde ends its message with the place; it is named once, in front.
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or(&message);
    let place = format!("{}, line {}, column {}", path.display(), error.line(), error.column());
    Problem::new("bad_settings", format!("the settings can't be read: {place}: {reason}")).hint(way_out(path))
}

fn unreadable(path: &Path, reason: &str) -> Problem {
    Problem::new("bad_settings", format!("the settings can't be read: {}: {reason}", path.display()))
        .hint("Check that the file is text and that you may read it.")
}

fn from_the_future(path: &Path, version: u32) -> Problem {
    let message =
        format!("the settings in {} are of version {version}; this Lectern knows {VERSION}", path.display());
    Problem::new("bad_settings", message).hint("Use the newer Lectern, or another home.")
}

fn way_out(path: &Path) -> String {
    format!("Mend the file, or move it away to begin with fresh settings: mv '{0}' '{0}.old'", path.display())
}

fn version() -> u32 {
    VERSION
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::temporary as home;

    #[test]
    fn unknown_keys_survive_a_change_at_every_level() {
        let (_folder, home) = home();
        let text = r#"{"version":1,"theme":{"dark":true},
            "mcpServers":{"a":{"command":"x","timeout":60}},
            "vaults":[{"path":"/v","server":"v","colour":"blue"}],
            "models":[{"id":"m","path":"/m.gguf","tool_mode":"prompted","draft":"/d.gguf"}]}"#;
        fs::write(home.settings(), text).unwrap();
        Settings::change(&home, |settings| settings.model = Some("m".into())).unwrap();
        let after: Value = serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
        assert_eq!(after["theme"]["dark"], true);
        assert_eq!(after["mcpServers"]["a"]["timeout"], 60);
        assert_eq!(after["vaults"][0]["colour"], "blue");
        assert_eq!(after["models"][0]["draft"], "/d.gguf");
        assert_eq!(after["models"][0]["tool_mode"], "prompted");
        assert_eq!(after["model"], "m");
    }

    #[test]
    fn one_broken_server_harms_nobody_but_itself() {
        let (_folder, home) = home();
        let text = r#"{"mcpServers": {"z": {"command": "x"}, "bad": {"command": "x", "args": 5}, "null": null,
            "a": {"url": "https://h.example", "lectern": {"trusted": true, "approved": "h"}}}}"#;
        fs::write(home.settings(), text).unwrap();
        let (settings, ()) = Settings::change(&home, |settings| {
            let mut config = settings.server("a").unwrap().unwrap();
            config.disabled = true;
            settings.put_server(&config);
            settings.set_own_field("z", "approved", Some("h2".into()));
        })
        .unwrap();
        assert_eq!(settings.server("bad"), Some(Err("`args` is not a list".into())));
        assert_eq!(settings.server("null"), Some(Err("not an object".into())));
        let written: Value = serde_json::from_str(&fs::read_to_string(home.settings()).unwrap()).unwrap();
        let ids: Vec<&String> = written["mcpServers"].as_object().unwrap().keys().collect();
        assert_eq!(ids, ["z", "bad", "null", "a"]);
        assert_eq!(written["mcpServers"]["bad"]["args"], 5);
        assert_eq!(
            written["mcpServers"]["a"]["lectern"],
            serde_json::json!({"trusted": true, "approved": "h"})
        );
        assert_eq!(settings.own_field("z", "approved"), Some(&Value::from("h2")));
        assert!(settings.server("a").unwrap().unwrap().disabled);
    }

    #[test]
    fn a_broken_file_names_its_line_and_is_left_alone() {
        let (_folder, home) = home();
        let text = "{\n  \"version\": 1,\n  \"models\": [,]\n}\n";
        fs::write(home.settings(), text).unwrap();
        let problem = Settings::change(&home, |settings| settings.sample_vault = false).unwrap_err();
        assert_eq!(problem.code, "bad_settings");
        assert!(problem.message.contains("settings.json, line 3, column"), "{problem}");
        assert!(problem.hint.unwrap().contains("mv '"));
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), text);
    }

    #[test]
    fn settings_of_a_newer_version_are_left_alone() {
        let (_folder, home) = home();
        fs::write(home.settings(), r#"{"version": 9}"#).unwrap();
        let problem = Settings::change(&home, |settings| settings.sample_vault = false).unwrap_err();
        assert!(problem.message.contains("version 9"), "{problem}");
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), r#"{"version": 9}"#);
    }

    #[test]
    fn changes_of_many_at_once_are_all_kept() {
        let (_folder, home) = home();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let home = &home;
                scope.spawn(move || {
                    Settings::change(home, |settings| {
                        let vault = VaultEntry {
                            path: format!("/v{n}").into(),
                            server: format!("v{n}").into(),
                            other: Map::new(),
                        };
                        settings.vaults.push(vault);
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(Settings::read(&home).unwrap().vaults.len(), 16);
    }
}
