//! Adds, changes, removes and brings back servers of the settings.
//!
//! Invariant: what is changed here is in the settings before the host hears of it, and runs without a restart of the
//! app. A secret of a form goes into the keyring; the settings get its placeholder.

use std::collections::BTreeMap;

use lectern_core::ServerId;
use lectern_core::store::AuditKind;
use lectern_mcp::placeholder::{Reference, references, secret_key};
use lectern_mcp::{Endpoint, Program, Secrets, ServerConfig, Transport, import};
use serde_json::Value;

use crate::engine::{Engine, unknown_server};
use crate::problem::of_secrets;
use crate::settings::Settings;
use crate::view::{
    DraftArgument, DraftNamed, DraftTransport, DraftValue, Problem, ServerDraft, ServerView, UndoToken,
};

/// Removed servers that can come back.
const UNDOABLE: usize = 20;

/// A server that was removed.
#[derive(Debug)]
pub(in crate::engine) struct Removed {
    token: UndoToken,
    id: String,
    position: usize,
    entry: Value,
    /// Whether it was approved; undoing that it was removed is no approval.
    approved: bool,
}

impl Engine {
    /// Adds a server, or changes one, as a form says. It is started unless it is disabled.
    pub async fn save_server(&self, draft: ServerDraft) -> Result<ServerView, Problem> {
        let old = match &draft.id {
            Some(id) => Some(self.editable(id)?),
            None => None,
        };
        let id = match &draft.id {
            Some(id) => id.clone(),
            None => self.free_name(&draft.name)?,
        };
        let all_seen = is_whole(&draft.transport) || old.as_ref().is_none_or(|old| self.is_approved(old));
        let (mut config, secrets) = drafted(&id, old.as_ref(), draft.transport)?;
        if let Some(old) = old {
            config = ServerConfig { transport: config.transport, ..old };
        }
        config.disabled = !draft.enabled;
        config.timeout_s = draft.timeout_s;
        config.trusted = draft.trusted;
        check(&config)?;
        for (name, value) in secrets {
            self.0.secrets.keep(&secret_key(&name), &value).await.map_err(|error| of_secrets(&error))?;
        }
        // What was changed behind the form's back, and is kept by it, was in no form; it is shown before it is approved.
        if all_seen {
            self.approve(&config)?;
        }
        self.put_server(config).await
    }

    /// Takes a server out of the settings and ends it. The token brings it back for as long as Lectern runs.
    pub async fn remove_server(&self, id: &ServerId) -> Result<UndoToken, Problem> {
        self.not_built_in(id)?;
        let approved = self.editable(id).is_ok_and(|config| self.is_approved(&config));
        let removed = self.change_settings(|settings| {
            let position = settings.servers.keys().position(|known| known == id.as_str())?;
            Some((position, settings.servers.shift_remove(id.as_str())?))
        })?;
        let (position, entry) = removed.ok_or_else(|| unknown_server(id))?;
        let token = UndoToken(format!("{}-{}", std::process::id(), count()));
        {
            let mut state = self.state();
            state.unusable.retain(|unusable| unusable.id != id.as_str());
            let removed = Removed { token: token.clone(), id: id.0.clone(), position, entry, approved };
            state.removed.push(removed);
            let too_many = state.removed.len().saturating_sub(UNDOABLE);
            state.removed.drain(..too_many);
        }
        // It may be in the settings only, as an entry that can't be run.
        let _ = self.0.host.remove(id).await;
        self.disown(id)?;
        self.tell_servers();
        Ok(token)
    }

    /// Brings back a server that was removed.
    pub async fn restore_server(&self, token: &UndoToken) -> Result<ServerView, Problem> {
        let removed = {
            let mut state = self.state();
            let place = state.removed.iter().position(|removed| removed.token == *token);
            place.map(|place| state.removed.remove(place))
        };
        let gone = || Problem::new("nothing_to_undo", "there is nothing to bring back any more");
        let Removed { id, position, entry, approved, .. } = removed.ok_or_else(gone)?;
        let (config, taken) = self.change_settings(|settings| {
            let taken = settings.servers.contains_key(&id);
            if !taken {
                let place = position.min(settings.servers.len());
                settings.servers.shift_insert(place, id.clone(), entry);
            }
            (settings.server(&id), taken)
        })?;
        if taken {
            return Err(name_taken(&id));
        }
        match config {
            Some(Ok(config)) => {
                self.readmit(&config, approved)?;
                self.run_server(config).await
            }
            Some(Err(reason)) => {
                let unusable = super::Unusable { id, reason };
                self.state().unusable.push(unusable.clone());
                self.tell_servers();
                Ok(self.unusable_view(unusable))
            }
            None => Err(gone()),
        }
    }

