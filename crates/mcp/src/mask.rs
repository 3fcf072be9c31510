//! Hides a server's secrets in everything that is logged, shown or stored.
//!
//! Invariant: what looks like a secret in a server's configuration never leaves this crate in clear, except to the
//! server itself.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::config::{ServerConfig, Transport};
use crate::placeholder::is_secret_reference;

pub(crate) const MASKED: &str = "••••••";
/// Shorter values would hide half of an ordinary text.
const SHORTEST: usize = 5;
/// A value that is known to be secret is hidden down to this length.
const SHORTEST_KNOWN: usize = 3;
/// Lines of a secret of several lines (a private key) are hidden one by one, too: logs are read line by line.
const SHORTEST_LINE: usize = 8;

/// The secrets of one server. Clones share what is [learnt](Mask::learn).
#[derive(Clone, Default)]
pub(crate) struct Mask {
    /// The longest first, so that a secret that contains another is hidden as a whole.
    // A std lock: nothing awaits while it is held.
    secrets: Arc<RwLock<Arc<[String]>>>,
}

impl Mask {
    /// Finds what looks like a secret in a configuration.
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let mask = Self::default();
        mask.add(secrets_in(config).into_iter().filter(|secret| secret.len() >= SHORTEST));
        mask
    }

    /// Hides these values from now on, and what looks like a secret in `config`, here and in all clones.
    pub(crate) fn learn(&self, config: &ServerConfig, known: &[String]) {
        let guessed = secrets_in(config).into_iter().filter(|secret| secret.len() >= SHORTEST);
        let lines = known.iter().flat_map(|secret| secret.lines()).map(|line| line.trim().to_owned());
        let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
        let known = known.iter().flat_map(|secret| written(secret));
        let known = known.filter(|secret| secret.len() >= SHORTEST_KNOWN);
        self.add(guessed.chain(lines).chain(known));
    }

    fn add(&self, more: impl Iterator<Item = String>) {
        let mut kept = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        let mut secrets: Vec<String> = kept.iter().cloned().chain(more).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        *kept = secrets.into();
    }

    fn secrets(&self) -> Arc<[String]> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The text without secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        masked_text(&self.secrets(), text)
    }

    /// The value without secrets, names of fields included.
    pub(crate) fn value(&self, value: Value) -> Value {
        let secrets = self.secrets();
        if secrets.is_empty() { value } else { masked_value(&secrets, value) }
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("secrets", &self.secrets().len()).finish()
    }
}

fn masked_text(secrets: &[String], text: &str) -> String {
    let mut out = text.to_owned();
    for secret in secrets {
        if out.contains(secret.as_str()) {
            out = out.replace(secret.as_str(), MASKED);
        }
    }
    out
}

fn masked_value(secrets: &[String], value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked_text(secrets, &text)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| masked_value(secrets, item)).collect())
        }
        Value::Object(fields) => {
            let masked = fields
                .into_iter()
                .map(|(name, field)| (masked_text(secrets, &name), masked_value(secrets, field)));
            Value::Object(masked.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// A secret as it may be written: as it is, inside JSON, inside an address.
fn written(secret: &str) -> [String; 3] {
    let json = Value::from(secret).to_string();
    let address = secret
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    [secret.to_owned(), json[1..json.len() - 1].to_owned(), address]
}

fn secrets_in(config: &ServerConfig) -> Vec<String> {
    match &config.transport {
        Transport::Stdio(program) => {
            secrets_in_args(&program.args).into_iter().chain(named_secrets(&program.env)).collect()
        }
        Transport::Http(endpoint) => {
            let client = endpoint.sign_in.client_secret.iter().filter(|secret| !is_secret_reference(secret));
            let named = named_secrets(&endpoint.headers).chain(client.cloned());
            secrets_in_url(&endpoint.url).into_iter().chain(named).collect()
        }
    }
}

fn named_secrets(named: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    named.iter().filter(|(name, value)| is_secret(name, value)).map(|(_, value)| value.clone())
}

/// Whether a named value (a variable, a header) looks like a secret. A placeholder is none: it may be shown.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    !value.is_empty() && !is_secret_reference(value) && (names_a_secret(name) || looks_secret(value))
}

/// Values of flags such as `--api-key X` and `--token=X`, and secrets in addresses.
fn secrets_in_args(args: &[String]) -> Vec<String> {
    let previous = std::iter::once(None).chain(args.iter().map(|arg| Some(arg.as_str())));
    previous.zip(args).flat_map(|(previous, arg)| secrets_in_arg(previous, arg)).collect()
}

/// The secrets in one argument, given the one before it.
pub(crate) fn secrets_in_arg(previous: Option<&str>, arg: &str) -> Vec<String> {
    let named =
        previous.is_some_and(|flag| flag.starts_with('-') && !flag.contains('=') && names_a_secret(flag));
    let placeholder = is_secret_reference(arg);
    if arg.contains("://") {
        return secrets_in_url(arg);
    }
    // `--header 'Authorization: Bearer …'`
    if let Some((name, value)) = arg.split_once(": ").filter(|(name, value)| is_secret(name, value)) {
        let token = value.trim().rsplit(' ').next().filter(|_| name.eq_ignore_ascii_case("authorization"));
        return vec![token.unwrap_or(value).to_owned()];
    }
    match arg.split_once('=') {
        _ if placeholder || arg.is_empty() => Vec::new(),
        Some((flag, value)) if names_a_secret(flag) || looks_secret(value) => vec![value.to_owned()],
        _ if looks_secret(arg) || named && !arg.starts_with('-') => vec![arg.to_owned()],
        Some(_) | None => Vec::new(),
    }
}

/// The password of an address, and values of its query that are named like secrets.
pub(crate) fn secrets_in_url(url: &str) -> Vec<String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let named = query.split('&').filter_map(|pair| pair.split_once('='));
    let named = named.filter(|(name, value)| is_secret(name, value)).map(|(_, value)| value.to_owned());
    password_in_url(url).into_iter().chain(named).collect()
}

