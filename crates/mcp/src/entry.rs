//! One server as the ecosystem's JSON writes it: `{"command": …, "args": …}` or `{"url": …}`.
//!
//! Fields of our own are under one key, [`OWN`]; every other key is kept as it is when an entry is written again.
//!
//! Invariant: reading starts nothing and looks nothing up. What an entry of somebody else says about trust is not read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lectern_core::ServerId;
use serde_json::{Map, Value, json};

use crate::config::{Endpoint, Grant, Program, ServerConfig, SignIn, Transport};

/// The key under which our own fields are.
pub const OWN: &str = "lectern";

/// The JSON of one server.
pub type Entry = Map<String, Value>;

/// Whose entry it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Of our own settings: what the user told us about it holds.
    Settings,
    /// Of a file that somebody else may have written.
    Elsewhere,
}

/// Reads an entry. The error is a lowercase fragment that names the field.
pub fn read_entry(id: &str, entry: &Entry, origin: Origin) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::of(ServerId::from(id), transport(entry)?);
    config.disabled = flag(entry, "disabled") == Some(true) || flag(entry, "enabled") == Some(false);
    config.timeout_s = entry.get("timeout").and_then(number).and_then(seconds);
    let own = entry.get(OWN).and_then(Value::as_object);
    let of_own = |name: &str| own.and_then(|own| own.get(name));
    let count = |name: &str| of_own(name).and_then(Value::as_u64);
    config.total_timeout_s = count("totalTimeout").filter(|seconds| *seconds > 0);
    config.max_concurrent = count("maxConcurrent").and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    config.result_budget = count("resultBudget").and_then(|n| usize::try_from(n).ok());
    let limits = of_own("toolTimeouts").and_then(Value::as_object).into_iter().flatten();
    config.tool_timeouts = limits
        .filter_map(|(tool, seconds)| Some((tool.clone(), seconds.as_u64().filter(|s| *s > 0)?)))
        .collect();
    if origin == Origin::Settings {
        // Lectern 0.1 had these two beside the fields of everyone.
        config.timeout_s = entry.get("timeout_s").and_then(Value::as_u64).or(config.timeout_s);
        config.trusted =
            of_own("trusted").or_else(|| entry.get("trusted")).and_then(Value::as_bool) == Some(true);
    }
    Ok(config)
}