    /// Starts a server with Lectern from now on, or keeps it from being started.
    pub async fn set_server_enabled(&self, id: &ServerId, enabled: bool) -> Result<ServerView, Problem> {
        let mut config = self.editable(id)?;
        // What is approved does not depend on this.
        config.disabled = !enabled;
        self.put_server(config).await
    }

    /// Believes what a server claims of its tools, or no longer.
    pub async fn set_server_trusted(&self, id: &ServerId, trusted: bool) -> Result<ServerView, Problem> {
        let mut config = self.editable(id)?;
        let approved = self.is_approved(&config);
        config.trusted = trusted;
        if approved {
            self.approve(&config)?;
        }
        self.put_server(config).await
    }

    /// Writes a server into the settings and lets it run as it is now.
    pub(super) async fn put_server(&self, config: ServerConfig) -> Result<ServerView, Problem> {
        self.change_settings(|settings| settings.put_server(&config))?;
        self.note(AuditKind::Server, &config.id, None, "saved")?;
        self.run_server(config).await
    }

    /// Hands a server of the settings to the host.
    pub(super) async fn run_server(&self, config: ServerConfig) -> Result<ServerView, Problem> {
        let id = config.id.clone();
        self.state().unusable.retain(|unusable| unusable.id != id.as_str());
        if !self.0.options.without_servers {
            self.0.host.set(config).await;
            self.tell_servers();
            let status = self.0.host.status(&id).map_err(|_| unknown_server(&id))?;
            return Ok(self.server_view(status));
        }
        Ok(self.stopped_view(&config))
    }

    /// A server of the settings; those of the vaults are not edited.
    pub(super) fn editable(&self, id: &ServerId) -> Result<ServerConfig, Problem> {
        self.not_built_in(id)?;
        match Settings::read(&self.0.home)?.server(id.as_str()) {
            Some(Ok(config)) => Ok(config),
            // What can't be read is written anew.
            Some(Err(_)) => Ok(ServerConfig::new(id.clone(), "", [""; 0])),
            None => Err(unknown_server(id)),
        }
    }

    /// A name for a new server, if nobody has it.
    pub(super) fn free_name(&self, name: &str) -> Result<ServerId, Problem> {
        let name = import::clean_name(name);
        if name.is_empty() {
            return Err(Problem::new("bad_server", "a server needs a name"));
        }
        let built_in = self.is_built_in(&name);
        let taken = built_in || Settings::read(&self.0.home)?.servers.contains_key(&name);
        if taken { Err(name_taken(&name)) } else { Ok(name.into()) }
    }

    /// Whether the settings have a server of this name.
    pub fn settings_have(&self, name: &str) -> Result<bool, Problem> {
        Ok(Settings::read(&self.0.home)?.servers.contains_key(name))
    }

    pub(super) fn is_built_in(&self, name: &str) -> bool {
        self.state().vaults.iter().any(|vault| vault.server.as_str() == name)
    }

    fn not_built_in(&self, id: &ServerId) -> Result<(), Problem> {
        if !self.is_built_in(id.as_str()) {
            return Ok(());
        }
        let message = format!("the server `{id}` belongs to a vault; it is not changed here");
        Err(Problem::new("built_in_server", message).hint("Remove the vault instead."))
    }

    /// Forgets the secrets of servers that were removed and can't come back any more.
    pub(in crate::engine) async fn forget_removed(&self) {
        let removed = std::mem::take(&mut self.state().removed);
        let Ok(settings) = Settings::read(&self.0.home) else { return };
        let used: Vec<Reference> = settings
            .servers
            .keys()
            .filter_map(|id| settings.server(id)?.ok())
            .flat_map(|config| references(&config))
            .collect();
        if !removed.is_empty() {
            super::bundles::forget_unused(&self.0.home, &settings);
        }
        for Removed { id, entry, .. } in removed {
            let Value::Object(entry) = entry else { continue };
            let Ok(config) = lectern_mcp::entry::read_entry(&id, &entry, lectern_mcp::Origin::Settings)
            else {
                continue;
            };
            let own = format!("{id}/");
            for reference in references(&config) {
                if let Reference::Secret(name) = &reference
                    && name.starts_with(&own)
                    && !used.contains(&reference)
                {
                    let _ = self.0.secrets.delete(&secret_key(name)).await;
                }
            }
        }
    }
}

