//! Which part of a prompt is not what it was in the last prompt of the conversation.
//!
//! Invariant: it only tells; nothing depends on it. Found from the rendered texts, so that a template which writes the
//! same messages otherwise is found too.

use std::collections::VecDeque;

use lectern_core::PromptPart;
use serde_json::Value;

use crate::protocol::Generate;

/// Conversations whose last prompts are known.
const KNOWN: usize = 8;
/// Bytes by which marks in protected text may shift a place.
const TOLERANCE: usize = 16;
/// The last prompts.
#[derive(Default)]
pub(super) struct Asked(VecDeque<Prompted>);

struct Prompted {
    conversation: String,
    side: bool,
    base: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
}

impl Asked {
    /// Compares a request, and the text that it became, with those before it, and remembers it.
    pub(super) fn compare(&mut self, request: &Generate, base: &str) -> Option<PromptPart> {
        let same = |old: &Prompted| old.conversation == request.conversation && old.side == request.side;
        let place = self.0.iter().position(same);
        let old = place.and_then(|place| self.0.remove(place));
        let part = old.and_then(|old| changed_part(&old, request, base));
        if self.0.len() == KNOWN {
            self.0.pop_front();
        }
        self.0.push_back(Prompted {
            conversation: request.conversation.clone(),
            side: request.side,
            base: base.to_owned(),
            messages: request.messages.clone(),
            tools: request.tools.clone(),
        });
        part
    }

    /// Forgets a conversation, or all.
    pub(super) fn forget(&mut self, conversation: Option<&str>) {
        self.0.retain(|old| conversation.is_some_and(|name| old.conversation != name));
    }
}

fn changed_part(old: &Prompted, request: &Generate, base: &str) -> Option<PromptPart> {
    let place = common(&old.base, base);
    if place == old.base.len() || place == base.len() {
        return None;
    }
    let tools = old.tools != request.tools;
    let system = system_of(&old.messages) != system_of(&request.messages);
    let message = first_other(&old.messages, &request.messages);
    let part = match (system, tools, message) {
        (true, false, None) => PromptPart::System,
        (false, true, None) => PromptPart::Tools,
        (false, false, Some(number)) => message_part(old, request, number),
        (false, false, None) => PromptPart::Template,
        _ => among_several(old, request, base, place),
    };
    Some(part)
}

/// Several parts differ: the first in the text is the one.
fn among_several(old: &Prompted, request: &Generate, base: &str, place: usize) -> PromptPart {
    let (was, is) = (system_of(&old.messages), system_of(&request.messages));
    let changed_within = base.find(is.trim()).map(|start| start + common(was.trim(), is.trim()));
    if was != is && changed_within.is_some_and(|at| at.abs_diff(place) <= TOLERANCE) {
        return PromptPart::System;
    }
    let other = first_other(&old.messages, &request.messages);
    let Some(number) = other else {
        return if old.tools == request.tools { PromptPart::System } else { PromptPart::Tools };
    };
    let content = |messages| {
        let message: Option<&Value> = history_of(messages).get(number);
        message.and_then(|message| message["content"].as_str()).unwrap_or_default().trim()
    };
    let (was, is) = (content(&old.messages), content(&request.messages));
    let changed_within = base.rfind(is).filter(|_| !is.is_empty()).map(|start| start + common(was, is));
    match changed_within {
        Some(at) if place + TOLERANCE >= at => message_part(old, request, number),
        Some(_) | None if old.tools != request.tools => PromptPart::Tools,
        Some(_) | None => message_part(old, request, number),
    }
}

/// A message that has the same first paragraph as before differs in what was put behind it.
fn message_part(old: &Prompted, request: &Generate, number: usize) -> PromptPart {
    let text = |messages: &[Value]| {
        let message = history_of(messages).get(number).filter(|message| message["role"] == "user");
        message.and_then(|message| message["content"].as_str()).map(str::to_owned)
    };
    let question =
        |text: &Option<String>| text.as_ref().and_then(|text| text.split("\n\n").next().map(str::to_owned));
    let (was, is) = (text(&old.messages), text(&request.messages));
    if was.is_some() && question(&was) == question(&is) {
        return PromptPart::Tail;
    }
    PromptPart::Message { number: u32::try_from(number).unwrap_or(u32::MAX) }
}

