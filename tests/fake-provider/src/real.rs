//! llama.cpp's own server, with a model of the test's.
//!
//! Invariant: nothing of ours is on the other side. It comes as a wheel of PyPI, which `make test` installs into
//! `target/tools/llama-server`; where that could not be had, there is none, and it is said loudly.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running server. It ends with this value.
pub struct LlamaServer {
    child: Child,
    url: String,
}

impl LlamaServer {
    /// Serves a model file under this name; none where the server is not installed.
    pub fn start(model: &Path, name: &str) -> Option<Self> {
        let python = python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../servers/llama_server.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(model)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let server = Self { child, url: first.trim().to_owned() };
        assert!(server.url.starts_with("http://127.0.0.1:"), "llama.cpp's server did not start: {first:?}");
        Some(server)
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    // `<target>/<profile>/deps/<test>`
    let python = test.ancestors().nth(3)?.join("tools/llama-server/bin/python");
    if !python.exists() {
        eprintln!("\n!!! SKIPPED: {} is not installed; `make test` installs it\n", python.display());
        return None;
    }
    Some(python)
}
