//! Finds secrets that stand in clear in a configuration, and takes them out.
//!
//! Invariant: what is taken out leaves a placeholder that gives the same value when the server is started.

use crate::config::{ServerConfig, Transport};
use crate::mask;
use crate::placeholder::is_secret_reference;

/// A secret that stands in clear.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Where it stands: a variable, a header, a flag.
    pub place: String,
    /// What it is called in the keyring, as in `${secret:NAME}`.
    pub name: String,
    /// The secret itself.
    pub value: String,
}

impl std::fmt::Debug for FoundSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoundSecret").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The secrets that stand in clear in a configuration.
pub fn found_secrets(config: &ServerConfig) -> Vec<FoundSecret> {
    without_secrets(config).1
}

/// The configuration with a placeholder for each secret, and the secrets.
pub fn without_secrets(config: &ServerConfig) -> (ServerConfig, Vec<FoundSecret>) {
    let mut config = config.clone();
    let mut taken = Taken { server: config.id.0.clone(), found: Vec::new() };
    match &mut config.transport {
        Transport::Stdio(program) => {
            for (name, value) in &mut program.env {
                taken.named(name, value);
            }
            taken.args(&mut program.args);
        }
        Transport::Http(endpoint) => {
            for (name, value) in &mut endpoint.headers {
                taken.named(name, value);
            }
            if let Some(secret) = endpoint.sign_in.client_secret.as_mut().filter(|s| !is_secret_reference(s))
            {
                let value = secret.clone();
                taken.out_of(secret, "client-secret", &value);
            }
            for secret in mask::secrets_in_url(&endpoint.url) {
                taken.out_of(&mut endpoint.url, "url", &secret);
            }
        }
    }
    (config, taken.found)
}

struct Taken {
    server: String,
    found: Vec<FoundSecret>,
}

impl Taken {
    fn named(&mut self, name: &str, value: &mut String) {
        if !mask::is_secret(name, value) {
            return;
        }
        // `Bearer` may be shown; the token may not.
        let secret = match value.split_once(' ') {
            Some((scheme, token)) if is_scheme(scheme) => token.trim().to_owned(),
            Some(_) | None => value.clone(),
        };
        self.out_of(value, name, &secret);
    }

    fn args(&mut self, args: &mut [String]) {
        for place in 0..args.len() {
            let previous = place.checked_sub(1).map(|previous| args[previous].clone());
            let name = match args[place].split_once('=') {
                Some((flag, _)) if flag.starts_with('-') => flag.to_owned(),
                _ => previous.clone().filter(|flag| flag.starts_with('-')).unwrap_or("argument".into()),
            };
            for secret in mask::secrets_in_arg(previous.as_deref(), &args[place]) {
                self.out_of(&mut args[place], name.trim_start_matches('-'), &secret);
            }
        }
    }

    fn out_of(&mut self, text: &mut String, place: &str, secret: &str) {
        if secret.is_empty() || !text.contains(secret) {
            return;
        }
        let known = self.found.iter().find(|found| found.value == secret).map(|found| found.name.clone());
        let name = known.unwrap_or_else(|| {
            let name = self.free(place);
            let (place, value) = (place.to_owned(), secret.to_owned());
            self.found.push(FoundSecret { place, name: name.clone(), value });
            name
        });
        *text = text.replace(secret, &format!("${{secret:{name}}}"));
    }

    fn free(&self, place: &str) -> String {
        let stem = format!("{}/{}", self.server, place.replace(['{', '}', '$'], "_"));
        let numbered = (2..).map(|n| format!("{stem}-{n}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        names.find(|name| !self.found.iter().any(|found| found.name == *name)).unwrap_or(stem)
    }
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token", "apikey"].contains(&word.to_ascii_lowercase().as_str())
}
