//! System tests: a real window, real servers, the real starter model.
//!
//! Invariant: every test has its own home, its own display and its own session bus, and leaves nothing running.

mod display;
pub mod drag;
pub mod mirror;
pub mod process;
pub mod window;

use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository is there")
}

/// An executable of this workspace, beside the test that runs.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} is not built; run `make test`, or `cargo build --workspace` first",
        path.display()
    );
    path
}

/// Where screenshots and logs go, for people to look at.
pub fn results() -> PathBuf {
    let folder = root().join("test-results");
    std::fs::create_dir_all(&folder).expect("test-results can be made");
    folder
}
