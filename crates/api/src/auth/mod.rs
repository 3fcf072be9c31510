//! Who asks: keys with names and scopes.
//!
//! Invariant: no request gets past here without a key; keys are compared by their digests, each with each, in the same
//! time whatever they have in common.

pub mod kept;
mod key;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use lectern_core::{Actor, Timestamp, clock};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

pub use key::{Key, Scope};

use crate::error::{ApiError, ErrorKind};
use crate::metrics::http::RequestId;
use crate::state::Api;
use key::digest;

/// The keys that are good. Clones are the same list.
#[derive(Clone, Default)]
pub struct Keys(Arc<RwLock<Vec<Known>>>);

#[derive(Clone)]
struct Known {
    digest: [u8; 32],
    caller: Caller,
    /// When it was used last, in milliseconds since 1970; 0 when it was not.
    used: Arc<AtomicI64>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the key.
    pub name: Arc<str>,
    /// Tells the key from others, those of the same name before or after it included.
    pub id: Arc<str>,
    /// What it may do.
    pub scopes: Arc<[Scope]>,
    /// Whether the user's servers serve each of its requests.
    pub server_tools: bool,
    /// The request, once there is one.
    pub request: Option<Arc<str>>,
}

impl Caller {
    /// For the audit log.
    pub fn actor(&self) -> Actor {
        Actor::Api { key: self.name.to_string(), request: self.request.as_deref().map(str::to_owned) }
    }

    /// Refuses what the key may not do.
    pub fn must(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let message = format!("the key `{}` has not the scope `{}`", self.name, scope.name());
        Err(ApiError::forbidden("insufficient_scope", message))
    }
}

impl Keys {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let all = Self::default();
        all.replace(keys);
        all
    }

    /// From now on these are good and no others.
    pub fn replace(&self, keys: impl IntoIterator<Item = Key>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // One that was good before has been used when it was used.
        let used =
            |digest: &[u8; 32]| all.iter().find(|known| known.digest == *digest).map(|known| &known.used);
        let known = keys.into_iter().map(|key| {
            let digest = digest(key.secret());
            Known { digest, caller: key.caller(), used: used(&digest).cloned().unwrap_or_default() }
        });
        let known: Vec<Known> = known.collect();
        *all = known;
    }

    /// From now on this one is good, too.
    pub fn add(&self, key: &Key) {
        let known = Known { digest: digest(key.secret()), caller: key.caller(), used: Arc::default() };
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(known);
    }

    /// From now on those of this name are good no more.
    pub fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|known| &*known.caller.name != name);
    }

    /// When a key of this name was used last; none when it was not.
    pub fn last_used(&self, name: &str) -> Option<Timestamp> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let used = known.iter().filter(|known| &*known.caller.name == name);
        let last = used.map(|known| known.used.load(Ordering::Relaxed)).max().filter(|last| *last > 0)?;
        Timestamp::from_millisecond(last).ok()
    }

    /// Whether any key may do this.
    pub fn any(&self, scope: Scope) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|key| key.caller.scopes.contains(&scope))
    }

    fn find(&self, secret: &str) -> Option<Caller> {
        let asked = digest(secret);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut at) = (Choice::from(0), 0_u64);
        for (number, key) in (0_u64..).zip(known.iter()) {
            let same = key.digest.ct_eq(&asked);
            at.conditional_assign(&number, same);
            found |= same;
        }
        let at = usize::try_from(at).ok()?;
        let key = bool::from(found).then(|| known.get(at)).flatten()?;
        key.used.store(clock::now().as_millisecond(), Ordering::Relaxed);
        Some(key.caller.clone())
    }
}

/// Lets a request on that has a good key, and notes whose it is.
pub async fn require(State(api): State<Api>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let secret = secret(request.headers())?;
    let Some(mut caller) = api.keys.find(secret) else {
        return Err(refused(
            "invalid_api_key",
            "the API key is not known; `lectern serve keys list` shows them",
        ));
    };
    caller.request = request.extensions().get::<RequestId>().map(|id| Arc::clone(&id.0));
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// `Authorization: Bearer KEY` (RFC 6750, section 2.1).
fn secret(headers: &HeaderMap) -> Result<&str, ApiError> {
    let missing = || refused("missing_api_key", "a key is needed, as `Authorization: Bearer KEY`");
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let value = value.to_str().map_err(|_| missing())?;
    let (scheme, secret) = value.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") || secret.trim().is_empty() {
        return Err(missing());
    }
    Ok(secret.trim())
}

fn refused(code: &'static str, message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, ErrorKind::AuthenticationError, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_secret_alone_until_it_is_revoked() {
        let (one, two) = (Key::fresh("one"), Key::fresh("two"));
        let keys = Keys::new([one.clone(), two.clone()]);
        assert_eq!(keys.find(two.secret()).map(|caller| caller.name), Some("two".into()));
        assert_eq!(keys.find(&two.secret()[1..]), None);
        let used = keys.last_used("two");
        assert!(used.is_some());
        assert_eq!(keys.last_used("one"), None);
        keys.replace([two.clone()]);
        assert_eq!(keys.last_used("two"), used);
        keys.replace([one]);
        assert_eq!(keys.find(two.secret()), None);
        keys.add(&two);
        assert!(keys.find(two.secret()).is_some());
        keys.remove("two");
        assert_eq!(keys.find(two.secret()), None);
        assert_eq!(Keys::default().find(""), None);
    }
}
