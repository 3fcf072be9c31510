//! Which parts a reply was made of, so that a signature on text goes back on the same text.
//!
//! Calls carry their signatures themselves. Text and thoughts are joined in our messages; when one of their parts was
//! signed, the message keeps where each began and ended ("Thought signatures": a part with one is not joined with a part
//! without, nor with another).
//!
//! Invariant: the layout is used only when it fits the message to the byte; a message that was changed goes without.

use lectern_core::{AssistantMessage, Part};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Text,
    Thought,
    Call,
}

/// One part, or several of a kind without a signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    kind: Kind,
    #[serde(default, skip_serializing_if = "is_zero")]
    bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

/// The parts of one reply.
#[derive(Debug, Default)]
pub(super) struct Layout(Vec<Run>);

impl Layout {
    /// Text or thoughts came.
    pub(super) fn say(&mut self, kind: Kind, bytes: usize, signature: Option<String>) {
        match self.0.last_mut() {
            Some(last) if last.kind == kind && last.signature.is_none() && signature.is_none() => {
                last.bytes += bytes;
            }
            Some(_) | None => self.0.push(Run { kind, bytes, signature }),
        }
    }

    /// A call came.
    pub(super) fn call(&mut self) {
        self.0.push(Run { kind: Kind::Call, bytes: 0, signature: None });
    }

    /// What the message keeps; nothing when no text was signed.
    pub(super) fn as_data(&self, model: &str) -> Option<Value> {
        let signed = self.0.iter().any(|run| run.signature.is_some());
        signed.then(|| json!({ "gemini": { "model": model, "parts": self.0 } }))
    }
}

/// Text or thoughts as they go back.
#[derive(Debug, PartialEq)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) signature: Option<String>,
}

/// The parts of a message in its order, text cut as it came where that is known. Calls are pieces without text.
pub(super) fn pieces<'a>(message: &'a AssistantMessage, model: &str) -> Vec<Piece<'a>> {
    laid_out(message, model).unwrap_or_else(|| {
        message
            .parts
            .iter()
            .filter_map(|part| part_text(part).map(|(kind, text)| Piece { kind, text, signature: None }))
            .collect()
    })
}

fn part_text(part: &Part) -> Option<(Kind, &str)> {
    match part {
        Part::Text { text } => Some((Kind::Text, text)),
        Part::Thinking(thinking) => Some((Kind::Thought, &thinking.text)),
        Part::ToolCall(_) => Some((Kind::Call, "")),
        Part::Image(_) | Part::Resource(_) => None,
    }
}

fn laid_out<'a>(message: &'a AssistantMessage, model: &str) -> Option<Vec<Piece<'a>>> {
    let data = message.provider_data.as_ref()?.get("gemini")?;
    if data.get("model")?.as_str()? != model {
        return None;
    }
    let runs: Vec<Run> = serde_json::from_value(data.get("parts")?.clone()).ok()?;
    let mut parts = message.parts.iter().filter_map(part_text);
    let mut rest: (Kind, &str) = (Kind::Text, "");
    let mut pieces = Vec::new();
    for run in runs {
        if run.kind == Kind::Call {
            if !rest.1.is_empty() || parts.next()?.0 != Kind::Call {
                return None;
            }
            pieces.push(Piece { kind: Kind::Call, text: "", signature: None });
            continue;
        }
        if rest.1.is_empty() && run.bytes > 0 {
            rest = parts.next()?;
        }
        if run.bytes > 0 && rest.0 != run.kind {
            return None;
        }
        let (text, left) = rest.1.split_at_checked(run.bytes)?;
        rest.1 = left;
        pieces.push(Piece { kind: run.kind, text, signature: run.signature });
    }
    (rest.1.is_empty() && parts.next().is_none()).then_some(pieces)
}
