//! `${…}` in a server's settings, and the values that stand for it when the server is started.
//!
//! Forms: `${secret:NAME}` and `${input:ID}` from the keyring, `${env:NAME}`, `${NAME}` and `${NAME:-default}` from the
//! environment (`LECTERN_WORKSPACE` is the folder that the server works in), `${userHome}` and `${pathSeparator}` as in VS Code. `$${` is a plain `${`. All else stays as it is, so
//! that a shell's `${1}` or `${x%y}` gets through.
//!
//! Invariant: a value that was looked up is in the copy of the configuration that starts the server and in the list of
//! what has to be masked; the settings keep the placeholder.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{ServerConfig, SignIn, Transport};
use crate::secrets::{Secrets, SecretsError};

/// The variable that stands for the folder a server works in: one of the window's, and one for each session of the API.
pub const WORKSPACE: &str = "LECTERN_WORKSPACE";

/// Whether a server works in a folder of whoever uses it.
pub fn names_workspace(config: &ServerConfig) -> bool {
    let is_it =
        |reference: &Reference| matches!(reference, Reference::Variable { name, .. } if name == WORKSPACE);
    references(config).iter().any(is_it)
}

/// What a placeholder asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// `${secret:NAME}`: a secret of the keyring.
    Secret(String),
    /// `${input:ID}`: what the user was asked for, kept in the keyring.
    Input(String),
    /// A variable of the app's environment.
    Variable {
        /// Its name.
        name: String,
        /// What stands for it when it is not set, or empty.
        default: Option<String>,
    },
    /// `${userHome}`.
    UserHome,
    /// `${pathSeparator}` and `${/}`.
    PathSeparator,
}

/// Why a placeholder has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Nothing is kept under this name.
    #[error("the secret `{0}` has no value")]
    NoSecret(String),
    /// The user has not been asked yet, or answered in a session that is over.
    #[error("the input `{0}` has no value")]
    NoInput(String),
    /// The variable is not set, and there is no default.
    #[error("the variable `{0}` is not set")]
    NoVariable(String),
    /// The keyring can't be asked.
    #[error("`{name}` can't be read")]
    Keyring {
        /// The secret's or input's name.
        name: String,
        /// Why.
        source: SecretsError,
    },
}

/// A configuration whose placeholders have values.
pub(crate) struct Resolved {
    pub(crate) config: ServerConfig,
    /// What has to be masked from now on.
    pub(crate) secrets: Vec<String>,
}

/// The name under which the keyring keeps a `${secret:NAME}`.
pub fn secret_key(name: &str) -> String {
    format!("secret:{name}")
}

/// The name under which the keyring keeps an `${input:ID}`.
pub fn input_key(id: &str) -> String {
    format!("input:{id}")
}

/// Everything that a configuration refers to, each once.
pub fn references(config: &ServerConfig) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    for text in texts(config) {
        found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Reference(reference) => Some(reference),
        }));
    }
    found
}

/// Whether a text has a `${secret:…}` or `${input:…}` in it.
pub(crate) fn is_secret_reference(text: &str) -> bool {
    pieces(text)
        .iter()
        .any(|piece| matches!(piece, Piece::Reference(Reference::Secret(_) | Reference::Input(_))))
}

