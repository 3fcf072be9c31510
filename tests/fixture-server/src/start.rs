//! How the server starts, greets and lists, in all its modes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Server, tools};

/// How it starts. See the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Ok,
    Legacy,
    LegacyStrict,
    LegacySilent,
    LegacyOld,
    Modern,
    Future,
    NeverAnswers,
    Deaf,
    EarlyExit,
    ListHangs,
    ListRefused,
    BadTool,
    ManyPages,
    EndlessPages,
    Chatter,
    SlowModern,
    SlowLegacy,
    Stubborn,
    IgnoresEof,
    Npx,
    TwoForks,
}

impl Mode {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ok" => Self::Ok,
            "legacy" => Self::Legacy,
            "legacy-strict" => Self::LegacyStrict,
            "legacy-silent" => Self::LegacySilent,
            "legacy-old" => Self::LegacyOld,
            "modern" => Self::Modern,
            "future" => Self::Future,
            "never-answers" => Self::NeverAnswers,
            "deaf" => Self::Deaf,
            "early-exit" => Self::EarlyExit,
            "list-hangs" => Self::ListHangs,
            "list-refused" => Self::ListRefused,
            "bad-tool" => Self::BadTool,
            "many-pages" => Self::ManyPages,
            "endless-pages" => Self::EndlessPages,
            "chatter" => Self::Chatter,
            "slow-modern" => Self::SlowModern,
            "slow-legacy" => Self::SlowLegacy,
            "stubborn" => Self::Stubborn,
            "ignores-eof" => Self::IgnoresEof,
            "npx" => Self::Npx,
            "two-forks" => Self::TwoForks,
            _ => return None,
        })
    }

    pub fn knows_discover(self) -> bool {
        let old = [
            Self::Legacy,
            Self::LegacyStrict,
            Self::LegacySilent,
            Self::LegacyOld,
            Self::SlowLegacy,
            Self::Future,
            Self::Npx,
        ];
        !old.contains(&self)
    }
}

impl Mode {
    pub fn has_initialize(self) -> bool {
        !matches!(self, Self::Modern | Self::SlowModern)
    }
}

/// What it does before it says a word.
#[expect(clippy::zombie_processes, reason = "a grandchild that nobody looks after is the point")]
pub fn misbehave(mode: Mode, pid_file: Option<&str>) {
    match mode {
        Mode::Deaf => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        Mode::EarlyExit => {
            eprint!("first line\nsecond line\nAPI key missing\n");
            std::process::exit(3);
        }
        Mode::Chatter => {
            let _ = std::io::stdout().write_all(b"Starting server on stdio...\n\n{'not': 'json'}\n");
            let line = "x".repeat(99) + "\n";
            let _ = std::io::stderr().write_all(line.repeat(20_000).as_bytes());
        }
        Mode::SlowModern | Mode::SlowLegacy => std::thread::sleep(Duration::from_secs(2)),
        // The second time, with SIGTERM ignored; the grandchild is there already.
        Mode::IgnoresEof | Mode::Stubborn if std::env::var_os(IGNORES_TERM).is_some() => {}
        Mode::Stubborn => {
            write_pids(pid_file, &[std::process::id()]);
            ignore_sigterm("stubborn");
        }
        Mode::IgnoresEof | Mode::Npx => {
            // The grandchild shares our pipes, as `node` shares those of `npx`, and ignores SIGTERM.
            let child = Command::new("sh").args(["-c", "trap '' TERM; while :; do sleep 1; done"]).spawn();
            let child = child.expect("sh");
            write_pids(pid_file, &[std::process::id(), child.id()]);
            if mode == Mode::IgnoresEof {
                ignore_sigterm("ignores-eof");
            }
        }
        Mode::TwoForks => {
            // The shell between us ends, so that the last process has lost its parent.
            let script = "sh -c 'trap \"\" TERM; echo $$; exec >&- 2>&-; while :; do sleep 1; done' & ";
            let forked = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().expect("sh");
            let orphan = String::from_utf8_lossy(&forked.stdout).trim().parse().expect("an id");
            write_pids(pid_file, &[std::process::id(), orphan]);
        }
        Mode::Ok
        | Mode::Legacy
        | Mode::LegacyStrict
        | Mode::LegacySilent
        | Mode::LegacyOld
        | Mode::Modern
        | Mode::Future
        | Mode::NeverAnswers
        | Mode::ListHangs
        | Mode::ListRefused
        | Mode::BadTool
        | Mode::ManyPages
        | Mode::EndlessPages => write_pids(pid_file, &[std::process::id()]),
    }
}

/// Which starts are bad.
#[derive(Default)]
pub struct Starts {
    pub file: Option<String>,
    pub bad: Option<std::ops::RangeInclusive<usize>>,
}

impl Starts {
    pub fn range(text: &str) -> Option<Option<std::ops::RangeInclusive<usize>>> {
        let (first, last) = text.split_once('-')?;
        Some(Some(first.parse().ok()?..=last.parse().ok()?))
    }

    /// Counts this start, and ends here if it is a bad one.
    pub fn count(&self) {
        let Some(file) = &self.file else { return };
        let mut counted =
            std::fs::OpenOptions::new().create(true).append(true).open(file).expect("starts file");
        counted.write_all(b"started\n").expect("starts file");
        let start = std::fs::read_to_string(file).expect("starts file").lines().count();
        if self.bad.as_ref().is_some_and(|bad| bad.contains(&start)) {
            eprintln!("start {start} is a bad one");
            std::process::exit(4);
        }
    }
}

