//! Downloads from a server that misbehaves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod going_on;
mod repositories;
mod stage;

use std::path::Path;
use std::time::Duration;

use lectern_library::{Download, Downloads, Fault, State};
use stage::{Act, Stage, downloads, model, options};

/// Waits for a state, however slow the machine is.
async fn until(downloads: &Downloads, id: &str, wanted: impl Fn(&Download) -> bool) -> Download {
    let mut news = downloads.subscribe();
    let waited = async {
        loop {
            let now = downloads.get(id).unwrap();
            if wanted(&now) {
                return now;
            }
            // What is missed is in the list; a tick comes either way.
            let _ = tokio::time::timeout(Duration::from_millis(100), news.recv()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waited).await.expect("it never came to that")
}

async fn ended(downloads: &Downloads, id: &str) -> Download {
    until(downloads, id, |it| matches!(it.state, State::Done | State::Failed(_))).await
}

async fn start(downloads: &Downloads, target: &str) -> Download {
    let offers = downloads.offers(target).await.unwrap();
    downloads.start(&offers, offers.choose(None).unwrap(), None).await.unwrap()
}

fn fault(download: &Download) -> &Fault {
    match &download.state {
        State::Failed(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Downloads `/m.gguf` of a repository whose server acts so.
async fn with_acts(acts: Vec<Act>) -> (tempfile::TempDir, Stage, Downloads, Download) {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = acts.into());
    let downloads = downloads(folder.path(), &stage.address, None);
    let begun = start(&downloads, "o/r").await;
    let ended = ended(&downloads, &begun.id).await;
    (folder, stage, downloads, ended)
}

#[track_caller]
fn assert_whole(folder: &Path, download: &Download) {
    assert!(matches!(download.state, State::Done), "{download:?}");
    assert_eq!(files(folder), ["m.gguf"]);
    assert_eq!(std::fs::read(folder.join("m.gguf")).unwrap(), model(1, 300_000));
    assert_eq!((download.done, download.total), (300_000, Some(300_000)));
}

#[tokio::test]
async fn a_model_comes_whole_and_is_found_again() {
    let (folder, stage, downloads, download) = with_acts(vec![]).await;
    assert_whole(folder.path(), &download);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join("m.gguf")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }
    let requests = stage.asked().len();
    let again = start(&downloads, "o/r:latest").await;
    assert!(matches!(again.state, State::Done), "{again:?}");
    assert_eq!(again.id, download.id);
    assert_eq!(stage.asked().len(), requests + 1, "only the list was asked for");
}

#[tokio::test]
async fn broken_connections_are_gone_on_with() {
    let acts = vec![Act::CutAfter(100_000), Act::CutAfter(0), Act::CutAfter(50_000)];
    let (folder, stage, _, download) = with_acts(acts).await;
    assert_whole(folder.path(), &download);
    let asked = stage.asked_for("m.gguf");
    let ranges: Vec<_> = asked.iter().map(|asked| asked.headers.get("range").cloned()).collect();
    assert_eq!(
        ranges,
        [None, Some("bytes=100000-".into()), Some("bytes=100000-".into()), Some("bytes=150000-".into())]
    );
    assert!(asked[1].headers.contains_key("if-range"));
    assert!(asked.iter().all(|asked| asked.headers["accept-encoding"] == "identity"));
}

#[tokio::test]
async fn silence_and_cut_chunks_are_breaks_too() {
    let acts = vec![Act::HangAfter(10_000), Act::ChunkedCut(5_000), Act::Chunked];
    let (folder, _, _, download) = with_acts(acts).await;
    assert_whole(folder.path(), &download);
}

#[tokio::test]
async fn a_server_without_ranges_starts_anew() {
    let (folder, stage, _, download) = with_acts(vec![Act::CutAfter(100_000), Act::NoRange]).await;
    assert_whole(folder.path(), &download);
    assert_eq!(stage.asked_for("m.gguf").len(), 2);
    assert!(download.notice.unwrap_or_default().contains("starts anew"));
}

#[tokio::test]
async fn another_range_than_asked_for_is_not_believed() {
    let (folder, _, _, download) = with_acts(vec![Act::CutAfter(100_000), Act::WrongRange]).await;
    assert_whole(folder.path(), &download);
}

#[tokio::test]
async fn a_busy_server_is_left_alone_and_asked_again() {
    let wait = vec![("Retry-After", "0".to_owned())];
    let acts = vec![Act::Status(429, wait, "slow down".into()), Act::Status(503, vec![], "".into())];
    let (folder, _, _, download) = with_acts(acts).await;
    assert_whole(folder.path(), &download);
}

#[tokio::test]
async fn a_server_that_wants_quiet_for_long_is_a_named_problem() {
    let acts = vec![Act::Status(429, vec![("Retry-After", "7200".to_owned())], "".into())];
    let (_folder, stage, _, download) = with_acts(acts).await;
    assert_eq!(fault(&download).code(), "too_many_requests");
    assert!(fault(&download).to_string().contains("2 h 0 min"), "{}", fault(&download));
    assert_eq!(stage.asked_for("m.gguf").len(), 1);
}

#[tokio::test]
async fn errors_are_named() {
    for (status, code) in [
        (401, "access_refused"),
        (403, "access_refused"),
        (404, "not_found"),
        (410, "not_found"),
        (418, "server_failed"),
    ] {
        let (folder, _, _, download) = with_acts(vec![Act::Status(status, vec![], "no".into())]).await;
        assert_eq!(fault(&download).code(), code, "{status}");
        assert!(!folder.path().join("m.gguf").exists());
    }
    let (_folder, stage, _, download) = with_acts(vec![Act::Status(500, vec![], "".into()); 9]).await;
    assert_eq!(fault(&download).code(), "server_failed");
    assert_eq!(stage.asked_for("m.gguf").len(), 5, "four tries after the first");
}

#[tokio::test]
async fn a_page_and_other_files_stop_at_once() {
    let page = |kind: &str| {
        Act::Status(200, vec![("Content-Type", kind.to_owned())], "<!doctype html><p>Sign in".into())
    };
    for act in [page("text/html; charset=utf-8"), page("application/octet-stream")] {
        let (folder, stage, _, download) = with_acts(vec![act]).await;
        // The page has another length than the file; what it is says more.
        assert!(matches!(fault(&download).code(), "not_a_model" | "file_changed"), "{download:?}");
        assert_eq!(stage.asked_for("m.gguf").len(), 1);
        assert!(!folder.path().join("m.gguf").exists());
    }
    let (stage, folder) = (Stage::open().await, tempfile::tempdir().unwrap());
    stage.hold("/x.gguf", b"PK\x03\x04 an archive", []);
    let downloads = downloads(folder.path(), "http://127.0.0.1:9/", None);
    let fault = downloads.offers(&format!("{}/x.gguf", stage.address)).await.unwrap_err();
    assert!(matches!(fault, Fault::NoGguf { .. }), "{fault}");
}

#[tokio::test]
async fn what_comes_compressed_is_refused() {
    let (_folder, _, _, download) = with_acts(vec![Act::Gzip]).await;
    assert_eq!(fault(&download).code(), "compressed");
}

#[tokio::test]
async fn a_wrong_checksum_is_never_kept() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    stage.repository("o/r", &[("m.gguf", &model(1, 300_000))]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.bytes = model(2, 300_000).into());
    let downloads = downloads(folder.path(), &stage.address, None);
    let begun = start(&downloads, "o/r").await;
    let download = ended(&downloads, &begun.id).await;
    assert_eq!(fault(&download).code(), "bad_checksum");
    assert_eq!(files(folder.path()), ["m.gguf.part.json"]);
    // Another try may bring the right bytes.
    stage.change("/o/r/resolve/main/m.gguf", |held| held.bytes = model(1, 300_000).into());
    downloads.resume(&begun.id).unwrap();
    assert_whole(folder.path(), &ended(&downloads, &begun.id).await);
}

#[tokio::test]
async fn a_damaged_part_is_noticed_and_mended() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HangAfter(100_000)].into());
    let first = downloads(folder.path(), &stage.address, None);
    let begun = start(&first, "o/r").await;
    until(&first, &begun.id, |it| it.done == 100_000).await;
    first.shutdown().await;
    let part = folder.path().join("m.gguf.part");
    let mut damaged = std::fs::read(&part).unwrap();
    damaged[50_000] ^= 1;
    std::fs::write(&part, damaged).unwrap();
    let second = downloads(folder.path(), &stage.address, None);
    second.resume(&begun.id).unwrap();
    assert_whole(folder.path(), &ended(&second, &begun.id).await);
}