type NamedSecrets = Vec<(String, String)>;

/// The configuration that a form describes, and the secrets that go into the keyring.
fn drafted(
    id: &ServerId,
    old: Option<&ServerConfig>,
    transport: DraftTransport,
) -> Result<(ServerConfig, NamedSecrets), Problem> {
    let mut drafting = Drafting { id: id.as_str(), secrets: Vec::new() };
    let transport = match transport {
        DraftTransport::Stdio { command, args, env, cwd } => {
            let old = old.and_then(ServerConfig::program);
            let args: Result<Vec<String>, Problem> =
                args.into_iter().map(|arg| drafting.argument(arg, old)).collect();
            let env = drafting.named(env, old.map(|old| &old.env))?;
            let cwd = cwd.filter(|cwd| !cwd.trim().is_empty()).map(Into::into);
            Transport::Stdio(Program { command: command.trim().to_owned(), args: args?, env, cwd })
        }
        DraftTransport::Http { url, headers } => {
            let old = old.and_then(|old| match &old.transport {
                Transport::Http(endpoint) => Some(endpoint),
                Transport::Stdio(_) => None,
            });
            let url = url.or_else(|| old.map(|old| old.url.clone())).ok_or_else(nothing_to_keep)?;
            let headers = drafting.named(headers, old.map(|old| &old.headers))?;
            let sign_in = old.map(|old| old.sign_in.clone()).unwrap_or_default();
            Transport::Http(Endpoint { url: url.trim().to_owned(), headers, sign_in })
        }
    };
    Ok((ServerConfig::of(id.clone(), transport), drafting.secrets))
}

struct Drafting<'a> {
    id: &'a str,
    secrets: NamedSecrets,
}

impl Drafting<'_> {
    fn named(
        &mut self,
        values: Vec<DraftNamed>,
        old: Option<&BTreeMap<String, String>>,
    ) -> Result<BTreeMap<String, String>, Problem> {
        values
            .into_iter()
            .map(|DraftNamed { name, value }| {
                let name = name.trim().to_owned();
                let text = match value {
                    DraftValue::Keep => {
                        old.and_then(|old| old.get(&name).cloned()).ok_or_else(nothing_to_keep)?
                    }
                    DraftValue::Plain { text } => text,
                    DraftValue::Secret { text } => self.secret(&name, text),
                };
                Ok((name, text))
            })
            .collect()
    }

    fn argument(&self, argument: DraftArgument, old: Option<&Program>) -> Result<String, Problem> {
        match argument {
            DraftArgument::Keep { position } => {
                let position = usize::try_from(position).unwrap_or(usize::MAX);
                old.and_then(|old| old.args.get(position).cloned()).ok_or_else(nothing_to_keep)
            }
            DraftArgument::Plain { text } => Ok(text),
        }
    }

    fn secret(&mut self, place: &str, text: String) -> String {
        let name = format!("{}/{}", self.id, place.replace(['{', '}', '$'], "_"));
        let placeholder = format!("${{secret:{name}}}");
        self.secrets.push((name, text));
        placeholder
    }
}

/// Whether a form says everything itself and keeps nothing that it did not show.
fn is_whole(transport: &DraftTransport) -> bool {
    let named = |values: &[DraftNamed]| !values.iter().any(|named| matches!(named.value, DraftValue::Keep));
    match transport {
        DraftTransport::Stdio { args, env, .. } => {
            named(env) && !args.iter().any(|arg| matches!(arg, DraftArgument::Keep { .. }))
        }
        DraftTransport::Http { url, headers } => named(headers) && url.is_some(),
    }
}

/// Refuses what could not be read back.
pub(super) fn check(config: &ServerConfig) -> Result<(), Problem> {
    let entry = lectern_mcp::entry::entry_of(config);
    match lectern_mcp::entry::read_entry(config.id.as_str(), &entry, lectern_mcp::Origin::Settings) {
        Ok(_) => Ok(()),
        Err(reason) => {
            Err(Problem::new("bad_server", format!("the server `{}` can't run so: {reason}", config.id)))
        }
    }
}

fn nothing_to_keep() -> Problem {
    Problem::new("bad_server", "a value was to be kept that is not there")
}

pub(super) fn name_taken(name: &str) -> Problem {
    Problem::new("server_exists", format!("there is a server called `{name}` already"))
        .hint("Choose another name, or remove the other one first.")
}

/// Nobody has to guess it; it only has to be new.
fn count() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
