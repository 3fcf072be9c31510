//! `lectern mcp resources`: lists the resources of the servers, or reads one.

use clap::Args;
use lectern_app::view::{Problem, ResourcesView};
use lectern_app::{Engine, Home};
use lectern_core::{Part, ServerId};
use serde_json::{Value, json};

use crate::args::Servers;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{complain, data, one_line, printable};
use crate::servers::options;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Resources {
    #[command(flatten)]
    pub with: Servers,
    /// One server only
    pub name: Option<String>,
    /// Read this address of the server
    #[arg(long, value_name = "URI", requires = "name")]
    pub read: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(home: Home, asked: Resources) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let engine = Engine::open(home, options(asked.with))?;
    let done = tokio::select! {
        done = look(&engine, asked.name.as_deref(), asked.read.as_deref(), asked.json) => done,
        () = cancel.cancelled() => Ok(Exit::Cancelled),
    };
    engine.shutdown().await;
    done
}

async fn look(
    engine: &Engine,
    name: Option<&str>,
    uri: Option<&str>,
    as_json: bool,
) -> Result<Exit, Problem> {
    engine.servers_ready().await;
    if let (Some(name), Some(uri)) = (name, uri) {
        let parts = engine.read_resource(&name.into(), uri).await?;
        print_parts(&parts, as_json);
        return Ok(Exit::Done);
    }
    let mut exit = Exit::Done;
    let mut listed = Vec::new();
    for server in chosen(engine, name)? {
        match engine.resources(&server).await {
            Ok(view) if as_json => listed.push(json!(view)),
            Ok(view) => print(&view),
            Err(problem) => {
                exit = Exit::Failed;
                tell_problem(&server, &problem, as_json, &mut listed);
            }
        }
    }
    if as_json {
        data(&json!({ "servers": listed }).to_string());
    }
    Ok(exit)
}

/// The one that was named, or all.
pub fn chosen(engine: &Engine, name: Option<&str>) -> Result<Vec<ServerId>, Problem> {
    let all: Vec<ServerId> = engine.servers().into_iter().map(|server| server.id).collect();
    let Some(name) = name else { return Ok(all) };
    if all.iter().any(|server| server.as_str() == name) {
        return Ok(vec![name.into()]);
    }
    let names: Vec<&str> = all.iter().map(ServerId::as_str).collect();
    let problem = Problem::new("unknown_server", format!("there is no server `{name}`"));
    Err(problem.hint(format!("There is: {}.", names.join(", "))))
}

/// One server that gave nothing costs the others nothing.
pub fn tell_problem(server: &ServerId, problem: &Problem, as_json: bool, listed: &mut Vec<Value>) {
    if as_json {
        listed.push(json!({"server": server, "problem": problem}));
    } else {
        complain(&problem.message, problem.hint.as_deref());
    }
}

/// The parts of a resource or of a prompt.
pub fn print_parts(parts: &[Part], as_json: bool) {
    if as_json {
        data(&json!({ "parts": parts }).to_string());
        return;
    }
    for part in parts {
        match part {
            Part::Text { text } => _ = data(&printable(text)),
            Part::Resource(resource) => {
                _ = data(&printable(resource.text.as_deref().unwrap_or(&resource.uri)));
            }
            Part::Image(blob) => _ = data(&printable(&format!("[{}]", blob.mime))),
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
}

fn print(view: &ResourcesView) {
    let (resources, templates) = (view.resources.len(), view.templates.len());
    data(&format!("{}: {resources} resources, {templates} templates", view.server));
    for resource in &view.resources {
        let name = resource.title.as_ref().unwrap_or(&resource.name);
        data(&format!("  {}  {}", one_line(&resource.uri, 200), one_line(name, 80)));
    }
    for template in &view.templates {
        let name = template.title.as_ref().unwrap_or(&template.name);
        data(&format!("  {}  {}", one_line(&template.uri_template, 200), one_line(name, 80)));
    }
}