/// Writes what the configuration says into an entry, and keeps all other keys of it.
pub fn write_entry(config: &ServerConfig, entry: &mut Entry) {
    for old in ["timeout_s", "trusted", "enabled", "serverUrl", "httpUrl", "auth", "oauth"] {
        entry.shift_remove(old);
    }
    match &config.transport {
        Transport::Stdio(program) => write_program(program, entry),
        Transport::Http(endpoint) => write_endpoint(endpoint, entry),
    }
    put(entry, "disabled", config.disabled.then(|| true.into()));
    // From 1,000 on a timeout is read as milliseconds.
    let timeout = config.timeout_s.map(|seconds| if seconds < 1_000 { seconds } else { seconds * 1_000 });
    put(entry, "timeout", timeout.map(Value::from));
    let mut own = match entry.shift_remove(OWN) {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let sign_in = match &config.transport {
        Transport::Http(endpoint) => sign_in_value(&endpoint.sign_in),
        Transport::Stdio(_) => None,
    };
    put(&mut own, "signIn", sign_in);
    put(&mut own, "trusted", config.trusted.then(|| true.into()));
    put(&mut own, "totalTimeout", config.total_timeout_s.map(Value::from));
    put(&mut own, "maxConcurrent", config.max_concurrent.map(Value::from));
    put(&mut own, "resultBudget", config.result_budget.map(Value::from));
    put(&mut own, "toolTimeouts", (!config.tool_timeouts.is_empty()).then(|| json!(config.tool_timeouts)));
    put(entry, OWN, (!own.is_empty()).then_some(Value::Object(own)));
}

/// The entry of a configuration that has none yet.
pub fn entry_of(config: &ServerConfig) -> Entry {
    let mut entry = Entry::new();
    write_entry(config, &mut entry);
    entry
}

fn write_program(program: &Program, entry: &mut Entry) {
    for other in ["url", "headers"] {
        entry.shift_remove(other);
    }
    if entry.get("type").is_some_and(|kind| kind != "stdio") {
        entry.shift_remove("type");
    }
    put(entry, "command", Some(program.command.clone().into()));
    put(entry, "args", (!program.args.is_empty()).then(|| json!(program.args)));
    put(entry, "env", (!program.env.is_empty()).then(|| json!(program.env)));
    put(entry, "cwd", program.cwd.as_ref().map(|cwd| cwd.display().to_string().into()));
}

fn write_endpoint(endpoint: &Endpoint, entry: &mut Entry) {
    for other in ["command", "args", "env", "cwd"] {
        entry.shift_remove(other);
    }
    if !entry.get("type").and_then(Value::as_str).is_some_and(is_remote) {
        // Other hosts take an entry without a type for a program.
        put(entry, "type", Some("http".into()));
    }
    put(entry, "url", Some(endpoint.url.clone().into()));
    put(entry, "headers", (!endpoint.headers.is_empty()).then(|| json!(endpoint.headers)));
}

fn put(entry: &mut Entry, name: &str, value: Option<Value>) {
    match value {
        Some(value) => _ = entry.insert(name.to_owned(), value),
        None => _ = entry.shift_remove(name),
    }
}

fn transport(entry: &Entry) -> Result<Transport, String> {
    let kind = ["type", "transport"].iter().find_map(|key| entry.get(*key)?.as_str());
    let address = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| text_of(entry, key).transpose());
    let command = entry.get("command").filter(|command| !command.is_null());
    match (command, address) {
        (Some(_), Some(url)) if kind.is_some_and(is_remote) => endpoint(&url?, entry),
        (Some(command), _) => program(command, entry).map(Transport::Stdio),
        (None, Some(url)) => endpoint(&url?, entry),
        (None, None) => Err("neither a command nor an address".into()),
    }
}

fn is_remote(kind: &str) -> bool {
    let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(kind.to_ascii_lowercase().as_str(), "http" | "streamablehttp" | "sse" | "remote")
}

fn endpoint(url: &str, entry: &Entry) -> Result<Transport, String> {
    let url = url.trim();
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https") => {}
        // A placeholder may stand for all of it.
        _ if url.starts_with("${") => {}
        Some(_) | None => return Err("`url` is not an address of the web (http:// or https://)".into()),
    }
    Ok(Transport::Http(Endpoint {
        url: url.to_owned(),
        headers: texts(entry, "headers")?,
        sign_in: sign_in(entry),
    }))
}

/// How to sign in: under our own key, else as Cursor (`auth`) or Claude Code (`oauth`) write it.
fn sign_in(entry: &Entry) -> SignIn {
    let own = entry.get(OWN).and_then(|own| own.get("signIn"));
    let places = [own, entry.get("auth"), entry.get("oauth")];
    let text = |names: [&str; 2]| {
        places.iter().flatten().find_map(|place| names.iter().find_map(|name| place.get(*name)?.as_str()))
    };
    let grant = match text(["grant", "grant"]) {
        Some("client_credentials") => Grant::Client,
        Some(_) | None => Grant::User,
    };
    SignIn {
        client_id: text(["clientId", "CLIENT_ID"]).map(str::to_owned),
        client_secret: text(["clientSecret", "CLIENT_SECRET"]).map(str::to_owned),
        client_metadata_url: text(["clientMetadataUrl", "clientMetadataUrl"]).map(str::to_owned),
        grant,
    }
}

fn sign_in_value(sign_in: &SignIn) -> Option<Value> {
    let mut value = Map::new();
    put(&mut value, "clientId", sign_in.client_id.clone().map(Value::from));
    put(&mut value, "clientSecret", sign_in.client_secret.clone().map(Value::from));
    put(&mut value, "clientMetadataUrl", sign_in.client_metadata_url.clone().map(Value::from));
    put(&mut value, "grant", (sign_in.grant == Grant::Client).then(|| "client_credentials".into()));
    (!value.is_empty()).then_some(Value::Object(value))
}

