//! The server over streamable HTTP, and the ways in which it fails there.
//!
//! Written on bare sockets: half an answer, a stalled one or one of the wrong kind is what no library would send.
//! Beside `/mcp` there are two addresses for the test itself: `POST /fault` and `GET /seen`.

mod fault;
mod message;
mod stream;

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use self::fault::Fault;
use self::message::{Request, respond};
use self::stream::{Collected, Sse};
use crate::start::Mode;
use crate::{Server, State, start, tools};

/// How the server is reached and what it has been told to do wrong.
pub struct Http {
    pub address: String,
    pub port_file: Option<String>,
    /// Answers with one JSON object instead of a stream.
    pub json: bool,
    /// Old servers want the session id that they gave; some never gave one.
    pub sessions: bool,
}

/// What all connections share beside the server's own state.
pub struct Shared {
    http: Http,
    mode: Mode,
    state: Arc<Mutex<State>>,
    faults: Mutex<Vec<Fault>>,
    /// What was asked, for the test to look at.
    seen: Mutex<Vec<Value>>,
    sessions: Mutex<Vec<String>>,
    /// Streams that are told of changes.
    listeners: Mutex<Vec<Sse>>,
}

/// Serves until it is killed.
pub fn serve(http: Http, mode: Mode, state: State) -> ! {
    let listener = TcpListener::bind(&http.address).expect("an address to listen on");
    let port = listener.local_addr().expect("own address").port();
    if let Some(file) = &http.port_file {
        // Written beside and moved: who waits for the file shall find it whole.
        let part = format!("{file}.part");
        std::fs::write(&part, port.to_string()).expect("port file");
        std::fs::rename(part, file).expect("port file");
    }
    let _ = writeln!(std::io::stdout(), "http://127.0.0.1:{port}/mcp");
    let shared = Arc::new(Shared {
        http,
        mode,
        state: Arc::new(Mutex::new(state)),
        faults: Mutex::default(),
        seen: Mutex::default(),
        sessions: Mutex::default(),
        listeners: Mutex::default(),
    });
    loop {
        if let Ok((stream, _)) = listener.accept() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || converse(&shared, &stream));
        }
    }
}