fn write_pids(file: Option<&str>, pids: &[u32]) {
    if let Some(file) = file {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        std::fs::write(file, pids.join(" ") + " \n").expect("pid file");
    }
}

/// What it does when its input has ended.
pub fn at_end(mode: Mode) {
    if matches!(mode, Mode::IgnoresEof | Mode::Stubborn) {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

/// Set when a shell that ignores SIGTERM has started us.
const IGNORES_TERM: &str = "FIXTURE_IGNORES_TERM";

/// Ignores SIGTERM without a line of unsafe code: a shell that ignores it starts us again, and ignored signals are
/// inherited.
fn ignore_sigterm(mode: &str) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let me = std::env::current_exe().expect("own path");
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' TERM; exec \"$0\" --mode \"$1\""]).arg(me).arg(mode);
        shell.env(IGNORES_TERM, "1").stdin(Stdio::inherit());
        panic!("exec failed: {}", shell.exec());
    }
}

/// Answers everything but calls.
pub fn answer(server: &Server, method: &str, id: &Value, params: &Value) {
    let first = !server.state().initialized;
    match (server.mode, method) {
        (Mode::NeverAnswers, _) | (Mode::ListHangs, "tools/list") => {}
        (Mode::ListRefused, "tools/list") => server.error(id, -32603, "the list is on strike"),
        (Mode::LegacyStrict, method) if first && method != "initialize" => {
            eprintln!("expected initialize, got {method}");
            std::process::exit(1);
        }
        (Mode::LegacySilent, method) if first && method != "initialize" => {}
        (Mode::Modern | Mode::SlowModern, "initialize") => {
            server.error(id, -32601, "there is no initialize any more")
        }
        (mode, "server/discover") if mode.knows_discover() => discover(server, id, params),
        (_, "initialize") => initialize(server, id, params),
        (_, "tools/list") => list(server, id, params),
        (_, "resources/list" | "resources/templates/list" | "prompts/list") => {
            crate::beside::list(server, method, id, params)
        }
        (_, "ping") => server.result(id, json!({})),
        (_, "resources/subscribe") if server.state().news => {
            server.result(id, json!({}));
            tell_updated(server, &params["uri"]);
        }
        (_, "resources/unsubscribe") if server.state().news => server.result(id, json!({})),
        (_, "subscriptions/listen") if params["notifications"]["resourceSubscriptions"].is_array() => {
            let times = {
                let mut state = server.state();
                state.listened += 1;
                state.listened
            };
            tell_updated(server, &params["notifications"]["resourceSubscriptions"][0]);
            match times {
                1 => server.result(id, json!({})),
                2 => server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": id}})),
                _ => {}
            }
        }
        (_, "subscriptions/listen") => server.state().listener = Some(id.clone()),
        _ => server.error(id, -32601, "Method not found"),
    }
}

fn tell_updated(server: &Server, uri: &Value) {
    server.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}),
    );
}

fn capabilities(server: &Server) -> Value {
    let state = server.state();
    let mut all = state.beside.capabilities();
    if state.news {
        all["resources"]["subscribe"] = json!(true);
    }
    all
}

fn discover(server: &Server, id: &Value, params: &Value) {
    let meta = &params["_meta"];
    if meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28"
        || !meta["io.modelcontextprotocol/clientCapabilities"].is_object()
    {
        return server.error(id, -32602, "the context is missing in _meta");
    }
    {
        server.modern.store(true, Ordering::Relaxed);
        server.state().initialized = true;
    }
    server.result(
        id,
        json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities(server),
            "instructions": "Use with care.",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "1.0"}},
        }),
    );
}

fn initialize(server: &Server, id: &Value, params: &Value) {
    let version = match server.mode {
        Mode::Future => json!("2099-01-01"),
        Mode::LegacyOld => json!("2024-11-05"),
        _ => params["protocolVersion"].clone(),
    };
    server.state().initialized = true;
    server.result(
        id,
        json!({
            "protocolVersion": version,
            "capabilities": capabilities(server),
            "serverInfo": {"name": "fixture", "version": "1.0"},
            "instructions": "Use with care.",
        }),
    );
}

fn list(server: &Server, id: &Value, params: &Value) {
    let modern = server.is_modern();
    let (grown, extra, echo, beside, ttl) = {
        let state = server.state();
        (state.grown, state.extra, state.echo.clone(), state.beside, state.ttl)
    };
    if modern && params["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" {
        return server.error(id, -32602, "the context is missing in _meta");
    }
    let mut all = tools::all(grown, extra);
    all.extend(beside.tools());
    if let Some(text) = echo {
        all[0]["description"] = text.into();
    }
    let page = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    match server.mode {
        Mode::BadTool => all.extend(tools::bad()),
        Mode::EndlessPages => return server.result(id, json!({"tools": [all[0]], "nextCursor": "again"})),
        Mode::ManyPages if page + 1 < all.len() => {
            return server.result(id, json!({"tools": [all[page]], "nextCursor": (page + 1).to_string()}));
        }
        Mode::ManyPages => return server.result(id, json!({"tools": [all[page]]})),
        _ => {}
    }
    let mut result = json!({"tools": all});
    if modern {
        result["ttlMs"] = json!(ttl.unwrap_or(0));
        result["cacheScope"] = json!("private");
    }
    server.result(id, result);
}
