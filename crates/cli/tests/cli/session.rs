//! A session bus of a test's own, with a real gnome-keyring-daemon or without.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::lectern::{Lectern, Ran};

/// A session with a bus, and a keyring unless it is left out.
pub struct Session {
    folder: TempDir,
    address: String,
    running: Vec<Child>,
}

impl Session {
    pub fn without_keyring() -> Self {
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

    pub fn with_keyring() -> Self {
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

    pub fn lock(&self) {
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

    pub fn env(&self) -> Vec<(&'static str, String)> {
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

    pub fn run(&self, lectern: &Lectern, stdin: &str, args: &[&str]) -> Ran {
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
