//! Bundles (`.mcpb`, earlier `.dxt`): a server with all its files in a zip, and a manifest that says how it is run.
//!
//! Manifest versions 0.1 to 0.4 of the MCPB specification.
//!
//! Invariant: reading a bundle unpacks nothing, and unpacking one writes below the given folder only: no path leads out
//! of it, no link is made, and sizes are limited while they are read, whatever the zip says of itself.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use zip::ZipArchive;

use crate::import::{ImportedServers, Input, clean_name, one_server};

/// Bytes of a manifest.
const LONGEST_MANIFEST: u64 = 1 << 20;
/// Bytes of everything that is unpacked.
const LARGEST: u64 = 1 << 30;
/// Files of a bundle.
const MOST_FILES: usize = 50_000;

/// Why a bundle can't be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It can't be read.
    #[error("read the bundle")]
    Read(#[from] io::Error),
    /// It is no zip, or a broken one.
    #[error("no bundle: {0}")]
    Zip(String),
    /// It has no manifest, or one that can't be read.
    #[error("`manifest.json`: {0}")]
    Manifest(String),
    /// It is made for other systems.
    #[error("it is made for {0}, not for this system")]
    Platform(String),
    /// An entry would be written outside of the folder, or as a link.
    #[error("the entry `{0}` leads out of the bundle")]
    Escape(String),
    /// It is larger than any server.
    #[error("it is larger than 1 GB, or has more than 50,000 files")]
    TooLarge,
}

/// A bundle whose manifest was read.
pub struct Bundle {
    path: PathBuf,
    manifest: Map<String, Value>,
    name: String,
}

