//! `lectern chat`: a conversation in the terminal.

use std::io::{self, Write};

use lectern_app::view::Problem;
use lectern_app::{Engine, Home};
use lectern_core::ConversationId;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Config, Editor};

use crate::args::Chat;
use crate::ask;
use crate::exit::Exit;
use crate::follow::{self, People};
use crate::interrupt::Interrupts;
use crate::mention;
use crate::output::{self, Printer, Style, printable};

const HELP: &str = "\
/new            begin a new conversation
/model [ID]     show the models, or choose one
/SERVER:PROMPT name=value …
                run a prompt of a server; @SERVER:ADDRESS in a message takes a resource along
/help           show this
/x              end; Ctrl-D does too
Ctrl-C stops an answer; twice, it ends everything.";

/// Talks until the user has enough.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, chat: Chat) -> Result<Exit, Problem> {
    let interrupts = Interrupts::listen();
    let home = home()?;
    let engine = Engine::open(home.clone(), ask::options(&chat.with)?)?;
    let people = People::of(&chat.with);
    let talked = talk(&engine, &home, &interrupts, people, chat.with.conversation.map(Into::into)).await;
    engine.shutdown().await;
    talked
}

async fn talk(
    engine: &Engine,
    home: &Home,
    interrupts: &Interrupts,
    people: People,
    mut conversation: Option<ConversationId>,
) -> Result<Exit, Problem> {
    if let Some(id) = &conversation {
        engine.conversation_page(id, None)?;
    }
    if !ask::ready(engine, &interrupts.next()).await {
        return Ok(Exit::Cancelled);
    }
    aside(&format!("Lectern, model {}. /help shows the commands.", engine.model()));
    let mut lines = Lines::open(home)?;
    loop {
        // While the line is being edited Ctrl-C reaches the editor, not us.
        let (back, line) = tokio::task::spawn_blocking(move || lines.read())
            .await
            .map_err(|error| Problem::new("defect", format!("read a line: {error}")))?;
        lines = back;
        let Some(line) = line else { return Ok(Exit::Done) };
        match Entered::of(&line) {
            Entered::Nothing => {}
            Entered::End => return Ok(Exit::Done),
            Entered::New => conversation = None,
            Entered::Help => aside(HELP),
            Entered::Model(id) => model(engine, id),
            Entered::Unknown(command) => aside(&format!("{command} is no command; /help shows them")),
            Entered::Message(text) => {
                let said = say(engine, interrupts, people, conversation.clone(), &text).await;
                match said {
                    Ok(id) => conversation = Some(id),
                    Err(problem) => output::complain(&problem.message, problem.hint.as_deref()),
                }
            }
        }
    }
}

async fn say(
    engine: &Engine,
    interrupts: &Interrupts,
    people: People,
    conversation: Option<ConversationId>,
    text: &str,
) -> Result<ConversationId, Problem> {
    let cancel = interrupts.next();
    let receipt = engine.send(mention::read(text, conversation, &ask::server_ids(engine))?).await?;
    let mut printer = Printer::new(io::stdout(), io::stderr(), Style::of_stderr());
    follow::turn(engine, &receipt, &mut printer, people, &cancel).await?;
    Ok(receipt.conversation)
}

fn model(engine: &Engine, id: Option<&str>) {
    match id {
        None => {
            let chosen = engine.model();
            for model in engine.models() {
                let mark = if model.id == chosen { '*' } else { ' ' };
                aside(&format!("{mark} {}  {}", model.id, model.name));
            }
        }
        Some(id) => match engine.select_model(&id.into()) {
            Ok(()) => aside(&format!("{id} answers from now on")),
            Err(problem) => output::complain(&problem.message, problem.hint.as_deref()),
        },
    }
}

/// What one line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Entered<'a> {
    Nothing,
    End,
    New,
    Help,
    Model(Option<&'a str>),
    Unknown(&'a str),
    Message(String),
}

impl<'a> Entered<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim();
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match command {
            "" => Self::Nothing,
            "/x" | "/exit" | "/quit" => Self::End,
            "/new" => Self::New,
            "/help" | "/?" => Self::Help,
            "/model" => Self::Model(Some(rest.trim()).filter(|id| !id.is_empty())),
            _ if mention::is_prompt(line) => Self::Message(line.to_owned()),
            // A path may begin a question; a lone word with a slash is a command that was mistyped.
            _ if command.starts_with('/') && !command[1..].contains('/') => Self::Unknown(command),
            _ => Self::Message(line.to_owned()),
        }
    }
}

/// The lines that the user types, with their history.
struct Lines {
    editor: Editor<(), FileHistory>,
    history: std::path::PathBuf,
}

impl Lines {
    fn open(home: &Home) -> Result<Self, Problem> {
        let problem = |error| Problem::new("no_terminal", format!("read from the terminal: {error}"));
        let config =
            Config::builder().auto_add_history(true).max_history_size(1_000).map_err(problem)?.build();
        let mut editor = Editor::with_config(config).map_err(problem)?;
        let history = home.chat_history();
        // There is none at first.
        let _ = editor.load_history(&history);
        Ok(Self { editor, history })
    }

    /// The next line; none at the end.
    fn read(mut self) -> (Self, Option<String>) {
        let line = loop {
            match self.editor.readline("> ") {
                Ok(line) => break Some(line),
                // A line that was given up.
                Err(ReadlineError::Interrupted) => {}
                Err(_) => break None,
            }
        };
        if !self.editor.history().is_empty() {
            // Lost history is no reason to stop.
            let _ = self.editor.append_history(&self.history);
        }
        (self, line)
    }
}

fn aside(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        assert_eq!(Entered::of("  "), Entered::Nothing);
        assert_eq!(Entered::of("/x"), Entered::End);
        assert_eq!(Entered::of("/model  qwen "), Entered::Model(Some("qwen")));
        assert_eq!(Entered::of("/model"), Entered::Model(None));
        assert_eq!(Entered::of("/modle qwen"), Entered::Unknown("/modle"));
        assert_eq!(Entered::of("/etc/hosts is what?"), Entered::Message("/etc/hosts is what?".to_owned()));
        let prompt = "/notes:sum-up path=a.md";
        assert_eq!(Entered::of(prompt), Entered::Message(prompt.to_owned()));
        assert_eq!(Entered::of(" hi "), Entered::Message("hi".to_owned()));
    }
}
