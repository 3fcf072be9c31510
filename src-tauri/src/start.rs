//! What happens before there is a window: arguments, hidden subcommands, the log, rendering.
//!
//! Invariant: a hidden subcommand never touches the display.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Set to anything, this keeps WebKit's DMABUF renderer, which Lectern turns off by default.
const KEEP_DMABUF: &str = "LECTERN_DMABUF";

/// Ask your notes in a window, with a model that runs on this computer.
#[derive(Debug, Parser)]
#[command(name = "lectern-desktop", version)]
pub struct Start {
    /// Where conversations, settings and models are kept [default: the platform's data folder]
    #[arg(long, value_name = "DIR", env = "LECTERN_HOME", hide_env_values = true)]
    pub home: Option<PathBuf>,
}

/// Runs the hidden subcommand that the engine starts this executable with, or reads the arguments.
/// The error is the exit code of a process that is done.
pub fn read(args: impl Iterator<Item = OsString>) -> Result<Start, ExitCode> {
    let args: Vec<OsString> = args.collect();
    if let Some(code) = lectern_app::entry::dispatch_hidden(args.get(1..).unwrap_or_default()) {
        return Err(code);
    }
    log_to_stderr();
    Start::try_parse_from(args).map_err(|error| {
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// WebKitGTK's DMABUF renderer draws blank windows on some NVIDIA and Wayland systems.
pub fn mend_rendering() {
    #[cfg(target_os = "linux")]
    if std::env::var_os("WEBKIT_DISABLE_DMABUF_RENDERER").is_none() && std::env::var_os(KEEP_DMABUF).is_none()
    {
        // SAFETY: the process has no other thread yet.
        unsafe { std::env::set_var("WEBKIT_DISABLE_DMABUF_RENDERER", "1") };
    }
}

/// Says on stderr why there is no window.
pub fn complain(message: &str) {
    eprintln!("lectern-desktop: {message}");
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LECTERN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_the_only_argument() {
        let parse = |args: &[&str]| Start::try_parse_from([&["lectern-desktop"], args].concat());
        assert_eq!(parse(&["--home", "/h"]).unwrap().home, Some("/h".into()));
        assert!(parse(&["notes"]).is_err());
        assert!(parse(&["--home"]).is_err());
    }
}
