//! An MCP server over stdio or HTTP that misbehaves on demand.
//!
//! Written by hand, line by line, without any MCP library: it has to do what no library would let it do.

mod beside;
mod http;
mod start;
mod tools;

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::Http;
use crate::start::{Mode, Starts};

const HELP: &str = "fixture-server [--mode MODE] [--tools N] [--pid-file PATH] [--echo-file PATH: description of `echo`]
               [--resources N|never] [--news] [--ttl MS]
               [--starts-file PATH [--bad-starts FIRST-LAST]]
               [--http ADDRESS:PORT [--port-file PATH] [--json] [--no-sessions]]

With --http it serves streamable HTTP at /mcp and prints its address; port 0 is any free one. A test tells it what to do
wrong with `POST /fault {\"fault\": KIND, \"on\": METHOD, \"times\": N, \"to\": …}`, lets it forget its sessions with
`POST /forget`, and sees what was asked at `GET /seen`. Kinds: silence reset stall-stream stall-json drip endless
cut-stream cut-json html-502 html-200 plain-type no-type empty-200 accepted wrong-id no-id-400 redirect status
status-then-stall garbage.

With --news it tells of a resource as soon as somebody subscribes; the first who listens (2026-07-28) is then sent away
with an end, the second with a cancellation.
With --ttl its list of tools holds for so long (2026-07-28), and it tells nobody when it changes.
With --resources it has N resources, two a page, and one prompt; with `never` it declares them and never lists them.

With a starts file, each start adds a line to it; those from FIRST to LAST, counted from 1, end at once with code 4.

How it starts:
  ok             both eras, no mischief (the default)
  legacy         knows `initialize` only; answers anything else before with an error
  legacy-strict  ends itself when anything but `initialize` comes first
  legacy-silent  ignores what it does not know
  legacy-old     as legacy, answers with protocol 2024-11-05
  modern         knows 2026-07-28 only
  future         answers with a protocol of the year 2099
  never-answers  reads, and never says a word
  deaf           does not even read
  early-exit     writes three lines to stderr and exits with code 3
  list-hangs     never answers tools/list
  list-refused   answers tools/list with an error
  bad-tool       has bad tools among good ones
  many-pages     lists one tool a page
  endless-pages  lists the same page for ever
  chatter        prints banners to stdout and a megabyte to stderr before it starts
  slow-modern    as modern, after two seconds
  slow-legacy    as legacy, after two seconds
  stubborn       ignores EOF and SIGTERM
  ignores-eof    with a grandchild, both ignore EOF and SIGTERM; their ids go to the pid file
  two-forks      its grandchild is nobody's child any more and ignores SIGTERM
  npx            a wrapper that ends at EOF while its grandchild stays
Tools, in every mode: echo add fail slow storm wait die huge torn bytes deep hollow env ask log media big cites broken-promise
structured-only input task grow rewrite rpc-error cancelled; with --resources: publish (one more) listed (how often)";

/// Where answers go.
pub trait Outlet: Write + Send {
    /// Whether somebody still listens.
    fn is_heard(&mut self) -> bool;
    /// Nothing more will be said; false when the connection is of no use any more.
    fn finish(&mut self) -> bool;
}

impl Outlet for std::io::Stdout {
    fn is_heard(&mut self) -> bool {
        true
    }

    fn finish(&mut self) -> bool {
        true
    }
}

/// The server as one request sees it; over stdio all requests see the same.
pub struct Server {
    mode: Mode,
    out: Mutex<Box<dyn Outlet>>,
    state: Arc<Mutex<State>>,
    modern: AtomicBool,
    over_http: bool,
}

/// What all threads of the server share.
#[derive(Default)]
pub struct State {
    /// Requests that were cancelled.
    cancelled: Vec<Value>,
    /// Replies of the host to what we asked it.
    answers: Vec<Value>,
    /// Whether `grow` was called.
    grown: bool,
    /// The request that listens for changes, in the modern era.
    listener: Option<Value>,
    initialized: bool,
    /// Another description of `echo`.
    echo: Option<String>,
    /// How long its list of tools holds, in milliseconds.
    ttl: Option<u64>,
    /// Whether it tells of resources that change.
    news: bool,
    /// Times that somebody listened for news of resources.
    listened: usize,
    /// More tools, for tests of size.
    extra: usize,
    /// What there is beside the tools.
    beside: beside::Beside,
}

