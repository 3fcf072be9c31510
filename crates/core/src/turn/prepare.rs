//! Decides what becomes of a call before it runs: is there such a tool, do the arguments fit, may it run.
//!
//! Invariant: one call after the other, in call order. Whatever is wrong becomes a result for the model.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::exposing::all_tools;
use super::permit::{Time, permit, write_down};
use super::repeats::{Key, Verdict};
use super::run::Turn;
use crate::event::EventKind;
use crate::exposure::index::{FINDER_QUERY, is_finder};
use crate::exposure::relevant::find;
use crate::ids::{ToolCallId, ToolName};
use crate::message::{ResultNote, ToolCall, ToolOutcome, ToolResult};
use crate::store::AuditDecision;
use crate::tool::ToolSpec;
use crate::validate::{MAX_ERRORS, SchemaFault, ValidationError, validate};

/// How long the check of one call's arguments may take.
const VALIDATION_TIME: Duration = Duration::from_secs(2);

/// Tool names that are suggested at most.
const SUGGESTED: usize = 5;

/// A call that may run.
pub(super) struct Ready {
    pub call: ToolCall,
    pub spec: ToolSpec,
    pub key: Key,
}

/// What becomes of a call.
pub(super) enum Prepared {
    /// It runs.
    Ready(Box<Ready>),
    /// It does not; this is its result.
    Settled(ToolResult),
    /// The same call stands before it in this message: it gets the result of that one.
    Twin(ToolCall, ToolCallId),
}

/// Decides about one call; `before` are those of the same message that run.
pub(super) async fn prepare(
    turn: &mut Turn,
    tools: &[ToolSpec],
    before: &[Ready],
    call: &ToolCall,
) -> Prepared {
    if turn.cancel.is_cancelled() {
        let text = "The user stopped before this call ran.";
        return Prepared::Settled(ToolResult::of(call, ToolOutcome::Cancelled, text));
    }
    if turn.input.tools.hands_over(&call.tool) {
        let text = "Somebody else runs this call; its result is not known yet.";
        return Prepared::Settled(ToolResult::of(call, ToolOutcome::Cancelled, text));
    }
    let key = Key::of(call);
    if let Some(first) = twin(before, &key) {
        return Prepared::Twin(call.clone(), first);
    }
    let all = all_tools(turn);
    let mut spec = tools.iter().chain(all.iter().filter(|spec| turn.exposing.has_shown(&spec.name)));
    let Some(spec) = spec.find(|spec| spec.name == call.tool).cloned() else {
        return Prepared::Settled(not_offered(turn, &all, key, call));
    };
    if is_finder(&spec.name, &all) {
        return Prepared::Settled(found(turn, &all, call));
    }
    match allowed(turn, &spec, &key, call).await {
        Ok(()) => Prepared::Ready(Box::new(Ready { call: call.clone(), spec, key })),
        Err(result) => {
            if result.note.is_none() && matches!(result.outcome, ToolOutcome::Denied | ToolOutcome::Failed) {
                turn.repeats.note(key, spec.is_read_only(), false, &result);
            }
            Prepared::Settled(result)
        }
    }
}

/// The first of two equal calls in one message, when nothing between them changes anything.
fn twin(before: &[Ready], key: &Key) -> Option<ToolCallId> {
    let at = before.iter().rposition(|ready| ready.key == *key)?;
    let unchanged = before[at + 1..].iter().all(|ready| ready.spec.is_read_only());
    unchanged.then(|| before[at].call.id.clone())
}

/// Nothing when the call may run, else its result.
async fn allowed(turn: &mut Turn, spec: &ToolSpec, key: &Key, call: &ToolCall) -> Result<(), ToolResult> {
    if let Err(wrong) = check_arguments(turn, spec, call).await {
        write_down(turn, call, spec.server.as_str(), AuditDecision::Refused, "wrong arguments")?;
        turn.exposing.refused();
        return Err(wrong);
    }
    match turn.repeats.judge(call, key) {
        Verdict::Run => permit(turn, spec, call, Time::First).await,
        Verdict::AskUser => permit(turn, spec, call, Time::Again).await,
        Verdict::Held(result) => {
            write_down(turn, call, spec.server.as_str(), AuditDecision::Refused, "repeated call")?;
            Err(*result)
        }
    }
}

/// A call of a tool whose definition the model does not have before it: it gets it next, when there is such a tool.
fn not_offered(turn: &mut Turn, all: &[ToolSpec], key: Key, call: &ToolCall) -> ToolResult {
    if !all.iter().any(|spec| spec.name == call.tool) {
        let result = unknown(turn, all, call);
        turn.exposing.refused();
        turn.repeats.note(key, true, false, &result);
        return result;
    }
    if let Err(failed) = write_down(turn, call, "", AuditDecision::Refused, "definition not shown yet") {
        return failed;
    }
    turn.exposing.want([call.tool.clone()]);
    let text = format!(
        "`{}` was not run: its definition had not been shown. It is shown now; call it again with arguments that fit.",
        call.tool
    );
    let result = ToolResult::of(call, ToolOutcome::Failed, text);
    ToolResult { note: Some(ResultNote::DefinitionShown), ..result }
}

