//! Downloads that were stopped, broken off, or ran out of room, and how they go on.

use super::*;

#[tokio::test]
async fn a_stopped_download_goes_on_in_the_next_run() {
    let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    stage.repository("o/r", &[("m.gguf", &bytes)]);
    stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
    let first = downloads(folder.path(), &stage.address, None);
    let begun = start(&first, "o/r").await;
    until(&first, &begun.id, |it| it.done == 100_000).await;
    let paused = first.pause(&begun.id).await.unwrap();
    assert!(matches!(paused.state, State::Paused));
    assert_eq!(files(folder.path()), ["m.gguf.part", "m.gguf.part.json"]);
    let second = downloads(folder.path(), &stage.address, None);
    let listed = second.list();
    assert_eq!((listed.len(), listed[0].done, listed[0].total), (1, 100_000, Some(300_000)));
    assert!(matches!(listed[0].state, State::Paused));
    second.resume(&begun.id).unwrap();
    assert_whole(folder.path(), &ended(&second, &begun.id).await);
    assert_eq!(stage.asked_for("m.gguf")[1].headers["range"], "bytes=100000-");
}

#[tokio::test]
async fn what_was_broken_off_goes_on_by_itself_and_what_was_stopped_does_not() {
    for stopped in [false, true] {
        let (folder, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
        stage.repository("o/r", &[("m.gguf", &bytes)]);
        stage.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
        let first = downloads(folder.path(), &stage.address, None);
        let begun = start(&first, "o/r").await;
        until(&first, &begun.id, |it| it.done == 100_000).await;
        if stopped {
            first.pause(&begun.id).await.unwrap();
        }
        first.shutdown().await;
        let second = downloads(folder.path(), &stage.address, None);
        second.resume_broken_off();
        if stopped {
            assert!(matches!(second.get(&begun.id).unwrap().state, State::Paused));
            assert_eq!(stage.asked_for("m.gguf").len(), 1);
            // A person's word counts from then on, also over the next end.
            second.resume(&begun.id).unwrap();
        }
        assert_whole(folder.path(), &ended(&second, &begun.id).await);
        assert_eq!(stage.asked_for("m.gguf")[1].headers["range"], "bytes=100000-");
    }
}

#[tokio::test]
async fn another_hub_and_another_token_hold_at_once() {
    let (folder, one, other) = (tempfile::tempdir().unwrap(), Stage::open().await, Stage::open().await);
    other.repository("o/r", &[("m.gguf", &model(1, 300_000))]);
    let list = "/api/models/o/r/tree/main?recursive=true";
    other.change(list, |held| held.acts = vec![Act::Status(401, vec![], "".into()); 3].into());
    let token = std::sync::Arc::new(std::sync::Mutex::new("hf_old"));
    let given = token.clone();
    let mut options = options(folder.path(), &one.address, None);
    options.web.token = Some(std::sync::Arc::new(move || {
        let token = given.lock().unwrap().to_string();
        Box::pin(std::future::ready(Some(token)))
    }));
    let downloads = Downloads::open(options).unwrap();
    assert!(downloads.offers("o/r").await.is_err());
    downloads.set_hub(other.address.parse().unwrap()).unwrap();
    assert!(downloads.offers("o/r").await.is_err(), "the old token is refused, too");
    *token.lock().unwrap() = "hf_new";
    downloads.set_hub(other.address.parse().unwrap()).unwrap();
    let begun = start(&downloads, "o/r").await;
    assert_whole(folder.path(), &ended(&downloads, &begun.id).await);
    let shown: Vec<_> =
        other.asked().iter().filter_map(|it| it.headers.get("authorization").cloned()).collect();
    assert_eq!(
        (shown.first().unwrap().as_str(), shown.last().unwrap().as_str()),
        ("Bearer hf_old", "Bearer hf_new")
    );
    assert!(
        one.asked()
            .iter()
            .all(|asked| asked.headers.get("authorization").is_none_or(|it| it == "Bearer hf_old"))
    );
}

#[tokio::test]
async fn what_waits_or_was_stopped_goes_on_at_another_hub() {
    let (folder, one, other) = (tempfile::tempdir().unwrap(), Stage::open().await, Stage::open().await);
    let (first, second) = (model(1, 300_000), model(2, 200_000));
    for stage in [&one, &other] {
        stage.repository("o/r", &[("m.gguf", &first)]);
        stage.repository("o/s", &[("n.gguf", &second)]);
    }
    one.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::HoldAfter(100_000)].into());
    let mut options = options(folder.path(), &one.address, None);
    options.at_once = 1;
    let downloads = Downloads::open(options).unwrap();
    let stopped = start(&downloads, "o/r").await;
    until(&downloads, &stopped.id, |it| it.done == 100_000).await;
    let waiting = start(&downloads, "o/s").await;
    assert!(matches!(waiting.state, State::Queued));
    downloads.set_hub(other.address.parse().unwrap()).unwrap();
    downloads.pause(&stopped.id).await.unwrap();
    assert!(matches!(ended(&downloads, &waiting.id).await.state, State::Done));
    downloads.resume(&stopped.id).unwrap();
    assert!(matches!(ended(&downloads, &stopped.id).await.state, State::Done));
    assert_eq!(std::fs::read(folder.path().join("m.gguf")).unwrap(), first);
    assert_eq!(std::fs::read(folder.path().join("n.gguf")).unwrap(), second);
    assert_eq!((one.asked_for("n.gguf").len(), other.asked_for("n.gguf").len()), (0, 1));
    assert_eq!((one.asked_for("m.gguf").len(), other.asked_for("m.gguf").len()), (1, 1));
    assert_eq!(other.asked_for("m.gguf")[0].headers["range"], "bytes=100000-");
    let host = other.address.trim_start_matches("http://").trim_end_matches('/');
    assert_eq!(downloads.get(&waiting.id).unwrap().host, host);
}

/// A small file system of its own; none where this user may not mount one.
#[cfg(target_os = "linux")]
struct SmallDisk(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(disk.0.path());
        mount.output().ok().filter(|done| done.status.success()).map(|_| disk)
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).output();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_disk_that_fills_up_keeps_what_came_and_says_how_much_room_the_rest_needs() {
    let Some(disk) = SmallDisk::mount("600k") else {
        eprintln!("skipped: this user may not mount a file system");
        return;
    };
    let stage = Stage::open().await;
    stage.hold("/m.gguf", &model(1, 300_000), [Act::Serve, Act::HoldAfter(100_000)]);
    let downloads = downloads(disk.0.path(), "http://127.0.0.1:9/", None);
    let begun = start(&downloads, &format!("{}/m.gguf", stage.address)).await;
    until(&downloads, &begun.id, |it| it.done == 100_000).await;
    let filler = disk.0.path().join("filler");
    // It takes all that there is.
    assert!(std::fs::write(&filler, vec![1; 1 << 20]).is_err());
    stage.go_on();
    let full = ended(&downloads, &begun.id).await;
    let Fault::NoSpace { needed, free, .. } = fault(&full) else { panic!("{full:?}") };
    let here = std::fs::metadata(disk.0.path().join("m.gguf.part")).unwrap().len();
    assert!(here >= 100_000);
    assert_eq!((*needed, *free), (300_000 - here, 0));
    std::fs::remove_file(&filler).unwrap();
    downloads.resume(&begun.id).unwrap();
    assert_whole(disk.0.path(), &ended(&downloads, &begun.id).await);
}
