//! Questions to the person at the terminal.
//!
//! Invariant: what is typed for a secret is not shown, and reaches nothing but the keyring.

use lectern_app::view::InputView;
use rustyline::config::{Behavior, Config};

use crate::output::{aside, one_line, printable};
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

/// Asks for a value of a server until it is one of those that may be given. Nothing typed is the default, or nothing.
pub async fn input(input: &InputView) -> Option<String> {
    let prompt = input_prompt(input);
    loop {
        let answer = match input.password {
            true => hidden_answer(prompt.clone()).await,
            false => answer(prompt.clone()).await,
        };
        let typed = answer?.trim().to_owned();
        if typed.is_empty() {
            return input.default.clone();
        }
        let number = typed.parse::<usize>().ok().and_then(|n| input.options.get(n.checked_sub(1)?));
        let chosen = if input.options.contains(&typed) { None } else { number.cloned() };
        let value = chosen.unwrap_or(typed);
        match fits(input, &value) {
            Ok(()) => return Some(value),
            Err(why) => aside(&format!("! {why}")),
        }
    }
}

/// Whether a value is one of those that may be chosen.
pub fn fits(input: &InputView, value: &str) -> Result<(), String> {
    if input.options.is_empty() || input.options.iter().any(|option| option == value) {
        return Ok(());
    }
    Err(format!("`{value}` is none of the choices for {}: {}", input.id, input.options.join(", ")))
}

fn input_prompt(input: &InputView) -> String {
    let about = if input.description.is_empty() { &input.id } else { &input.description };
    let mut prompt = one_line(about, 200);
    for (number, option) in (1..).zip(&input.options) {
        prompt.push_str(&format!("\n  {number}  {}", one_line(option, 100)));
    }
    match &input.default {
        Some(default) => prompt.push_str(&format!(" [{}]", one_line(default, 100))),
        None if input.optional => prompt.push_str(" (optional)"),
        None => {}
    }
    prompt.push_str(": ");
    prompt
}