impl Server {
    fn over_stdio(mode: Mode, state: State) -> Self {
        let out: Box<dyn Outlet> = Box::new(std::io::stdout());
        let state = Arc::new(Mutex::new(state));
        Self { mode, out: Mutex::new(out), state, modern: AtomicBool::new(false), over_http: false }
    }

    fn over_http(mode: Mode, state: Arc<Mutex<State>>, modern: bool) -> Self {
        let out: Box<dyn Outlet> = Box::new(std::io::stdout());
        Self { mode, out: Mutex::new(out), state, modern: AtomicBool::new(modern), over_http: true }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self) -> MutexGuard<'_, Box<dyn Outlet>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers_to(&self, out: Box<dyn Outlet>) {
        *self.out() = out;
    }

    fn finish(&self) -> bool {
        self.out().finish()
    }

    fn is_modern(&self) -> bool {
        self.modern.load(Ordering::Relaxed)
    }

    /// Writes one message.
    fn send(&self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Writes bytes that may be no message at all.
    fn raw(&self, bytes: &[u8]) {
        let mut out = self.out();
        // A host that is gone reads no more.
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() && !self.over_http {
            std::process::exit(0);
        }
    }

    fn result(&self, id: &Value, result: Value) {
        let mut result = result;
        if self.is_modern() && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }
}

fn main() {
    let mut mode = Mode::Ok;
    let mut state = State::default();
    let mut pid_file = None;
    let mut starts = Starts::default();
    let mut http = Http { address: String::new(), port_file: None, json: false, sessions: true };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage(&format!("{flag} needs a value")));
        match flag.as_str() {
            "--mode" => {
                let name = value();
                mode = Mode::named(&name).unwrap_or_else(|| usage(&format!("no mode {name}")));
            }
            "--tools" => state.extra = value().parse().unwrap_or_else(|_| usage("--tools needs a number")),
            "--resources" => {
                state.beside =
                    beside::Beside::of(&value()).unwrap_or_else(|| usage("--resources needs a number"))
            }
            "--news" => state.news = true,
            "--ttl" => state.ttl = Some(value().parse().unwrap_or_else(|_| usage("--ttl needs a number"))),
            // A file that is missing changes nothing.
            "--echo-file" => state.echo = std::fs::read_to_string(value()).ok(),
            "--pid-file" => pid_file = Some(value()),
            "--http" => http.address = value(),
            "--port-file" => http.port_file = Some(value()),
            "--json" => http.json = true,
            "--no-sessions" => http.sessions = false,
            "--starts-file" => starts.file = Some(value()),
            "--bad-starts" => {
                starts.bad = Starts::range(&value()).unwrap_or_else(|| usage("--bad-starts needs A-B"))
            }
            _ => usage(&format!("no flag {flag}")),
        }
    }
    starts.count();
    start::misbehave(mode, pid_file.as_deref());
    if !http.address.is_empty() {
        http::serve(http, mode, state);
    }
    let server = Arc::new(Server::over_stdio(mode, state));
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        receive(&server, message);
    }
    start::at_end(mode);
}

fn usage(problem: &str) -> ! {
    eprintln!("{problem}\n{HELP}");
    std::process::exit(2)
}

fn receive(server: &Arc<Server>, message: Value) {
    let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
        server.state().answers.push(message);
        return;
    };
    match (method.as_str(), message.get("id").cloned()) {
        ("notifications/cancelled", None) => {
            let request = message["params"]["requestId"].clone();
            server.state().cancelled.push(request);
        }
        (_, None) => {}
        ("tools/call", Some(id)) => {
            let server = Arc::clone(server);
            std::thread::spawn(move || tools::call(&server, &id, &message["params"]));
        }
        (method, Some(id)) => start::answer(server, method, &id, &message["params"]),
    }
}
