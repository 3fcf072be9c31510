//! Asks the person at the terminal whether a tool may run.
//!
//! Invariant: without a person the answer is no.

use std::io::IsTerminal;

use lectern_core::{Grant, PermissionAnswer, ToolCall};
use rustyline::config::{Behavior, Config};
use rustyline::error::ReadlineError;

use crate::output::described;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Somebody at the terminal.
    Person,
    /// Nobody.
    Nobody,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer.
    Answer(PermissionAnswer),
    /// The person wants the whole turn to end.
    Stop,
    /// There was nobody to ask; the answer is no.
    Nobody,
}

impl Asker {
    /// A person, if standard input and standard error are a terminal.
    pub fn at_terminal() -> Self {
        let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if there { Self::Person } else { Self::Nobody }
    }

    /// Asks about one call.
    pub async fn ask(self, call: &ToolCall, choices: &[Grant]) -> Reply {
        if self == Self::Nobody {
            return Reply::Nobody;
        }
        let prompt = prompt(call, choices);
        let choices = choices.to_vec();
        let asked = tokio::task::spawn_blocking(move || ask_person(&prompt, &choices)).await;
        asked.unwrap_or(Reply::Nobody)
    }
}

fn prompt(call: &ToolCall, choices: &[Grant]) -> String {
    let offers: Vec<&str> = choices
        .iter()
        .map(|choice| match choice {
            Grant::Once => "[y]es",
            Grant::Conversation => "in this [c]onversation",
            Grant::Always => "[a]lways",
        })
        .collect();
    format!("{}\nmay it run? {}, [n]o: ", described(call), offers.join(", "))
}

fn ask_person(prompt: &str, choices: &[Grant]) -> Reply {
    // The question is no part of the answer on standard output.
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let Ok(mut editor) =
        rustyline::Editor::<(), rustyline::history::MemHistory>::with_history(config, Default::default())
    else {
        return Reply::Nobody;
    };
    loop {
        match editor.readline(prompt) {
            Ok(line) => {
                if let Some(answer) = answer_of(&line, choices) {
                    return Reply::Answer(answer);
                }
            }
            Err(ReadlineError::Interrupted) => return Reply::Stop,
            Err(_) => return Reply::Nobody,
        }
    }
}

fn answer_of(line: &str, choices: &[Grant]) -> Option<PermissionAnswer> {
    let grant = match line.trim().to_lowercase().as_str() {
        "n" | "no" => return Some(PermissionAnswer::Deny),
        "y" | "yes" => Grant::Once,
        "c" | "conversation" => Grant::Conversation,
        "a" | "always" => Grant::Always,
        _ => return None,
    };
    choices.contains(&grant).then_some(PermissionAnswer::Allow { grant })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_and_offered_answers_count() {
        let all = [Grant::Once, Grant::Conversation, Grant::Always];
        assert_eq!(answer_of(" Y \n", &all), Some(PermissionAnswer::Allow { grant: Grant::Once }));
        assert_eq!(answer_of("always", &all), Some(PermissionAnswer::Allow { grant: Grant::Always }));
        assert_eq!(answer_of("always", &[Grant::Once]), None);
        assert_eq!(answer_of("no", &all), Some(PermissionAnswer::Deny));
        assert_eq!(answer_of("", &all), None);
        assert_eq!(answer_of("yes please", &all), None);
    }
}
