//! Reads a command line that somebody copied: `npx -y …`, `KEY=… uvx …`, `claude mcp add NAME …`.
//!
//! Invariant: the words are split as a shell would, and nothing else of a shell is done: no variables, no pipes.

use serde_json::{Map, Value, json};

use super::preview::program_name;
use super::{ConfigError, ImportedServers, document, servers_of, snippet};

/// Programs that a line of words may begin with; other texts are prose.
const RUNNERS: [&str; 31] = [
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "uv",
    "node",
    "deno",
    "bun",
    "npm",
    "pnpm",
    "yarn",
    "pipx",
    "python",
    "python3",
    "py",
    "docker",
    "podman",
    "nerdctl",
    "go",
    "cargo",
    "java",
    "dotnet",
    "ruby",
    "php",
    "perl",
    "sh",
    "bash",
    "zsh",
    "cmd",
    "powershell",
    "pwsh",
];

/// Reads one command.
pub(super) fn read(text: &str) -> Result<ImportedServers, ConfigError> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ").replace("^\r\n", " ").replace("`\n", " ");
    if joined.contains('\n') {
        return Err(ConfigError::Unknown);
    }
    let words = shlex::split(&joined).ok_or(ConfigError::Unknown)?;
    if words.iter().any(|word| ["|", "||", "&", "&&", ";", ">", "<", ">>"].contains(&word.as_str())) {
        return Err(ConfigError::Unknown);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "mcp", "add", rest @ ..] => added(rest).ok_or(ConfigError::Unknown),
        [_, "mcp", "add-json", rest @ ..] => added_json(rest),
        [_, "--add-mcp", json] => document::read(json).map(servers_of),
        words => plain(words).ok_or(ConfigError::Unknown),
    }
}

fn plain(words: &[&str]) -> Option<ImportedServers> {
    let is_variable = |word: &&&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
    };
    let env: Vec<&str> = words.iter().take_while(is_variable).copied().collect();
    let (command, args) = words[env.len()..].split_first()?;
    let path = command.contains(['/', '\\']) && !command.contains("://") || command.ends_with(".exe");
    (path || RUNNERS.contains(&program_name(command).as_str()))
        .then(|| snippet::alone(&json!({"command": command, "args": args, "env": pairs(&env, '=')})))
}

/// `mcp add [OPTIONS] NAME [--] (COMMAND ARGS... | URL)`, as Claude Code, Gemini and Codex have it.
fn added(words: &[&str]) -> Option<ImportedServers> {
    let (mut env, mut headers, mut transport, mut url) = (Vec::new(), Vec::new(), None, None);
    let mut rest = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word.split_once('=').filter(|_| word.starts_with("--")).unwrap_or((word, "")) {
            ("--", _) => {
                rest.extend(words.by_ref());
            }
            // From the command on, everything belongs to it.
            _ if rest.get(1).is_some_and(|command: &&str| !command.contains("://")) => rest.push(word),
            ("-e" | "--env", "") => env.push(words.next()?),
            ("--env", pair) => env.push(pair),
            ("-H" | "--header", "") => headers.push(words.next()?),
            ("--header", pair) => headers.push(pair),
            ("-t" | "--transport", "") => transport = words.next(),
            ("--transport", kind) => transport = Some(kind),
            ("--url", "") => url = words.next(),
            ("--url", address) => url = Some(address),
            ("-s" | "--scope", "") => _ = words.next(),
            // `--env A=1 B=2` names several.
            _ if rest.is_empty() && word.contains('=') && !word.starts_with('-') => env.push(word),
            _ if word.starts_with('-') => {}
            _ => rest.push(word),
        }
    }
    let (name, command) = rest.split_first()?;
    let remote = transport.is_some_and(|kind| kind != "stdio");
    let entry = match (command.split_first(), url) {
        (None, Some(url)) => json!({"url": url, "headers": pairs(&headers, ':')}),
        (Some((url, _)), _) if remote || url.starts_with("https://") || url.starts_with("http://") => {
            let kind = transport.filter(|kind| *kind == "sse").unwrap_or("http");
            json!({"type": kind, "url": url, "headers": pairs(&headers, ':')})
        }
        (Some((command, args)), _) => json!({"command": command, "args": args, "env": pairs(&env, '=')}),
        (None, None) => return None,
    };
    Some(snippet::named(name, &entry))
}

fn added_json(words: &[&str]) -> Result<ImportedServers, ConfigError> {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with("-s")).collect();
    let [name, json, ..] = words.as_slice() else { return Err(ConfigError::Unknown) };
    let mut document = document::read(json)?;
    if let [(unnamed, _)] = document.servers.as_mut_slice() {
        *unnamed = (*name).to_owned();
    }
    Ok(servers_of(document))
}

fn pairs(pairs: &[&str], between: char) -> Map<String, Value> {
    let pairs = pairs.iter().filter_map(|pair| pair.split_once(between));
    pairs.map(|(name, value)| (name.trim().to_owned(), Value::from(value.trim()))).collect()
}
