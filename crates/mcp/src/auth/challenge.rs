//! What a refusal asks for: the `WWW-Authenticate` header (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728,
//! section 5.1).
//!
//! Invariant: what can't be read asks for nothing.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use url::Url;

/// A server's wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the server describes itself.
    pub(super) metadata: Option<Url>,
    /// The rights that the request needs.
    pub(super) scopes: Option<Vec<String>>,
    /// The kind of the refusal, e.g. `insufficient_scope`.
    pub(super) error: Option<String>,
}

impl Challenge {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for header in headers.get_all(WWW_AUTHENTICATE) {
            let Ok(text) = header.to_str() else { continue };
            for challenge in http_auth::parser::ChallengeParser::new(text).map_while(Result::ok) {
                if !challenge.scheme.eq_ignore_ascii_case("bearer") {
                    continue;
                }
                for (name, value) in challenge.params {
                    let value = value.to_unescaped();
                    match name.to_ascii_lowercase().as_str() {
                        "resource_metadata" => found.metadata = Url::parse(&value).ok(),
                        "scope" => found.scopes = Some(words(&value)).filter(|scopes| !scopes.is_empty()),
                        "error" => found.error = Some(value),
                        _ => {}
                    }
                }
            }
        }
        found
    }
}

/// Whether a refusal says that the token lacks rights.
pub(crate) fn lacks_rights(headers: &HeaderMap) -> bool {
    Challenge::read(headers).error.as_deref() == Some("insufficient_scope")
}

/// The words of a list of scopes.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Challenge {
        Challenge::read(&HeaderMap::from_iter([(WWW_AUTHENTICATE, text.parse().unwrap())]))
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let challenge = read(
            r#"Basic realm="x", bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/m", Foo"#,
        );
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(challenge.scopes, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(challenge.metadata.unwrap().as_str(), "https://h/m");
        assert_eq!(read("Bearer"), Challenge::default());
        assert_eq!(read("Bearer scope=\"\", resource_metadata=\"/relative\""), Challenge::default());
        assert_eq!(read("nonsense==\"").scopes, None);
    }
}