fn program(command: &Value, entry: &Entry) -> Result<Program, String> {
    let own_args = list(entry, "args")?;
    // Some hosts write the command as a list, some as an object.
    let (command, args, inner) = match command {
        Value::String(command) => (command.clone(), own_args, None),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(scalar).collect();
            let mut words = words.ok_or("`command` is not text")?.into_iter();
            (words.next().unwrap_or_default(), words.chain(own_args).collect(), None)
        }
        Value::Object(inner) => {
            let path = ["path", "command"].iter().find_map(|key| inner.get(*key)?.as_str());
            (path.unwrap_or_default().to_owned(), [list(inner, "args")?, own_args].concat(), Some(inner))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return Err("`command` is not text".into()),
    };
    if command.trim().is_empty() {
        return Err("`command` is empty".into());
    }
    let mut env = inner.map(|inner| texts(inner, "env")).transpose()?.unwrap_or_default();
    env.extend(texts(entry, "environment")?);
    env.extend(texts(entry, "env")?);
    let cwd = text_of(entry, "cwd")?.filter(|cwd| !cwd.trim().is_empty()).map(PathBuf::from);
    let program = Program { command: command.trim().to_owned(), args, env, cwd };
    let whole = [&program.command].into_iter().chain(&program.args).chain(program.env.values());
    if whole.into_iter().any(|text| text.contains('\0')) || program.env.keys().any(|name| !is_name(name)) {
        return Err("it has a character that no program can be given".into());
    }
    Ok(program)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn list(entry: &Entry, field: &str) -> Result<Vec<String>, String> {
    match entry.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| scalar(item).ok_or_else(|| format!("`{field}` has an item that is not text")))
            .collect(),
        Some(_) => Err(format!("`{field}` is not a list")),
    }
}

/// Names with their texts. One that is null is one that is not set.
fn texts(entry: &Entry, field: &str) -> Result<BTreeMap<String, String>, String> {
    let fields = match entry.get(field) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(format!("`{field}` is not an object")),
    };
    let set = fields.iter().filter(|(_, value)| !value.is_null());
    set.map(|(name, value)| match scalar(value) {
        Some(text) => Ok((name.clone(), text)),
        None => Err(format!("`{name}` in `{field}` is not text")),
    })
    .collect()
}

