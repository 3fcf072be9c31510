//! What a person asks to download: a repository of Hugging Face, or the address of a file.
//!
//! Invariant: pure. Nothing is asked of the network here.

use url::Url;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A repository of the hub.
    Repository {
        /// `owner/name`.
        repository: String,
        /// Branch, tag or commit.
        revision: String,
        /// Which of its files.
        wanted: Wanted,
    },
    /// A file anywhere.
    Address(Url),
}

/// Which file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The one that suits.
    Any,
    /// The one of this quantisation, e.g. `Q4_K_M`.
    Quantisation(String),
    /// This path in the repository.
    File(String),
}

/// Why a text names nothing that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is neither a repository nor an address.
    #[error("`{0}` is neither a repository (owner/name) nor an address (https://…)")]
    Unknown(String),
    /// It is an address of the hub, but not of a model or a file.
    #[error("`{0}` is no address of a repository or a file on Hugging Face")]
    NotAModel(String),
    /// It has a user or a password in it.
    #[error("the address has a user name or a password in it, which would be kept in clear")]
    Password,
    /// It does not begin with `http`.
    #[error("`{0}:` addresses can't be downloaded, only https: and http:")]
    Scheme(String),
}

/// Hosts that are the hub, or stand for it.
const HUBS: [&str; 3] = ["huggingface.co", "www.huggingface.co", "hf.co"];
const MAIN: &str = "main";

impl Target {
    /// Reads what a person typed or pasted. Addresses of the hub, and of the mirror at `hub`, are its repositories.
    pub fn parse(text: &str, hub: &Url) -> Result<Self, TargetError> {
        let text = text.trim();
        let unknown = || TargetError::Unknown(text.chars().take(200).collect());
        if let Some(rest) = text.strip_prefix("hf://") {
            return in_repository(rest, text);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let url = Url::parse(text).map_err(|_| unknown())?;
            if !matches!(url.scheme(), "http" | "https") {
                return Err(TargetError::Scheme(scheme.to_owned()));
            }
            return Self::of_address(url, hub);
        }
        let host = text.split('/').next().unwrap_or_default();
        if HUBS.contains(&host.to_ascii_lowercase().as_str()) {
            return in_repository(&text[host.len()..], text);
        }
        let (path, wanted) = with_quantisation(text);
        let (path, revision) = path.split_once('@').unwrap_or((path, MAIN));
        let repository = repository(path).ok_or_else(unknown)?;
        Ok(Self::Repository { repository, revision: revision.to_owned(), wanted })
    }

    fn of_address(url: Url, hub: &Url) -> Result<Self, TargetError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Password);
        }
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let at_hub = url.origin() == hub.origin();
        if !at_hub && !HUBS.contains(&host.as_str()) {
            return Ok(Self::Address(url));
        }
        let path = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
        let base = hub.path().trim_end_matches('/');
        match path.strip_prefix(base) {
            Some(rest) if at_hub => in_repository(rest, url.as_str()),
            Some(_) | None if at_hub => Ok(Self::Address(url)),
            Some(_) | None => in_repository(&path, url.as_str()),
        }
    }
}

/// `/owner/name[:quantisation]`, `/owner/name/(tree|blob|resolve)/revision/path`.
fn in_repository(path: &str, whole: &str) -> Result<Target, TargetError> {
    let not_a_model = || TargetError::NotAModel(whole.chars().take(200).collect());
    let path = path.trim_matches('/');
    let mut segments = path.splitn(4, '/');
    let (owner, name) = (segments.next().unwrap_or_default(), segments.next().ok_or_else(not_a_model)?);
    let (name, mut wanted) = with_quantisation(name);
    let repository = repository(&format!("{owner}/{name}")).ok_or_else(not_a_model)?;
    let mut revision = MAIN.to_owned();
    match (segments.next(), segments.next()) {
        (None, _) => {}
        (Some("tree"), rest) => {
            revision = rest.and_then(|rest| rest.split('/').next()).unwrap_or(MAIN).to_owned();
        }
        (Some("blob" | "resolve" | "raw"), Some(rest)) => {
            let (at, file) = rest.split_once('/').ok_or_else(not_a_model)?;
            revision = at.to_owned();
            wanted = Wanted::File(file.to_owned());
        }
        (Some(_), _) => return Err(not_a_model()),
    }
    if !is_revision(&revision) {
        return Err(not_a_model());
    }
    Ok(Target::Repository { repository, revision, wanted })
}

