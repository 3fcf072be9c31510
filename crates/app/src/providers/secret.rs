//! The secret of a provider: as it is in the keyring, and as it is given by the user or the environment.
//!
//! Invariant: a secret in the keyring belongs to the address that it was given for; elsewhere it is not used. No value is
//! in an error or a `Debug` text.

use lectern_cloud::credentials::google::{self, BadCredentials};
use lectern_cloud::{Credentials, GoogleLogin, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::settings::Login;
use crate::view::Problem;

/// Fields of Google's files that a login needs. The others are not kept.
const FIELDS: [&str; 8] = [
    "type",
    "project_id",
    "private_key_id",
    "private_key",
    "client_email",
    "token_uri",
    "quota_project_id",
    "universe_domain",
];
/// Characters of a key at most; more is no key, but a file that was pasted by mistake.
const LONGEST_KEY: usize = 4_096;

/// What is kept in the keyring.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Secret {
    /// A key.
    Key {
        /// The origin that it was given for.
        #[serde(rename = "for")]
        origin: String,
        /// The key.
        key: String,
    },
    /// The key file of a service account.
    ServiceAccount {
        /// The origin that its tokens are for.
        #[serde(rename = "for")]
        origin: String,
        /// What is needed of the file.
        account: Map<String, Value>,
    },
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key { .. } => "Secret::Key(…)",
            Self::ServiceAccount { .. } => "Secret::ServiceAccount(…)",
        })
    }
}

impl Secret {
    /// A key that the user gave.
    pub(crate) fn of_key(key: &str, origin: &str) -> Result<Self, Problem> {
        let key = key.trim();
        let bad = |why: &str| {
            Problem::new("bad_credentials", format!("the key {why}"))
                .hint("Copy the key once more, and nothing else.")
        };
        if key.is_empty() {
            return Err(bad("is empty"));
        }
        if key.starts_with('{') {
            return Err(bad("is JSON; the file of a service account is entered in another place"));
        }
        if key.len() > LONGEST_KEY || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(bad("has characters that no key has, or too many"));
        }
        Ok(Self::Key { origin: origin.to_owned(), key: key.to_owned() })
    }

    /// The key file of a service account that the user gave: looked at, and reduced to what is needed.
    pub(crate) fn of_service_account(json: &str, origin: &str) -> Result<(Self, Login), Problem> {
        let value = json_of(json)?;
        let about = google::about(&value).map_err(|error| bad_credentials(&error))?;
        if about.kind != "service_account" {
            return Err(Problem::new(
                "bad_credentials",
                "this is the login of a person, not the key of a service account",
            )
            .hint("Such a login is used where it is, as application-default credentials of this computer."));
        }
        GoogleLogin::from_json(&value, Limits::default()).map_err(|error| bad_credentials(&error))?;
        let Value::Object(fields) = value else { return Err(bad_credentials(&BadCredentials::NoObject)) };
        let account = fields.into_iter().filter(|(name, _)| FIELDS.contains(&name.as_str())).collect();
        let login = Login {
            account: about.account,
            project: about.project,
            agreed: None,
            at: lectern_core::clock::now(),
        };
        Ok((Self::ServiceAccount { origin: origin.to_owned(), account }, login))
    }

    /// A secret as the environment gives it: a key, or the JSON of a service account.
    pub(crate) fn of_environment(text: &str) -> Result<Self, Problem> {
        match text.trim_start().starts_with('{') {
            true => Self::of_service_account(text, "").map(|(secret, _)| secret),
            false => Self::of_key(text, ""),
        }
    }

    /// As it is kept.
    pub(crate) fn to_text(&self) -> String {
        // Two texts and a map of JSON: this can't fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As it was kept.
    pub(crate) fn of_text(text: &str) -> Result<Self, Problem> {
        // The error of serde could repeat a piece of the text.
        serde_json::from_str(text).map_err(|_| {
            Problem::new("bad_credentials", "what the keyring holds for this provider can't be read")
                .hint("Sign in again.")
        })
    }

    /// The origin that it was given for.
    pub(crate) fn origin(&self) -> &str {
        match self {
            Self::Key { origin, .. } | Self::ServiceAccount { origin, .. } => origin,
        }
    }

    /// The project that it names.
    pub(crate) fn project(&self) -> Option<String> {
        match self {
            Self::Key { .. } => None,
            Self::ServiceAccount { account, .. } => {
                account.get("project_id").and_then(Value::as_str).map(str::to_owned)
            }
        }
    }

    /// Who we are with it.
    pub(crate) fn credentials(&self) -> Result<Credentials, Problem> {
        match self {
            Self::Key { key, .. } => Ok(Credentials::key(key.clone())),
            Self::ServiceAccount { account, .. } => {
                let account = Value::Object(account.clone());
                let login = GoogleLogin::from_json(&account, Limits::default());
                Ok(Credentials::tokens(login.map_err(|error| bad_credentials(&error))?))
            }
        }
    }
}

/// Reads JSON that a person gave; the error names the place and repeats nothing.
pub(crate) fn json_of(text: &str) -> Result<Value, Problem> {
    let text = text.trim().trim_start_matches('\u{feff}');
    serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let message = match text.is_empty() {
            true => "there are no credentials: the text is empty".to_owned(),
            false => format!("the credentials are no JSON ({place})"),
        };
        Problem::new("bad_credentials", message)
            .hint("Give the whole JSON file that the Google Cloud console made for the key.")
    })
}

/// Why credentials can't be used.
pub(crate) fn bad_credentials(error: &BadCredentials) -> Problem {
    Problem::from_error("bad_credentials", error)
        .hint("Give the whole JSON file that the Google Cloud console made for the key.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_named_and_not_repeated() {
        for (text, why) in [("", "empty"), ("{\"a\": \"geheim\"}", "JSON"), ("geheim geheim", "characters")] {
            let problem = Secret::of_key(text, "o").unwrap_err();
            assert!(problem.message.contains(why) && !problem.message.contains("geheim"), "{problem}");
        }
        assert_eq!(
            Secret::of_key(" k \n", "o").unwrap(),
            Secret::Key { origin: "o".into(), key: "k".into() }
        );
    }

    #[test]
    fn what_is_no_service_account_is_named_and_not_repeated() {
        let person = r#"{"type": "authorized_user", "client_id": "c", "client_secret": "geheim", "refresh_token": "geheim"}"#;
        let key = r#"{"type": "service_account", "client_email": "e", "private_key": "geheim"}"#;
        for (text, why) in [
            ("", "empty"),
            ("{\"type\": \"service_account\", geheim}", "line 1"),
            ("[\"geheim\"]", "no JSON object"),
            ("{\"type\": \"service_account\"}", "client_email"),
            (key, "private key can't be read"),
            (person, "login of a person"),
        ] {
            let problem = Secret::of_service_account(text, "o").unwrap_err();
            assert!(problem.message.contains(why), "{text}: {problem}");
            assert!(!format!("{problem:?}").contains("geheim"), "{problem:?}");
        }
    }

    #[test]
    fn a_secret_comes_back_from_its_text_and_prints_nothing() {
        let secret = Secret::of_key("geheim", "https://h").unwrap();
        assert_eq!(Secret::of_text(&secret.to_text()).unwrap(), secret);
        assert!(!format!("{secret:?}").contains("geheim"));
        assert!(!format!("{:?}", Secret::of_text("{\"kind\": \"geheim\"}").unwrap_err()).contains("geheim"));
    }
}
