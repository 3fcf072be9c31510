//! The subcommands that every executable of Lectern has, because Lectern starts itself with them.
//!
//! Invariant: looked at before anything else; nothing of the app is set up in these processes.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use lectern_local::WorkerCommand;

use crate::problem::chain;

/// Runs the model's worker process; hidden.
pub const LOCAL_WORKER: &str = "__local-worker";

/// Serves a folder of notes over MCP.
pub const VAULT: &str = "vault";

/// Runs the subcommand if `args` (without the executable's name) is one of these; none for everything else.
pub fn dispatch_hidden(args: &[OsString]) -> Option<ExitCode> {
    match args {
        [command, ..] if command == LOCAL_WORKER => Some(lectern_local::worker_main()),
        [command, folder] if command == VAULT && !folder.to_string_lossy().starts_with('-') => {
            Some(serve_vault(Path::new(folder)))
        }
        _ => None,
    }
}

/// How `executable` is started as a model's worker.
pub fn worker_command(executable: &Path) -> WorkerCommand {
    WorkerCommand::new(executable, [LOCAL_WORKER])
}

/// Serves a folder of notes on standard input and output until the input ends.
pub fn serve_vault(folder: &Path) -> ExitCode {
    let served = runtime().map_err(|error| chain(&error)).and_then(|runtime| {
        let served = runtime.block_on(lectern_vault::serve_stdio(folder, Default::default()));
        // A read from standard input may still be under way.
        runtime.shutdown_background();
        served.map_err(|error| chain(&error))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // Standard output belongs to the protocol.
            let _ = writeln!(std::io::stderr(), "error: serve {}: {reason}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
