//! What the user approves, allows and forbids, and the log of it.
//!
//! Invariant: what is decided here is on disk and in the audit log before it holds, and holds for the next call of
//! every running turn. No server is restarted for it.

use std::collections::HashSet;

use lectern_core::store::{AuditKind, StoreError};
use lectern_core::{Actor, Rule, RuleEffect, RuleMatch, ServerId, Store, ToolName, ToolSpec};
use lectern_mcp::{ServerConfig, ServerPrint, ServerStatus, Standing, ToolReview, visible};
use serde_json::Value;

use super::{Engine, changed_since_shown, unknown_server};
use crate::audit::{self, AuditFilter};
use crate::problem::of_store;
use crate::view::{AppNews, ApprovalView, AuditEntry, Problem, ToolChange, ToolView};

impl Engine {
    /// The user has seen what a server would run, and wants it: what [`ApprovalView`] names by this digest. It is started
    /// unless it is disabled. Refused when the settings say something else by now.
    pub fn approve_server(&self, id: &ServerId, digest: &str) -> Result<(), Problem> {
        let config = self.0.host.config(id).map_err(|_| unknown_server(id))?;
        if ServerPrint::of(&config).digest != digest {
            return Err(changed_since_shown());
        }
        self.approve(&config)?;
        if !config.disabled {
            self.0.host.start_server(id).map_err(|_| unknown_server(id))?;
        }
        self.tell_server(id);
        Ok(())
    }

    /// The user has seen a tool that is new, has changed or hides something, and wants it as it was
    /// shown: what [`ToolChange`] names by this digest. Refused when the server tells something else by now.
    pub fn accept_tool(&self, tool: &ToolName, digest: &str) -> Result<(), Problem> {
        let review = self.unseen(tool).ok_or_else(|| {
            Problem::new(
                "nothing_to_accept",
                format!("the tool `{tool}` is as it was accepted, or not there"),
            )
        })?;
        if review.definition.digest != digest {
            return Err(changed_since_shown());
        }
        let server = &review.spec.server;
        self.note(AuditKind::Approval, server, Some(tool), &format!("accepted: {}", why(&review.standing)))?;
        self.0.approvals.accept(server, &review.definition).map_err(|error| of_store(&error))?;
        self.0.host.review(server).map_err(|_| unknown_server(server))?;
        Ok(())
    }

    /// Sets what holds for one tool; none for what its server's rule or the default says.
    pub fn set_tool_permission(&self, tool: &ToolName, effect: Option<RuleEffect>) -> Result<(), Problem> {
        let server = self.server_of(tool).ok_or_else(|| {
            Problem::new("unknown_tool", format!("there is no tool `{tool}` now"))
                .hint("Its server may have to be started first.")
        })?;
        self.set_rule(&server, Some(tool), RuleMatch::Tool { tool: tool.clone() }, effect)
    }

    /// Sets what holds for all tools of a server that have no rule of their own; none for the default.
    pub fn set_server_permission(&self, id: &ServerId, effect: Option<RuleEffect>) -> Result<(), Problem> {
        self.0.host.config(id).map_err(|_| unknown_server(id))?;
        self.set_rule(id, None, RuleMatch::Server { server: id.clone() }, effect)
    }

    /// What was decided and done, oldest first.
    pub fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Problem> {
        audit::read(&self.0.store, filter)
    }

    /// Records that the user approved what a server would run: after a preview, a form or a question. Rules that were
    /// left by another server of that name and allow something are dropped.
    pub(super) fn approve(&self, config: &ServerConfig) -> Result<(), Problem> {
        let print = ServerPrint::of(config);
        let shown = print.shown.replace('\n', "; ");
        self.note(AuditKind::Approval, &config.id, None, &format!("approved: {shown}"))?;
        let new = self.0.approvals.approve(config).map_err(|error| of_store(&error))?;
        if new { self.drop_rules(&config.id) } else { Ok(()) }
    }

    /// Whether what a server would run is approved as it is.
    pub(super) fn is_approved(&self, config: &ServerConfig) -> bool {
        self.0.approvals.view(config) == ApprovalView::Approved
    }

    /// Takes a removed server back as it was.
    pub(super) fn readmit(&self, config: &ServerConfig, approved: bool) -> Result<(), Problem> {
        self.note(AuditKind::Server, &config.id, None, "brought back")?;
        if approved {
            self.0.approvals.approve(config).map_err(|error| of_store(&error))?;
        }
        Ok(())
    }

    /// Forgets what was approved of a server: it is gone. What was allowed to it stays until another server of its name
    /// is approved, so that it can be brought back.
    pub(super) fn disown(&self, id: &ServerId) -> Result<(), Problem> {
        self.note(AuditKind::Server, id, None, "removed")?;
        self.0.approvals.forget(id).map_err(|error| of_store(&error))
    }

    /// Writes something that is no call to the audit log.
    pub(super) fn note(
        &self,
        kind: AuditKind,
        server: &ServerId,
        tool: Option<&ToolName>,
        what: &str,
    ) -> Result<(), Problem> {
        let noted: Result<(), StoreError> =
            self.0.store.append_note(kind, &self.0.options.who, server, tool, what);
        noted.map_err(|error| of_store(&error))
    }

    /// The tools of a server, the withheld ones among them, as a shell shows them.
    pub(super) fn tool_views(&self, status: &ServerStatus) -> Vec<ToolView> {
        let rules = self.0.permissions.policy().rules;
        let unseen = |spec: &ToolSpec| status.unseen.iter().find(|review| review.spec.name == spec.name);
        let withheld = status.unseen.iter().filter(|review| review.standing.is_withheld());
        let mut views: Vec<ToolView> = status
            .tools
            .iter()
            .chain(withheld.map(|review| &review.spec))
            .map(|spec| tool_view(spec, &rules, unseen(spec)))
            .collect();
        views.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        views
    }

