//! Questions to the person at the terminal.
//!
//! Invariant: what is typed for a secret is not shown, and reaches nothing but the keyring.

use rustyline::config::{Behavior, Config};

use crate::output::printable;
use crate::permit::Asker;

/// Whether there is somebody to ask.
pub fn somebody_there() -> bool {
    Asker::at_terminal() == Asker::Person
}

/// Asks for a yes; everything else is a no.
pub async fn confirmed(question: &str) -> bool {
    let answer = answer(format!("{question} [y]es, [n]o: ")).await;
    answer.is_some_and(|answer| matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a line.
pub async fn answer(prompt: String) -> Option<String> {
    let asked = tokio::task::spawn_blocking(move || {
        // The question is no part of the data on standard output.
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let history = rustyline::history::MemHistory::new();
        let mut editor = rustyline::Editor::<(), _>::with_history(config, history).ok()?;
        editor.readline(&printable(&prompt)).ok()
    });
    asked.await.ok().flatten()
}

/// Asks for a secret.
pub async fn hidden_answer(prompt: String) -> Option<String> {
    let asked = tokio::task::spawn_blocking(move || rpassword::prompt_password(printable(&prompt)).ok());
    asked.await.ok().flatten().filter(|answer| !answer.is_empty())
}
