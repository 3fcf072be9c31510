//! Notices calls that a model makes again, and a model that turns in circles.
//!
//! Invariant: what only reads is not run twice for the same arguments unless something was changed in between. What
//! changes something is never run twice unseen, and never dropped unseen: the first repetition is held back and the
//! model told, the next one needs the user's word.

use serde_json::Value;

use crate::message::{Content, ResultNote, ToolCall, ToolOutcome, ToolResult};

/// Repetitions in a turn after which the model has to answer without tools.
const PATIENCE: u32 = 3;

/// Runs of a reading call that failed; another one may fare better.
const TRIES: u32 = 2;

/// The calls of a turn that came to an end.
#[derive(Default)]
pub(super) struct Repeats {
    done: Vec<Done>,
    /// Counts what may have changed something.
    changes: u32,
    /// Calls that came again and were not run.
    held: u32,
}

/// A call as it was made, whatever the order of its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key(String);

struct Done {
    key: Key,
    reads: bool,
    result: ToolResult,
    /// Changes up to and with this call.
    changes: u32,
    runs: u32,
    /// How often it came again and was not run.
    held: u32,
}

/// What becomes of a call.
pub(super) enum Verdict {
    /// It is new, or may be made again.
    Run,
    /// It changes something and succeeded before: only the user can want it twice.
    AskUser,
    /// It is not run; this is its result.
    Held(Box<ToolResult>),
}

impl Key {
    pub fn of(call: &ToolCall) -> Self {
        let arguments = canonical(&Value::Object(call.arguments.clone()));
        Self(format!("{}\n{arguments}\n{}", call.tool, call.malformed.as_deref().unwrap_or_default()))
    }
}

impl Repeats {
    /// Decides about a call that is about to run.
    pub fn judge(&mut self, call: &ToolCall, key: &Key) -> Verdict {
        let changes = self.changes;
        let Some(done) = self.done.iter_mut().rfind(|done| done.key == *key) else { return Verdict::Run };
        let stale = done.changes != changes;
        let note = match (done.result.outcome, done.reads) {
            (ToolOutcome::Denied, _) => DENIED,
            (ToolOutcome::Cancelled, _) | (ToolOutcome::Failed, false) => return Verdict::Run,
            (ToolOutcome::Succeeded | ToolOutcome::Failed, _) if stale => return Verdict::Run,
            (ToolOutcome::Failed, true) if done.runs < TRIES => return Verdict::Run,
            (ToolOutcome::Failed, true) => FAILED,
            (ToolOutcome::Succeeded, true) => READ,
            (ToolOutcome::Succeeded, false) if done.held > 0 => return Verdict::AskUser,
            (ToolOutcome::Succeeded, false) => CHANGED,
        };
        done.held += 1;
        self.held += 1;
        Verdict::Held(Box::new(again(call, &done.result, note)))
    }

    /// A call that stands in one message twice gets the result of the first.
    pub fn twin(&mut self, call: &ToolCall, first: &ToolResult) -> ToolResult {
        self.held += 1;
        again(call, first, TWIN)
    }

    /// A call ran, or was refused for good.
    pub fn note(&mut self, key: Key, reads: bool, ran: bool, result: &ToolResult) {
        if ran && !reads {
            self.changes += 1;
        }
        let before = self.done.iter().rposition(|done| done.key == key).map(|at| self.done.remove(at));
        let runs = before.as_ref().map_or(0, |done| done.runs) + 1;
        let held = before.as_ref().map_or(0, |done| done.held);
        if !ran && before.is_some() {
            // The very same mistake again.
            self.held += 1;
        }
        self.done.push(Done { key, reads, result: result.clone(), changes: self.changes, runs, held });
    }

    /// Whether any call was settled in this turn.
    pub fn any(&self) -> bool {
        !self.done.is_empty()
    }

    /// Whether the model turns in circles.
    pub fn out_of_patience(&self) -> bool {
        self.held >= PATIENCE
    }
}

