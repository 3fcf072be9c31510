//! Who may ask the local API from elsewhere: web pages by their origin, and names of this computer.
//!
//! Invariant: pure; no name is looked up. What is taken allows exactly what it reads as: no entry stands for several.

use url::{Host, Url};

use crate::view::{ApiCallers, Problem};

/// Entries of each list. More were written by no person.
const MOST: usize = 100;

/// Both lists as they are kept: each entry once, in its usual form. The error names the entry that can't be read.
pub fn checked(callers: &ApiCallers) -> Result<ApiCallers, Problem> {
    if callers.origins.len() > MOST || callers.hosts.len() > MOST {
        return Err(Problem::new("too_many_entries", format!("a list can have {MOST} entries")));
    }
    let origins = callers.origins.iter().map(|text| Ok(origin(text)?.origin().ascii_serialization()));
    let hosts = callers.hosts.iter().map(|text| host(text));
    Ok(ApiCallers { origins: once(origins)?, hosts: once(hosts)? })
}

/// The origin of a web page as it is typed. What follows the port is passed over: all pages of an origin are one.
pub fn origin(text: &str) -> Result<Url, Problem> {
    let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    url.filter(|url| url.host_str().is_some_and(is_plain)).ok_or_else(|| {
        Problem::new("bad_origin", format!("`{text}` is not the origin of a web page"))
            .hint("Name it as in https://app.example.org or http://localhost:3000.")
    })
}

/// A name of this computer as it is typed, as it comes with a request: in lower case, other scripts in their ASCII form.
pub fn host(text: &str) -> Result<String, Problem> {
    let name = text.trim().trim_end_matches('.');
    let bad = || {
        Problem::new("bad_host", format!("`{text}` is not a name of this computer"))
            .hint("Name it as in desk.lan, without a scheme and a port. Addresses need no entry.")
    };
    // What a URL holds beside its host is no part of a name.
    if name.contains(['/', '\\', ':', '@', '?', '#', '%']) || name.chars().any(char::is_whitespace) {
        return Err(bad());
    }
    let url = Url::parse(&format!("http://{name}/")).map_err(|_| bad())?;
    match url.host() {
        Some(Host::Domain(name)) if is_plain(name) => Ok(name.to_owned()),
        _ => Err(bad()),
    }
}

/// No `*` or other sign that somebody may take for a pattern.
fn is_plain(host: &str) -> bool {
    let address = host.starts_with('[');
    address || host.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_'))
}

fn once(entries: impl Iterator<Item = Result<String, Problem>>) -> Result<Vec<String>, Problem> {
    let mut out = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !out.contains(&entry) {
            out.push(entry);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_they_are_typed() {
        for (typed, kept) in [
            (" https://App.Example.org/ ", "https://app.example.org"),
            ("https://app.example.org:443/chat?x#y", "https://app.example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:8", "http://[::1]:8"),
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(origin(typed).unwrap().origin().ascii_serialization(), kept, "{typed}");
        }
        for none in [
            "",
            "*",
            "null",
            "localhost:3000",
            "app.example.org",
            "https://",
            "https://*.example.org",
            "file:///etc/passwd",
            "ws://app.example.org",
            "chrome-extension://abcdef",
            "https://me@app.example.org",
        ] {
            let problem = origin(none).unwrap_err();
            assert_eq!(problem.code, "bad_origin", "{none}");
            assert!(problem.message.contains(&format!("`{none}`")), "{problem}");
        }
    }

    #[test]
    fn names_of_this_computer_are_names_alone() {
        for (typed, kept) in [
            ("Desk.LAN.", "desk.lan"),
            (" desk ", "desk"),
            ("my_desk.local", "my_desk.local"),
            ("b\u{fc}ro.lan", "xn--bro-hoa.lan"),
        ] {
            assert_eq!(host(typed).unwrap(), kept, "{typed}");
        }
        for none in [
            "",
            ".",
            "*",
            "*.lan",
            "http://desk.lan",
            "desk.lan:80",
            "desk.lan/",
            "a@desk.lan",
            "a b",
            "192.168.0.2",
            "[::1]",
            "::1",
            "desk.lan?",
            "%41",
        ] {
            let problem = host(none).unwrap_err();
            assert_eq!(problem.code, "bad_host", "{none}");
            assert!(problem.message.contains(&format!("`{none}`")), "{problem}");
        }
    }

    #[test]
    fn each_entry_is_kept_once_and_a_wrong_one_is_named() {
        let lists = |origins: &[&str], hosts: &[&str]| ApiCallers {
            origins: origins.iter().map(|&text| text.to_owned()).collect(),
            hosts: hosts.iter().map(|&text| text.to_owned()).collect(),
        };
        let kept = checked(&lists(&["http://a:80", "http://A/", "http://b"], &["desk", "DESK."])).unwrap();
        assert_eq!(kept, lists(&["http://a", "http://b"], &["desk"]));
        let problem = checked(&lists(&["http://a"], &["desk", "*.lan"])).unwrap_err();
        assert!(problem.message.contains("`*.lan`"), "{problem}");
        let many: Vec<String> = (0..=MOST).map(|n| format!("http://h{n}")).collect();
        let problem = checked(&ApiCallers { origins: many, hosts: Vec::new() }).unwrap_err();
        assert_eq!(problem.code, "too_many_entries");
    }
}
