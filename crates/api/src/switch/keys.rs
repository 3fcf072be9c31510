//! The keys of a window's API: listed, made, revoked.
//!
//! Invariant: a secret goes out once, in the answer to making it. A key that is revoked opens nothing from that moment on.

use std::time::SystemTime;

use lectern_app::secrets::Kept;
use lectern_app::view::{ApiKeyDraft, ApiKeyPlace, ApiKeyView, ApiKeysView, ApiScope, MadeApiKey, Problem};

use super::{Switch, locked};
use crate::auth::{Key, Scope, kept};

/// The keys of the keyring, and for which settings they are those.
pub(super) struct Known {
    stamp: Option<(u64, SystemTime)>,
    entries: Vec<(String, Option<Key>)>,
}

impl Switch {
    /// All keys, without their secrets. The keyring may wait for its user; it is not asked again before a key is made or
    /// revoked.
    pub async fn api_keys(&self) -> Result<ApiKeysView, Problem> {
        let (entries, problem) = match self.entries().await {
            Ok(entries) => (entries, None),
            Err(problem) => {
                let named = self.0.engine.api_entry()?.keys.into_iter();
                (named.map(|name| (name, None)).collect(), Some(problem))
            }
        };
        let kept = entries.into_iter().map(|(name, key)| match key {
            Some(key) => self.key_view(&key, ApiKeyPlace::Keyring),
            None => ApiKeyView {
                name,
                scopes: Vec::new(),
                server_tools: false,
                last_used: None,
                place: ApiKeyPlace::Missing,
            },
        });
        let mut keys: Vec<ApiKeyView> = kept.collect();
        keys.extend(locked(&self.0.session).iter().map(|key| self.key_view(key, ApiKeyPlace::Session)));
        Ok(ApiKeysView { keys, problem })
    }

    async fn entries(&self) -> Result<Vec<(String, Option<Key>)>, Problem> {
        let stamp = kept::stamp(&self.0.engine);
        if let Some(known) = locked(&self.0.known).as_ref().filter(|known| known.stamp == stamp) {
            return Ok(known.entries.clone());
        }
        let entries = kept::entries(&self.0.engine).await?;
        *locked(&self.0.known) = Some(Known { stamp, entries: entries.clone() });
        Ok(entries)
    }

    /// Makes a key. Where there is no keyring it is good until Lectern ends.
    pub async fn add_key(&self, draft: ApiKeyDraft) -> Result<MadeApiKey, Problem> {
        let mut known = self.0.engine.api_entry()?.keys;
        known.extend(locked(&self.0.session).iter().map(|key| key.name.clone()));
        let name = kept::new_name(&draft.name, &known)?;
        if draft.scopes.is_empty() {
            return Err(Problem::new("no_scope", "a key without any scope opens nothing"));
        }
        let mut scopes: Vec<Scope> = draft.scopes.into_iter().map(Scope::from).collect();
        scopes.dedup();
        let key = Key::fresh(name).with_scopes(scopes).with_server_tools(draft.server_tools);
        let (place, for_this_session) = match kept::keep(&self.0.engine, &key).await? {
            Kept::InKeyring => (ApiKeyPlace::Keyring, None),
            Kept::ForThisSession(reason) => {
                locked(&self.0.session).push(key.clone());
                (ApiKeyPlace::Session, Some(Problem::from_error("no_keyring", &reason)))
            }
        };
        self.0.keys.add(&key);
        Ok(MadeApiKey { key: self.key_view(&key, place), secret: key.secret().to_owned(), for_this_session })
    }

    /// Forgets a key; who has it is refused from now on.
    pub async fn revoke_key(&self, name: &str) -> Result<(), Problem> {
        self.0.keys.remove(name);
        let of_session = {
            let mut session = locked(&self.0.session);
            let before = session.len();
            session.retain(|key| key.name != name);
            session.len() < before
        };
        let of_keyring = self.0.engine.forget_api_key(name).await?;
        if of_session || of_keyring {
            return Ok(());
        }
        Err(Problem::new("unknown_key", format!("there is no key `{name}`")))
    }

    /// The keys that no keyring has, whenever they are asked for.
    pub(super) fn session_keys(&self) -> impl Fn() -> Vec<Key> + Send + use<> {
        let switch = self.clone();
        move || locked(&switch.0.session).clone()
    }

    fn key_view(&self, key: &Key, place: ApiKeyPlace) -> ApiKeyView {
        ApiKeyView {
            name: key.name.clone(),
            scopes: key.scopes.iter().map(|scope| (*scope).into()).collect(),
            server_tools: key.server_tools,
            last_used: self.0.keys.last_used(&key.name),
            place,
        }
    }
}

impl From<ApiScope> for Scope {
    fn from(scope: ApiScope) -> Self {
        match scope {
            ApiScope::Models => Self::Models,
            ApiScope::Tools => Self::Tools,
            ApiScope::Approvals => Self::Approvals,
        }
    }
}

impl From<Scope> for ApiScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Models => Self::Models,
            Scope::Tools => Self::Tools,
            Scope::Approvals => Self::Approvals,
        }
    }
}
