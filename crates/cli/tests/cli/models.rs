//! The model library: downloads that are killed, interrupted and shared, removal with a way back, folders, tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::lectern::Lectern;

/// A hub with one repository of one file, which it gives out in pieces as long as it is held back. It is played from
/// the documented shape of Hugging Face's API.
struct Hub {
    address: String,
    held: Arc<Mutex<Held>>,
}

struct Held {
    bytes: Vec<u8>,
    /// Bytes of a file that are given out before the connection just stays.
    most: usize,
    ranges: Vec<Option<u64>>,
}

impl Hub {
    fn open(bytes: Vec<u8>, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let held = Arc::new(Mutex::new(Held { bytes, most, ranges: Vec::new() }));
        let shared = Arc::clone(&held);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let held = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &held));
            }
        });
        Self { address, held }
    }

    fn let_go(&self) {
        self.held.lock().unwrap().most = usize::MAX;
    }

    fn ranges(&self) -> Vec<Option<u64>> {
        self.held.lock().unwrap().ranges.clone()
    }
}

fn serve(mut stream: TcpStream, held: &Mutex<Held>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut first, mut headers) = (String::new(), BTreeMap::new());
        reader.read_line(&mut first).ok().filter(|count| *count > 0)?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let (bytes, most) = {
            let held = held.lock().unwrap();
            (held.bytes.clone(), held.most)
        };
        if first.contains("/api/models/o/r/tree/") {
            let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            let list = json!([{"type": "file", "path": "tiny-F16.gguf", "size": bytes.len(),
                "lfs": {"oid": sum, "size": bytes.len()}}]);
            let body = list.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
            continue;
        }
        if !first.contains("/o/r/resolve/main/tiny-F16.gguf") {
            write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        }
        let from: Option<u64> = headers
            .get("range")
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        held.lock().unwrap().ranges.push(from);
        let begin = usize::try_from(from.unwrap_or(0)).unwrap();
        let rest = &bytes[begin..];
        let status = match from {
            Some(from) => {
                format!("206 Partial\r\nContent-Range: bytes {from}-{}/{}", bytes.len() - 1, bytes.len())
            }
            None => "200 OK".to_owned(),
        };
        write!(stream, "HTTP/1.1 {status}\r\nETag: \"one\"\r\nContent-Length: {}\r\n\r\n", rest.len())
            .ok()?;
        let now = rest.len().min(most);
        stream.write_all(&rest[..now]).ok()?;
        if now < rest.len() {
            // Until it is let go, or the other end has gone.
            while held.lock().unwrap().most < usize::MAX {
                std::thread::sleep(Duration::from_millis(20));
            }
            stream.write_all(&rest[now..]).ok()?;
        }
    }
}

/// The built-in model, which any home has after the list was asked for.
fn starter(lectern: &Lectern) -> PathBuf {
    assert_eq!(lectern.run(["models", "list"]).code, Some(0));
    let entries = std::fs::read_dir(lectern.home().join("models")).unwrap().flatten();
    entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "gguf")).unwrap()
}

fn download(lectern: &Lectern, hub: &Hub) -> Child {
    let args = ["models", "download", "o/r"];
    lectern.command(args).env("HF_ENDPOINT", &hub.address).env_remove("HF_TOKEN").spawn().unwrap()
}