/// Looks up every placeholder. `variable` gives the variables of the app's environment.
pub(crate) async fn resolve(
    config: &ServerConfig,
    secrets: Option<&dyn Secrets>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Resolved, ResolveError> {
    let mut values = BTreeMap::new();
    let mut hidden = Vec::new();
    for reference in references(config) {
        let value = match &reference {
            Reference::Secret(name) => {
                let value = looked_up(secrets, name, &secret_key(name)).await?;
                value.ok_or_else(|| ResolveError::NoSecret(name.clone()))?
            }
            Reference::Input(id) => {
                let value = looked_up(secrets, id, &input_key(id)).await?;
                value.ok_or_else(|| ResolveError::NoInput(id.clone()))?
            }
            Reference::Variable { name, default } => {
                let set = variable(name).filter(|value| !value.is_empty() || default.is_none());
                let value = set.or_else(|| default.clone());
                value.ok_or_else(|| ResolveError::NoVariable(name.clone()))?
            }
            Reference::UserHome => home(&variable)?,
            Reference::PathSeparator => std::path::MAIN_SEPARATOR_STR.to_owned(),
        };
        if matches!(reference, Reference::Secret(_) | Reference::Input(_)) {
            hidden.push(value.clone());
        }
        values.insert(reference, value);
    }
    let replaced = |text: &str| replaced(text, &values);
    Ok(Resolved { config: mapped(config, &replaced), secrets: hidden })
}

async fn looked_up(
    secrets: Option<&dyn Secrets>,
    name: &str,
    key: &str,
) -> Result<Option<String>, ResolveError> {
    let failed = |source| ResolveError::Keyring { name: name.to_owned(), source };
    match secrets {
        Some(secrets) => secrets.get(key).await.map_err(failed),
        None => Err(failed(SecretsError::Unavailable("none is in use here".into()))),
    }
}

fn home(variable: &dyn Fn(&str) -> Option<String>) -> Result<String, ResolveError> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    home.ok_or_else(|| ResolveError::NoVariable("HOME".into()))
}

/// A text cut at its placeholders.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Reference(Reference),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(escaped) = before.strip_suffix('$') {
            pieces.extend([Piece::Text(escaped), Piece::Text("${")]);
            rest = &from[2..];
            continue;
        }
        pieces.push(Piece::Text(before));
        let end = from.find('}').map(|end| end + 1);
        match end.and_then(|end| Some((end, reference(&from[2..end - 1])?))) {
            Some((end, reference)) => {
                pieces.push(Piece::Reference(reference));
                rest = &from[end..];
            }
            None => {
                pieces.push(Piece::Text("${"));
                rest = &from[2..];
            }
        }
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

fn reference(inside: &str) -> Option<Reference> {
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    if let Some(name) = inside.strip_prefix("secret:") {
        return named(name).map(Reference::Secret);
    }
    if let Some(id) = inside.strip_prefix("input:") {
        return named(id).map(Reference::Input);
    }
    match inside {
        "userHome" => return Some(Reference::UserHome),
        "pathSeparator" | "/" => return Some(Reference::PathSeparator),
        _ => {}
    }
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inside, None),
    };
    is_variable(name).then(|| Reference::Variable { name: name.to_owned(), default })
}

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn replaced(text: &str, values: &BTreeMap<Reference, String>) -> String {
    let pieces = pieces(text);
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Reference(reference) => values.get(reference).map_or("", String::as_str),
    });
    texts.collect()
}

/// Everything of a configuration that may hold placeholders.
fn texts(config: &ServerConfig) -> Vec<&str> {
    match &config.transport {
        Transport::Stdio(program) => {
            let cwd = program.cwd.as_deref().and_then(std::path::Path::to_str);
            let words = std::iter::once(&program.command).chain(&program.args).chain(program.env.values());
            words.map(String::as_str).chain(cwd).collect()
        }
        Transport::Http(endpoint) => {
            let SignIn { client_id, client_secret, client_metadata_url, grant: _ } = &endpoint.sign_in;
            let sign_in = [client_id, client_secret, client_metadata_url].into_iter().flatten();
            let words = std::iter::once(&endpoint.url).chain(endpoint.headers.values()).chain(sign_in);
            words.map(String::as_str).collect()
        }
    }
}

