//! What would run, as a digest to compare and as a text to read.
//!
//! Invariant: pure, and made of the configuration as it is written: placeholders are not resolved, so that no secret
//! plays a part.

use serde_json::{Map, Value, json};

use super::canonical::{canonical, digest};
use super::unicode::visible;
use crate::config::{ServerConfig, Transport};
use crate::mask::Mask;

/// Variables that decide which code a program runs. Of these the value is bound, too; of all others only the name, so
/// that a token may be renewed.
const STEERING: [&str; 33] = [
    "BASH_ENV",
    "CLASSPATH",
    "DENO_DIR",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "ENV",
    "GIT_EXEC_PATH",
    "GIT_SSH_COMMAND",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_REGISTRY",
    "PATH",
    "PATHEXT",
    "PERL5LIB",
    "PERL5OPT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
];

/// What the user approves of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPrint {
    /// SHA-256, in hex, of command, arguments, working folder and names of variables; or of address and names of
    /// headers; and of whether the server is trusted. Of variables that steer which code runs the values count as well.
    pub digest: String,
    /// The same for people, line by line, secrets masked, invisible characters shown.
    pub shown: String,
}

impl ServerPrint {
    /// Of a server as it is configured.
    pub fn of(config: &ServerConfig) -> Self {
        let (bound, lines) = match &config.transport {
            Transport::Stdio(_) => stdio(config),
            Transport::Http(_) => http(config),
        };
        let text = canonical(&json!({ "transport": bound, "trusted": config.trusted }));
        let trusted = config.trusted.then(|| "what it says about its tools is believed".to_owned());
        let shown: Vec<String> = lines.into_iter().chain(trusted).collect();
        Self { digest: digest("lectern server 1", &text), shown: visible(&shown.join("\n")).into_owned() }
    }
}

fn stdio(config: &ServerConfig) -> (Value, Vec<String>) {
    let Some(program) = config.program() else { return (Value::Null, Vec::new()) };
    let mask = Mask::of(config);
    let mut env = Map::new();
    let mut names = Vec::new();
    for (name, value) in &program.env {
        let steers = steers(name);
        env.insert(name.clone(), if steers { Value::from(value.clone()) } else { Value::Null });
        names.push(if steers { format!("{name}={}", mask.text(value)) } else { name.clone() });
    }
    let cwd = program.cwd.as_ref().map(|cwd| cwd.display().to_string());
    let mut lines = vec![config.display_command()];
    lines.extend(cwd.as_ref().map(|cwd| format!("in {cwd}")));
    lines.extend((!names.is_empty()).then(|| format!("with {}", names.join(", "))));
    (json!({"command": program.command, "args": program.args, "env": env, "cwd": cwd}), lines)
}

fn http(config: &ServerConfig) -> (Value, Vec<String>) {
    let Transport::Http(endpoint) = &config.transport else { return (Value::Null, Vec::new()) };
    let mut names: Vec<String> = endpoint.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    names.sort();
    let mut lines = vec![config.display_command()];
    lines.extend((!names.is_empty()).then(|| format!("with the headers {}", names.join(", "))));
    (json!({"url": endpoint.url, "headers": names}), lines)
}

fn steers(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    STEERING.binary_search(&name.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ServerConfig {
        let mut config = ServerConfig::new("s", "npx", ["-y", "pkg@1"]);
        let program = config.program_mut().unwrap();
        program.env.insert("API_KEY".into(), "abcdefgh".into());
        program.env.insert("NODE_OPTIONS".into(), "--max-old-space-size=99".into());
        config
    }

    fn changed(change: impl FnOnce(&mut ServerConfig)) -> String {
        let mut config = config();
        change(&mut config);
        ServerPrint::of(&config).digest
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(STEERING.is_sorted());
    }

    #[test]
    fn what_would_run_is_bound_and_what_would_not_is_not() {
        let same = ServerPrint::of(&config()).digest;
        let env = |config: &mut ServerConfig, name: &str, value: &str| {
            config.program_mut().unwrap().env.insert(name.into(), value.into());
        };
        for (what, digest) in [
            ("command", changed(|c| c.program_mut().unwrap().command = "npx2".into())),
            ("argument", changed(|c| c.program_mut().unwrap().args[1] = "pkg@2".into())),
            ("one argument of two", changed(|c| c.program_mut().unwrap().args = vec!["-y pkg@1".into()])),
            ("folder", changed(|c| c.program_mut().unwrap().cwd = Some("/elsewhere".into()))),
            ("name of a variable", changed(|c| env(c, "OTHER", "x"))),
            ("value that steers", changed(|c| env(c, "NODE_OPTIONS", "--require=/elsewhere/evil.js"))),
            ("trust", changed(|c| c.trusted = true)),
            ("transport", changed(|c| c.transport = ServerConfig::remote("s", "npx").transport)),
        ] {
            assert_ne!(digest, same, "{what}");
        }
        for (what, digest) in [
            ("value of a key", changed(|c| env(c, "API_KEY", "another"))),
            ("limits", changed(|c| c.timeout_s = Some(9))),
            ("switched off", changed(|c| c.disabled = true)),
            ("id", changed(|c| c.id = "other".into())),
        ] {
            assert_eq!(digest, same, "{what}");
        }
        assert!(steers("Path") && steers("npm_config_registry"));
    }

    #[test]
    fn a_remote_server_is_its_address_and_the_names_of_its_headers() {
        let of = |url: &str, headers: &[(&str, &str)]| {
            let mut config = ServerConfig::remote("s", url);
            if let Transport::Http(endpoint) = &mut config.transport {
                endpoint.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            }
            ServerPrint::of(&config)
        };
        let first = of("https://a/mcp", &[("Authorization", "Bearer 0123456789ab")]);
        assert_eq!(first.digest, of("https://a/mcp", &[("authorization", "Bearer other")]).digest);
        assert_ne!(first.digest, of("https://b/mcp", &[("Authorization", "x")]).digest);
        assert_ne!(first.digest, of("https://a/mcp", &[("Authorization", "x"), ("X-More", "y")]).digest);
        assert_eq!(first.shown, "https://a/mcp\nwith the headers authorization");
    }

    #[test]
    fn the_text_hides_secrets_and_shows_what_is_invisible() {
        let mut config = config();
        config.program_mut().unwrap().args.push("--token=abcdefgh\u{202e}".into());
        let shown = ServerPrint::of(&config).shown;
        assert!(shown.starts_with("npx -y pkg@1 "), "{shown}");
        assert!(shown.contains("with API_KEY, NODE_OPTIONS=--max-old-space-size=99"), "{shown}");
        assert!(!shown.contains("abcdefgh") && !shown.contains('\u{202e}'), "{shown}");
    }
}
