//! The keys that outlive the server: made, listed and revoked by the user, kept in the keyring.
//!
//! Invariant: a running server stops taking a key soon after it was revoked, also by another process.

use std::time::{Duration, SystemTime};

use lectern_app::secrets::Kept;
use lectern_app::view::Problem;
use lectern_app::{Engine, KeptKey};

use super::{Key, Keys};

/// The key that is made when there is none.
pub const DEFAULT: &str = "default";

/// How often a running server looks whether keys were made or revoked.
const LOOKS: Duration = Duration::from_millis(500);

/// Characters of a name at most.
const LONGEST_NAME: usize = 64;

/// The keys of the keyring. What can't be read is no key.
pub async fn kept(engine: &Engine) -> Result<Vec<Key>, Problem> {
    let keys = entries(engine).await?;
    Ok(keys.into_iter().filter_map(|(_, key)| key).collect())
}

/// All names of the settings, each with its key where the keyring has one.
pub async fn entries(engine: &Engine) -> Result<Vec<(String, Option<Key>)>, Problem> {
    let keys = engine.api_keys().await?;
    Ok(keys.into_iter().map(|key| (key.name.clone(), read(&key))).collect())
}

/// A name that a key can have, which no other has.
pub fn new_name<'a>(name: &'a str, known: &[String]) -> Result<&'a str, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        let said = format!("a key's name has 1 to {LONGEST_NAME} characters of one line");
        return Err(Problem::new("bad_key_name", said));
    }
    if known.iter().any(|known| known == name) {
        return Err(Problem::new("key_exists", format!("there is a key `{name}` already"))
            .hint("Revoke it first, or choose another name."));
    }
    Ok(name)
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
    let mut key = Key::fresh(DEFAULT);
    let where_kept = keep(engine, &key).await?;
    if where_kept != Kept::InKeyring {
        // There is a new one each time, and sessions outlive the server.
        key = key.known_by_its_name();
    }
    keys.push(key.clone());
    Ok((keys, key, (where_kept != Kept::InKeyring).then_some(where_kept)))
}

/// Keeps the list of a running server as the keyring has it, until the task is dropped. What `own` gives is good in any
/// case.
pub async fn follow(engine: Engine, keys: Keys, own: impl Fn() -> Vec<Key>) {
    let mut seen = stamp(&engine);
    loop {
        tokio::time::sleep(LOOKS).await;
        let now = stamp(&engine);
        if now == seen {
            continue;
        }
        match kept(&engine).await {
            Ok(good) => {
                keys.replace(good.into_iter().chain(own()));
                seen = now;
            }
            Err(problem) => tracing::warn!(%problem, "the keys could not be read again"),
        }
    }
}

/// What changes whenever a key is made or revoked, by whomever.
pub fn stamp(engine: &Engine) -> Option<(u64, SystemTime)> {
    let meta = std::fs::metadata(engine.home().settings()).ok()?;
    Some((meta.len(), meta.modified().ok()?))
}

fn read(key: &KeptKey) -> Option<Key> {
    let read: Key = serde_json::from_str(key.value.as_deref()?).ok()?;
    // The secret was made for this name; another entry can't borrow it.
    (read.name == key.name).then_some(read)
}
