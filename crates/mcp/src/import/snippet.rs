//! Reads what people paste: a file, a part of one, an address, a command line, an install link.
//!
//! Invariant: a text that is none of these is refused, never taken for a command.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;

use super::{ConfigError, ImportedServers, command_line, document, preview::program_name, servers_of};
use crate::config::{Program, ServerConfig, Transport};

/// Reads a pasted text.
pub fn read_snippet(text: &str) -> Result<ImportedServers, ConfigError> {
    let text = unwrapped(text);
    if text.is_empty() {
        return Err(ConfigError::Unknown);
    }
    if let Some(json) = linked(text) {
        return document::read(&json).map(servers_of);
    }
    if is_address(text) {
        return Ok(alone(&serde_json::json!({"url": text})));
    }
    match json(text) {
        Some(read) => read.map(servers_of),
        None => command_line::read(text),
    }
}

/// One server without a name.
pub(super) fn alone(entry: &serde_json::Value) -> ImportedServers {
    named("", entry)
}

/// One server.
pub(super) fn named(name: &str, entry: &serde_json::Value) -> ImportedServers {
    let servers = vec![(name.to_owned(), entry.clone())];
    servers_of(document::Document { servers, inputs: Vec::new() })
}

/// The text of a block of code, without the signs around it.
fn unwrapped(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.split_once('\n'));
    let text = inside.map_or(text, |(_, rest)| rest.trim_end().strip_suffix("```").unwrap_or(rest).trim());
    let text = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap_or(text);
    text.strip_prefix("$ ").or_else(|| text.strip_prefix("> ")).unwrap_or(text).trim()
}

fn is_address(text: &str) -> bool {
    (text.starts_with("http://") || text.starts_with("https://")) && !text.contains(char::is_whitespace)
}

/// Reads JSON and parts of it; none when it does not look like that.
fn json(text: &str) -> Option<Result<document::Document, ConfigError>> {
    let before = text.split_once('{').map(|(before, _)| before.trim_end());
    let begins = text.starts_with(['{', '[', '"', '/']) && (before.is_some() || text.starts_with(['{', '[']));
    let named = before.is_some_and(|before| before.ends_with(':'));
    if !begins && !named {
        return None;
    }
    let comma = text.trim_end_matches(',');
    // As it is; a piece of an object; a piece whose braces were not all copied, or too many of them.
    let tries = [
        text.to_owned(),
        format!("{{{text}}}"),
        format!("{{\"servers\": {comma}}}"),
        format!("{text}}}"),
        format!("{text}}}}}"),
        format!("{{{text}}}}}"),
        comma.strip_suffix('}').unwrap_or(comma).to_owned(),
        format!("{{{}}}", comma.strip_suffix('}').unwrap_or(comma)),
        format!("{{{}", comma),
    ];
    let mut results = tries.iter().map(|text| document::read(text));
    let first = results.next()?;
    if first.is_ok() {
        return Some(first);
    }
    Some(results.find(Result::is_ok).unwrap_or(first))
}

/// The JSON of an install link of Cursor or VS Code.
fn linked(text: &str) -> Option<String> {
    if let Some(rest) =
        ["vscode:mcp/install?", "vscode-insiders:mcp/install?"].iter().find_map(|p| text.strip_prefix(p))
    {
        return percent_decode_str(rest).decode_utf8().ok().map(|json| json.into_owned());
    }
    let query = text.strip_prefix("cursor://").and_then(|rest| rest.split_once("/mcp/install?"))?.1;
    let field = |name: &str| {
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        percent_decode_str(pair).decode_utf8().ok()
    };
    let config = field("config")?;
    let bytes =
        STANDARD.decode(config.as_bytes()).or_else(|_| URL_SAFE_NO_PAD.decode(config.as_bytes())).ok()?;
    let entry: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let name = field("name").unwrap_or_default();
    Some(serde_json::json!({"mcpServers": {name.as_ref(): entry}}).to_string())
}

/// A name for a server that came without one.
pub(super) fn name_for(config: &ServerConfig) -> String {
    let name = match &config.transport {
        Transport::Stdio(program) => short(&named_thing(program)),
        Transport::Http(endpoint) => host_name(&endpoint.url),
    };
    let name = super::clean_name(&name);
    if name.is_empty() { "server".to_owned() } else { name }
}

fn named_thing(program: &Program) -> String {
    let args: Vec<&str> = program.args.iter().map(String::as_str).collect();
    let file = || program_name(&program.command);
    match program_name(&program.command).as_str() {
        "node" | "deno" | "bun" | "sh" | "bash" | "cmd" | "npx" | "bunx" | "uvx" | "uv" | "npm" | "pnpm"
        | "yarn" | "pipx" | "docker" | "podman" | "go" | "java" | "dotnet" | "ruby" | "php" | "python"
        | "python3" | "py" => package(&args).unwrap_or_else(file),
        _ => file(),
    }
}

/// The package, image, module or file that a runner is told to run.
pub(super) fn package(args: &[&str]) -> Option<String> {
    const WITH_VALUE: [&str; 16] = [
        "-e",
        "--env",
        "-v",
        "--volume",
        "--mount",
        "--name",
        "-p",
        "--publish",
        "--network",
        "--directory",
        "--project",
        "--python",
        "--with",
        "-w",
        "--cwd",
        "--env-file",
    ];
    const VERBS: [&str; 8] = ["run", "exec", "x", "dlx", "tool", "eval", "/c", "-jar"];
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        match arg {
            "--from" | "--package" | "-m" | "--spec" => return args.next().map(str::to_owned),
            _ if WITH_VALUE.contains(&arg) => _ = args.next(),
            _ if arg.starts_with('-') || VERBS.contains(&arg) => {}
            _ => return Some(arg.to_owned()),
        }
    }
    None
}

/// `@modelcontextprotocol/server-filesystem@1.2` is `filesystem`.
fn short(package: &str) -> String {
    let package = package.trim_end_matches(['/', '\\']);
    let (scope, name) = match package.rsplit_once(['/', '\\']) {
        Some((scope, name)) => (scope, name),
        None => ("", package),
    };
    let name = name.split(['@', '=', ':', '>', '<', '[']).next().unwrap_or_default();
    let name = [".js", ".mjs", ".cjs", ".ts", ".py", ".jar", ".dll", ".exe", ".git"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let mut bare = name.to_ascii_lowercase().replace('_', "-");
    for affix in ["mcp-server-", "server-", "mcp-"] {
        bare = bare.strip_prefix(affix).unwrap_or(&bare).to_owned();
    }
    for affix in ["-mcp-server", "-server", "-mcp"] {
        bare = bare.strip_suffix(affix).unwrap_or(&bare).to_owned();
    }
    match bare.as_str() {
        "" | "mcp" | "server" | "index" | "main" if !scope.is_empty() => {
            let scope = scope.trim_start_matches('@');
            scope
                .split(['/', '\\'])
                .rfind(|part| !["dist", "build", "src", ""].contains(part))
                .unwrap_or(scope)
                .to_owned()
        }
        _ => bare,
    }
}

fn host_name(url: &str) -> String {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let mut labels = host.split('.').filter(|label| !["www", "mcp", "api", ""].contains(label));
    labels.next().unwrap_or(host).to_owned()
}
