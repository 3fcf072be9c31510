//! Decides whether a tool call may run.
//!
//! | the most exact rule about the tool says | it only reads, and is believed | it says it destroys | anything else |
//! |---|---|---|---|
//! | nothing | runs | asks | asks |
//! | ask | asks | asks | asks |
//! | deny | denied | denied | denied |
//! | allow, for everything (`--yes`, one run) | runs | runs | runs |
//! | allow, for its server | runs | **asks** | runs |
//! | allow, for this tool | runs | runs | runs |
//!
//! A tool's rule is more exact than its server's, and that more than one for everything; of two equally exact ones the
//! later counts. Why a server's allow does not reach a tool that says it destroys: who allows a server thinks of its
//! everyday tools; deleting is worth a word of its own. The claim of a server can only make the rules stricter here.
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

/// Decides one call; the module's table says how. The arguments play no part yet.
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
        Some((rule, RuleEffect::Allow)) if reaches(&rule.matches, spec) => {
            Decision::Allow(Some(rule.clone()))
        }
        Some((_, RuleEffect::Allow)) => Decision::Ask,
        Some((rule, RuleEffect::Deny)) => Decision::Deny(rule.clone()),
        Some((_, RuleEffect::Ask)) => Decision::Ask,
        None if spec.is_read_only() => Decision::Allow(None),
        None => Decision::Ask,
    }
}

/// Whether an allow on this covers the tool.
fn reaches(matches: &RuleMatch, spec: &ToolSpec) -> bool {
    match matches {
        RuleMatch::Everything | RuleMatch::Tool { .. } => true,
        RuleMatch::Server { .. } => !spec.is_destructive(),
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

#[cfg(test)]
mod tests;
