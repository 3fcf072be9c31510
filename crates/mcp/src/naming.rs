//! Public names of tools: `server__tool`.
//!
//! Invariant: at most 64 characters of `[A-Za-z0-9_-]`; two tools never share a name; a name depends on nothing but
//! the server's id and that server's own tools, so that it survives restarts and no other server can take it over.

use sha2::{Digest, Sha256};

const LONGEST: usize = 64;
const LONGEST_SERVER: usize = 32;
const HASH: usize = 8;

/// The public names of a server's tools, in the same order. `tools` are different from each other.
pub(crate) fn public_names(server: &str, tools: &[String]) -> Vec<String> {
    let prefix = server_part(server);
    let room = LONGEST - prefix.len() - 2;
    let plain: Vec<String> = tools.iter().map(|tool| legal(tool)).collect();
    tools
        .iter()
        .zip(&plain)
        .map(|(tool, name)| {
            let taken = name != tool && plain.iter().filter(|other| *other == name).count() > 1;
            let part = if taken || name.is_empty() || name.len() > room {
                hashed(name, tool, room)
            } else {
                name.clone()
            };
            format!("{prefix}__{part}")
        })
        .collect()
}

/// The server's id as it stands in names, and in names of files.
///
/// Without `__` inside and without `_` at its end the first `__` of a public name ends the server; every id that had
/// to be changed carries a hash. So the names of two servers never meet.
pub fn server_part(server: &str) -> String {
    let name = legal(server);
    let unclear =
        name.contains("__") || name.ends_with('_') || name.is_empty() || name.len() > LONGEST_SERVER;
    if name == server && !unclear {
        return name;
    }
    let mut short = name;
    while short.contains("__") {
        short = short.replace("__", "_");
    }
    hashed(short.trim_matches('_'), server, LONGEST_SERVER)
}

fn legal(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// As much of `name` as there is room for, and a hash of what it stands for.
fn hashed(name: &str, original: &str, room: usize) -> String {
    let digest = Sha256::digest(original.as_bytes());
    let hash: String = digest.iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(room - HASH - 1).collect();
    let kept = kept.trim_end_matches('_');
    if kept.is_empty() { hash } else { format!("{kept}_{hash}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn names(server: &str, tools: &[&str]) -> Vec<String> {
        public_names(server, &tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(names("notes", &["read_note", "get-sum"]), ["notes__read_note", "notes__get-sum"]);
        assert_eq!(names("fs", &["my.tool"]), ["fs__my_tool"]);
    }

    #[test]
    fn all_names_are_legal_and_different() {
        let long = "x".repeat(200);
        let servers = ["a", "a_", "a__b", "a b", "a.b", "a_b", "Ä", "日本", "", "_", &long, &long[..100]];
        let tools =
            ["c", "_c", "b__c", "b c", "b.c", "b_c", "", ".", "ö", &long, &long[..150], "x_y", "日本"];
        let mut seen = HashSet::new();
        for server in servers {
            for name in names(server, &tools) {
                assert!(name.len() <= 64 && name.len() > 2, "{name}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{name}");
                assert!(seen.insert(name.clone()), "{name} twice");
            }
        }
        assert_eq!(seen.len(), servers.len() * tools.len());
    }

    #[test]
    fn a_plain_name_wins_over_one_that_had_to_be_changed() {
        let both = names("s", &["a.b", "a_b"]);
        assert_eq!(both[1], "s__a_b");
        assert!(both[0].starts_with("s__a_b_"), "{both:?}");
    }
}