    /// What the rule about all tools of a server says.
    pub(super) fn server_permission(&self, id: &ServerId) -> Option<RuleEffect> {
        effect_of(&self.0.permissions.policy().rules, &RuleMatch::Server { server: id.clone() })
    }

    fn set_rule(
        &self,
        server: &ServerId,
        tool: Option<&ToolName>,
        matches: RuleMatch,
        effect: Option<RuleEffect>,
    ) -> Result<(), Problem> {
        self.change_settings(|settings| {
            settings.rules.retain(|rule| rule.matches != matches);
            settings.rules.extend(effect.map(|effect| Rule { matches: matches.clone(), effect }));
        })?;
        self.note(AuditKind::Permission, server, tool, &format!("set to {}", effect_text(effect)))?;
        self.0.permissions.set_rule(&matches, effect);
        self.tell_server(server);
        Ok(())
    }

    /// Drops what was allowed to a server and its tools; prohibitions stay.
    fn drop_rules(&self, id: &ServerId) -> Result<(), Problem> {
        let about = |matches: &RuleMatch, tools: &HashSet<ToolName>| {
            lectern_core::grants::is_about(matches, id, tools)
        };
        let tools = self.tools_by_name(id);
        let allows = |rule: &Rule| rule.effect == RuleEffect::Allow && about(&rule.matches, &tools);
        if !self.0.permissions.policy().rules.iter().any(allows) {
            return Ok(());
        }
        self.change_settings(|settings| {
            settings.rules.retain(|rule| !allows(rule));
        })?;
        self.0.permissions.forget_server(id, &tools);
        self.note(AuditKind::Permission, id, None, "permissions dropped")
    }

    /// The tools that any rule names and that are, or by their names once were, this server's.
    fn tools_by_name(&self, id: &ServerId) -> HashSet<ToolName> {
        let prefix = format!("{}__", lectern_mcp::server_part(id.as_str()));
        let named = self.0.permissions.policy().rules.into_iter().filter_map(|rule| match rule.matches {
            RuleMatch::Tool { tool } if tool.as_str().starts_with(&prefix) => Some(tool),
            RuleMatch::Tool { .. } | RuleMatch::Server { .. } | RuleMatch::Everything => None,
        });
        named.collect()
    }

    fn server_of(&self, tool: &ToolName) -> Option<ServerId> {
        self.0.host.statuses().into_iter().find_map(|status| {
            let withheld = status.unseen.iter().map(|review| &review.spec);
            let has = status.tools.iter().chain(withheld).any(|spec| spec.name == *tool);
            has.then_some(status.id)
        })
    }

    fn unseen(&self, tool: &ToolName) -> Option<ToolReview> {
        let of = |status: ServerStatus| status.unseen.iter().find(|it| it.spec.name == *tool).cloned();
        self.0.host.statuses().into_iter().find_map(of)
    }

    fn tell_server(&self, id: &ServerId) {
        if let Ok(status) = self.0.host.status(id) {
            let server = Box::new(self.server_view(status));
            self.tell(AppNews::ServerChanged { server });
        }
    }
}

/// Writes an "always" of a question to the audit log.
pub(super) fn note_always(store: &Store, who: &Actor, server: &ServerId, rule: &Rule) {
    let RuleMatch::Tool { tool } = &rule.matches else { return };
    let what = format!("set to {}, as an answer", effect_text(Some(rule.effect)));
    if let Err(error) = store.append_note(AuditKind::Permission, who, server, Some(tool), &what) {
        tracing::error!(%error, "an “always” was not written to the audit log");
    }
}

fn tool_view(spec: &ToolSpec, rules: &[Rule], unseen: Option<&ToolReview>) -> ToolView {
    ToolView {
        spec: spec.clone(),
        permission: effect_of(rules, &RuleMatch::Tool { tool: spec.name.clone() }),
        changed: unseen.map(change),
        enabled: !unseen.is_some_and(|review| review.standing.is_withheld()),
        visible_name: visible(&spec.original_name).into_owned(),
        visible_description: visible(&spec.description).into_owned(),
    }
}

/// What is different; nothing stands before a tool that nobody has seen.
fn change(review: &ToolReview) -> ToolChange {
    let before = match &review.standing {
        Standing::Changed { before } => before.clone(),
        Standing::Known | Standing::New | Standing::Invisible => Value::Null,
    };
    let digest = review.definition.digest.clone();
    ToolChange { before: shown(before), after: shown(review.definition.value()), digest }
}

/// A definition with everything invisible shown.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(shown).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| (visible(&name).into_owned(), shown(field)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// What the last rule about exactly this says.
fn effect_of(rules: &[Rule], about: &RuleMatch) -> Option<RuleEffect> {
    rules.iter().rev().find(|rule| rule.matches == *about).map(|rule| rule.effect)
}

fn effect_text(effect: Option<RuleEffect>) -> &'static str {
    match effect {
        Some(RuleEffect::Allow) => "allow",
        Some(RuleEffect::Deny) => "deny",
        Some(RuleEffect::Ask) => "ask",
        None => "default",
    }
}

fn why(standing: &Standing) -> &'static str {
    match standing {
        Standing::Known => "unchanged",
        Standing::New => "new tool",
        Standing::Changed { .. } => "changed definition",
        Standing::Invisible => "invisible characters",
    }
}
