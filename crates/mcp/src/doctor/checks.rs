//! The single checks.
//!
//! Invariant: none of them changes anything, at the server or on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{
    CallContext, ConversationId, ServerId, ToolCall, ToolCallId, ToolOutcome, ToolProvider, ToolSpec, TurnId,
};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::Finding;
use crate::config::{Endpoint, Program};
use crate::host::Host;
use crate::http::client;
use crate::lookup::{self, Found, LookupError};
use crate::peer::PeerError;
use crate::process::{self, Launch, Process};

/// Programs that answer `--version` and do nothing else then.
const ASKED_FOR_VERSION: [&str; 14] = [
    "node", "npx", "npm", "bun", "bunx", "deno", "uv", "uvx", "python", "python3", "pipx", "docker",
    "podman", "java",
];
/// How long a harmless call may take.
const CALL_LIMIT: Duration = Duration::from_secs(30);

async fn found(program: &Program) -> Result<Found, LookupError> {
    let own_path = program.env.get("PATH").map(std::ffi::OsString::from);
    let path = own_path.or_else(|| process::variable("PATH"));
    lookup::find(&program.command, program.cwd.as_deref(), path.as_deref()).await
}

pub(super) async fn path(program: Arc<Program>) -> Finding {
    let count = |path: &std::ffi::OsStr| std::env::split_paths(path).filter(|dir| dir.is_dir()).count();
    let own = program.env.get("PATH").map(std::ffi::OsString::from).or_else(|| process::variable("PATH"));
    let own = own.as_deref().map_or(0, count);
    let login = lookup::login_path_once().await;
    match (own, login) {
        (0, None) => Finding::failed(
            "no folder to look for programs in",
            Some("Give the full path of the program in the server's settings.".into()),
        ),
        (own, Some(login)) => Finding::passed(format!("{own} folders; the login shell has {}", count(login))),
        (own, None) => Finding::passed(format!("{own} folders; the login shell does not say more")),
    }
}

pub(super) async fn executable(program: Arc<Program>) -> Finding {
    let command = &program.command;
    if let Some(cwd) = program.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        let says = format!("the working folder `{}` does not exist", cwd.display());
        return Finding::failed(says, Some("Choose a folder that exists.".into()));
    }
    match found(&program).await {
        Ok(found) => Finding::passed(found.program.display().to_string()),
        Err(error @ LookupError::Missing(_)) => {
            let hint = match stem(command) {
                "npx" | "npm" | "node" => "Install Node.js (https://nodejs.org), which brings it.".to_owned(),
                "uvx" | "uv" => "Install uv (https://docs.astral.sh/uv), which brings it.".to_owned(),
                _ => format!("Install `{command}`, or give its full path in the server's settings."),
            };
            Finding::failed(error.to_string(), Some(hint))
        }
        Err(error @ LookupError::NotExecutable(_)) => {
            let hint = "Make the file executable, or name the program that runs it.";
            Finding::failed(error.to_string(), Some(hint.into()))
        }
    }
}

fn stem(command: &str) -> &str {
    Path::new(command).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

pub(super) async fn version(program: Arc<Program>) -> Finding {
    let stem = stem(&program.command);
    let known = ASKED_FOR_VERSION.contains(&stem) || stem.starts_with("python3.");
    let found = match found(&program).await {
        Ok(found) if known => found,
        Ok(_) => return Finding::skipped("only well-known programs are asked for their version"),
        Err(_) => return Finding::skipped("an earlier step failed"),
    };
    let launch = Launch {
        program: found.program,
        args: vec!["--version".into()],
        env: process::environment(found.path.as_deref(), &program.env),
        cwd: None,
    };
    match first_line(launch).await {
        Ok(line) if !line.is_empty() => Finding::passed(line),
        Ok(_) => Finding::failed(
            format!("`{} --version` says nothing", program.command),
            Some(format!("Try it in a terminal; `{}` may have to be installed anew.", program.command)),
        ),
        Err(error) => Finding::failed(format!("`{} --version`: {error}", program.command), None),
    }
}

/// The first line that a program prints, to stdout or, if there is none, to stderr.
async fn first_line(launch: Launch) -> std::io::Result<String> {
    let (process, pipes) = Process::start(launch).await?;
    drop(pipes.stdin);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (pipes.stdout.take(4_096), pipes.stderr.take(4_096));
    let read = async { tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err)) };
    let (read_out, _) = read.await;
    read_out?;
    drop(process);
    let text = if out.trim_ascii().is_empty() { err } else { out };
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().next().unwrap_or_default().trim().chars().take(200).collect())
}