/// The answer to a search among the tools. No server is asked.
fn found(turn: &mut Turn, all: &[ToolSpec], call: &ToolCall) -> ToolResult {
    let text = call.arguments.get(FINDER_QUERY).and_then(Value::as_str).unwrap_or_default();
    let names = find(all, text);
    turn.exposing.refused();
    let (outcome, text) = if names.is_empty() {
        (
            ToolOutcome::Failed,
            "No tool of the list fits. Name one of the list, or use other words.".to_owned(),
        )
    } else {
        let listed: Vec<&str> = names.iter().map(ToolName::as_str).collect();
        (ToolOutcome::Succeeded, format!("The definitions of `{}` are shown now.", listed.join("`, `")))
    };
    turn.exposing.want(names);
    let result = ToolResult { note: Some(ResultNote::Answered), ..ToolResult::of(call, outcome, text) };
    turn.repeats.note(Key::of(call), true, false, &result);
    result
}

/// What the model is told of a tool that there is not.
fn unknown(turn: &Turn, tools: &[ToolSpec], call: &ToolCall) -> ToolResult {
    let (reason, text) = match turn.input.tools.withheld(&call.tool) {
        Some(why) => ("tool withheld", why),
        None => ("no such tool", unknown_tool(call, tools)),
    };
    let written = write_down(turn, call, "", AuditDecision::Refused, reason);
    written.map_or_else(|failed| failed, |()| ToolResult::of(call, ToolOutcome::Failed, text))
}

async fn check_arguments(turn: &Turn, spec: &ToolSpec, call: &ToolCall) -> Result<(), ToolResult> {
    if let Some(text) = &call.malformed {
        return Err(ToolResult::of(call, ToolOutcome::Failed, malformed(text)));
    }
    match validated(spec, call).await {
        Ok(errors) if errors.is_empty() => Ok(()),
        Ok(errors) => {
            let mut text = format!("The arguments for `{}` are wrong; nothing was done.", call.tool);
            for error in &errors {
                text.push_str(&format!("\n- {error}"));
            }
            if errors.len() == MAX_ERRORS {
                text.push_str("\nThere may be more errors.");
            }
            text.push_str("\nCall it again with corrected arguments.");
            Err(ToolResult::of(call, ToolOutcome::Failed, text))
        }
        Err(fault) => {
            // The server's mistake, not the model's: the server itself may still take the call.
            turn.journal.tell(EventKind::Notice {
                code: "broken_schema".to_owned(),
                message: format!("arguments of `{}` are not checked: {fault}", call.tool),
            });
            Ok(())
        }
    }
}

/// Beside the turn, and not for long: a server can write a schema that takes for ever.
async fn validated(spec: &ToolSpec, call: &ToolCall) -> Result<Vec<ValidationError>, SchemaFault> {
    let (schema, arguments) = (spec.input_schema.clone(), Value::Object(call.arguments.clone()));
    let task = tokio::task::spawn_blocking(move || validate(&schema, &arguments));
    match timeout(VALIDATION_TIME, task).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) => Err(SchemaFault("checking it crashed".to_owned())),
        Err(_) => Err(SchemaFault("checking it takes too long".to_owned())),
    }
}

fn malformed(text: &str) -> String {
    let reason = match serde_json::from_str::<Value>(text) {
        Ok(_) => "they are no JSON object".to_owned(),
        Err(error) => error.to_string(),
    };
    format!(
        "The arguments could not be read as JSON: {reason}. Call again with one JSON object as arguments."
    )
}

fn unknown_tool(call: &ToolCall, tools: &[ToolSpec]) -> String {
    let mut text = format!("There is no tool `{}`.", call.tool);
    if tools.is_empty() {
        text.push_str(" No tools are offered now.");
        return text;
    }
    let mut near: Vec<(&ToolSpec, f64)> =
        tools.iter().map(|spec| (spec, likeness(call.tool.as_str(), spec))).collect();
    near.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    if let [(best, likeness), ..] = near.as_slice()
        && *likeness > 0.75
    {
        text.push_str(&format!(" Did you mean `{}`?", best.name));
    }
    let names: Vec<&str> = near.iter().take(SUGGESTED).map(|(spec, _)| spec.name.as_str()).collect();
    text.push_str(&format!(" Tools that are there: `{}`.", names.join("`, `")));
    text
}

/// A model often leaves the server's name away, or writes it with another separator.
fn likeness(asked: &str, spec: &ToolSpec) -> f64 {
    let asked = asked.to_lowercase();
    let public = strsim::jaro_winkler(&asked, &spec.name.as_str().to_lowercase());
    let original = strsim::jaro_winkler(&asked, &spec.original_name.to_lowercase());
    public.max(original)
}