fn system_of(messages: &[Value]) -> &str {
    let system = messages.first().filter(|message| message["role"] == "system");
    system.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// The messages behind the instructions.
fn history_of(messages: &[Value]) -> &[Value] {
    match messages.split_first() {
        Some((first, rest)) if first["role"] == "system" => rest,
        Some(_) | None => messages,
    }
}

/// The first message that was there before and is another now.
fn first_other(old: &[Value], new: &[Value]) -> Option<usize> {
    history_of(old).iter().zip(history_of(new)).position(|(old, new)| old != new)
}

/// Bytes that two texts have in common at their beginning.
fn common(left: &str, right: &str) -> usize {
    left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::{Answer, Choice, SamplingOptions, Thinking};

    /// As most templates write: instructions, tools, then the messages.
    fn written(system: &str, tools: &[Value], messages: &[(&str, &str)]) -> (Generate, String) {
        let mut all = vec![json!({ "role": "system", "content": system })];
        let mut text = format!("<s>{system}\n{}</s>", json!(tools));
        for (role, content) in messages {
            all.push(json!({ "role": role, "content": content }));
            text.push_str(&format!("<{role}>{content}</{role}>"));
        }
        let request = Generate {
            job: 1,
            conversation: "one".to_owned(),
            side: false,
            messages: all,
            images: Vec::new(),
            tools: tools.to_vec(),
            choice: Choice::Auto,
            described: vec![],
            form: crate::CallForm::default(),
            tools_last: false,
            answer: Answer::Free,
            thinking: Thinking::default(),
            sampling: SamplingOptions::default(),
        };
        (request, text)
    }

    #[test]
    fn the_part_that_changed_is_named() {
        let (list, read) = (json!({"name": "list"}), json!({"name": "read"}));
        let q = ("user", "What is new?\n\nIt is nine.");
        let a = ("assistant", "Nothing.");
        let next = ("user", "And now?");
        let first = written("Be brief.", std::slice::from_ref(&list), &[q, a]);
        let tools = [list.clone(), read];
        let one = std::slice::from_ref(&list);
        let cases = [
            (written("Be brief.", one, &[q, a, next]), None),
            (written("Be brief.", one, &[q]), None),
            (written("Be long.", one, &[q, a]), Some(PromptPart::System)),
            (written("Be brief.", &tools, &[q, a]), Some(PromptPart::Tools)),
            (written("Be long.", &tools, &[q, a]), Some(PromptPart::System)),
            (written("Be brief.", &tools, &[("user", "What?"), a]), Some(PromptPart::Tools)),
            (written("Be brief.", one, &[("user", "What is new?"), a]), Some(PromptPart::Tail)),
            (written("Be brief.", one, &[("user", "What is new?\n\nIt is ten."), a]), Some(PromptPart::Tail)),
            (
                written("Be brief.", one, &[q, ("assistant", "Much.")]),
                Some(PromptPart::Message { number: 1 }),
            ),
        ];
        for (number, ((request, text), part)) in cases.into_iter().enumerate() {
            let mut asked = Asked::default();
            assert_eq!(asked.compare(&first.0, &first.1), None);
            assert_eq!(asked.compare(&request, &text), part, "case {number}");
        }
        let mut asked = Asked::default();
        asked.compare(&first.0, &first.1);
        let otherwise = first.1.replace("<assistant>", "<assistant> ");
        assert_eq!(asked.compare(&first.0, &otherwise), Some(PromptPart::Template));
    }

    #[test]
    fn other_conversations_are_not_compared() {
        let mut asked = Asked::default();
        let (mut request, text) = written("a", &[], &[("user", "b")]);
        asked.compare(&request, &text);
        request.conversation = "two".to_owned();
        assert_eq!(asked.compare(&request, "something else"), None);
        request.side = true;
        assert_eq!(asked.compare(&request, "and again"), None);
    }
}