impl Bundle {
    /// Reads the manifest of a bundle.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let mut archive = archive(path)?;
        let entry = archive.by_name("manifest.json");
        let entry = entry.map_err(|error| BundleError::Manifest(error.to_string()))?;
        let mut text = String::new();
        entry
            .take(LONGEST_MANIFEST)
            .read_to_string(&mut text)
            .map_err(|error| BundleError::Manifest(error.to_string()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let manifest =
            serde_json::from_str(text).map_err(|error| BundleError::Manifest(error.to_string()))?;
        let Value::Object(manifest) = manifest else {
            return Err(BundleError::Manifest("not an object".into()));
        };
        let version = ["manifest_version", "dxt_version"].iter().find_map(|key| manifest.get(*key)?.as_str());
        if version.is_none_or(|version| !version.starts_with("0.")) {
            let version = version.unwrap_or("unnamed");
            return Err(BundleError::Manifest(format!("version {version} is not known")));
        }
        let name = clean_name(manifest.get("name").and_then(Value::as_str).unwrap_or_default());
        if name.is_empty() {
            return Err(BundleError::Manifest("it has no name".into()));
        }
        check_platform(&manifest)?;
        Ok(Self { path: path.to_owned(), manifest, name })
    }

    /// Whether a file looks like a bundle.
    pub fn is_bundle(path: &Path) -> bool {
        let mut begin = [0; 4];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
        read.is_ok() && begin == *b"PK\x03\x04"
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server as it would run from this folder, and what it asks the user for. `home` is the user's own folder.
    pub fn server(&self, folder: &Path, home: &Path) -> Result<ImportedServers, BundleError> {
        let server =
            self.object("server").ok_or_else(|| BundleError::Manifest("it has no `server`".into()))?;
        let config = self.config(server)?;
        let inputs = self.inputs(home);
        let places = places(folder, home);
        let filled = filled(&Value::Object(config), &|text| {
            let text = places.iter().fold(text.to_owned(), |text, (name, place)| text.replace(name, place));
            // What is left of `${user_config.…}` is asked for under the bundle's own name.
            text.replace("${user_config.", &format!("${{input:{}/", self.name))
        });
        Ok(one_server(&self.name, &filled, inputs))
    }

    /// Unpacks into a folder that is not there yet.
    pub fn unpack(&self, folder: &Path) -> Result<(), BundleError> {
        let mut archive = archive(&self.path)?;
        fs::create_dir_all(folder)?;
        let mut left = LARGEST;
        for number in 0..archive.len() {
            let mut entry = archive.by_index(number).map_err(broken)?;
            let name = entry.name().map_err(broken)?.into_owned();
            let escape = || BundleError::Escape(clean_name(&name));
            let path = inside(&name).ok_or_else(escape)?;
            let mode = entry.unix_mode().unwrap_or(0);
            if mode & 0o170_000 == 0o120_000 {
                return Err(escape());
            }
            let target = folder.join(path);
            if entry.is_dir() {
                fs::create_dir_all(&target)?;
                continue;
            }
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            // An entry that comes twice is refused: what was looked at must be what runs.
            let mut file = File::options().write(true).create_new(true).open(&target)?;
            let written = io::copy(&mut (&mut entry).take(left + 1), &mut file)?;
            left = left.checked_sub(written).ok_or(BundleError::TooLarge)?;
            if mode & 0o111 != 0 || self.is_program(&name) {
                make_executable(&file)?;
            }
        }
        Ok(())
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.manifest.get(name).and_then(Value::as_object)
    }

    /// `mcp_config` with what holds on this system, or what follows from the kind of the server.
    fn config(&self, server: &Map<String, Value>) -> Result<Map<String, Value>, BundleError> {
        let entry_point = server.get("entry_point").and_then(Value::as_str).unwrap_or_default();
        let kind = server.get("type").and_then(Value::as_str).unwrap_or_default();
        let script = format!("${{__dirname}}/{entry_point}");
        let mut config = match server.get("mcp_config").and_then(Value::as_object) {
            Some(config) => config.clone(),
            None => Map::new(),
        };
        let overrides = config.shift_remove("platform_overrides");
        let overriding = overrides.as_ref().and_then(|all| all.get(platform())?.as_object());
        for (name, value) in overriding.into_iter().flatten() {
            match (config.get_mut(name), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                _ => _ = config.insert(name.clone(), value.clone()),
            }
        }
        if config.get("command").is_none() {
            let (command, args): (&str, Vec<&str>) = match kind {
                "node" => ("node", vec![&script]),
                "python" => ("python3", vec![&script]),
                "uv" => ("uv", vec!["run", "--directory", "${__dirname}", entry_point]),
                "binary" => (&script, Vec::new()),
                _ => return Err(BundleError::Manifest(format!("the kind of server `{kind}` is not known"))),
            };
            config.insert("command".into(), command.into());
            config.entry("args").or_insert_with(|| args.into());
        }
        config.retain(|name, _| ["command", "args", "env", "cwd"].contains(&name.as_str()));
        Ok(config)
    }

    fn inputs(&self, home: &Path) -> Vec<Input> {
        let wanted = self.object("user_config").into_iter().flatten();
        wanted
            .map(|(key, wanted)| {
                let text = |name: &str| wanted.get(name).and_then(Value::as_str);
                let flag = |name: &str| wanted.get(name).and_then(Value::as_bool) == Some(true);
                let default = wanted.get("default").map(|default| match default {
                    Value::String(text) => text.clone(),
                    Value::Array(items) => {
                        items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
                    }
                    other => other.to_string(),
                });
                let home = home.display().to_string();
                let default = default.map(|text| text.replace("${HOME}", &home));
                // What need not be answered is empty then.
                let default = default.or_else(|| (!flag("required")).then(String::new));
                let described = [text("title"), text("description")].into_iter().flatten();
                Input {
                    id: format!("{}/{key}", self.name),
                    description: described.collect::<Vec<_>>().join(": "),
                    password: flag("sensitive"),
                    default,
                    options: Vec::new(),
                    multiple: flag("multiple"),
                }
            })
            .collect()
    }

    /// The program of a bundle of the kind `binary` has to be executable, whatever packed it.
    fn is_program(&self, name: &str) -> bool {
        let server = self.object("server");
        let text = |field: &str| server.and_then(|server| server.get(field)?.as_str());
        text("type") == Some("binary") && text("entry_point") == Some(name)
    }
}

fn archive(path: &Path) -> Result<ZipArchive<BufReader<File>>, BundleError> {
    let archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(broken)?;
    if archive.len() > MOST_FILES { Err(BundleError::TooLarge) } else { Ok(archive) }
}

fn broken(error: zip::result::ZipError) -> BundleError {
    BundleError::Zip(error.to_string())
}

/// The path of an entry, if it stays inside. Stricter than the zip needs: also what only Windows takes for a way out.
fn inside(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in name.split('/').filter(|part| !part.is_empty()) {
        if part == ".." || part == "." || part.contains(['\\', ':', '\0']) {
            return None;
        }
        path.push(part);
    }
    (!name.starts_with('/') && !path.as_os_str().is_empty()).then_some(path)
}

/// What a manifest's texts may name.
fn places(folder: &Path, home: &Path) -> [(&'static str, String); 7] {
    let below = |name: &str| home.join(name).display().to_string();
    let separator = std::path::MAIN_SEPARATOR_STR.to_owned();
    [
        ("${__dirname}", folder.display().to_string()),
        ("${HOME}", home.display().to_string()),
        ("${DESKTOP}", below("Desktop")),
        ("${DOCUMENTS}", below("Documents")),
        ("${DOWNLOADS}", below("Downloads")),
        ("${pathSeparator}", separator.clone()),
        ("${/}", separator),
    ]
}

fn filled(value: &Value, fill: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), filled(field, fill))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn check_platform(manifest: &Map<String, Value>) -> Result<(), BundleError> {
    let platforms = manifest.get("compatibility").and_then(|known| known.get("platforms")?.as_array());
    let names: Vec<&str> = platforms.into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() || names.contains(&platform()) {
        return Ok(());
    }
    Err(BundleError::Platform(names.join(", ")))
}

/// As Node calls it.
fn platform() -> &'static str {
    if cfg!(windows) {
        "win32"
    } else if cfg!(target_os = "macos") {
        "darwin"
    } else {
        "linux"
    }
}

#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