#[tokio::test]
async fn a_changed_file_starts_anew_and_says_so() {
    for act in [Act::Serve, Act::IgnoreIfRange] {
        let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
        stage.hold("/m.gguf", &model(2, 200_000), [Act::Serve, Act::HoldAfter(100_000)]);
        let downloads = downloads(folder.path(), "http://127.0.0.1:9/", None);
        let begun =
            start(&downloads, &format!("{}/m.gguf?key=secret", stage.address).replace("?key=secret", ""))
                .await;
        until(&downloads, &begun.id, |it| it.done == 100_000).await;
        downloads.pause(&begun.id).await.unwrap();
        stage.hold("/m.gguf", &model(1, 300_000), [act]);
        downloads.resume(&begun.id).unwrap();
        let download = ended(&downloads, &begun.id).await;
        assert_whole(folder.path(), &download);
        assert!(
            download.notice.unwrap_or_default().contains("changed on the server"),
            "{:?}",
            download.state
        );
    }
}

#[tokio::test]
async fn a_cancelled_download_leaves_nothing() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
    let downloads = downloads(folder.path(), &stage.address, None);
    let begun = start(&downloads, "o/r").await;
    until(&downloads, &begun.id, |it| it.done == 100_000).await;
    downloads.cancel(&begun.id).await.unwrap();
    assert!(files(folder.path()).is_empty());
    assert!(downloads.list().is_empty());
}

