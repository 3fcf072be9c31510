//! The permissions that hold now: the user's rules, and what was granted in a conversation.
//!
//! Invariant: a grant only answers a question that would else be asked; it never overrides a prohibition, nor a rule
//! that was set after it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::guard::Guard;
use crate::ids::{ConversationId, ServerId, ToolName};
use crate::message::ToolCall;
use crate::permission::{Decision, Grant, Policy, Rule, RuleEffect, RuleMatch, decide};
use crate::tool::ToolSpec;

/// Called with each rule that an "always" makes, and the server whose tool it is about.
type Keep = Arc<dyn Fn(&ServerId, &Rule) + Send + Sync>;

/// Where a rule that decided comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The settings, whoever wrote them.
    Settings,
    /// It was given for this run only.
    ThisRun,
    /// The user granted it in the conversation.
    Conversation,
}

/// Shared by all turns, so that an "always" or "in this conversation" holds for the calls that follow.
#[derive(Default)]
pub struct PermissionBook {
    // A std mutex: nothing awaits while it is held.
    pages: Mutex<Pages>,
    changes: watch::Sender<()>,
    keep: Option<Keep>,
    guard: Guard,
}

#[derive(Default)]
struct Pages {
    policy: Policy,
    /// Those of the policy's rules that were given for this run.
    this_run: Vec<Rule>,
    granted: HashMap<ConversationId, HashSet<(ServerId, ToolName)>>,
}

impl PermissionBook {
    /// With the user's standing rules.
    pub fn new(policy: Policy) -> Self {
        let pages = Pages { policy, ..Pages::default() };
        Self {
            pages: Mutex::new(pages),
            changes: watch::Sender::default(),
            keep: None,
            guard: Guard::default(),
        }
    }

    /// With rules that hold for this run, after those of the settings.
    #[must_use]
    pub fn for_this_run(self, rules: Vec<Rule>) -> Self {
        {
            let mut pages = self.pages();
            pages.policy.rules.extend(rules.iter().cloned());
            pages.this_run = rules;
        }
        self
    }

    /// Calls `keep` with each rule that an "always" makes and the server of its tool, so that the app can write it to the
    /// settings.
    #[must_use]
    pub fn keep_with(self, keep: impl Fn(&ServerId, &Rule) + Send + Sync + 'static) -> Self {
        Self { keep: Some(Arc::new(keep)), ..self }
    }

    /// Asks about each call that reaches for these files, whatever the rules and grants say.
    #[must_use]
    pub fn guarding(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// Replaces the standing rules, e.g. when the settings changed; those of this run stay. Questions that the new rules
    /// answer are answered.
    pub fn set_policy(&self, mut policy: Policy) {
        {
            let mut pages = self.pages();
            policy.rules.extend(pages.this_run.iter().cloned());
            if pages.policy == policy {
                return;
            }
            pages.policy = policy;
        }
        self.changes.send_replace(());
    }

    /// Where a rule that decided comes from.
    pub fn origin(&self, rule: &Rule) -> RuleOrigin {
        let pages = self.pages();
        if pages.this_run.contains(rule) {
            RuleOrigin::ThisRun
        } else if pages.policy.rules.contains(rule) {
            RuleOrigin::Settings
        } else {
            RuleOrigin::Conversation
        }
    }

    /// Sets the one rule about something, or takes it back, at once for the next call of every running turn. What was
    /// granted in conversations for the tools that it is about is over: the user has decided anew.
    pub fn set_rule(&self, matches: &RuleMatch, effect: Option<RuleEffect>) {
        let mut pages = self.pages();
        let Pages { policy, this_run, granted } = &mut *pages;
        policy.rules.retain(|rule| rule.matches != *matches);
        this_run.retain(|rule| rule.matches != *matches);
        policy.rules.extend(effect.map(|effect| Rule { matches: matches.clone(), effect }));
        for tools in granted.values_mut() {
            tools.retain(|(server, tool)| match matches {
                RuleMatch::Everything => false,
                RuleMatch::Server { server: about } => server != about,
                RuleMatch::Tool { tool: about } => tool != about,
            });
        }
        drop(pages);
        self.changes.send_replace(());
    }

    /// Forgets what was allowed to a server and its tools, e.g. when it was removed: another server that gets its name
    /// must not inherit a permission. Prohibitions stay. `tools` are its public names.
    pub fn forget_server(&self, server: &ServerId, tools: &HashSet<ToolName>) {
        let mut pages = self.pages();
        let allows = |rule: &Rule| rule.effect == RuleEffect::Allow && is_about(&rule.matches, server, tools);
        pages.policy.rules.retain(|rule| !allows(rule));
        pages.this_run.retain(|rule| !allows(rule));
        for granted in pages.granted.values_mut() {
            granted.retain(|(of, _)| of != server);
        }
        drop(pages);
        self.changes.send_replace(());
    }

    /// The standing rules.
    pub fn policy(&self) -> Policy {
        self.pages().policy.clone()
    }

    /// Decides one call by the rules and the grants.
    pub fn decide(&self, conversation: &ConversationId, call: &ToolCall, spec: &ToolSpec) -> Decision {
        let pages = self.pages();
        let granted = || {
            let granted = pages.granted.get(conversation);
            granted.is_some_and(|tools| tools.contains(&(spec.server.clone(), spec.name.clone())))
        };
        match decide(&pages.policy, call, spec) {
            Decision::Ask | Decision::Allow(_) if self.is_guarded(call) => Decision::Ask,
            Decision::Ask if granted() => Decision::Allow(Some(allow(&spec.name))),
            decision @ (Decision::Ask | Decision::Allow(_) | Decision::Deny(_)) => decision,
        }
    }

    /// Whether a call reaches for a guarded file; a grant for more than once would not hold for it.
    pub(crate) fn is_guarded(&self, call: &ToolCall) -> bool {
        self.guard.is_reached_by(&call.arguments)
    }

    /// Notes what the user granted.
    pub fn grant(&self, conversation: &ConversationId, spec: &ToolSpec, grant: Grant) {
        match grant {
            Grant::Once => return,
            Grant::Conversation => {
                let tool = (spec.server.clone(), spec.name.clone());
                self.pages().granted.entry(conversation.clone()).or_default().insert(tool);
            }
            Grant::Always => {
                let rule = allow(&spec.name);
                self.pages().policy.rules.push(rule.clone());
                if let Some(keep) = &self.keep {
                    keep(&spec.server, &rule);
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

/// Whether a rule is about this server or one of these tools of it.
pub fn is_about(matches: &RuleMatch, server: &ServerId, tools: &HashSet<ToolName>) -> bool {
    match matches {
        RuleMatch::Everything => false,
        RuleMatch::Server { server: about } => about == server,
        RuleMatch::Tool { tool } => tools.contains(tool),
    }
}

fn allow(tool: &ToolName) -> Rule {
    Rule { matches: RuleMatch::Tool { tool: tool.clone() }, effect: RuleEffect::Allow }
}
