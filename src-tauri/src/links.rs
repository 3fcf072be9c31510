//! Which links leave the window, and which the window itself may follow.
//!
//! Invariant: only the web and mail leave; the page never navigates away from Lectern's own.

use lectern_app::view::Problem;
use url::Url;

/// The link, if it is one that the user's browser or mail program may be given.
pub fn openable(text: &str) -> Result<Url, Problem> {
    let refused = |reason: &str| {
        Problem::new("link_refused", format!("{reason}: {}", shortened(text)))
            .hint("Only http, https and mailto links are opened. Copy it if you trust it.")
    };
    let url = Url::parse(text.trim()).map_err(|_| refused("this is no whole link"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        "mailto" => Ok(url),
        _ => Err(refused("this kind of link isn't opened")),
    }
}

/// Whether the page may go there: only to Lectern's own page. In development, that is Vite's server.
pub fn navigable(url: &Url, development: Option<&Url>) -> bool {
    let own = match url.scheme() {
        // Linux and macOS.
        "tauri" => url.host_str() == Some("localhost"),
        // Windows.
        "http" | "https" => url.host_str() == Some("tauri.localhost") && url.port().is_none(),
        _ => false,
    };
    own || development.is_some_and(|page| page.origin() == url.origin())
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_and_mail_are_opened() {
        for link in [
            "https://example.org/a?b#c",
            "http://127.0.0.1:8080/",
            "mailto:ada@example.org",
            " HTTPS://EXAMPLE.ORG ",
        ] {
            assert!(openable(link).is_ok(), "{link}");
        }
    }

    #[test]
    fn nothing_else_is() {
        let links = [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,<script>",
            "note:///Home.md",
            "smb://host/share",
            "ssh://host",
            "vscode://file/x",
            "tauri://localhost/",
            "/etc/passwd",
            "example.org",
            "--help",
            "http://",
            "https:",
            "",
        ];
        for link in links {
            assert_eq!(openable(link).unwrap_err().code, "link_refused", "{link}");
        }
    }

    #[test]
    fn a_long_link_is_named_shortly() {
        let problem = openable(&format!("file:///{}", "ä".repeat(5000))).unwrap_err();
        assert!(problem.message.chars().count() < 150);
    }

    #[test]
    fn the_page_stays_at_home() {
        let may = |url: &str| navigable(&Url::parse(url).unwrap(), None);
        assert!(may("tauri://localhost"));
        assert!(may("tauri://localhost/#/settings/models"));
        assert!(may("http://tauri.localhost/index.html"));
        for url in [
            "https://example.org/",
            "http://localhost:5173/",
            "http://tauri.localhost:8080/",
            "http://tauri.localhost.example.org/",
            "tauri://evil/",
            "file:///etc/passwd",
            "about:blank",
            "data:text/html,x",
            "blob:tauri://localhost/1",
        ] {
            assert!(!may(url), "{url}");
        }
    }

    #[test]
    fn in_development_the_page_comes_from_one_server() {
        let server = Url::parse("http://localhost:5173").unwrap();
        assert!(navigable(&Url::parse("http://localhost:5173/x").unwrap(), Some(&server)));
        assert!(!navigable(&Url::parse("http://localhost:5174/x").unwrap(), Some(&server)));
    }
}
