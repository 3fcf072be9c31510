//! `lectern mcp prompts`: lists the prompts of the servers, or fills one in.

use std::collections::BTreeMap;

use clap::Args;
use lectern_app::view::{Problem, PromptView, PromptsView};
use lectern_app::{Engine, Home};
use serde_json::json;

use super::resources::{chosen, print_parts, tell_problem};
use crate::args::Servers;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line};
use crate::servers::options;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Prompts {
    #[command(flatten)]
    pub with: Servers,
    /// One server only
    pub name: Option<String>,
    /// Fill this prompt of the server in
    #[arg(long, value_name = "PROMPT", requires = "name")]
    pub get: Option<String>,
    /// An argument of the prompt; can be given more than once
    #[arg(long, value_name = "NAME=VALUE", requires = "get", value_parser = pair)]
    pub arg: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Does it.
pub async fn run(home: Home, asked: Prompts) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let engine = Engine::open(home, options(asked.with))?;
    let arguments = asked.arg.into_iter().collect();
    let done = tokio::select! {
        done = look(&engine, asked.name.as_deref(), asked.get.as_deref(), &arguments, asked.json) => done,
        () = cancel.cancelled() => Ok(Exit::Cancelled),
    };
    engine.shutdown().await;
    done
}

async fn look(
    engine: &Engine,
    name: Option<&str>,
    prompt: Option<&str>,
    arguments: &BTreeMap<String, String>,
    as_json: bool,
) -> Result<Exit, Problem> {
    engine.servers_ready().await;
    if let (Some(name), Some(prompt)) = (name, prompt) {
        let filled = engine.get_prompt(&name.into(), prompt, arguments).await?;
        print_parts(&filled.parts, as_json);
        return Ok(Exit::Done);
    }
    let mut exit = Exit::Done;
    let mut listed = Vec::new();
    for server in chosen(engine, name)? {
        match engine.prompts(&server).await {
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

fn print(view: &PromptsView) {
    data(&format!("{}: {} prompts", view.server, view.prompts.len()));
    for prompt in &view.prompts {
        let description = prompt.description.as_deref().unwrap_or_default();
        data(&format!("  {}  {}", usage(view, prompt), one_line(description, 100)));
    }
}

/// As it is typed: `/server:prompt city=… [state=…]`.
fn usage(view: &PromptsView, prompt: &PromptView) -> String {
    let arguments = prompt.arguments.iter().map(|argument| {
        let name = one_line(&argument.name, 40);
        if argument.required { format!(" {name}=…") } else { format!(" [{name}=…]") }
    });
    format!("/{}:{}{}", view.server, one_line(&prompt.name, 80), arguments.collect::<String>())
}
