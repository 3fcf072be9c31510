//! Child processes and the environment: the one place of this crate where they enter.
//!
//! Invariant: every child leads its own process group, gets an allow-listed environment, and is gone with its whole
//! group when its [`Process`] is closed or dropped, or when the app is killed (on Linux the child itself at once, by
//! the system; the rest of the group by the [reaper](crate::reaper)).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

use crate::status::Exit;

/// Stands around the PATH in the login shell's output.
pub(crate) const LOGIN_MARK: &str = "__lectern_path__";

/// How long a login shell that was not waited for may go on.
const LOGIN_SHELL_LEAVES: Duration = Duration::from_secs(90);

/// How long a server may take to end by itself, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1_200);

/// What every server gets of the app's environment. Nothing else: an API key in the shell that started the app is no
/// business of a server.
const PASSED_ON: [&str; 37] = [
    "HOME",
    "LOGNAME",
    "USER",
    "PATH",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "TEMP",
    "TMP",
    "PATHEXT",
];

/// What to start.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
}

/// The ends of a child's pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A child and its group.
pub(crate) struct Process {
    child: Child,
    group: Option<Group>,
}

impl Process {
    /// Starts a child.
    pub(crate) async fn start(launch: Launch) -> std::io::Result<(Self, Pipes)> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(launch.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        let mut child = spawn(command).await?;
        let group = Group::led_by(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("the child has no pipes"));
        };
        Ok((Self { child, group }, Pipes { stdin, stdout, stderr }))
    }

    /// The process id while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the child to end by itself.
    pub(crate) async fn ended(&mut self) -> Exit {
        self.child.wait().await.map_or(Exit::Unknown, exit_of)
    }

    /// Ends the whole group: its input is already closed, then SIGTERM, then SIGKILL.
    pub(crate) async fn close(mut self) -> Exit {
        let mut exit = tokio::time::timeout(GRACE, self.ended()).await.ok();
        if let Some(group) = self.group.take() {
            if group.is_alive() {
                group.terminate();
                exit = exit.or(tokio::time::timeout(GRACE, self.ended()).await.ok());
                group.wait_gone(if exit.is_some() { GRACE / 2 } else { Duration::ZERO }).await;
            }
            group.kill();
        }
        // Without groups there is only the child itself; it may be gone already.
        let _ = self.child.start_kill();
        match exit {
            Some(exit) => exit,
            None => self.ended().await,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            group.kill();
        }
    }
}

/// The environment of a server: what is passed on, the PATH on which its command was found, then its own variables.
pub(crate) fn environment<'a>(
    path: Option<&OsStr>,
    own: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| PASSED_ON.contains(&name) || name.starts_with("LC_"))
        })
        // A shell function in a variable is code.
        .filter(|(_, value)| !value.to_string_lossy().starts_with("()"))
        .collect();
    let own = own.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    for (name, value) in path.map(|path| ("PATH".into(), path.to_owned())).into_iter().chain(own) {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    env
}

/// A variable of the app's own environment.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// What the user's login shell prints when it is asked for its PATH.
pub(crate) async fn login_shell_output(shell: &OsStr, limit: Duration) -> Option<Vec<u8>> {
    if !Path::new(shell).is_absolute() {
        return None;
    }
    let launch = Launch {
        program: shell.into(),
        args: vec![
            "-l".into(),
            "-i".into(),
            "-c".into(),
            format!("printf '{LOGIN_MARK}%s{LOGIN_MARK}' \"$PATH\""),
        ],
        env: environment(None, []),
        cwd: None,
    };
    let (mut process, pipes) = Process::start(launch).await.ok()?;
    drop(pipes.stdin);
    // An interactive shell without a terminal complains, and would end at a closed pipe.
    let mut stderr = pipes.stderr;
    let drained = tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await });
    let mut output = Vec::new();
    let mut stdout = tokio::io::AsyncReadExt::take(pipes.stdout, 1 << 20);
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stdout, &mut output);
    // What was printed until then counts, even if a background job of the shell keeps the pipe open.
    let _ = tokio::time::timeout(limit, read).await;
    // Not killed at once: a start-up file that holds a lock just now (pyenv does) would leave it behind for ever.
    tokio::spawn(async move {
        let _ = tokio::time::timeout(LOGIN_SHELL_LEAVES, process.ended()).await;
        drop(process);
        drained.abort();
    });
    Some(output)
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that start children. Each start waits until the child runs its own program; with one thread a hundred
/// servers would wait for each other.
const SPAWNERS: usize = 4;

