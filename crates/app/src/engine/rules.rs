//! The rules of the settings, as they are written there.
//!
//! Invariant: a rule that allows something and that Lectern did not write is in the audit log before it holds. It is
//! believed: rules may be written by hand, and each call that one lets through names it.

use lectern_core::store::AuditKind;
use lectern_core::{Actor, Policy, Rule, RuleEffect, RuleMatch, ServerId, Store, ToolName};

use super::Engine;
use crate::settings::Settings;

/// How an entry about a rule begins that was found.
const FOUND: &str = "found in the settings: allow";
/// How one begins that was set here.
const SET: &str = "set to allow";

impl Engine {
    /// The rules that hold for all conversations, those of this run last.
    pub fn rules(&self) -> Vec<Rule> {
        self.0.permissions.policy().rules
    }

    /// Takes over the rules of settings that somebody else changed.
    pub(super) fn take_rules(&self, settings: &Settings) {
        note_found(&self.0.store, &self.0.options.who, settings);
        self.0.permissions.set_policy(Policy { rules: settings.rules.clone() });
    }
}

/// Writes the rules that allow something to the audit log, unless the last entry about them says so already.
pub(super) fn note_found(store: &Store, who: &Actor, settings: &Settings) {
    for rule in settings.rules.iter().filter(|rule| rule.effect == RuleEffect::Allow) {
        let (server, tool) = match &rule.matches {
            RuleMatch::Everything => (ServerId::from(""), None),
            RuleMatch::Server { server } => (server.clone(), None),
            RuleMatch::Tool { tool } => (server_of(settings, tool), Some(tool)),
        };
        let noted = store.last_note(AuditKind::Permission, &server, tool).and_then(|last| match last {
            Some(last) if last.starts_with(SET) || last == FOUND => Ok(()),
            Some(_) | None => store.append_note(AuditKind::Permission, who, &server, tool, FOUND),
        });
        if let Err(error) = noted {
            tracing::error!(%error, "a rule of the settings was not written to the audit log");
        }
    }
}

/// The server that a tool is of by its name.
fn server_of(settings: &Settings, tool: &ToolName) -> ServerId {
    let vaults = settings.vaults.iter().map(|vault| vault.server.as_str());
    let ids = settings.servers.keys().map(String::as_str).chain(vaults);
    let has = |id: &&str| tool.as_str().starts_with(&format!("{}__", lectern_mcp::server_part(id)));
    let by_name = || tool.as_str().split_once("__").map_or("", |(server, _)| server);
    ids.filter(has).max_by_key(|id| id.len()).unwrap_or_else(by_name).into()
}
