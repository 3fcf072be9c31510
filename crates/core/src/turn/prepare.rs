//! Decides what becomes of a call before it runs: is there such a tool, do the arguments fit, may it run.
//!
//! Invariant: one call after the other, in call order. Whatever is wrong becomes a result for the model.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::permit::{permit, write_down};
use super::run::Turn;
use crate::event::EventKind;
use crate::message::{ToolCall, ToolOutcome, ToolResult};
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
}

/// The call when it may run, else its result.
pub(super) async fn prepare(turn: &Turn, tools: &[ToolSpec], call: &ToolCall) -> Result<Ready, ToolResult> {
    if turn.cancel.is_cancelled() {
        return Err(ToolResult::of(call, ToolOutcome::Cancelled, "The user stopped before this call ran."));
    }
    let Some(spec) = tools.iter().find(|spec| spec.name == call.tool) else {
        return Err(unknown(turn, tools, call));
    };
    if let Err(wrong) = check_arguments(turn, spec, call).await {
        write_down(turn, call, spec.server.as_str(), AuditDecision::Refused, "wrong arguments")?;
        return Err(wrong);
    }
    permit(turn, spec, call).await?;
    Ok(Ready { call: call.clone(), spec: spec.clone() })
}

/// What the model is told of a tool that is not offered.
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