pub(super) async fn address(endpoint: Endpoint) -> Finding {
    if endpoint.url.contains("${") {
        return Finding::skipped("the address has a value that is filled in at the start");
    }
    let url = match client::address(&endpoint.url) {
        Ok(url) => url,
        Err(error) => {
            return Finding::failed(error.to_string(), Some("Correct the address in the settings.".into()));
        }
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let found = match tokio::net::lookup_host((host.as_str(), port)).await {
        Ok(found) => found.collect::<Vec<_>>(),
        Err(error) => {
            let hint = "Check the name in the address, and the network.";
            return Finding::failed(format!("the name `{host}` is not known: {error}"), Some(hint.into()));
        }
    };
    if let Err(error) = tokio::net::TcpStream::connect(&found[..]).await {
        let hint = "Check that the server runs, and that no firewall or proxy stands between.";
        return Finding::failed(format!("no connection to {host}, port {port}: {error}"), Some(hint.into()));
    }
    let client = match client::for_server(&url) {
        Ok(client) => client,
        Err(error) => return Finding::failed(error.to_string(), None),
    };
    // Without the user's headers: this only asks whether somebody speaks HTTP there.
    match client.get(url).header("accept", "text/event-stream").send().await {
        Ok(answer) => {
            Finding::passed(format!("{host}, port {port}; it answers with HTTP {}", answer.status()))
        }
        Err(error) => {
            let mut cause = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(inner) = source {
                cause = inner.to_string();
                source = inner.source();
            }
            let hint = "Check `http` or `https` in the address, and the certificate of the server.";
            Finding::failed(format!("{host}, port {port}, speaks no HTTP: {cause}"), Some(hint.into()))
        }
    }
}

/// One call that changes nothing: a tool that is believed to only read and wants no arguments, else a ping.
pub(super) async fn call(host: &Host, id: &ServerId) -> Finding {
    let harmless = |spec: &&ToolSpec| {
        spec.trusted && spec.annotations.read_only == Some(true) && !wants_arguments(&spec.input_schema)
    };
    let tools = host.tools();
    let made = match tools.iter().find(harmless) {
        Some(tool) => tokio::time::timeout(CALL_LIMIT, call_tool(host, tool)).await,
        None => tokio::time::timeout(CALL_LIMIT, ping(host, id)).await,
    };
    made.unwrap_or_else(|_| {
        let hint = "It lists its tools but answers no calls; look at its log.";
        Finding::failed(format!("no answer within {} s", CALL_LIMIT.as_secs()), Some(hint.into()))
    })
}

fn wants_arguments(schema: &serde_json::Value) -> bool {
    schema.get("required").and_then(serde_json::Value::as_array).is_some_and(|names| !names.is_empty())
}

async fn call_tool(host: &Host, tool: &ToolSpec) -> Finding {
    let call = ToolCall {
        id: ToolCallId::fresh(),
        tool: tool.name.clone(),
        arguments: serde_json::Map::new(),
        malformed: None,
        provider_data: None,
    };
    let context = CallContext {
        conversation: ConversationId::fresh(),
        turn: TurnId::fresh(),
        cancel: CancellationToken::new(),
        news: tokio::sync::mpsc::unbounded_channel().0,
        ask: Arc::new(lectern_core::Nobody),
    };
    let result = host.call(call, context).await;
    let name = &tool.original_name;
    match result.outcome {
        ToolOutcome::Succeeded => Finding::passed(format!("the tool `{name}` answers")),
        ToolOutcome::Failed | ToolOutcome::Denied | ToolOutcome::Cancelled => {
            let text: String = result.text().chars().take(300).collect();
            Finding::failed(format!("the tool `{name}` fails: {text}"), None)
        }
    }
}

async fn ping(host: &Host, id: &ServerId) -> Finding {
    let Some(live) = host.live(id) else { return Finding::failed("it has ended", None) };
    // The modern era has no ping; asking for the protocol again is as harmless.
    let method = if live.session.is_modern() { "server/discover" } else { "ping" };
    match live.peer.ask(method, live.session.params(json!({}))).await {
        Ok(_) => Finding::passed(format!("it answers `{method}`")),
        Err(PeerError::Rpc { code, .. }) => {
            Finding::passed(format!("it answers `{method}`, though only with the error {code}"))
        }
        Err(error) => Finding::failed(format!("no answer to `{method}`: {error}"), None),
    }
}
