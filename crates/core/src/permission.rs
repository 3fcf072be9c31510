//! Decides whether a tool call may run.
//!
//! Invariant: pure. No clock, no files, no prompts; the turn asks the user.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::{ServerId, ToolName};
use crate::message::ToolCall;
use crate::tool::ToolSpec;

/// How long a permission holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/permission.ts")]
pub enum Grant {
    /// This call.
    Once,
    /// This tool, in this conversation.
    Conversation,
    /// This tool, from now on.
    Always,
}

/// What the user answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[ts(export, export_to = "core/permission.ts")]
pub enum PermissionAnswer {
    /// It may run.
    Allow {
        /// For how long.
        grant: Grant,
    },
    /// It must not run; the model is told so.
    Deny,
}

/// A standing permission or prohibition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/permission.ts")]
pub struct Rule {
    /// What it is about.
    pub matches: RuleMatch,
    /// What it says.
    pub effect: RuleEffect,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "on", rename_all = "snake_case")]
#[ts(export, export_to = "core/permission.ts")]
pub enum RuleMatch {
    /// Every tool.
    Everything,
    /// All tools of one server.
    Server {
        /// The server.
        server: ServerId,
    },
    /// One tool.
    Tool {
        /// The tool.
        tool: ToolName,
    },
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/permission.ts")]
pub enum RuleEffect {
    /// Run without asking.
    Allow,
    /// Never run.
    Deny,
    /// Ask each time.
    Ask,
}

/// All rules that hold for one turn; later rules win over earlier ones, a more exact match over a wider one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/permission.ts")]
pub struct Policy {
    /// In the order in which they were given.
    pub rules: Vec<Rule>,
}

/// What may happen to a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs; the rule that says so, or none when the tool is read-only.
    Allow(Option<Rule>),
    /// It does not run; the rule that says so.
    Deny(Rule),
    /// The user is asked.
    Ask,
}

/// Decides one call. Without a rule, a trusted read-only tool runs and everything else asks.
pub fn decide(policy: &Policy, call: &ToolCall, spec: &ToolSpec) -> Decision {
    let _ = call;
    let rule = policy
        .rules
        .iter()
        .enumerate()
        .filter_map(|(position, rule)| Some((exactness(&rule.matches, spec)?, position, rule)))
        .max_by_key(|(exactness, position, _)| (*exactness, *position))
        .map(|(_, _, rule)| rule);
    match rule.map(|rule| (rule, rule.effect)) {
        Some((rule, RuleEffect::Allow)) => Decision::Allow(Some(rule.clone())),
        Some((rule, RuleEffect::Deny)) => Decision::Deny(rule.clone()),
        Some((_, RuleEffect::Ask)) => Decision::Ask,
        None if spec.is_read_only() => Decision::Allow(None),
        None => Decision::Ask,
    }
}

/// How exactly a rule matches a tool; none when it does not.
fn exactness(matches: &RuleMatch, spec: &ToolSpec) -> Option<u8> {
    match matches {
        RuleMatch::Everything => Some(0),
        RuleMatch::Server { server } => (*server == spec.server).then_some(1),
        RuleMatch::Tool { tool } => (*tool == spec.name).then_some(2),
    }
}
