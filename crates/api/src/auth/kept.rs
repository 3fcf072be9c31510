//! The keys that outlive the server: made, listed and revoked by the user, kept in the keyring.
//!
//! Invariant: a running server stops taking a key soon after it was revoked, also by another process.

use std::time::Duration;

use lectern_app::secrets::Kept;
use lectern_app::view::Problem;
use lectern_app::{Engine, KeptKey};

use super::{Key, Keys};

/// The key that is made when there is none.
pub const DEFAULT: &str = "default";

/// How often a running server looks whether keys were made or revoked.
const LOOKS: Duration = Duration::from_millis(500);

/// The keys of the keyring. What can't be read is no key.
pub async fn kept(engine: &Engine) -> Result<Vec<Key>, Problem> {
    let keys = engine.api_keys().await?;
    Ok(keys.into_iter().filter_map(|key| read(&key)).collect())
}

/// Keeps a key under its name; one of the same name is replaced.
pub async fn keep(engine: &Engine, key: &Key) -> Result<Kept, Problem> {
    let value = serde_json::to_string(key)
        .map_err(|error| Problem::new("defect", format!("write the key: {error}")))?;
    engine.keep_api_key(KeptKey { name: key.name.clone(), value: Some(value) }).await
}

/// All keys, with the one of the name [`DEFAULT`], which is made when it is missing. The second value says why it will not
/// outlive this run, when it won't.
pub async fn with_default(engine: &Engine) -> Result<(Vec<Key>, Key, Option<Kept>), Problem> {
    let mut keys = kept(engine).await.or_else(|problem| match problem.code.as_str() {
        "no_keyring" => Ok(Vec::new()),
        _ => Err(problem),
    })?;
    if let Some(key) = keys.iter().find(|key| key.name == DEFAULT) {
        let key = key.clone();
        return Ok((keys, key, None));
    }
    let key = Key::fresh(DEFAULT);
    let where_kept = keep(engine, &key).await?;
    keys.push(key.clone());
    Ok((keys, key, (where_kept != Kept::InKeyring).then_some(where_kept)))
}

/// Keeps the list of a running server as the keyring has it, until the task is dropped. `own` is good in any case.
pub async fn follow(engine: Engine, keys: Keys, own: Option<Key>) {
    let stamp = || {
        let meta = std::fs::metadata(engine.home().settings()).ok()?;
        Some((meta.len(), meta.modified().ok()?))
    };
    let mut seen = stamp();
    loop {
        tokio::time::sleep(LOOKS).await;
        let now = stamp();
        if now == seen {
            continue;
        }
        match kept(&engine).await {
            Ok(good) => {
                keys.replace(good.into_iter().chain(own.clone()));
                seen = now;
            }
            Err(problem) => tracing::warn!(%problem, "the keys could not be read again"),
        }
    }
}

fn read(key: &KeptKey) -> Option<Key> {
    let read: Key = serde_json::from_str(key.value.as_deref()?).ok()?;
    // The secret was made for this name; another entry can't borrow it.
    (read.name == key.name).then_some(read)
}