/// The configuration with each of its texts replaced.
pub fn mapped(config: &ServerConfig, replace: &dyn Fn(&str) -> String) -> ServerConfig {
    let mut config = config.clone();
    let each = |text: &mut String| *text = replace(text);
    match &mut config.transport {
        Transport::Stdio(program) => {
            each(&mut program.command);
            program.args.iter_mut().for_each(each);
            program.env.values_mut().for_each(each);
            if let Some(cwd) = program.cwd.as_deref().and_then(std::path::Path::to_str) {
                program.cwd = Some(replace(cwd).into());
            }
        }
        Transport::Http(endpoint) => {
            each(&mut endpoint.url);
            endpoint.headers.values_mut().for_each(each);
            let SignIn { client_id, client_secret, client_metadata_url, grant: _ } = &mut endpoint.sign_in;
            [client_id, client_secret, client_metadata_url].into_iter().flatten().for_each(each);
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::MemorySecrets;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/me".into()),
            "EMPTY" => Some(String::new()),
            "USER_1" => Some("me".into()),
            _ => None,
        }
    }

    async fn resolved(config: &ServerConfig, secrets: &MemorySecrets) -> Result<Resolved, ResolveError> {
        resolve(config, Some(secrets), environment).await
    }

    #[tokio::test]
    async fn every_place_and_every_form_is_resolved() {
        let secrets = MemorySecrets::default();
        secrets.set("secret:pw", "s3cret ${HOME}").await.unwrap();
        secrets.set("input:db", "notes").await.unwrap();
        let mut config = ServerConfig::new(
            "s",
            "${HOME}/bin/x",
            ["${env:USER_1}:${secret:pw}", "${NO:-d}${EMPTY:-e}", "${userHome}${/}x", "${EMPTY}"],
        );
        let program = config.program_mut().unwrap();
        program.env.insert("DB".into(), "db=${input:db};pw=${secret:pw}".into());
        program.cwd = Some("${HOME}".into());
        let resolved = resolved(&config, &secrets).await.unwrap();
        let program = resolved.config.program().unwrap();
        assert_eq!(program.command, "/home/me/bin/x");
        // What a secret holds is never read as a placeholder.
        assert_eq!(program.args, ["me:s3cret ${HOME}", "de", "/home/me/x", ""]);
        assert_eq!(program.env["DB"], "db=notes;pw=s3cret ${HOME}");
        assert_eq!(program.cwd.as_deref(), Some(std::path::Path::new("/home/me")));
        assert_eq!(resolved.secrets, ["s3cret ${HOME}", "notes"]);
    }

    #[tokio::test]
    async fn addresses_and_headers_are_resolved() {
        let secrets = MemorySecrets::default();
        secrets.set("secret:t", "abc").await.unwrap();
        let mut config = ServerConfig::remote("s", "https://${HOST:-h.example}/mcp");
        let Transport::Http(endpoint) = &mut config.transport else { unreachable!("it is remote") };
        endpoint.headers.insert("Authorization".into(), "Bearer ${secret:t}".into());
        let Transport::Http(endpoint) = resolved(&config, &secrets).await.unwrap().config.transport else {
            unreachable!("it stays remote")
        };
        assert_eq!(endpoint.url, "https://h.example/mcp");
        assert_eq!(endpoint.headers["Authorization"], "Bearer abc");
    }

    #[tokio::test]
    async fn what_is_no_placeholder_of_ours_stays() {
        let secrets = MemorySecrets::default();
        for text in
            ["${1}", "${#a[@]}", "${x%y}", "$HOME", "${", "${}", "a${b", "${secret:}", "100 $", "${a b}"]
        {
            let config = ServerConfig::new("s", "sh", [text]);
            assert_eq!(resolved(&config, &secrets).await.unwrap().config, config, "{text}");
        }
        let escaped = ServerConfig::new("s", "sh", ["$${HOME} and ${HOME}"]);
        let resolved = resolved(&escaped, &secrets).await.unwrap();
        assert_eq!(resolved.config.program().unwrap().args, ["${HOME} and /home/me"]);
    }

    #[tokio::test]
    async fn what_has_no_value_is_named() {
        let secrets = MemorySecrets::default();
        let error = async |text: &str| {
            let config = ServerConfig::new("s", "x", [text]);
            resolved(&config, &secrets).await.err().map(|error| error.to_string())
        };
        assert_eq!(error("${secret:a b}").await.unwrap(), "the secret `a b` has no value");
        assert_eq!(error("${input:x}").await.unwrap(), "the input `x` has no value");
        assert_eq!(error("${NOPE}").await.unwrap(), "the variable `NOPE` is not set");
        let config = ServerConfig::new("s", "x", ["${secret:a}"]);
        let error = resolve(&config, None, environment).await.err();
        assert!(matches!(error, Some(ResolveError::Keyring { name, .. }) if name == "a"));
    }
}