/// Whether a name (of a variable, a flag, a header) says that what it names is a secret.
pub(crate) fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 13] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASS",
        "PWD",
        "AUTH",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "COOKIE",
        "BEARER",
    ];
    let name = name.to_ascii_uppercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        WORDS.contains(&word) || ["TOKEN", "SECRET", "PASSWORD", "APIKEY"].iter().any(|w| word.ends_with(w))
    })
}

/// Tokens with a known beginning, addresses with a password, and long runs of mixed letters and digits.
fn looks_secret(value: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "sk-",
        "sk_",
        "pk_",
        "rk_",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "AIza",
        "Bearer ",
    ];
    let long_and_mixed = value.len() >= 24
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_+=".contains(c))
        && value.chars().filter(char::is_ascii_digit).count() >= 3
        && value.chars().any(|c| c.is_ascii_alphabetic());
    value.len() >= 12 && BEGINNINGS.iter().any(|beginning| value.starts_with(beginning)) || long_and_mixed
}

fn password_in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!is_secret_reference(password)).then(|| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mask(env: &[(&str, &str)], args: &[&str]) -> Mask {
        let mut config = ServerConfig::new("x", "x", args.iter().copied());
        config.program_mut().unwrap().env =
            env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Mask::of(&config)
    }

    #[test]
    fn secrets_are_found_by_name_form_and_place() {
        let mask = mask(
            &[("API_KEY", "abcdef"), ("NOTES", "/home/me/notes"), ("DB", "q"), ("X", "sk-0123456789ab")],
            &[
                "--token",
                "tok-en-1",
                "--password=hunter2",
                "postgres://me:pass99@host/db",
                "--verbose",
                "plain",
            ],
        );
        assert_eq!(
            mask.text("abcdef sk-0123456789ab tok-en-1 hunter2 me:pass99@host /home/me/notes plain"),
            "•••••• •••••• •••••• •••••• me:••••••@host /home/me/notes plain"
        );
    }

    #[test]
    fn placeholders_may_be_shown() {
        let mut config = ServerConfig::new("x", "x", ["--token", "${secret:t}", "--key=${input:k}"]);
        config.program_mut().unwrap().env.insert("TOKEN".into(), "Bearer ${secret:token}".into());
        assert!(secrets_in(&config).is_empty());
    }

    #[test]
    fn what_is_learnt_is_hidden_however_it_is_written() {
        let mask = mask(&[], &[]);
        let clone = mask.clone();
        mask.learn(&ServerConfig::new("x", "x", ["-"]), &["a\"b/c".into(), "one line\nanother line".into()]);
        assert_eq!(clone.text(r#"a"b/c a\"b/c a%22b%2Fc"#), "•••••• •••••• ••••••");
        assert_eq!(clone.text("log: another line"), "log: ••••••");
    }

    #[test]
    fn a_secret_inside_another_is_hidden_as_a_whole() {
        let mask = mask(&[("A_TOKEN", "abcde"), ("B_TOKEN", "abcdefgh")], &[]);
        assert_eq!(mask.value(json!({"k": ["abcdefgh"]})), json!({"k": ["••••••"]}));
    }
}
