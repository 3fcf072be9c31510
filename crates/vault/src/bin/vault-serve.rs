//! Serves a folder of notes over stdio; what `lectern vault DIR` does, for the tests of this crate
//! and for hosts that want the notes server alone.
//! Invariant: stdout carries only the protocol.

use std::path::PathBuf;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: serve DIR");
        return ExitCode::from(2);
    };
    match lectern_vault::serve_stdio(&folder, lectern_vault::ServeOptions::default()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