/// Starts children on threads that live as long as the app: Linux sends the parent-death signal when the *thread* that
/// started the child ends, and threads of a runtime come and go.
async fn spawn(mut command: Command) -> std::io::Result<Child> {
    static QUEUE: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    set_group(&mut command);
    let spawner = QUEUE.get_or_init(start_spawners);
    let runtime = tokio::runtime::Handle::current();
    let (answer, spawned) = oneshot::channel();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        let _ = answer.send(command.spawn());
    });
    let gone = || std::io::Error::other("the thread that starts processes is gone");
    spawner.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
    spawned.await.map_err(|_| gone())?
}

/// Their queue; none when not a single thread could be had.
fn start_spawners() -> Option<mpsc::Sender<Job>> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));
    let one = |_| {
        let jobs = Arc::clone(&jobs);
        // Whoever holds the lock waits for the next job, the others for the lock.
        let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        let run = move || std::iter::from_fn(next).for_each(|job| job());
        std::thread::Builder::new().name("mcp-spawner".into()).spawn(run).ok()
    };
    (0..SPAWNERS).filter_map(one).count().gt(&0).then_some(sender)
}

#[cfg(unix)]
fn set_group(command: &mut Command) {
    let app = std::process::id();
    // A session of its own makes a group of its own and has no terminal, so that no child (an interactive shell,
    // a `git` that asks for a password) takes the one of the app.
    // SAFETY: between fork and exec only async-signal-safe functions are called, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            if libc::setsid() == -1 {
                return Err(std::io::Error::last_os_error());
            }
            end_with_parent(app)
        });
    }
}

#[cfg(not(unix))]
fn set_group(_: &mut Command) {}

#[cfg(target_os = "linux")]
fn end_with_parent(app: u32) -> std::io::Result<()> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(std::io::Error::last_os_error());
        }
        // The app may have ended before the call above.
        if libc::getppid().cast_unsigned() != app {
            return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn end_with_parent(_: u32) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

#[cfg(not(unix))]
fn exit_of(status: std::process::ExitStatus) -> Exit {
    status.code().map_or(Exit::Unknown, Exit::Code)
}

/// A process group; on Windows a job object, which ends all that is in it when its last handle is closed, also by the
/// end of the app.
struct Group {
    #[cfg(unix)]
    id: libc::pid_t,
    #[cfg(windows)]
    _job: win32job::Job,
}

#[cfg(windows)]
impl Group {
    fn led_by(child: &Child) -> Option<Self> {
        let mut limits = win32job::ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = win32job::Job::create_with_limit_info(&limits);
        // What the child starts before it is in the job is not; it has had no time to start anything.
        let joined = job.and_then(|job| {
            job.assign_process(child.raw_handle().map_or(0, |handle| handle as isize))?;
            Ok(job)
        });
        match joined {
            Ok(job) => Some(Self { _job: job }),
            Err(error) => {
                tracing::warn!(%error, "no job object for a server");
                None
            }
        }
    }

    /// There is nothing between asking (the end of its input) and ending.
    fn is_alive(&self) -> bool {
        false
    }

    fn terminate(&self) {}

    /// Dropping the job ends what is in it.
    fn kill(self) {}

    async fn wait_gone(&self, _: Duration) {}
}

#[cfg(unix)]
impl Group {
    fn led_by(child: &Child) -> Option<Self> {
        // 0 and 1 would mean our own group and everybody's.
        let id = libc::pid_t::try_from(child.id()?).ok().filter(|id| *id > 1)?;
        crate::reaper::watch(id);
        Some(Self { id })
    }

    fn signal(&self, signal: libc::c_int) -> bool {
        // SAFETY: a plain system call without pointers.
        unsafe { libc::killpg(self.id, signal) == 0 }
    }

    /// Whether any process of the group is left, the child itself or what it started.
    fn is_alive(&self) -> bool {
        self.signal(0)
    }

    fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// Ends what is left, for good.
    fn kill(self) {
        self.signal(libc::SIGKILL);
        crate::reaper::forget(self.id);
    }

    /// Waits until no process of the group is left, at most for `limit`.
    async fn wait_gone(&self, limit: Duration) {
        let poll = Duration::from_millis(20);
        let mut waited = Duration::ZERO;
        while waited < limit && self.is_alive() {
            tokio::time::sleep(poll).await;
            waited += poll;
        }
    }
}

#[cfg(not(any(unix, windows)))]
impl Group {
    fn led_by(_: &Child) -> Option<Self> {
        None
    }
    fn is_alive(&self) -> bool {
        false
    }
    fn terminate(&self) {}
    fn kill(self) {}
    async fn wait_gone(&self, _: Duration) {}
}
