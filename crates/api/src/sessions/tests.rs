use std::fs;

use super::*;

fn sessions(folder: &Path, limits: SessionLimits) -> Sessions {
    Sessions::open(folder, &Store::in_memory().unwrap(), limits).unwrap()
}

fn named_so(sessions: &Sessions, key: &str, name: &str) -> Result<Session, ApiError> {
    sessions.session(key, Some(name.to_owned()))
}

#[test]
fn names_that_lead_elsewhere_are_refused_and_all_others_stay_inside() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionLimits::default());
    for name in
        ["..", ".", "", "a/b", "a\\b", "/etc", "a\0b", "C:x", "a..b", ".hidden", "ü", &"a".repeat(129)]
    {
        let Err(refused) = named_so(&sessions, "k", name) else { panic!("{name:?}") };
        assert_eq!(refused.code, "invalid_session_id", "{name:?}");
    }
    // Reserved on Windows, or the same but for its case: a folder of its own in any case.
    let folders: Vec<PathBuf> = ["NUL", "con.txt", "Case", "case"]
        .iter()
        .map(|name| named_so(&sessions, "k", name).ok().unwrap().workspace)
        .collect();
    for (number, one) in folders.iter().enumerate() {
        assert_eq!(one.parent(), Some(folder.path().join("workspaces").as_path()));
        let lower = |path: &PathBuf| path.to_string_lossy().to_lowercase();
        assert!(folders[number + 1..].iter().all(|other| lower(other) != lower(one)));
    }
    let other_key = named_so(&sessions, "l", "case").ok().unwrap();
    assert!(!folders.contains(&other_key.workspace));
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_a_folder_is_refused_and_never_followed() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("precious"), "x".repeat(100)).unwrap();
    let limits = SessionLimits { idle: Duration::ZERO, bytes: 10, ..SessionLimits::default() };
    let sessions = sessions(folder.path(), limits);
    let session = named_so(&sessions, "k", "s").ok().unwrap();
    fs::remove_dir(&session.workspace).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &session.workspace).unwrap();
    assert!(named_so(&sessions, "k", "s").is_err());
    assert!(!sessions.places.is_beyond(&session.digest, 10, 10));
    let place = session.workspace.clone();
    drop(session);
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(sessions.sweep().unwrap().len(), 1);
    assert!(place.symlink_metadata().is_err());
    assert!(elsewhere.path().join("precious").exists());
}

#[test]
fn a_full_folder_is_known_and_a_session_that_rested_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let limits = SessionLimits { bytes: 10, idle: Duration::ZERO, ..SessionLimits::default() };
    let sessions = sessions(folder.path(), limits);
    let session = named_so(&sessions, "k", "s").ok().unwrap();
    let says = Message::User(lectern_core::UserMessage::text("hi"));
    sessions.begin(&session, vec![says]).unwrap();
    let deep = session.workspace.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    assert!(!sessions.places.is_beyond(&session.digest, 10, 10));
    assert!(sessions.places.is_beyond(&session.digest, 10, 1));
    fs::write(deep.join("file"), "more than ten bytes").unwrap();
    assert!(sessions.places.is_beyond(&session.digest, 10, 10));
    assert_eq!(sessions.history(&session).unwrap().len(), 1);
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(sessions.sweep().unwrap(), [], "it is in use");
    let (conversation, place) = (session.conversation.clone(), session.workspace.clone());
    drop(session);
    // A folder whose session is gone, as after a crash.
    fs::create_dir(folder.path().join("workspaces/sess_0123")).unwrap();
    assert_eq!(sessions.sweep().unwrap(), [conversation]);
    assert!(!place.exists() && !folder.path().join("workspaces/sess_0123").exists());
    let Err(gone) = sessions.known("k", "s".to_owned()) else { panic!("it is there") };
    assert_eq!(gone.code, "session_not_found");
}
