//! Secrets in a real keyring: gnome-keyring-daemon on a session bus of its own.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lectern::{Lectern, Ran};

const SECRET: &str = "correct-horse-battery";

/// A session with a bus, and a keyring unless it is left out.
struct Session {
    folder: TempDir,
    address: String,
    running: Vec<Child>,
}

impl Session {
    fn without_keyring() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["run", "data", "config", "cache"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder.path().join("run"), private).unwrap();
        // A bus that starts nothing by itself: no keyring but ours, and nobody who asks for passwords.
        let config = folder.path().join("bus.conf");
        let socket = folder.path().join("run").join("bus");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><policy context=\"default\">\
             <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            socket.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut bus = Command::new("dbus-daemon");
        bus.arg("--nofork").arg("--print-address=1").arg("--config-file").arg(config);
        let mut bus =
            bus.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("dbus-daemon is installed");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { folder, address: address.trim().to_owned(), running: vec![bus] }
    }

    fn with_keyring() -> Self {
        let mut session = Self::without_keyring();
        let mut keyring = Command::new("gnome-keyring-daemon");
        keyring.args(["--foreground", "--unlock", "--components=secrets"]).envs(session.env());
        keyring.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut keyring = keyring.spawn().expect("gnome-keyring-daemon is installed");
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        session.running.push(keyring);
        session.wait_for_keyring();
        session
    }

    /// Whoever starts it does not tell when it is there.
    fn wait_for_keyring(&self) {
        let begin = Instant::now();
        while !self.calls(
            "org.freedesktop.DBus",
            "/",
            "org.freedesktop.DBus.GetNameOwner",
            "org.freedesktop.secrets",
        ) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the keyring did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn lock(&self) {
        let collection = "['/org/freedesktop/secrets/collection/login']";
        let locked = self.calls(
            "org.freedesktop.secrets",
            "/org/freedesktop/secrets",
            "org.freedesktop.Secret.Service.Lock",
            collection,
        );
        assert!(locked, "the keyring was not locked");
    }

    fn calls(&self, destination: &str, path: &str, method: &str, argument: &str) -> bool {
        let mut call = Command::new("gdbus");
        call.args([
            "call",
            "--session",
            "--dest",
            destination,
            "--object-path",
            path,
            "--method",
            method,
            argument,
        ]);
        call.envs(self.env()).stdout(Stdio::null()).stderr(Stdio::null());
        call.status().expect("gdbus is installed").success()
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        let folder = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            ("DBUS_SESSION_BUS_ADDRESS", self.address.clone()),
            ("XDG_RUNTIME_DIR", folder("run")),
            ("XDG_DATA_HOME", folder("data")),
            ("XDG_CONFIG_HOME", folder("config")),
            ("XDG_CACHE_HOME", folder("cache")),
            ("LECTERN_KEYRING", "on".to_owned()),
        ]
    }

    fn run(&self, lectern: &Lectern, stdin: &str, args: &[&str]) -> Ran {
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        lectern.run_within(&env, stdin, args)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in self.running.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

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
    let failed = session.run(&lectern, "", &["mcp", "restart", "tell", "--json"]);
    assert!(failed.out.contains("server_no_keyring"), "{failed:?}");
    let helped =
        lectern.run_within(&[("LECTERN_SECRET_WORD", SECRET)], "", &["mcp", "restart", "tell", "--json"]);
    assert_eq!(std::fs::read_to_string(&told).unwrap(), SECRET, "{helped:?}");
    assert!(!helped.out.contains(SECRET) && !whole_home(&lectern, &told).contains(SECRET), "{helped:?}");
}
