//! Addresses of providers: what a person typed, how far away it is, whether a secret may be sent there.
//!
//! Invariant: pure; no name is looked up. An address that holds a secret itself is refused, because addresses are shown.

use lectern_cloud::transport::host_of;
use lectern_core::nearness::Nearness;
use url::Url;

use crate::view::{Problem, Reach};

/// Reads an address. `localhost:11434` is meant as `http://localhost:11434`.
pub fn read(text: &str) -> Result<Url, Problem> {
    let text = text.trim();
    let bad = |why: &str| {
        Problem::new("bad_address", format!("the address {why}"))
            .hint("Give an address like http://localhost:11434/v1 or https://models.example.org/v1.")
    };
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&full).map_err(|_| bad("can't be read"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("does not begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("holds a name or a password; keys are entered apart from it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad(
            "goes on after `?` or `#`, where keys are often written; they are entered apart from it",
        ));
    }
    Ok(url)
}

/// How far away an address is.
pub fn reach(url: &Url) -> Reach {
    match url.host_str().map(Nearness::of_host) {
        Some(Nearness::ThisComputer | Nearness::Unspecified) => Reach::ThisComputer,
        Some(Nearness::Link | Nearness::Private) => Reach::PrivateNetwork,
        Some(Nearness::Public) | None => Reach::Internet,
    }
}

/// A secret is sent over TLS, or no further than the user's own network.
pub fn fit_for_secrets(url: &Url) -> Result<(), Problem> {
    if url.scheme() == "https" || reach(url) != Reach::Internet {
        return Ok(());
    }
    Err(Problem::new(
        "secret_in_clear",
        format!("the secret would go to {} unencrypted, so it is not sent", host_of(url)),
    )
    .hint("Use an address that begins with https://."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_near_or_far() {
        let reach = |text: &str| reach(&read(text).unwrap());
        for text in [
            "localhost:11434",
            "http://127.0.0.1:1/v1",
            "http://[::1]:8080",
            "http://a.localhost",
            "0.0.0.0:1",
        ] {
            assert_eq!(reach(text), Reach::ThisComputer, "{text}");
        }
        let near = [
            "http://192.168.1.4",
            "10.1.2.3:80",
            "http://nas",
            "http://nas.local",
            "http://[fd00::1]",
            "100.70.1.1",
        ];
        for text in near {
            assert_eq!(reach(text), Reach::PrivateNetwork, "{text}");
        }
        let far = [
            "https://api.openai.com/v1",
            "http://8.8.8.8",
            "http://localhost.evil.com",
            "http://100.128.0.1",
            "http://[::ffff:8.8.8.8]",
            "http://local.example",
        ];
        for text in far {
            assert_eq!(reach(text), Reach::Internet, "{text}");
        }
    }

    #[test]
    fn secrets_go_over_tls_or_stay_near() {
        for (text, fits) in [
            ("https://api.example.org", true),
            ("http://127.0.0.1:1", true),
            ("http://192.168.0.2", true),
            ("http://api.example.org", false),
            ("http://localhost.example.org", false),
        ] {
            assert_eq!(fit_for_secrets(&read(text).unwrap()).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_or_holds_a_secret_is_refused() {
        for text in
            ["", "ftp://h", "http://", "https://u:geheim@h", "https://h/v1?key=geheim", "file:///etc/passwd"]
        {
            let problem = read(text).unwrap_err();
            assert!(!problem.message.contains("geheim"), "{problem}");
        }
    }
}
