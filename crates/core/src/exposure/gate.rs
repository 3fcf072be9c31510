//! Questions to the model that it can only answer with yes or no.
//!
//! Invariant: pure. An answer that is neither opens the gate: a tool too many is better than an answer without sources.

use std::fmt::Write as _;

use crate::message::{AssistantMessage, Part};
use crate::tool::ToolSpec;

/// The grammar of the answer (GBNF): one token in nearly every vocabulary.
pub(crate) const GRAMMAR: &str = r#"root ::= "yes" | "no""#;

/// Tools that a question names at most.
const NAMED: usize = 24;

/// Characters of a description that a question quotes.
const QUOTED: usize = 80;

/// Whether the last message needs a tool at all. `shown`: their definitions stand in the prompt already.
pub(crate) fn needs_tool(tools: &[ToolSpec], shown: bool) -> String {
    let mut text = String::from(
        "Before you answer, decide: is one of the tools needed to answer my last message? Thanks, greetings and \
         questions about what you said before need none; questions about my notes, files or other data do.",
    );
    if !shown {
        text.push_str(" The tools are:");
        text.push_str(&named(tools));
        text.push('\n');
    }
    text.push_str(" Answer only yes or no.");
    text
}

/// Whether the results are not enough, and another call is needed.
pub(crate) fn needs_more(tools: &[ToolSpec]) -> String {
    format!(
        "Before you answer, decide: do the results above lack something that my question asks for, and would another \
         call of a tool bring it? The tools are:{}\nAnswer only yes or no.",
        named(tools)
    )
}

fn named(tools: &[ToolSpec]) -> String {
    let mut out = String::new();
    for spec in tools.iter().take(NAMED) {
        let line = spec.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let short: String = line.chars().take(QUOTED).collect();
        let _ = write!(out, "\n- {}: {short}", spec.name);
    }
    if tools.len() > NAMED {
        let _ = write!(out, "\n- and {} more", tools.len() - NAMED);
    }
    out
}

/// The answer, when it is one.
pub(crate) fn answer(message: &AssistantMessage) -> Option<bool> {
    let text: String = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
        })
        .collect();
    let word: String =
        text.chars().skip_while(|c| !c.is_alphabetic()).take_while(|c| c.is_alphabetic()).collect();
    match word.to_lowercase().as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<bool> {
        answer(&AssistantMessage { parts: vec![Part::Text { text: text.to_owned() }], ..Default::default() })
    }

    #[test]
    fn only_yes_and_no_are_answers() {
        assert_eq!(
            (said("yes"), said(" No."), said("**Yes**, because")),
            (Some(true), Some(false), Some(true))
        );
        assert_eq!((said(""), said("Maybe yes"), said("nothing")), (None, None, None));
    }
}
