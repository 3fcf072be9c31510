//! Secrets in a real keyring: gnome-keyring-daemon on a session bus of its own.

use serde_json::{Value, json};

use crate::lectern::Lectern;
use crate::session::Session;

const SECRET: &str = "correct-horse-battery";

/// A server that writes down what it was given, says it aloud, and ends.
fn telltale(lectern: &Lectern) -> std::path::PathBuf {
    let told = lectern.home().join("told");
    let script =
        format!("printf %s \"$GIVEN\" > '{}'; echo \"I was given $GIVEN\" >&2; exit 3", told.display());
    let added = lectern.run(["mcp", "add", "tell", "--secret", "GIVEN=word", "--", "sh", "-c", &script]);
    assert_eq!(added.code, Some(0), "{added:?}");
    told
}

/// Everything below the home, as one text.
fn whole_home(lectern: &Lectern, except: &std::path::Path) -> String {
    let mut text = String::new();
    let mut folders = vec![lectern.home().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != except {
                text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
            }
        }
    }
    text
}

#[test]
fn a_secret_reaches_its_server_and_nobody_else() {
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let told = telltale(&lectern);
    let set = session.run(&lectern, &format!("{SECRET}\n"), &["mcp", "secret", "set", "word"]);
    assert_eq!(set.code, Some(0), "{set:?}");
    let listed = session.run(&lectern, "", &["mcp", "secret", "list", "--json"]);
    let values: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(values["values"][0]["set"], true);
    let started = session.run(&lectern, "", &["mcp", "restart", "tell", "--json"]);
    assert_eq!(std::fs::read_to_string(&told).unwrap(), SECRET, "{started:?}");
    assert!(started.out.contains("I was given ••••••"), "{started:?}");
    for text in [&started.out, &started.err, &set.out, &listed.out, &whole_home(&lectern, &told)] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(session.run(&lectern, "", &["mcp", "secret", "remove", "word"]).code, Some(0));
    let failed = session.run(&lectern, "", &["mcp", "restart", "tell", "--json"]);
    assert!(failed.out.contains("the secret `word` has no value"), "{failed:?}");
    assert!(failed.out.contains("server_missing_value"), "{failed:?}");
}

#[test]
fn secrets_of_an_import_move_into_the_keyring_and_go_with_their_server() {
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let text = json!({"servers": {"gh": {"command": "gh-mcp", "args": ["--api-key", SECRET],
        "env": {"TOKEN": "${input:token}", "PASSWORD": format!("{SECRET}-2")}}},
        "inputs": [{"id": "token", "type": "promptString", "password": true}]});
    let file = lectern.write("mcp.json", &text.to_string());
    let args = [
        "mcp",
        "import",
        file.to_str().unwrap(),
        "--yes",
        "--secrets-to-keyring",
        "--input",
        "token=of-the-input",
    ];
    let imported = session.run(&lectern, "", &args);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let kept = std::fs::read_to_string(lectern.home().join("settings.json")).unwrap();
    assert!(!kept.contains(SECRET) && !kept.contains("of-the-input"), "{kept}");
    assert!(kept.contains("${secret:gh/PASSWORD}") && kept.contains("${secret:gh/api-key}"), "{kept}");
    let set = |name: &str| {
        let listed = session.run(&lectern, "", &["mcp", "secret", "list", "--json"]);
        let values: Value = serde_json::from_str(&listed.out).unwrap();
        let values = values["values"].as_array().unwrap().clone();
        values.into_iter().find(|value| value["name"] == name).map(|value| value["set"] == true)
    };
    assert_eq!(set("gh/PASSWORD"), Some(true));
    assert_eq!(set("token"), Some(true));
    assert_eq!(session.run(&lectern, "", &["mcp", "remove", "gh"]).code, Some(0));
    // The same server once more, its secrets by reference: they are gone.
    let again =
        json!({"mcpServers": {"gh": {"command": "gh-mcp", "env": {"PASSWORD": "${secret:gh/PASSWORD}"}}}});
    session.run(&lectern, &again.to_string(), &["mcp", "import", "-", "--yes"]);
    assert_eq!(set("gh/PASSWORD"), Some(false));
}

#[test]
fn a_locked_keyring_is_said() {
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let told = telltale(&lectern);
    assert_eq!(session.run(&lectern, SECRET, &["mcp", "secret", "set", "word"]).code, Some(0));
    session.lock();
    let set = session.run(&lectern, "other", &["mcp", "secret", "set", "word"]);
    assert_eq!(set.code, Some(1), "{set:?}");
    assert!(set.err.contains("the keyring is locked") && set.err.contains("Unlock"), "{set:?}");
    let failed = session.run(&lectern, "", &["mcp", "restart", "tell", "--json"]);
    assert!(failed.out.contains("server_keyring_locked"), "{failed:?}");
    assert!(!told.exists(), "it was started without its secret");
}

#[test]
fn without_a_keyring_the_environment_helps_out() {
    let (lectern, session) = (Lectern::new(), Session::without_keyring());
    let told = telltale(&lectern);
    let set = session.run(&lectern, SECRET, &["mcp", "secret", "set", "word"]);
    assert_eq!(set.code, Some(1), "{set:?}");
    assert!(set.err.contains("no keyring"), "{set:?}");
    assert!(set.err.contains("LECTERN_SECRET_WORD"), "{set:?}");
    let failed = session.run(&lectern, "", &["mcp", "restart", "tell", "--json"]);
    assert!(failed.out.contains("server_no_keyring"), "{failed:?}");
    let helped =
        lectern.run_within(&[("LECTERN_SECRET_WORD", SECRET)], "", &["mcp", "restart", "tell", "--json"]);
    assert_eq!(std::fs::read_to_string(&told).unwrap(), SECRET, "{helped:?}");
    assert!(!helped.out.contains(SECRET) && !whole_home(&lectern, &told).contains(SECRET), "{helped:?}");
}