/// Waits until so much of the file is here.
fn wait_for_part(folder: &Path, bytes: u64) {
    let (begun, part) = (Instant::now(), folder.join("tiny-F16.gguf.part"));
    while std::fs::metadata(&part).map_or(0, |meta| meta.len()) < bytes {
        assert!(begun.elapsed() < Duration::from_secs(120), "the download did not come so far");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn downloads(lectern: &Lectern) -> Vec<Value> {
    let listed = lectern.run(["models", "downloads", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    listed["downloads"].as_array().unwrap().clone()
}

fn out_of(child: Child) -> (Option<i32>, String, String) {
    let done = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_download_that_was_killed_goes_on_and_its_model_answers() {
    let lectern = Lectern::new();
    let bytes = std::fs::read(starter(&lectern)).unwrap();
    let hub = Hub::open(bytes.clone(), 1_000_000);
    let folder = lectern.home().join("models");
    let mut killed = download(&lectern, &hub);
    wait_for_part(&folder, 1_000_000);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!folder.join("tiny-F16.gguf").exists());
    let left = downloads(&lectern);
    assert_eq!((left.len(), &left[0]["state"]["type"]), (1, &json!("paused")), "{left:?}");
    assert_eq!((&left[0]["done"], &left[0]["total"]), (&json!(1_000_000), &json!(bytes.len())));

    hub.let_go();
    let id = left[0]["id"].as_str().unwrap();
    let resumed = lectern.run_within(
        &[("HF_ENDPOINT", &hub.address), ("HF_TOKEN", "")],
        "",
        &["models", "downloads", "resume", id, "--json"],
    );
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let last: Value = serde_json::from_str(resumed.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["state"], json!({"type": "done", "model": "tiny-f16"}), "{last}");
    assert_eq!(std::fs::read(folder.join("tiny-F16.gguf")).unwrap(), bytes);
    assert_eq!(hub.ranges(), [None, Some(1_000_000)]);
    assert!(downloads(&lectern).is_empty());

    let bench = lectern.run(["models", "bench", "tiny-f16", "--json"]);
    let bench: Value = serde_json::from_str(&bench.out).unwrap_or_else(|_| panic!("{bench:?}"));
    assert!(bench["generation_tokens_per_second"].as_f64().unwrap() > 0.0, "{bench}");
    let advice = lectern.run(["models", "advise", "tiny-f16", "--json"]);
    let advice: Value = serde_json::from_str(&advice.out).unwrap();
    assert_eq!(advice["advice"][0]["advice"]["verdict"], "fits", "{advice}");
    assert_eq!(advice["advice"][0]["advice"]["speed"]["source"], "measured", "{advice}");
}

#[test]
fn two_processes_download_one_file_once() {
    let lectern = Lectern::new();
    let bytes = std::fs::read(starter(&lectern)).unwrap();
    let hub = Hub::open(bytes.clone(), 500_000);
    let folder = lectern.home().join("models");
    let first = download(&lectern, &hub);
    wait_for_part(&folder, 500_000);
    let mut second = download(&lectern, &hub);
    let mut said = String::new();
    let mut err = BufReader::new(second.stderr.take().unwrap());
    while !said.contains("another Lectern downloads it") {
        assert!(err.read_line(&mut said).unwrap() > 0, "{said}");
    }
    hub.let_go();
    assert_eq!(out_of(first).0, Some(0));
    err.read_to_string(&mut said).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(0), "{said}");
    assert_eq!(hub.ranges(), [None], "one of them asked, once");
    assert_eq!(std::fs::read(folder.join("tiny-F16.gguf")).unwrap(), bytes);
}

#[cfg(unix)]
#[test]
fn an_interrupt_pauses_and_says_how_to_go_on() {
    let lectern = Lectern::new();
    let hub = Hub::open(std::fs::read(starter(&lectern)).unwrap(), 500_000);
    let child = download(&lectern, &hub);
    wait_for_part(&lectern.home().join("models"), 500_000);
    let id = i32::try_from(child.id()).unwrap();
    // SAFETY: a signal to a process that this test started and has not waited for.
    assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
    let (code, _, err) = out_of(child);
    assert_eq!(code, Some(130), "{err}");
    let left = downloads(&lectern);
    let how = format!("lectern models downloads resume {}", left[0]["id"].as_str().unwrap());
    assert!(err.contains(&how), "{err}");
    let cancelled = lectern.run(["models", "downloads", "cancel", left[0]["id"].as_str().unwrap()]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert!(downloads(&lectern).is_empty());
    assert!(!lectern.home().join("models/tiny-F16.gguf.part").exists());
}

#[test]
fn a_removed_model_comes_back_with_its_settings() {
    let lectern = Lectern::new();
    let source = starter(&lectern);
    let (own, elsewhere) =
        (lectern.home().join("models/mine.gguf"), lectern.home().join("other/theirs.gguf"));
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    std::fs::copy(&source, &own).unwrap();
    std::fs::copy(&source, &elsewhere).unwrap();
    // What is in Lectern's own folder is on the list by itself.
    assert!(lectern.run(["models", "list"]).out.contains("mine"));
    assert_eq!(lectern.run(["models", "add", elsewhere.to_str().unwrap()]).code, Some(0));
    assert_eq!(lectern.run(["models", "use", "mine"]).code, Some(0));

    let removed: Value = serde_json::from_str(&lectern.run(["models", "rm", "mine", "--json"]).out).unwrap();
    assert_eq!(removed["file_deleted"], true, "{removed}");
    assert!(!own.exists());
    assert!(!lectern.run(["models", "list"]).out.contains("mine"));
    let back = lectern.run(["models", "rm", "--undo", removed["token"].as_str().unwrap(), "--json"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert!(own.exists());
    let listed: Value = serde_json::from_str(&lectern.run(["models", "list", "--json"]).out).unwrap();
    assert_eq!(listed["model"], "mine", "{listed}");

    let removed: Value =
        serde_json::from_str(&lectern.run(["models", "rm", "theirs", "--json"]).out).unwrap();
    assert_eq!(removed["file_deleted"], false);
    assert!(elsewhere.exists(), "only Lectern's own files are deleted");
    assert_eq!(lectern.run(["models", "rm", "--undo"]).code, Some(0));
    assert!(lectern.run(["models", "list"]).out.contains("theirs"));
    assert_eq!(lectern.run(["models", "rm", "--undo", "../../models"]).code, Some(2));
}

#[test]
fn a_folder_of_models_is_on_the_list_and_leaves_it() {
    let lectern = Lectern::new();
    let source = starter(&lectern);
    let folder = lectern.home().join("my models é");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    std::fs::copy(&source, folder.join("deep/good.gguf")).unwrap();
    std::fs::write(folder.join("broken.gguf"), "GGUF").unwrap();
    let folder = folder.to_str().unwrap();
    let added = lectern.run(["models", "folders", "add", folder, "--json"]);
    let added: Value = serde_json::from_str(&added.out).unwrap_or_else(|_| panic!("{added:?}"));
    assert_eq!((&added["kind"], &added["models"]), (&json!("watched"), &json!(2)));
    let list = || -> Value { serde_json::from_str(&lectern.run(["models", "list", "--json"]).out).unwrap() };
    let of =
        |list: &Value, id: &str| list["models"].as_array().unwrap().iter().find(|it| it["id"] == id).cloned();
    let good = of(&list(), "good").unwrap();
    assert_eq!((&good["origin"], &good["missing"]), (&json!("folder"), &json!(false)), "{good}");
    assert!(of(&list(), "broken").unwrap()["problem"]["message"].as_str().is_some());

    // What was taken off the list stays off it.
    assert_eq!(lectern.run(["models", "rm", "broken"]).code, Some(0));
    assert!(of(&list(), "broken").is_none());
    std::fs::remove_file(Path::new(folder).join("deep/good.gguf")).unwrap();
    assert_eq!(of(&list(), "good").unwrap()["missing"], true);
    assert_eq!(lectern.run(["models", "folders", "rm", folder]).code, Some(0));
    assert!(of(&list(), "good").is_none());
    assert!(Path::new(folder).join("broken.gguf").exists());
}

#[test]
fn what_can_not_be_had_is_named() {
    let lectern = Lectern::new();
    let hub = Hub::open(b"GGUF".to_vec(), usize::MAX);
    let env = [("HF_ENDPOINT", hub.address.as_str()), ("HF_TOKEN", "")];
    for (target, code, words) in [
        ("nonsense", 2, "neither a repository"),
        ("a/b", 1, "has no repository a/b"),
        ("o/r:Q2_K", 2, "o/r has no Q2_K"),
        ("http://127.0.0.1:1/x.gguf", 1, "127.0.0.1:1 can't be reached"),
    ] {
        let ran = lectern.run_within(&env, "", &["models", "download", target]);
        assert_eq!(ran.code, Some(code), "{target}: {ran:?}");
        assert!(ran.err.contains(words) && ran.err.contains("hint: "), "{target}: {ran:?}");
    }
    let listed = lectern.run_within(&env, "", &["models", "download", "o/r", "--list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed["files"][0]["quantisation"], "F16", "{listed}");
    assert_eq!(lectern.run(["models", "downloads", "pause", "nothing"]).code, Some(2));
}
