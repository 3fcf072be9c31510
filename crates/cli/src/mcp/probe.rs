//! `lectern mcp probe`: connects to one server, lists what it has and makes calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lectern_app::Home;
use lectern_app::mcp::probe::{Elicitation, Probe as Plan, probe};
use lectern_app::mcp::{
    Browser, BrowserCommand, Endpoint, Grant, Program, ServerConfig, SystemBrowser, Transport,
};
use lectern_app::view::Problem;
use lectern_core::JsonObject;
use serde_json::Value;

use crate::exit::Exit;
use crate::output;

/// Which server, which calls.
#[derive(Debug, Args)]
#[command(override_usage = "lectern mcp probe [OPTIONS] <URL | -- COMMAND [ARGS]...>")]
pub struct Probe {
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Speak only this revision, e.g. 2025-11-25
    #[arg(long, value_name = "V")]
    protocol_version: Option<String>,
    /// Send this header with every request
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<String>,
    /// The client id, where the authorization server knows one
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The secret that belongs to it
    #[arg(long, value_name = "SECRET", env = "LECTERN_CLIENT_SECRET", hide_env_values = true)]
    client_secret: Option<String>,
    /// The address of a document about the client, used as its id where the authorization server takes one
    #[arg(long, value_name = "URL")]
    cimd_url: Option<String>,
    /// Who signs in
    #[arg(long, value_enum, default_value_t = GrantType::AuthorizationCode)]
    grant: GrantType,
    /// The program that opens the page to sign in; it gets the address as its last argument. No shell
    #[arg(long, value_name = "CMD")]
    browser_command: Option<String>,
    /// Answer the server's forms, with their defaults or with no; otherwise it may not ask
    #[arg(long, value_enum)]
    elicitation: Option<Answer>,
    /// Call this tool with these arguments; may be given several times
    #[arg(long = "call", num_args = 2, value_names = ["TOOL", "JSON"])]
    calls: Vec<String>,
    /// Call every tool with arguments made from its schema
    #[arg(long)]
    call_all: bool,
    /// Seconds for the start, and for each call
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    timeout: f64,
    /// The address; or, after `--`, a command with its arguments
    #[arg(required = true, value_name = "URL")]
    server: Vec<String>,
}

/// OAuth's name of who signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum GrantType {
    /// The user, in a browser
    AuthorizationCode,
    /// The client itself
    ClientCredentials,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Answer {
    AcceptDefaults,
    Decline,
}

/// Does it. The home is opened only when it is needed.
pub async fn run(_home: impl Fn() -> Result<Home, Problem>, asked: Probe) -> Result<Exit, Problem> {
    let json = asked.json;
    let plan = plan(asked)?;
    let say = move |line: Value| {
        if json { _ = output::data(&line.to_string()) } else { _ = output::data(&words(&line)) }
    };
    let stopped = tokio::signal::ctrl_c();
    tokio::select! {
        fine = probe(plan, say) => Ok(if fine { Exit::Done } else { Exit::Failed }),
        _ = stopped => Ok(Exit::Cancelled),
    }
}

fn plan(asked: Probe) -> Result<Plan, Problem> {
    let browser: Arc<dyn Browser> = match &asked.browser_command {
        Some(line) => {
            let command = BrowserCommand::parse(line);
            Arc::new(command.ok_or_else(|| usage(format!("`{line}` is no command")))?)
        }
        None => Arc::new(SystemBrowser),
    };
    let limit = Duration::try_from_secs_f64(asked.timeout).ok().filter(|limit| !limit.is_zero());
    let limit = limit.ok_or_else(|| usage(format!("`{}` is no time limit", asked.timeout)))?;
    let calls: Result<_, _> = asked.calls.chunks(2).map(call).collect();
    Ok(Plan {
        server: server(&asked)?,
        calls: calls?,
        call_all: asked.call_all,
        elicitation: asked.elicitation.map(|answer| match answer {
            Answer::AcceptDefaults => Elicitation::AcceptDefaults,
            Answer::Decline => Elicitation::Decline,
        }),
        protocol: asked.protocol_version,
        limit,
        browser: Some(browser),
    })
}

fn server(asked: &Probe) -> Result<ServerConfig, Problem> {
    let (first, rest) = asked.server.split_first().ok_or_else(|| usage("a server is missing".into()))?;
    let remote = rest.is_empty() && (first.starts_with("http://") || first.starts_with("https://"));
    if !remote {
        let program = Program { command: first.clone(), args: rest.to_vec(), ..Program::default() };
        return Ok(ServerConfig::of("probe", Transport::Stdio(program)));
    }
    let mut endpoint =
        Endpoint { url: first.clone(), headers: headers(&asked.headers)?, ..Endpoint::default() };
    endpoint.sign_in.client_id = asked.client_id.clone();
    endpoint.sign_in.client_secret = asked.client_secret.clone();
    endpoint.sign_in.client_metadata_url = asked.cimd_url.clone();
    endpoint.sign_in.grant = match asked.grant {
        GrantType::AuthorizationCode => Grant::User,
        GrantType::ClientCredentials => Grant::Client,
    };
    Ok(ServerConfig::of("probe", Transport::Http(endpoint)))
}

fn headers(given: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let pair = |header: &String| {
        let (name, value) = header.split_once(':')?;
        (!name.trim().is_empty()).then(|| (name.trim().to_owned(), value.trim().to_owned()))
    };
    // The value may be a secret: only what it should look like is said.
    given.iter().map(|header| pair(header).ok_or_else(|| usage("a header is NAME:VALUE".into()))).collect()
}

fn call(pair: &[String]) -> Result<(String, JsonObject), Problem> {
    let [name, arguments] = pair else { return Err(usage("`--call` wants a tool and its arguments".into())) };
    match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => Ok((name.clone(), fields)),
        Ok(_) => Err(usage(format!("the arguments of `{name}` are no JSON object"))),
        Err(error) => Err(usage(format!("the arguments of `{name}` are not valid JSON: {error}"))),
    }
}

fn usage(message: String) -> Problem {
    Problem::new("usage", message)
}

/// A finding for people.
fn words(line: &Value) -> String {
    let text = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let count = |key: &str| line.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let names = |key: &str| {
        let all = line.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|one| one.get("name")?.as_str().map(|name| format!("\n  {name}"))).collect::<String>()
    };
    let said = match text("type").as_str() {
        "connected" => {
            let name =
                line.pointer("/server/name").and_then(Value::as_str).unwrap_or("a server without a name");
            format!("connected to {name}, protocol {}", text("protocol"))
        }
        "tools" => format!("{} tools{}", count("tools"), names("tools")),
        "resources" => format!("{} resources{}", count("resources"), names("resources")),
        "prompts" => format!("{} prompts{}", count("prompts"), names("prompts")),
        "progress" => format!("{}: {} {}", text("call"), line["progress"], text("message")),
        "result" => format!("{}: {}", text("call"), text("text")),
        _ => {
            let call = text("call");
            let who = if call.is_empty() { String::new() } else { format!("{call}: ") };
            let hint = text("hint");
            let hint = if hint.is_empty() { hint } else { format!("\n{hint}") };
            format!("failed: {who}{}{hint}", text("message"))
        }
    };
    output::printable(&said)
}
