//! What a server would run, in full, with what its user should know before saying yes.
//!
//! Invariant: shows everything that decides what runs; of secrets only where they are.

use std::path::Path;

use super::{found_secrets, is_hidden};
use crate::config::{Endpoint, Program, ServerConfig, Transport};
use crate::mask::{Mask, names_a_secret};
use crate::placeholder::{Reference, references};

/// A server as it is shown before it is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The whole command line, secrets masked; none for an address.
    pub command_line: Option<String>,
    /// The arguments, secrets masked.
    pub args: Vec<String>,
    /// Names of its environment.
    pub env_names: Vec<String>,
    /// The address, secrets masked.
    pub url: Option<String>,
    /// Names of its headers.
    pub header_names: Vec<String>,
    /// Its working folder.
    pub cwd: Option<String>,
    /// Where secrets stand in clear.
    pub secrets: Vec<String>,
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
}

/// Shells: what they are given is a program.
const SHELLS: [&str; 10] =
    ["sh", "bash", "zsh", "fish", "dash", "ksh", "cmd", "powershell", "pwsh", "busybox"];
/// Variables that change which code a program runs.
const CODE_VARIABLES: [&str; 14] = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "ENV",
    "PERL5OPT",
    "RUBYOPT",
    "GIT_SSH_COMMAND",
];

/// Describes a server that is not there yet.
pub fn describe(config: &ServerConfig) -> Described {
    let mask = Mask::of(config);
    let visible = |text: &str| made_visible(&mask.text(text));
    let mut warnings = Vec::new();
    let mut described = Described {
        command_line: None,
        args: Vec::new(),
        env_names: Vec::new(),
        url: None,
        header_names: Vec::new(),
        cwd: None,
        secrets: found_secrets(config).into_iter().map(|secret| secret.place).collect(),
        warnings: Vec::new(),
    };
    match &config.transport {
        Transport::Stdio(program) => {
            described.command_line = Some(made_visible(&config.display_command()));
            described.args = program.args.iter().map(|arg| visible(arg)).collect();
            described.env_names = program.env.keys().map(|name| made_visible(name)).collect();
            described.cwd = program.cwd.as_ref().map(|cwd| visible(&cwd.display().to_string()));
            warn_of_program(program, &mut warnings);
        }
        Transport::Http(endpoint) => {
            described.url = Some(visible(&endpoint.url));
            described.header_names = endpoint.headers.keys().map(|name| made_visible(name)).collect();
            warn_of_address(endpoint, &mut warnings);
        }
    }
    warn_of_references(config, &mut warnings);
    warn_of_secrets(&described.secrets, &mut warnings);
    described.warnings = warnings;
    described
}

fn warn_of_program(program: &Program, warnings: &mut Vec<String>) {
    let name = program_name(&program.command);
    let args: Vec<&str> = program.args.iter().map(String::as_str).collect();
    if SHELLS.contains(&name.as_str()) {
        warnings.push(format!("runs a shell (`{name}`): read its arguments as a program"));
    }
    if let Some(flag) = inline_code(&name, &args) {
        warnings.push(format!("runs code that stands in its arguments (`{flag}`)"));
    }
    if let Some(what) = downloaded(&name, &args) {
        warnings.push(format!("downloads and runs {what}"));
    }
    if ["sudo", "doas", "pkexec", "runas", "gsudo"].contains(&name.as_str()) {
        warnings.push(format!("asks for the rights of an administrator (`{name}`)"));
    }
    if ["docker", "podman", "nerdctl"].contains(&name.as_str()) {
        warn_of_container(&args, warnings);
    }
    for variable in program.env.keys().filter(|name| CODE_VARIABLES.contains(&name.as_str())) {
        warnings.push(format!("sets `{variable}`, which can change the code that runs"));
    }
    if program.args.is_empty() && program.command.contains(' ') && !Path::new(&program.command).exists() {
        warnings.push("the command has blanks in it: arguments belong into `args`".to_owned());
    }
    let words = std::iter::once(&program.command).chain(&program.args).chain(program.env.keys());
    if words.into_iter().any(|word| word.contains(is_hidden)) {
        warnings.push("has characters that can't be seen; they are shown as \\u{…}".to_owned());
    }
}

