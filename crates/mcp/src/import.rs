//! Reads the configuration files of other hosts: `mcpServers` (Claude Desktop, Cursor, `.mcp.json`) and `servers`
//! (VS Code).
//!
//! Invariant: reading starts nothing and trusts nothing. What can't be used is left out with a reason.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lectern_core::ServerId;
use serde_json::{Map, Value};

use crate::config::{Endpoint, Program, ServerConfig, Transport};

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedServers {
    /// The servers that can be run.
    pub servers: Vec<ServerConfig>,
    /// The others.
    pub skipped: Vec<SkippedServer>,
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
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not JSON.
    #[error("not valid JSON")]
    NotJson(#[from] serde_json::Error),
    /// It is JSON, but of another kind.
    #[error("neither `mcpServers` nor `servers` in it")]
    NoServers,
}

/// Reads a configuration; comments and commas at the end of lists are allowed, as VS Code writes them. `variable`
/// resolves `${NAME}`, `${NAME:-default}` and `${env:NAME}`.
pub fn read_config(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ImportedServers, ConfigError> {
    let root: Value = serde_json::from_str(&plain_json(text))?;
    let servers = root
        .get("mcpServers")
        .or_else(|| root.get("servers"))
        // VS Code's settings.json and Zed-like files keep them one level deeper.
        .or_else(|| root.get("mcp").and_then(|mcp| mcp.get("servers")));
    let Some(Value::Object(servers)) = servers else { return Err(ConfigError::NoServers) };
    let mut imported = ImportedServers::default();
    for (name, entry) in servers {
        match server(name, entry, &variable) {
            Ok(config) => imported.servers.push(config),
            Err(reason) => imported.skipped.push(SkippedServer { name: name.clone(), reason }),
        }
    }
    Ok(imported)
}

fn server(
    name: &str,
    entry: &Value,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerConfig, String> {
    let Value::Object(entry) = entry else { return Err("not an object".into()) };
    let expand = |text: &str| expanded(text, variable);
    let address = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(*key)?.as_str());
    let transport = match (entry.get("command"), address) {
        (Some(Value::String(command)), _) if !command.trim().is_empty() => {
            Transport::Stdio(program(command, entry, &expand)?)
        }
        (_, Some(url)) => Transport::Http(Endpoint {
            url: expand(url)?,
            headers: texts(entry, "headers", &expand)?,
            ..Endpoint::default()
        }),
        (_, None) => return Err("neither a command nor an address".into()),
    };
    let mut config = ServerConfig::of(ServerId::from(name), transport);
    config.disabled = entry.get("disabled").and_then(Value::as_bool) == Some(true)
        || entry.get("enabled").and_then(Value::as_bool) == Some(false);
    config.timeout_s = entry.get("timeout").and_then(Value::as_f64).and_then(seconds);
    Ok(config)
}

fn program(
    command: &str,
    entry: &Map<String, Value>,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Program, String> {
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(|arg| expand(&scalar(arg).ok_or("an argument is not text")?))
            .collect::<Result<_, String>>()?,
        Some(_) => return Err("`args` is not a list".into()),
    };
    let cwd = entry.get("cwd").and_then(Value::as_str).map(expand).transpose()?.map(PathBuf::from);
    Ok(Program { command: expand(command)?, args, env: texts(entry, "env", expand)?, cwd })
}

/// Names with their texts. One that is null is one that is not set.
fn texts(
    entry: &Map<String, Value>,
    field: &str,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let set = object(entry, field)?.filter_map(|(name, value)| Some((name, scalar(value)?)));
    set.map(|(name, value)| Ok((name.clone(), expand(&value)?))).collect()
}

fn object<'a>(
    entry: &'a Map<String, Value>,
    field: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, String> {
    match entry.get(field) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(fields)) => Ok(Some(fields).into_iter().flatten()),
        Some(_) => Err(format!("`{field}` is not an object")),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Some hosts count a timeout in seconds, some in milliseconds; nobody waits a quarter of an hour for one word.
fn seconds(timeout: f64) -> Option<u64> {
    let seconds = if timeout >= 1_000.0 { timeout / 1_000.0 } else { timeout };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
    (1.0..=1e9).contains(&seconds).then(|| seconds.ceil() as u64)
}

/// Replaces `${…}`. What needs an answer of the user can't be resolved here.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = if name.contains(':') { None } else { variable(name) };
        match value.or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => return Err(format!("`${{{inside}}}` has no value")),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// JSON without comments and without commas before a closing bracket. Strings stay as they are.
fn plain_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                out.push(c);
                copy_string(&mut chars, &mut out);
            }
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                while let Some(c) = chars.next()
                    && (last, c) != ('*', '/')
                {
                    last = c;
                }
            }
            (']' | '}', _) => {
                let kept = out.trim_end().len();
                if out[..kept].ends_with(',') {
                    out.truncate(kept - 1);
                }
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn copy_string(chars: &mut impl Iterator<Item = char>, out: &mut String) {
    let mut escaped = false;
    for c in chars {
        out.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ImportedServers {
        read_config(text, |name| (name == "HOME").then(|| "/home/me".to_owned())).unwrap()
    }

    #[test]
    fn the_usual_shape_is_read() {
        let imported = read(
            r#"{"mcpServers": {
                "notes": {"command": "npx", "args": ["-y", "x@1", 8080], "env": {"A": "1", "B": 2, "C": null},
                          "cwd": "${HOME}/notes", "disabled": true, "timeout": 90, "trusted": true},
                "far": {"type": "http", "url": "https://example.invalid/mcp", "headers": {"X-Home": "${HOME}"}},
                "odd": {"args": []}, "odder": 5
            }}"#,
        );
        let mut notes = ServerConfig::new("notes", "npx", ["-y", "x@1", "8080"]);
        let program = notes.program_mut().unwrap();
        program.env = [("A".into(), "1".into()), ("B".into(), "2".into())].into();
        program.cwd = Some("/home/me/notes".into());
        notes.disabled = true;
        notes.timeout_s = Some(90);
        let headers = [("X-Home".into(), "/home/me".into())].into();
        let url = "https://example.invalid/mcp".into();
        let far = ServerConfig::of("far", Transport::Http(Endpoint { url, headers, ..Endpoint::default() }));
        assert_eq!(imported.servers, [notes, far]);
        let skipped: Vec<&str> = imported.skipped.iter().map(|skipped| skipped.name.as_str()).collect();
        assert_eq!(skipped, ["odd", "odder"]);
    }

    #[test]
    fn the_shape_of_vs_code_is_read_with_comments() {
        let imported = read(
            r#"{
                // a comment with "quotes"
                "servers": { /* two, really */
                    "a": {"type": "stdio", "command": "a", "args": ["http://x//y", "${env:HOME}", "${NO:-d}",],},
                    "b": {"command": "b", "env": {"KEY": "${input:key}"}},
                },
                "inputs": [],
            }"#,
        );
        assert_eq!(imported.servers, [ServerConfig::new("a", "a", ["http://x//y", "/home/me", "d"])]);
        assert_eq!(imported.skipped[0].reason, "`${input:key}` has no value");
    }

    #[test]
    fn milliseconds_are_recognised() {
        assert_eq!(
            read(r#"{"mcpServers": {"a": {"command": "a", "timeout": 30000}}}"#).servers[0].timeout_s,
            Some(30)
        );
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read_config("{}", |_| None), Err(ConfigError::NoServers)));
        assert!(matches!(read_config("nothing", |_| None), Err(ConfigError::NotJson(_))));
    }
}