#[tokio::test]
async fn two_downloads_of_one_file_are_one() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
    // Two sets of downloads on one folder are what two processes are.
    let (here, there) =
        (downloads(folder.path(), &stage.address, None), downloads(folder.path(), &stage.address, None));
    let begun = start(&here, "o/r").await;
    until(&here, &begun.id, |it| it.done == 100_000).await;
    assert_eq!(start(&here, "o/r").await.id, begun.id);
    let beside = start(&there, "o/r").await;
    assert_eq!(beside.id, begun.id);
    let waiting = until(&there, &beside.id, |it| it.notice.is_some()).await;
    assert!(waiting.notice.unwrap().contains("another Lectern"));
    stage.go_on();
    assert_whole(folder.path(), &ended(&here, &begun.id).await);
    assert_whole(folder.path(), &ended(&there, &beside.id).await);
    assert_eq!(stage.asked_for("m.gguf").len(), 1);
}

#[tokio::test]
async fn another_process_can_stop_a_download() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
    let (here, there) =
        (downloads(folder.path(), &stage.address, None), downloads(folder.path(), &stage.address, None));
    let begun = start(&here, "o/r").await;
    until(&here, &begun.id, |it| it.done == 100_000).await;
    let seen = &there.list()[0];
    assert!(matches!(seen.state, State::Running), "{seen:?}");
    there.pause(&begun.id).await.unwrap();
    let here = until(&here, &begun.id, |it| matches!(it.state, State::Paused)).await;
    assert_eq!(here.done, 100_000);
    there.cancel(&begun.id).await.unwrap();
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn endless_redirects_end() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    let round = Act::Status(302, vec![("Location", "/m.gguf".to_owned())], "".into());
    stage.hold("/m.gguf", b"", vec![round; 20]);
    let fault = downloads(folder.path(), "http://127.0.0.1:9/", None)
        .offers(&format!("{}/m.gguf", stage.address))
        .await;
    assert!(matches!(fault, Err(Fault::Redirects { .. })), "{fault:?}");
}

#[tokio::test]
async fn there_is_no_download_without_room() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    stage.list("o/r", &format!(r#"[{{"type": "file", "path": "m.gguf", "size": {}}}]"#, u64::MAX / 4));
    stage.hold("/o/r/resolve/main/m.gguf", b"GGUF", []);
    let downloads = downloads(folder.path(), &stage.address, None);
    let begun = start(&downloads, "o/r").await;
    let download = ended(&downloads, &begun.id).await;
    assert_eq!(fault(&download).code(), "no_space");
    assert!(stage.asked_for("m.gguf").is_empty(), "nothing was asked for");
}

#[tokio::test]
async fn another_file_of_the_same_name_is_left_alone() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    std::fs::write(folder.path().join("m.gguf"), "mine").unwrap();
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    let downloads = downloads(folder.path(), &stage.address, None);
    let begun = start(&downloads, "o/r").await;
    let download = ended(&downloads, &begun.id).await;
    assert!(matches!(download.state, State::Done), "{download:?}");
    assert_eq!(std::fs::read(folder.path().join("m.gguf")).unwrap(), b"mine");
    assert_eq!(std::fs::read(folder.path().join("o_r/m.gguf")).unwrap(), bytes);
}

#[tokio::test]
async fn a_folder_that_can_not_be_written_is_named() {
    let (outer, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    let folder = outer.path().join("a-file");
    std::fs::write(&folder, "not a folder").unwrap();
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    let downloads =
        lectern_library::Downloads::open(options(&outer.path().join("models"), &stage.address, None))
            .unwrap();
    let offers = downloads.offers("o/r").await.unwrap();
    let fault = downloads.start(&offers, &offers.offers[0], Some(&folder)).await.unwrap_err();
    assert_eq!(fault.code(), "bad_folder");
    assert!(fault.to_string().contains("a-file"), "{fault}");
}