fn warn_of_container(args: &[&str], warnings: &mut Vec<String>) {
    if args.contains(&"--privileged") {
        warnings.push("the container may do everything on this computer (`--privileged`)".to_owned());
    }
    let shares = |arg: &&str| {
        ["-v", "--volume", "--mount"].contains(arg)
            || arg.starts_with("--volume=")
            || arg.starts_with("--mount=")
    };
    if args.iter().any(shares) {
        warnings.push("gives a container access to folders of yours".to_owned());
    }
}

fn warn_of_address(endpoint: &Endpoint, warnings: &mut Vec<String>) {
    let url = endpoint.url.to_ascii_lowercase();
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let loopback = ["localhost", "127.", "[::1]"].iter().any(|own| host.starts_with(own));
    if url.starts_with("http://") && !loopback {
        warnings
            .push("is reached without encryption (http): others on the way can read and change it".into());
    }
    if host.starts_with("169.254.") || host.starts_with("metadata.") {
        warnings.push("is the address of a machine's own metadata, no server".to_owned());
    }
    if host.starts_with("xn--") || host.contains(".xn--") || !host.is_ascii() {
        warnings.push("its name is written in letters that may look like others".to_owned());
    }
    if endpoint.url.contains(is_hidden) {
        warnings.push("has characters that can't be seen; they are shown as \\u{…}".to_owned());
    }
}

fn warn_of_references(config: &ServerConfig, warnings: &mut Vec<String>) {
    for reference in references(config) {
        match reference {
            Reference::Secret(name) => {
                warnings.push(format!("is given the secret `{}` of your keyring", made_visible(&name)));
            }
            Reference::Variable { name, .. } if name == "workspaceFolder" => {
                warnings.push("`${workspaceFolder}` has no meaning here: name the folder".to_owned());
            }
            Reference::Variable { name, .. } if names_a_secret(&name) => {
                warnings.push(format!("is given the variable `{name}` of your environment"));
            }
            Reference::Variable { .. }
            | Reference::Input(_)
            | Reference::UserHome
            | Reference::PathSeparator => {}
        }
    }
}

fn warn_of_secrets(secrets: &[String], warnings: &mut Vec<String>) {
    if !secrets.is_empty() {
        let places: Vec<String> = secrets.iter().map(|place| format!("`{}`", made_visible(place))).collect();
        warnings.push(format!("holds a secret in clear: {}", places.join(", ")));
    }
}

/// The name of a program without its folder and `.exe`.
pub(super) fn program_name(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    let bare = [".exe", ".cmd", ".bat", ".ps1"].iter().find_map(|end| name.strip_suffix(end));
    bare.unwrap_or(&name).to_owned()
}

fn inline_code<'a>(name: &str, args: &[&'a str]) -> Option<&'a str> {
    let flags: &[&str] = match name {
        "node" | "bun" => &["-e", "--eval", "-p", "--print"],
        "deno" => &["eval"],
        "perl" | "ruby" => &["-e"],
        "php" => &["-r"],
        _ if name.starts_with("python") => &["-c"],
        _ => return None,
    };
    args.iter().copied().find(|arg| flags.contains(arg))
}

/// What a package runner fetches from the network, in words.
fn downloaded(name: &str, args: &[&str]) -> Option<String> {
    let sub = args.iter().find(|arg| !arg.starts_with('-')).copied();
    let runner = match (name, sub) {
        ("npx" | "bunx" | "pnpx" | "uvx", _) => true,
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("bun", Some("x")) => true,
        ("uv", Some("tool" | "run")) | ("pipx", Some("run")) | ("go", Some("run")) => true,
        ("docker" | "podman" | "nerdctl", Some("run")) => return Some("a container image".to_owned()),
        ("deno", Some("run")) => {
            args.iter().any(|arg| ["npm:", "jsr:", "https:"].iter().any(|p| arg.starts_with(p)))
        }
        _ => false,
    };
    let package = runner.then(|| super::snippet::package(args))?;
    match package {
        Some(package) => {
            let exact = package.rsplit_once(['@', '=']).is_some_and(|(name, version)| {
                !name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit())
            });
            let newest = if exact { "" } else { ", whichever version is newest" };
            Some(format!("the package `{}`{newest}", made_visible(&package)))
        }
        None => Some("a package".to_owned()),
    }
}

/// Characters that can't be seen as `\u{…}`.
pub(crate) fn made_visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}
