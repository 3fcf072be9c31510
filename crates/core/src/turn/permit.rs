//! Gets the permission for a call: from the rules, or from the user.
//!
//! Invariant: the decision is in the audit log before the call runs.

use super::TurnInput;
use super::journal::store_error;
use super::run::Turn;
use crate::event::EventKind;
use crate::grants::RuleOrigin;
use crate::message::{ToolCall, ToolOutcome, ToolResult};
use crate::permission::{Decision, Grant, PermissionAnswer, Rule, RuleMatch};
use crate::store::{AuditDecision, Decided};
use crate::tool::ToolSpec;

/// What was decided, and why in words.
struct Verdict {
    decision: AuditDecision,
    reason: String,
    /// What the model gets to read when the call does not run.
    denial: String,
}

/// Whether a call was made and run before in the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    First,
    /// Only the user can want it twice, whatever the rules say.
    Again,
}

/// Nothing when the call may run, else its result.
pub(super) async fn permit(
    turn: &Turn,
    spec: &ToolSpec,
    call: &ToolCall,
    time: Time,
) -> Result<(), ToolResult> {
    let verdict = match turn.input.permissions.decide(&turn.key.conversation, call, spec) {
        Decision::Deny(rule) => Verdict::forbidden(turn, call, &rule),
        Decision::Allow(rule) if time == Time::First => Verdict::allowed(by_rule(turn, rule.as_ref())),
        Decision::Ask | Decision::Allow(_) => ask(turn, spec, call, time).await,
    };
    write_down(turn, call, spec.server.as_str(), verdict.decision, &verdict.reason)?;
    let outcome = match verdict.decision {
        AuditDecision::Allowed => return Ok(()),
        AuditDecision::Denied => ToolOutcome::Denied,
        AuditDecision::Cancelled => ToolOutcome::Cancelled,
        AuditDecision::Refused => ToolOutcome::Failed,
    };
    Err(ToolResult::of(call, outcome, verdict.denial))
}

/// Writes a decision to the audit log. A call whose decision is nowhere does not run.
pub(super) fn write_down(
    turn: &Turn,
    call: &ToolCall,
    server: &str,
    decision: AuditDecision,
    reason: &str,
) -> Result<(), ToolResult> {
    let TurnInput { store, tools, who, .. } = &turn.input;
    let masked = tools.masked(call);
    let decided = Decided { key: &turn.key, who, call, masked, server, decision, reason };
    store.append_decision(&decided).map_err(|error| {
        turn.journal.fail(store_error(&error));
        let text = "The decision about this call could not be written down, so it was not run.";
        ToolResult::of(call, ToolOutcome::Failed, text)
    })
}

/// Asks the user and waits: for the answer, for a rule that answers in the meantime, or for cancel.
async fn ask(turn: &Turn, spec: &ToolSpec, call: &ToolCall, time: Time) -> Verdict {
    let mut changes = turn.input.permissions.changes();
    let mut answer = turn.questions.ask(&call.id);
    let choices = match turn.input.permissions.is_guarded(call) || time == Time::Again {
        true => vec![Grant::Once],
        false => vec![Grant::Once, Grant::Conversation, Grant::Always],
    };
    turn.journal.tell(EventKind::PermissionRequested { call: call.clone(), choices });
    let verdict = loop {
        tokio::select! {
            biased;
            () = turn.cancel.cancelled() => {
                turn.questions.withdraw(&call.id);
                return Verdict::cancelled();
            }
            answer = &mut answer => break answered(turn, spec, call, answer.unwrap_or(PermissionAnswer::Deny)),
            // The sender lives in the book that the turn holds, so this can't fail.
            _ = changes.changed() => {
                match turn.input.permissions.decide(&turn.key.conversation, call, spec) {
                    Decision::Ask => {}
                    Decision::Allow(_) if time == Time::Again => {}
                    Decision::Allow(rule) => {
                        tell(turn, call, PermissionAnswer::Allow { grant: Grant::Once });
                        break Verdict::allowed(by_rule(turn, rule.as_ref()));
                    }
                    Decision::Deny(rule) => {
                        tell(turn, call, PermissionAnswer::Deny);
                        break Verdict::forbidden(turn, call, &rule);
                    }
                }
            }
        }
    };
    turn.questions.withdraw(&call.id);
    verdict
}

fn answered(turn: &Turn, spec: &ToolSpec, call: &ToolCall, answer: PermissionAnswer) -> Verdict {
    tell(turn, call, answer.clone());
    match answer {
        PermissionAnswer::Allow { grant } => {
            turn.input.permissions.grant(&turn.key.conversation, spec, grant);
            let scope = match grant {
                Grant::Once => "once",
                Grant::Conversation => "in this conversation",
                Grant::Always => "always",
            };
            Verdict::allowed(format!("user: {scope}"))
        }
        PermissionAnswer::Deny => Verdict {
            decision: AuditDecision::Denied,
            reason: "user: denied".to_owned(),
            denial: format!(
                "The user did not allow `{}`. Nothing was done. Don't call it again unless the user asks for it.",
                call.tool
            ),
        },
    }
}

fn tell(turn: &Turn, call: &ToolCall, answer: PermissionAnswer) {
    turn.journal.tell(EventKind::PermissionAnswered { call: call.id.clone(), answer });
}

impl Verdict {
    fn cancelled() -> Self {
        Self {
            decision: AuditDecision::Cancelled,
            reason: "user: stopped".to_owned(),
            denial: "The user stopped before this call ran.".to_owned(),
        }
    }

    fn allowed(reason: String) -> Self {
        Self { decision: AuditDecision::Allowed, reason, denial: String::new() }
    }

    fn forbidden(turn: &Turn, call: &ToolCall, rule: &Rule) -> Self {
        Self {
            decision: AuditDecision::Denied,
            reason: by_rule(turn, Some(rule)),
            denial: format!("The user's rules forbid `{}`. Nothing was done.", call.tool),
        }
    }
}

/// Which rule it was, and where it comes from: a rule in the settings may be older than the user's memory, or written by
/// somebody else.
fn by_rule(turn: &Turn, rule: Option<&Rule>) -> String {
    let Some(rule) = rule else { return "read-only".to_owned() };
    let about = match &rule.matches {
        RuleMatch::Everything => "everything".to_owned(),
        RuleMatch::Server { server } => format!("server {server}"),
        RuleMatch::Tool { tool } => format!("tool {tool}"),
    };
    let origin = match turn.input.permissions.origin(rule) {
        RuleOrigin::Settings => "settings",
        RuleOrigin::ThisRun => "this run",
        RuleOrigin::Conversation => "this conversation",
    };
    format!("rule: {about} ({origin})")
}