const READ: &str = "This is the same call as before in this answer, so it was not run again. Its result was:";
const TWIN: &str = "The same call stands twice in this message and was run once. Its result was:";
const FAILED: &str =
    "The same call failed before in this answer, so it was not run again; try something else. Its error was:";
const DENIED: &str = "The same call was not allowed before in this answer, so nobody was asked again.";
const CHANGED: &str = "This exact call succeeded before in this answer, so it was not run a second time. If it really \
                       is to happen twice, call it once more: the user is asked then. Its result was:";

/// The earlier result for the new call.
fn again(call: &ToolCall, earlier: &ToolResult, note: &str) -> ToolResult {
    let mut content = vec![Content::Text { text: note.to_owned() }];
    if earlier.outcome != ToolOutcome::Denied {
        content.extend(earlier.content.iter().cloned());
    }
    ToolResult {
        call: call.id.clone(),
        tool: call.tool.clone(),
        content,
        note: Some(ResultNote::Repeated { first: earlier.call.clone() }),
        ..earlier.clone()
    }
}

/// JSON with the keys of every object in order.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name:?}:{}", canonical(field))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        // 1 and 1.0 are one number to every tool.
        Value::Number(number) => {
            number.as_f64().filter(|_| !number.is_u64() && !number.is_i64()).map_or_else(
                || number.to_string(),
                |float| {
                    if float.fract() == 0.0 && float.abs() < 1e15 {
                        format!("{float:.0}")
                    } else {
                        float.to_string()
                    }
                },
            )
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, arguments: Value) -> ToolCall {
        let Value::Object(arguments) = arguments else { panic!() };
        ToolCall { id: id.into(), tool: "t".into(), arguments, malformed: None, provider_data: None }
    }

    #[test]
    fn the_order_of_arguments_and_the_form_of_numbers_do_not_matter() {
        let key = |value| Key::of(&call("a", value));
        assert_eq!(
            key(json!({"a": 1, "b": {"d": [1, 2], "c": "x"}})),
            key(json!({"b": {"c": "x", "d": [1.0, 2]}, "a": 1.0}))
        );
        assert_ne!(key(json!({"a": [1, 2]})), key(json!({"a": [2, 1]})));
        assert_ne!(key(json!({"a": "1"})), key(json!({"a": 1})));
        assert_ne!(key(json!({})), key(json!({"a": null})));
    }

    #[test]
    fn reading_again_after_a_change_is_no_repetition() {
        let mut repeats = Repeats::default();
        let (read, write) = (call("r", json!({"p": 1})), call("w", json!({"p": 2})));
        let done = |call: &ToolCall| ToolResult::of(call, ToolOutcome::Succeeded, "x");
        repeats.note(Key::of(&read), true, true, &done(&read));
        assert!(matches!(repeats.judge(&read, &Key::of(&read)), Verdict::Held(_)));
        repeats.note(Key::of(&write), false, true, &done(&write));
        assert!(matches!(repeats.judge(&read, &Key::of(&read)), Verdict::Run));
        assert!(matches!(repeats.judge(&write, &Key::of(&write)), Verdict::Held(_)));
        assert!(matches!(repeats.judge(&write, &Key::of(&write)), Verdict::AskUser));
    }

    #[test]
    fn a_failed_reading_gets_a_second_try_and_a_denied_call_none() {
        let mut repeats = Repeats::default();
        let read = call("r", json!({}));
        let failed = ToolResult::of(&read, ToolOutcome::Failed, "timeout");
        repeats.note(Key::of(&read), true, true, &failed);
        assert!(matches!(repeats.judge(&read, &Key::of(&read)), Verdict::Run));
        repeats.note(Key::of(&read), true, true, &failed);
        assert!(matches!(repeats.judge(&read, &Key::of(&read)), Verdict::Held(_)));
        let other = call("o", json!({"x": 1}));
        repeats.note(Key::of(&other), false, false, &ToolResult::of(&other, ToolOutcome::Denied, "no"));
        let Verdict::Held(result) = repeats.judge(&other, &Key::of(&other)) else { panic!() };
        assert_eq!((result.outcome, result.text().contains("nobody was asked")), (ToolOutcome::Denied, true));
    }
}
