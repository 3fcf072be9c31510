//! Finds a server's executable.
//!
//! An app started from a desktop has a bare PATH and knows nothing of nvm, uv or homebrew. When a command is not on
//! it, the login shell is asked once for the user's own PATH.
//!
//! Invariant: looking up starts no server, and a login shell that hangs costs five seconds once, nothing else.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::process;

static LOGIN_PATH: OnceCell<Option<OsString>> = OnceCell::const_new();

/// An executable and the PATH on which it was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) program: PathBuf,
    pub(crate) path: Option<OsString>,
}

/// Why there is none.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("command `{0}` not found")]
    Missing(String),
    #[error("`{0}` may not be executed")]
    NotExecutable(String),
}

/// Finds `command`: a path as it is (relative to `cwd`), a bare name on `path`, then on the login shell's PATH.
pub(crate) async fn find(
    command: &str,
    cwd: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<Found, LookupError> {
    if Path::new(command).components().count() > 1 {
        let program = cwd.map_or_else(|| PathBuf::from(command), |cwd| cwd.join(command));
        return match runnable(&program) {
            Some(true) => Ok(Found { program, path: path.map(OsStr::to_owned) }),
            Some(false) => Err(LookupError::NotExecutable(command.to_owned())),
            None => Err(LookupError::Missing(command.to_owned())),
        };
    }
    if let Some(program) = path.and_then(|path| on_path(command, path)) {
        return Ok(Found { program, path: path.map(OsStr::to_owned) });
    }
    let login = login_path_once().await;
    match login.and_then(|path| on_path(command, path)) {
        // A script such as `npx` needs its interpreter from the same PATH.
        Some(program) => Ok(Found { program, path: login.map(OsStr::to_owned) }),
        None => Err(LookupError::Missing(command.to_owned())),
    }
}

/// The PATH of the login shell, asked for once.
pub(crate) async fn login_path_once() -> Option<&'static OsStr> {
    LOGIN_PATH.get_or_init(login_path).await.as_deref()
}

fn on_path(command: &str, path: &OsStr) -> Option<PathBuf> {
    if command.is_empty() {
        return None;
    }
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .flat_map(|dir| names(command).into_iter().map(move |name| dir.join(name)))
        .find(|program| runnable(program) == Some(true))
}

/// The names of files that a command may stand for.
#[cfg(unix)]
fn names(command: &str) -> Vec<String> {
    vec![command.to_owned()]
}

/// The names of files that a command may stand for.
#[cfg(not(unix))]
fn names(command: &str) -> Vec<String> {
    let endings = process::variable("PATHEXT").and_then(|endings| endings.into_string().ok());
    with_endings(command, endings.as_deref())
}

/// A command with the endings of PATHEXT. Without one only if it has one itself: beside `npx.cmd` lies a script `npx` that
/// Windows can't run.
#[cfg(any(test, not(unix)))]
fn with_endings(command: &str, endings: Option<&str>) -> Vec<String> {
    // What std can run: it gives `.cmd` and `.bat` to `cmd.exe`, with each argument quoted for it.
    const RUN: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
    let endings = endings.unwrap_or(".COM;.EXE;.BAT;.CMD").to_ascii_lowercase();
    let endings: Vec<&str> = endings.split(';').filter(|ending| RUN.contains(ending)).collect();
    let lower = command.to_ascii_lowercase();
    if endings.iter().any(|ending| lower.ends_with(ending)) {
        return vec![command.to_owned()];
    }
    endings.iter().map(|ending| format!("{command}{ending}")).collect()
}

/// Whether a file can be run; none when it is not there.
fn runnable(program: &Path) -> Option<bool> {
    let metadata = std::fs::metadata(program).ok()?;
    Some(metadata.is_file() && may_execute(&metadata))
}

#[cfg(unix)]
fn may_execute(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn may_execute(_: &std::fs::Metadata) -> bool {
    true
}

/// The PATH that the user's login shell sets, if it can be had.
async fn login_path() -> Option<OsString> {
    let shell = process::variable("SHELL")?;
    let output = process::login_shell_output(&shell, Duration::from_secs(5)).await?;
    path_in(&output)
}

/// What stands between the marks; the shell's start-up files may print as well.
#[cfg(unix)]
fn path_in(output: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let mark = process::LOGIN_MARK.as_bytes();
    let find = |from: usize| output[from..].windows(mark.len()).position(|w| w == mark).map(|at| from + at);
    let start = find(0)? + mark.len();
    let end = find(start)?;
    let path = output[start..end].trim_ascii().to_vec();
    (!path.is_empty()).then(|| OsString::from_vec(path))
}

#[cfg(not(unix))]
fn path_in(_: &[u8]) -> Option<OsString> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    #[tokio::test]
    async fn names_are_looked_up_and_paths_are_taken_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let program = script(dir.path(), "serve", 0o755);
        script(dir.path(), "data", 0o644);
        let path = dir.path().as_os_str();
        let found = |program: &Path| Ok(Found { program: program.to_owned(), path: Some(path.to_owned()) });

        assert_eq!(find("serve", None, Some(path)).await, found(&program));
        assert_eq!(find("./serve", Some(dir.path()), Some(path)).await, found(&dir.path().join("./serve")));
        assert_eq!(
            find("./data", Some(dir.path()), Some(path)).await,
            Err(LookupError::NotExecutable("./data".into()))
        );
        assert_eq!(
            find("no-such-command-here", None, Some(path)).await,
            Err(LookupError::Missing("no-such-command-here".into()))
        );
    }

    #[test]
    fn the_path_is_found_among_what_a_shell_prints() {
        let mark = process::LOGIN_MARK;
        let output = format!("Welcome!\n{mark}/a:/b{mark}\nbye");
        assert_eq!(path_in(output.as_bytes()), Some("/a:/b".into()));
        assert_eq!(path_in(b"Welcome!"), None);
    }

    #[test]
    fn on_windows_a_command_stands_for_what_can_be_run() {
        assert_eq!(
            with_endings("npx", Some(".COM;.EXE;.BAT;.CMD;.VBS")),
            ["npx.com", "npx.exe", "npx.bat", "npx.cmd"]
        );
        assert_eq!(with_endings("npx.CMD", None), ["npx.CMD"]);
        assert_eq!(with_endings("python3.11", Some(".EXE")), ["python3.11.exe"]);
    }
}
