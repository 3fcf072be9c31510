//! Values that are longer than an entry of the keyring may be, in several entries.
//!
//! Invariant: a value comes back whole or not at all.

use keyring_core::{CredentialStore, Entry, Error};
use sha2::{Digest, Sha256};

/// Bytes of one entry. Windows takes 2,560; the others take far more.
const LONGEST: usize = if cfg!(windows) { 2_400 } else { 60_000 };
/// Begins an entry that names the number of its parts.
const HEAD: &str = "lectern-parts:";
/// Parts of one value.
const MOST: usize = 1_000;

pub(super) fn set(store: &CredentialStore, service: &str, name: &str, value: &str) -> Result<(), Error> {
    set_within(store, service, name, value, LONGEST)
}

fn set_within(
    store: &CredentialStore,
    service: &str,
    name: &str,
    value: &str,
    longest: usize,
) -> Result<(), Error> {
    let before = head(store, service, name)?.map_or(0, |head| head.parts);
    if value.len() <= longest && !value.starts_with(HEAD) {
        entry(store, service, name)?.set_secret(value.as_bytes())?;
        return forget_parts(store, service, name, 1..=before);
    }
    let parts: Vec<&[u8]> = value.as_bytes().chunks(longest).collect();
    if parts.len() > MOST {
        return Err(Error::TooLong("the value".into(), u32::try_from(longest * MOST).unwrap_or(u32::MAX)));
    }
    for (number, part) in (1..).zip(&parts) {
        entry(store, service, &part_name(name, number))?.set_secret(part)?;
    }
    // The head comes last: until then the old value holds, or none does.
    let head = format!("{HEAD}{}:{}", parts.len(), digest(value.as_bytes()));
    entry(store, service, name)?.set_secret(head.as_bytes())?;
    forget_parts(store, service, name, parts.len() + 1..=before)
}

pub(super) fn get(store: &CredentialStore, service: &str, name: &str) -> Result<Option<String>, Error> {
    let Some(first) = read(store, service, name)? else { return Ok(None) };
    let damaged = || Error::PlatformFailure("an entry is damaged".into());
    let whole = match Head::of(&first) {
        None => first,
        Some(head) => {
            let mut whole = Vec::new();
            for number in 1..=head.parts {
                whole.extend(read(store, service, &part_name(name, number))?.ok_or_else(damaged)?);
            }
            if digest(&whole) != head.digest {
                return Err(damaged());
            }
            whole
        }
    };
    String::from_utf8(whole).map(Some).map_err(|_| damaged())
}

pub(super) fn delete(store: &CredentialStore, service: &str, name: &str) -> Result<(), Error> {
    let parts = head(store, service, name)?.map_or(0, |head| head.parts);
    forget(store, service, name)?;
    forget_parts(store, service, name, 1..=parts)
}

/// What the first entry of a value in parts says.
struct Head {
    parts: usize,
    digest: String,
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (parts, digest) = std::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?.split_once(':')?;
        let parts = parts.parse().ok().filter(|parts| *parts <= MOST)?;
        Some(Self { parts, digest: digest.to_owned() })
    }
}

fn head(store: &CredentialStore, service: &str, name: &str) -> Result<Option<Head>, Error> {
    Ok(read(store, service, name)?.and_then(|bytes| Head::of(&bytes)))
}

fn read(store: &CredentialStore, service: &str, name: &str) -> Result<Option<Vec<u8>>, Error> {
    match entry(store, service, name)?.get_secret() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    }
}

fn forget_parts(
    store: &CredentialStore,
    service: &str,
    name: &str,
    numbers: std::ops::RangeInclusive<usize>,
) -> Result<(), Error> {
    numbers.into_iter().try_for_each(|number| forget(store, service, &part_name(name, number)))
}

fn forget(store: &CredentialStore, service: &str, name: &str) -> Result<(), Error> {
    match entry(store, service, name)?.delete_credential() {
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(error),
    }
}

fn entry(store: &CredentialStore, service: &str, name: &str) -> Result<Entry, Error> {
    store.build(service, name, None)
}

fn part_name(name: &str, number: usize) -> String {
    format!("{name}#{number}")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_come_back_whole_and_leave_nothing_behind() {
        let store = keyring_core::mock::Store::new().unwrap();
        let store: &CredentialStore = &*store;
        let there = |name: &str| read(store, "s", name).unwrap().is_some();
        let long = "äöü€𝄞".repeat(100);
        set_within(store, "s", "a", &long, 64).unwrap();
        assert_eq!(get(store, "s", "a").unwrap(), Some(long.clone()));
        assert!(there("a#2"));
        // A shorter one takes its place.
        set_within(store, "s", "a", &long[..100], 64).unwrap();
        assert_eq!(get(store, "s", "a").unwrap().as_deref(), Some(&long[..100]));
        assert!(there("a#2") && !there("a#3"));
        set_within(store, "s", "a", "short", 64).unwrap();
        assert_eq!(get(store, "s", "a").unwrap().as_deref(), Some("short"));
        assert!(!there("a#1"));
        // A value that looks like a head is still a value.
        set_within(store, "s", "a", "lectern-parts:3:x", 64).unwrap();
        assert_eq!(get(store, "s", "a").unwrap().as_deref(), Some("lectern-parts:3:x"));
        delete(store, "s", "a").unwrap();
        delete(store, "s", "a").unwrap();
        assert!(!there("a") && !there("a#1"));
    }

    #[test]
    fn a_value_with_a_lost_part_is_no_value() {
        let store = keyring_core::mock::Store::new().unwrap();
        let store: &CredentialStore = &*store;
        set_within(store, "s", "a", &"x".repeat(200), 64).unwrap();
        forget(store, "s", "a#2").unwrap();
        assert!(get(store, "s", "a").is_err());
    }
}
