//! Which tools the history tells of already, and where.
//!
//! Definitions stay in the question with which they were told, so that nothing of the history is read again; what is new
//! comes with the last question. Invariant: a prompt tells of the tools that its request offers, no more and no less; a
//! request that offers none leaves what was told where it is, because the history stands behind it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::Generate;

/// Tools that one question tells of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Telling {
    /// The question's place among the messages.
    pub(super) place: usize,
    /// Its words, without the tools.
    question: String,
    /// In OpenAI's shape.
    pub(super) tools: Vec<Value>,
}

/// What the questions of a request tell, when those of the request before it told this.
pub(super) fn tellings(request: &Generate, before: &[Telling]) -> Vec<Telling> {
    let mut out: Vec<Telling> = before.iter().take_while(|one| one.stands_in(request)).cloned().collect();
    let is_new = |tool: &&Value| !out.iter().any(|one| one.tools.contains(tool));
    let new: Vec<Value> = request.tools.iter().filter(is_new).cloned().collect();
    let Some(place) = request.messages.iter().rposition(|message| message["role"] == "user") else {
        return out;
    };
    match out.last_mut() {
        _ if new.is_empty() => {}
        Some(last) if last.place == place => last.tools.extend(new),
        Some(_) | None => {
            let question = question_at(request, place).unwrap_or_default().to_owned();
            out.push(Telling { place, question, tools: new });
        }
    }
    out
}

impl Telling {
    fn stands_in(&self, request: &Generate) -> bool {
        let offered = |tool: &Value| request.tools.is_empty() || request.tools.contains(tool);
        question_at(request, self.place) == Some(&self.question) && self.tools.iter().all(offered)
    }
}

fn question_at(request: &Generate, place: usize) -> Option<&str> {
    let message = request.messages.get(place).filter(|message| message["role"] == "user")?;
    message["content"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::worker::scripted::asked as request;

    fn asked(messages: &[(&str, &str)], tools: &[&str]) -> Generate {
        Generate {
            messages: messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect(),
            tools: tools.iter().map(|name| json!({ "name": name })).collect(),
            tools_last: true,
            ..request(&[])
        }
    }

    fn places(told: &[Telling]) -> Vec<(usize, Vec<&str>)> {
        let each = told.iter();
        each.map(|one| (one.place, one.tools.iter().filter_map(|tool| tool["name"].as_str()).collect()))
            .collect()
    }

    const FIRST: &[(&str, &str)] = &[("user", "a"), ("assistant", "b"), ("user", "c")];
    const SECOND: &[(&str, &str)] =
        &[("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e")];

    #[test]
    fn tools_stay_where_they_were_told() {
        let told = tellings(&asked(FIRST, &["x", "y"]), &[]);
        assert_eq!(places(&told), [(2, vec!["x", "y"])]);
        assert_eq!(tellings(&asked(SECOND, &["y", "x"]), &told), told);
    }

    #[test]
    fn new_ones_come_with_the_last_question() {
        let told = tellings(&asked(FIRST, &["x"]), &[]);
        let more = tellings(&asked(SECOND, &["x", "y"]), &told);
        assert_eq!(places(&more), [(2, vec!["x"]), (4, vec!["y"])]);
        let wanted = tellings(&asked(SECOND, &["x", "y", "z"]), &more);
        assert_eq!(places(&wanted), [(2, vec!["x"]), (4, vec!["y", "z"])]);
    }

    #[test]
    fn what_is_not_offered_is_not_told_any_more() {
        let told = tellings(&asked(FIRST, &["x", "y"]), &[]);
        assert_eq!(places(&tellings(&asked(SECOND, &["y"]), &told)), [(4, vec!["y"])]);
        let changed = Generate { tools: vec![json!({"name": "x", "a": 1})], ..asked(SECOND, &[]) };
        assert_eq!(places(&tellings(&changed, &told)), [(4, vec!["x"])]);
    }

    #[test]
    fn an_answer_without_tools_leaves_the_history_as_it_is() {
        let told = tellings(&asked(FIRST, &["x"]), &[]);
        assert_eq!(tellings(&asked(SECOND, &[]), &told), told);
        assert_eq!(tellings(&asked(SECOND, &[]), &[]), []);
    }

    #[test]
    fn another_question_in_its_place_tells_nothing() {
        let told = tellings(&asked(SECOND, &["x"]), &tellings(&asked(FIRST, &["x"]), &[]));
        let edited =
            &[("user", "a"), ("assistant", "b"), ("user", "other"), ("assistant", "d"), ("user", "e")];
        assert_eq!(places(&tellings(&asked(edited, &["x"]), &told)), [(4, vec!["x"])]);
        assert_eq!(places(&tellings(&asked(&FIRST[..1], &["x"]), &told)), [(0, vec!["x"])]);
    }
}
