//! Ends what is left of the servers when the app itself was killed.
//!
//! A killed app can end nobody, and what a server started (`npx` its `node`) need not notice. A small shell waits at
//! the end of a pipe that only the app holds; when the pipe ends, it ends the process groups that it was told of.
//!
//! Invariant: it never ends a group that the app has already taken care of, and a system without `/bin/sh` only loses
//! this net, nothing else.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r order group; do
  left=
  for known in $groups; do
    [ "$known" = "$group" ] || left="$left $known"
  done
  groups=$left
  [ "$order" = watch ] && groups="$groups $group"
done
for group in $groups; do kill -s TERM -- "-$group"; done
[ -n "$groups" ] && sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

enum Reaper {
    NotStarted,
    Runs(ChildStdin),
    Missing,
}

static REAPER: Mutex<Reaper> = Mutex::new(Reaper::NotStarted);

/// Tells of a group that must not outlive the app.
pub(crate) fn watch(group: i32) {
    tell("watch", group);
}

/// Tells that a group is gone; its number may be somebody else's soon.
pub(crate) fn forget(group: i32) {
    tell("forget", group);
}

fn tell(order: &str, group: i32) {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*reaper, Reaper::NotStarted) {
        *reaper = start().map_or(Reaper::Missing, Reaper::Runs);
    }
    if let Reaper::Runs(pipe) = &mut *reaper
        && let Err(error) = writeln!(pipe, "{order} {group}")
    {
        tracing::warn!(%error, "the reaper of processes is gone");
        *reaper = Reaper::Missing;
    }
}

fn start() -> Option<ChildStdin> {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "lectern-reaper"]).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    // A group of its own: what is typed at the app's terminal is not for it.
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    match shell.spawn() {
        Ok(mut child) => child.stdin.take(),
        Err(error) => {
            tracing::warn!(%error, "no reaper of processes");
            None
        }
    }
}