fn with_quantisation(text: &str) -> (&str, Wanted) {
    match text.rsplit_once(':') {
        Some((path, "latest")) => (path, Wanted::Any),
        Some((path, quantisation)) if !quantisation.is_empty() && !quantisation.contains('/') => {
            (path, Wanted::Quantisation(quantisation.to_owned()))
        }
        Some(_) | None => (text, Wanted::Any),
    }
}

/// Two names of letters, digits, `-`, `_` and `.`, as the hub allows them.
fn repository(path: &str) -> Option<String> {
    let (owner, name) = path.split_once('/')?;
    let reserved = ["datasets", "spaces", "models", "docs", "api", "blog", "collections", "papers"];
    let allowed = |part: &str| {
        (1..=96).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !part.starts_with(['.', '-'])
    };
    (allowed(owner) && allowed(name) && !reserved.contains(&owner)).then(|| path.to_owned())
}

fn is_revision(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && !text.contains("..") && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Url {
        Url::parse("https://huggingface.co").unwrap()
    }

    fn repository(revision: &str, wanted: Wanted) -> Target {
        Target::Repository { repository: "Qwen/Qwen3-4B-GGUF".into(), revision: revision.into(), wanted }
    }

    #[test]
    fn repositories_are_read_in_all_their_forms() {
        let quantisation = || Wanted::Quantisation("Q4_K_M".into());
        let file = || Wanted::File("sub/x y.gguf".into());
        for (text, target) in [
            ("Qwen/Qwen3-4B-GGUF", repository("main", Wanted::Any)),
            (" Qwen/Qwen3-4B-GGUF:latest ", repository("main", Wanted::Any)),
            ("Qwen/Qwen3-4B-GGUF:Q4_K_M", repository("main", quantisation())),
            ("Qwen/Qwen3-4B-GGUF@v2", repository("v2", Wanted::Any)),
            ("hf.co/Qwen/Qwen3-4B-GGUF:Q4_K_M", repository("main", quantisation())),
            ("huggingface.co/Qwen/Qwen3-4B-GGUF", repository("main", Wanted::Any)),
            ("https://huggingface.co/Qwen/Qwen3-4B-GGUF/", repository("main", Wanted::Any)),
            ("https://huggingface.co/Qwen/Qwen3-4B-GGUF/tree/dev", repository("dev", Wanted::Any)),
            (
                "https://huggingface.co/Qwen/Qwen3-4B-GGUF/blob/main/sub/x%20y.gguf",
                repository("main", file()),
            ),
            (
                "https://hf.co/Qwen/Qwen3-4B-GGUF/resolve/abc/sub/x%20y.gguf?download=true",
                repository("abc", file()),
            ),
        ] {
            assert_eq!(Target::parse(text, &hub()), Ok(target), "{text}");
        }
    }

    #[test]
    fn a_mirror_is_the_hub_too_and_other_addresses_are_files() {
        let mirror = Url::parse("http://127.0.0.1:8080/hf/").unwrap();
        let given = "http://127.0.0.1:8080/hf/Qwen/Qwen3-4B-GGUF/resolve/main/a.gguf";
        assert_eq!(Target::parse(given, &mirror), Ok(repository("main", Wanted::File("a.gguf".into()))));
        let elsewhere = "https://models.example/a.gguf?sig=1";
        assert_eq!(Target::parse(elsewhere, &hub()), Ok(Target::Address(Url::parse(elsewhere).unwrap())));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in [
            "",
            "qwen",
            "a/b/c",
            "ftp://x/y.gguf",
            "https://u:p@x.example/y.gguf",
            "../x",
            "a b/c",
            "https://huggingface.co/datasets/a/b",
            "https://huggingface.co/Qwen",
            "https://huggingface.co/",
        ] {
            assert!(Target::parse(text, &hub()).is_err(), "{text}");
        }
    }
}