/// Takes requests from one connection until it ends.
fn converse(shared: &Shared, stream: &TcpStream) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    while let Some(request) = Request::read(&mut reader) {
        if !answer(shared, stream, &request) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// Answers one request; false when the connection is of no use any more.
fn answer(shared: &Shared, stream: &TcpStream, request: &Request) -> bool {
    match (request.verb.as_str(), request.path.as_str()) {
        ("POST", "/fault") => {
            let mut faults = shared.faults.lock().expect("no panic");
            match Fault::read(&request.json()) {
                Some(fault) => faults.push(fault),
                None => faults.clear(),
            }
            respond(stream, 200, &[], b"")
        }
        ("POST", "/forget") => {
            shared.sessions.lock().expect("no panic").clear();
            respond(stream, 200, &[], b"")
        }
        ("GET", "/seen") => {
            let seen = Value::Array(shared.seen.lock().expect("no panic").clone());
            respond(stream, 200, &[("content-type", "application/json")], seen.to_string().as_bytes())
        }
        ("GET", "/mcp") => listen(shared, stream, request),
        ("DELETE", "/mcp") => {
            note(shared, request, &Value::Null);
            let session = request.header("mcp-session-id").unwrap_or_default();
            shared.sessions.lock().expect("no panic").retain(|known| known != session);
            respond(stream, 200, &[], b"")
        }
        ("POST", "/mcp") => post(shared, stream, request),
        _ => respond(stream, 404, &[("content-type", "text/html")], b"<html><h1>Not Found</h1></html>"),
    }
}

fn note(shared: &Shared, request: &Request, message: &Value) {
    let headers: serde_json::Map<String, Value> =
        request.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let seen = json!({"verb": request.verb, "headers": headers, "message": message});
    shared.seen.lock().expect("no panic").push(seen);
}

/// The stream on which an old server says what nobody asked for.
fn listen(shared: &Shared, stream: &TcpStream, request: &Request) -> bool {
    note(shared, request, &Value::Null);
    if !shared.mode.has_initialize() {
        return respond(stream, 405, &[("allow", "POST")], b"");
    }
    if let Some(fault) = fault::due(&shared.faults, "GET") {
        return fault.show(stream, &Value::Null);
    }
    keep_listening(shared, stream)
}

/// Tells of changes until the other side is gone.
fn keep_listening(shared: &Shared, stream: &TcpStream) -> bool {
    let Some(mut sse) = Sse::begin(stream, &[]) else { return false };
    shared.listeners.lock().expect("no panic").extend(sse.another());
    while sse.ping() {
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

fn post(shared: &Shared, stream: &TcpStream, request: &Request) -> bool {
    let message = request.json();
    note(shared, request, &message);
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if let Some(fault) = fault::due(&shared.faults, &method) {
        return fault.show(stream, &message["id"]);
    }
    if !message.is_object() {
        return refuse(stream, 400, &Value::Null, -32700, "Parse error");
    }
    let modern = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
        && shared.mode.knows_discover();
    let mut headers = Vec::new();
    if modern {
        if let Some(wrong) = wrong_headers(request, &message) {
            return refuse(stream, 400, &message["id"], -32020, &wrong);
        }
    } else if method == "initialize" && shared.http.sessions {
        let mut sessions = shared.sessions.lock().expect("no panic");
        let session = format!("session-{}-{}", std::process::id(), sessions.len() + 1);
        sessions.push(session.clone());
        headers.push(("mcp-session-id", session));
    } else if method != "initialize"
        && let Some(missing) = missing_session(shared, request)
    {
        return refuse(stream, missing.0, &Value::Null, -32000, missing.1);
    }
    let server = Arc::new(Server::over_http(shared.mode, Arc::clone(&shared.state), modern));
    if message.get("id").is_none() || method.is_empty() {
        crate::receive(&server, message);
        return respond(stream, 202, &[], b"");
    }
    if method == "subscriptions/listen" {
        return keep_listening(shared, stream);
    }
    reply(shared, stream, &server, &method, &message, &headers)
}

/// Lets the server answer, on a stream of events or as one JSON object.
fn reply(
    shared: &Shared,
    stream: &TcpStream,
    server: &Arc<Server>,
    method: &str,
    message: &Value,
    headers: &[(&str, String)],
) -> bool {
    let id = &message["id"];
    let grown_before = server.state().grown;
    let collected = shared.http.json.then(Collected::default);
    match &collected {
        Some(collected) => server.answers_to(Box::new(collected.clone())),
        None => match Sse::begin(stream, headers) {
            Some(sse) => server.answers_to(Box::new(sse)),
            None => return false,
        },
    }
    match method {
        "tools/call" => tools::call(server, id, &message["params"]),
        _ => start::answer(server, method, id, &message["params"]),
    }
    let tells = server.state().ttl.is_none();
    if tells && server.state().grown && !grown_before {
        tell_listeners(shared);
    }
    match collected {
        Some(collected) => {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            collected.respond(stream, &headers, id)
        }
        None => server.finish(),
    }
}

fn tell_listeners(shared: &Shared) {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
    let mut listeners = shared.listeners.lock().expect("no panic");
    listeners.retain_mut(|listener| writeln!(listener, "{changed}").is_ok());
}

fn refuse(stream: &TcpStream, status: u16, id: &Value, code: i64, why: &str) -> bool {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}});
    respond(stream, status, &[("content-type", "application/json")], body.to_string().as_bytes())
}

/// The modern era names the method, and what it is about, in headers as well.
fn wrong_headers(request: &Request, message: &Value) -> Option<String> {
    let params = &message["params"];
    let name = match message["method"].as_str() {
        Some("tools/call" | "prompts/get") => params["name"].as_str(),
        Some("resources/read") => params["uri"].as_str(),
        _ => None,
    };
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let wanted =
        [("mcp-protocol-version", version), ("mcp-method", message["method"].as_str()), ("mcp-name", name)];
    wanted.into_iter().filter(|(_, value)| value.is_some()).find_map(|(header, value)| {
        let given = request.header(header);
        (given != value).then(|| format!("the header {header} is {given:?} instead of {value:?}"))
    })
}

/// What an old server says to who has no session, or one that it has forgotten.
fn missing_session(shared: &Shared, request: &Request) -> Option<(u16, &'static str)> {
    if !shared.http.sessions {
        return None;
    }
    match request.header("mcp-session-id") {
        None => Some((400, "Bad Request: No valid session ID provided")),
        Some(session) if shared.sessions.lock().expect("no panic").iter().any(|known| known == session) => {
            None
        }
        Some(_) => Some((404, "Session not found")),
    }
}