fn text_of(entry: &Entry, field: &str) -> Result<Option<String>, String> {
    match entry.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{field}` is not text")),
    }
}

fn flag(entry: &Entry, field: &str) -> Option<bool> {
    match entry.get(field)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
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
    (seconds > 0.0 && seconds <= 1e9).then(|| seconds.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: Value) -> Entry {
        value.as_object().cloned().unwrap()
    }

    fn read(value: Value) -> Result<ServerConfig, String> {
        read_entry("s", &entry(value), Origin::Elsewhere)
    }

    fn program_of(value: Value) -> Program {
        read(value).unwrap().program().unwrap().clone()
    }

    #[test]
    fn what_is_written_is_read_back_and_other_keys_stay() {
        let mut config = ServerConfig::new("s", "npx", ["-y", "x"]);
        config.timeout_s = Some(1_800);
        config.trusted = true;
        config.disabled = true;
        config.tool_timeouts.insert("slow.tool".into(), 300);
        config.total_timeout_s = Some(900);
        config.max_concurrent = Some(2);
        config.result_budget = Some(5_000);
        config.program_mut().unwrap().env.insert("A".into(), "${secret:a}".into());
        let mut written = entry(json!({"alwaysAllow": ["x"], "timeout_s": 3, OWN: {"approved": "hash"}}));
        write_entry(&config, &mut written);
        assert_eq!(read_entry("s", &written, Origin::Settings).unwrap(), config);
        assert_eq!(written["alwaysAllow"], json!(["x"]));
        assert_eq!(written[OWN]["approved"], "hash");
        assert_eq!(written.get("timeout_s"), None);
        // It becomes an address, and nothing of the program is left.
        let mut remote = ServerConfig::remote("s", "https://h.example/mcp");
        let Transport::Http(endpoint) = &mut remote.transport else { unreachable!("it is remote") };
        endpoint.sign_in.client_id = Some("us".into());
        endpoint.sign_in.grant = Grant::Client;
        write_entry(&remote, &mut written);
        assert_eq!(read_entry("s", &written, Origin::Settings).unwrap(), remote);
        assert_eq!(
            written.keys().map(String::as_str).collect::<Vec<_>>(),
            ["alwaysAllow", "type", "url", OWN]
        );
    }

    #[test]
    fn entries_of_the_first_settings_are_read() {
        let old = entry(json!({"command": "x", "timeout_s": 5, "trusted": true}));
        let config = read_entry("s", &old, Origin::Settings).unwrap();
        assert_eq!((config.timeout_s, config.trusted), (Some(5), true));
    }

    #[test]
    fn trust_is_never_taken_from_elsewhere() {
        let theirs = json!({"command": "x", "trusted": true, OWN: {"trusted": true, "maxConcurrent": 1}});
        let config = read(theirs).unwrap();
        assert_eq!((config.trusted, config.max_concurrent), (false, Some(1)));
    }

    #[test]
    fn the_dialects_of_other_hosts_are_read() {
        let list =
            program_of(json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}}));
        assert_eq!(
            (list.command.as_str(), list.args, list.env["A"].as_str()),
            ("npx", vec!["-y".into(), "x".into()], "1")
        );
        let object = program_of(json!({"command": {"path": "x", "args": ["a"], "env": {"B": "2"}}}));
        assert_eq!(
            (object.command.as_str(), object.args, object.env["B"].as_str()),
            ("x", vec!["a".to_owned()], "2")
        );
        for remote in [
            json!({"serverUrl": "https://h.example"}),
            json!({"httpUrl": "https://h.example"}),
            json!({"url": " https://h.example ", "command": null}),
            json!({"url": "https://h.example", "command": "x", "type": "streamable-http"}),
        ] {
            let Transport::Http(endpoint) = read(remote).unwrap().transport else { panic!("it is remote") };
            assert_eq!(endpoint.url, "https://h.example");
        }
        let both = json!({"url": "https://h.example", "command": "x", "type": "stdio"});
        assert_eq!(program_of(both).command, "x");
        assert_eq!(
            program_of(json!({"command": "x", "args": [1, true], "env": {"A": 1, "B": null}})).args,
            ["1", "true"]
        );
    }

    #[test]
    fn timeouts_in_milliseconds_are_recognised() {
        let timeout = |value: Value| read(json!({"command": "x", "timeout": value})).unwrap().timeout_s;
        assert_eq!(timeout(json!(30)), Some(30));
        assert_eq!(timeout(json!(30_000)), Some(30));
        assert_eq!(timeout(json!("45")), Some(45));
        assert_eq!(timeout(json!(0.5)), Some(1));
        for none in [json!(0), json!(-1), json!("soon"), json!(null), json!([])] {
            assert_eq!(timeout(none), None);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (wrong, reason) in [
            (json!({}), "neither a command nor an address"),
            (json!({"command": ""}), "`command` is empty"),
            (json!({"command": []}), "`command` is empty"),
            (json!({"command": 7}), "`command` is not text"),
            (json!({"command": "x", "args": "-y"}), "`args` is not a list"),
            (json!({"command": "x", "args": [{}]}), "`args` has an item that is not text"),
            (json!({"command": "x", "env": ["A=1"]}), "`env` is not an object"),
            (json!({"command": "x", "env": {"A": []}}), "`A` in `env` is not text"),
            (json!({"command": "x", "env": {"A=B": "c"}}), "it has a character that no program can be given"),
            (json!({"command": "x", "cwd": 1}), "`cwd` is not text"),
            (
                json!({"url": "file:///etc/passwd"}),
                "`url` is not an address of the web (http:// or https://)",
            ),
            (
                json!({"url": "javascript:alert(1)"}),
                "`url` is not an address of the web (http:// or https://)",
            ),
            (json!({"url": 1}), "`url` is not text"),
            (json!({"url": "https://h", "headers": []}), "`headers` is not an object"),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err(), reason, "{wrong}");
        }
    }
}
