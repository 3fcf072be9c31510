//! Hides a server's secrets in everything that is logged, shown or stored.
//!
//! Invariant: what looks like a secret in a server's configuration never leaves this crate in clear, except to the
//! server itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::{ServerConfig, Transport};

const MASKED: &str = "••••••";
/// Shorter values would hide half of an ordinary text.
const SHORTEST: usize = 5;

/// The secrets of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    /// The longest first, so that a secret that contains another is hidden as a whole.
    secrets: Vec<String>,
}

impl Mask {
    /// Finds what looks like a secret in a configuration.
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let mut secrets: Vec<String> = match &config.transport {
            Transport::Stdio(program) => {
                secrets_in_args(&program.args).into_iter().chain(named_secrets(&program.env)).collect()
            }
            Transport::Http(endpoint) => secrets_in_args(std::slice::from_ref(&endpoint.url))
                .into_iter()
                .chain(named_secrets(&endpoint.headers))
                .collect(),
        };
        secrets.retain(|secret| secret.len() >= SHORTEST);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// The text without secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.secrets {
            if out.contains(secret.as_str()) {
                out = out.replace(secret.as_str(), MASKED);
            }
        }
        out
    }

    /// The value without secrets, names of fields included.
    pub(crate) fn value(&self, value: Value) -> Value {
        if self.secrets.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(fields) => {
                let masked = fields.into_iter().map(|(name, field)| (self.text(&name), self.value(field)));
                Value::Object(masked.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

fn named_secrets(named: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    named.iter().filter(|(name, value)| names_a_secret(name) || looks_secret(value)).map(|(_, v)| v.clone())
}

/// Values of flags such as `--api-key X` and `--token=X`, and passwords in addresses.
fn secrets_in_args(args: &[String]) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut previous_names_one = false;
    for arg in args {
        if previous_names_one && !arg.starts_with('-') {
            secrets.push(arg.clone());
        }
        previous_names_one = arg.starts_with('-') && !arg.contains('=') && names_a_secret(arg);
        match arg.split_once('=') {
            Some((flag, value)) if names_a_secret(flag) || looks_secret(value) => {
                secrets.push(value.to_owned())
            }
            _ if looks_secret(arg) => secrets.push(arg.clone()),
            _ => {}
        }
        secrets.extend(password_in_url(arg));
    }
    secrets
}

fn names_a_secret(name: &str) -> bool {
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
    Some(password.to_owned())
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
    fn a_secret_inside_another_is_hidden_as_a_whole() {
        let mask = mask(&[("A_TOKEN", "abcde"), ("B_TOKEN", "abcdefgh")], &[]);
        assert_eq!(mask.value(json!({"k": ["abcdefgh"]})), json!({"k": ["••••••"]}));
    }
}
