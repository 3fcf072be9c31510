//! Where the tests of a host find the misbehaving server, and how they lead it over HTTP.
//!
//! The server itself is the binary `fixture-server`; see its `--help`.

mod remote;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use remote::Remote;

/// The binary, built if need be, beside the test that asks for it.
///
/// # Panics
/// When it can't be built; the test could not go on.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of the test");
        // `<target>/<profile>/deps/<test>`
        let profile = test.ancestors().nth(2).expect("a profile's folder");
        let target = profile.parent().expect("a target folder");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--package", "lectern-fixture-server", "--target-dir"]).arg(target);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().is_ok_and(|status| status.success()), "building fixture-server failed");
        profile.join(format!("fixture-server{}", std::env::consts::EXE_SUFFIX))
    })
}
