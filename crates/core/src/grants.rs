//! The permissions that hold now: the user's rules, and what was granted in a conversation.
//!
//! Invariant: a grant only answers a question that would else be asked; it never overrides a prohibition.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::ids::{ConversationId, ToolName};
use crate::message::ToolCall;
use crate::permission::{Decision, Grant, Policy, Rule, RuleEffect, RuleMatch, decide};
use crate::tool::ToolSpec;

/// Called with each rule that an "always" makes.
type Keep = Arc<dyn Fn(&Rule) + Send + Sync>;

/// Shared by all turns, so that an "always" or "in this conversation" holds for the calls that follow.
#[derive(Default)]
pub struct PermissionBook {
    // A std mutex: nothing awaits while it is held.
    pages: Mutex<Pages>,
    changes: watch::Sender<()>,
    keep: Option<Keep>,
}

#[derive(Default)]
struct Pages {
    policy: Policy,
    granted: HashMap<ConversationId, HashSet<ToolName>>,
}

impl PermissionBook {
    /// With the user's standing rules.
    pub fn new(policy: Policy) -> Self {
        let pages = Pages { policy, granted: HashMap::new() };
        Self { pages: Mutex::new(pages), changes: watch::Sender::default(), keep: None }
    }

    /// Calls `keep` with each rule that an "always" makes, so that the app can write it to the settings.
    #[must_use]
    pub fn keep_with(self, keep: impl Fn(&Rule) + Send + Sync + 'static) -> Self {
        Self { keep: Some(Arc::new(keep)), ..self }
    }

    /// Replaces the standing rules, e.g. when the settings changed. Questions that the new rules answer are answered.
    pub fn set_policy(&self, policy: Policy) {
        self.pages().policy = policy;
        self.changes.send_replace(());
    }

    /// The standing rules.
    pub fn policy(&self) -> Policy {
        self.pages().policy.clone()
    }

    /// Decides one call by the rules and the grants.
    pub fn decide(&self, conversation: &ConversationId, call: &ToolCall, spec: &ToolSpec) -> Decision {
        let pages = self.pages();
        match decide(&pages.policy, call, spec) {
            Decision::Ask
                if pages.granted.get(conversation).is_some_and(|tools| tools.contains(&spec.name)) =>
            {
                Decision::Allow(Some(allow(&spec.name)))
            }
            decision @ (Decision::Ask | Decision::Allow(_) | Decision::Deny(_)) => decision,
        }
    }

    /// Notes what the user granted.
    pub fn grant(&self, conversation: &ConversationId, tool: &ToolName, grant: Grant) {
        match grant {
            Grant::Once => return,
            Grant::Conversation => {
                self.pages().granted.entry(conversation.clone()).or_default().insert(tool.clone());
            }
            Grant::Always => {
                let rule = allow(tool);
                self.pages().policy.rules.push(rule.clone());
                if let Some(keep) = &self.keep {
                    keep(&rule);
                }
            }
        }
        self.changes.send_replace(());
    }

    /// Tells when a rule or a grant was added.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn allow(tool: &ToolName) -> Rule {
    Rule { matches: RuleMatch::Tool { tool: tool.clone() }, effect: RuleEffect::Allow }
}
