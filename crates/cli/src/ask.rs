//! `lectern ask`: one question, its answer, its events.

use std::io::{self, Read, Stderr, Stdout, Write};
use std::sync::Arc;

use lectern_app::view::{Problem, ServerState};
use lectern_app::{Engine, EngineOptions, Home, rules};
use lectern_core::{ConversationId, Event, ServerId, TurnOutcome};
use tokio_util::sync::CancellationToken;

use crate::args::{Ask, Use};
use crate::exit::Exit;
use crate::follow::{self, People, Sink};
use crate::interrupt::Interrupts;
use crate::mention;
use crate::output::{Printer, Style, printable};
use crate::question::Answerer;

/// Asks, prints, and says how it ended.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, ask: Ask) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let text = text(&ask.text)?;
    let engine = Engine::open(home()?, options(&ask.with)?)?;
    let asked = one_question(&engine, &ask, text, &cancel).await;
    engine.shutdown().await;
    asked
}

async fn one_question(
    engine: &Engine,
    ask: &Ask,
    text: String,
    cancel: &CancellationToken,
) -> Result<Exit, Problem> {
    if !ready(engine, cancel).await {
        return Ok(Exit::Cancelled);
    }
    let conversation: Option<ConversationId> = ask.with.conversation.clone().map(Into::into);
    let mut request = mention::read(&text, conversation.clone(), &server_ids(engine))?;
    for path in &ask.image {
        request.enclosed.push(engine.enclose_file(path).await?.id);
    }
    let receipt = engine.send(request).await?;
    let asker = People::of(&ask.with);
    let outcome = if ask.json {
        follow::turn(engine, &receipt, &mut JsonLines, asker, cancel).await?
    } else {
        let price = engine.price_of_answers(conversation.as_ref());
        let mut printer = Printer::new(io::stdout(), io::stderr(), Style::of_stderr()).priced(price);
        let outcome = follow::turn(engine, &receipt, &mut printer, asker, cancel).await?;
        say_how_to_go_on(ask, &receipt.conversation.0, &outcome);
        outcome
    };
    Ok(Exit::of_outcome(&outcome))
}

/// Waits for the servers, and says which of them are of no use. False when the user did not want to wait.
pub async fn ready(engine: &Engine, cancel: &CancellationToken) -> bool {
    tokio::select! {
        () = engine.servers_ready() => {}
        () = cancel.cancelled() => return false,
    }
    for server in engine.servers() {
        if let ServerState::Failed { problem } = server.state {
            let detail = problem.detail.as_deref().map(|text| format!("\n{text}")).unwrap_or_default();
            let _ = writeln!(io::stderr(), "! {}", printable(&format!("{}{detail}", problem.message)));
        } else if server.state == ServerState::NeedsApproval {
            let said = format!("! {0} waits for your approval: lectern mcp approve {0}", server.id);
            let _ = writeln!(io::stderr(), "{}", printable(&said));
        }
    }
    true
}

/// The servers that a message may name.
pub fn server_ids(engine: &Engine) -> Vec<ServerId> {
    engine.servers().into_iter().map(|server| server.id).collect()
}

/// The overrides that were typed.
pub fn options(with: &Use) -> Result<EngineOptions, Problem> {
    let mut allowed =
        with.allow.iter().map(|text| rules::parse_allow(text)).collect::<Result<Vec<_>, _>>()?;
    if with.yes {
        allowed.push(rules::parse_allow("all")?);
    }
    Ok(EngineOptions {
        model: with.model.clone(),
        base_url: with.base_url.clone(),
        vaults: with.vault.clone(),
        mcp_config: with.mcp_config.clone(),
        rules: allowed,
        generation: with.generation.entry()?,
        max_steps: with.max_steps,
        asker: Some(Arc::new(Answerer::of(with.elicitation))),
        ..EngineOptions::default()
    })
}

fn text(typed: &str) -> Result<String, Problem> {
    if typed != "-" {
        return Ok(typed.to_owned());
    }
    let mut bytes = Vec::new();
    let read = io::stdin().read_to_end(&mut bytes);
    read.map_err(|error| {
        Problem::new("no_question", format!("read the question from standard input: {error}"))
    })?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Only at a terminal, where somebody may want to.
fn say_how_to_go_on(ask: &Ask, conversation: &str, outcome: &TurnOutcome) {
    if ask.with.conversation.is_none() && *outcome == TurnOutcome::Completed && Style::of_stderr().rewrite {
        let _ = writeln!(io::stderr(), "go on with: lectern ask --conversation {conversation} …");
    }
}

impl Sink for Printer<Stdout, Stderr> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.event(event)
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.remark(text)
    }
}

/// Each event as one line of JSON, in the shape that the window gets.
struct JsonLines;

impl Sink for JsonLines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
        out.flush()
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", printable(text))
    }
}
