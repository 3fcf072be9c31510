//! What templates are told about thinking, each in the words that it knows.
//!
//! Invariant: pure; a template that knows none of the words gets none, and its prompt stays as it is.

use serde_json::{Map, Value, json};

use crate::protocol::Thinking;

/// Words for a template: `thinks` is whether this reply may begin with a thought.
pub(super) fn words(source: &str, knows_effort: bool, thinks: bool, asked: Thinking) -> Map<String, Value> {
    let mut out = Map::new();
    let knows = |word: &str| source.contains(word);
    let off = asked.enabled == Some(false);
    if knows_effort && !thinks {
        out.insert("reasoning_effort".to_owned(), json!(least_effort(source)));
    } else if knows_effort && asked.enabled == Some(true) && knows("'no_think'") {
        // Without a word this one does not think.
        out.insert("reasoning_effort".to_owned(), json!("high"));
    }
    if knows("thinking_budget") && !off {
        // With nothing to spend, some write a thought about that; it is ended from outside instead.
        let budget = asked.budget.filter(|budget| *budget > 0);
        out.extend(budget.map(|budget| ("thinking_budget".to_owned(), json!(budget))));
    }
    if knows("thinking_mode == ") && knows("\"disabled\"") {
        let mode = if off { Some("disabled") } else { asked.enabled.map(|_| "enabled") };
        out.extend(mode.map(|mode| ("thinking_mode".to_owned(), json!(mode))));
    }
    if off && knows("thinking is undefined") {
        out.insert("thinking".to_owned(), json!(false));
    }
    out
}

/// The least effort that a template knows.
fn least_effort(source: &str) -> &'static str {
    ["no_think", "none"]
        .into_iter()
        .find(|word| source.contains(&format!("'{word}'")) || source.contains(&format!("== \"{word}\"")))
        .unwrap_or("low")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, enabled: Option<bool>, budget: Option<u32>) -> Value {
        let effort = source.contains("reasoning_effort");
        Value::Object(words(source, effort, enabled.unwrap_or(true), Thinking { enabled, budget }))
    }

    #[test]
    fn each_template_is_told_in_its_own_words() {
        let seed = "{% if thinking_budget == 0 %}";
        assert_eq!(of(seed, None, None), json!({}));
        assert_eq!(of(seed, None, Some(512)), json!({ "thinking_budget": 512 }));
        assert_eq!(of(seed, Some(false), Some(512)), json!({}));
        assert_eq!(of(seed, None, Some(0)), json!({}));
        let minimax = "{% if thinking_mode == \"disabled\" %}";
        assert_eq!(of(minimax, Some(false), None), json!({ "thinking_mode": "disabled" }));
        assert_eq!(of(minimax, None, None), json!({}));
        let hunyuan = "{% if reasoning_effort == 'no_think' %}";
        assert_eq!(of(hunyuan, Some(false), None), json!({ "reasoning_effort": "no_think" }));
        assert_eq!(of(hunyuan, Some(true), None), json!({ "reasoning_effort": "high" }));
        assert_eq!(of("{{ reasoning_effort }}", Some(false), None), json!({ "reasoning_effort": "low" }));
        assert_eq!(of("{% if enable_thinking %}", Some(false), Some(9)), json!({}));
    }
}
