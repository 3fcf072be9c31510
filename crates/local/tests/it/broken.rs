use std::time::Duration;

use lectern_core::{ModelErrorCode, ModelId};
use lectern_local::{LocalModel, LocalOptions, inspect};
use lectern_test_gguf::{Recipe, Shape, broken};

use crate::support::{ask, request, worker};

/// A safety net: a load that hangs is a failure of the test, not of the machine it runs on.
const HANG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_file_gives_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut reasons = Vec::new();
    for file in broken() {
        let path = folder.path().join(format!("{}.gguf", file.name));
        match &file.shape {
            Shape::Bytes(bytes) => std::fs::write(&path, bytes).unwrap(),
            Shape::Folder => std::fs::create_dir(&path).unwrap(),
            Shape::Missing => {}
        }
        let load = async {
            match LocalModel::open(ModelId::from("broken"), &path, LocalOptions::default(), worker()).await {
                Err(error) => error.to_string(),
                Ok(model) => {
                    let error = ask(&model, request("Hi")).await.error.expect("no reply from a broken file");
                    assert_eq!(error.code, ModelErrorCode::BadModelFile, "{}: {error}", file.name);
                    error.message
                }
            }
        };
        let message =
            tokio::time::timeout(HANG, load).await.unwrap_or_else(|_| panic!("{} hangs", file.name));
        let named = path.display().to_string();
        let reason =
            message.split_once(&named).unwrap_or_else(|| panic!("{message} does not name {named}")).1;
        assert!(reason.len() > "`: ".len() + 8, "{}: `{message}` gives no reason", file.name);
        reasons.push(format!("{:26} {}", file.name, reason.trim_start_matches("`: ")));
    }
    assert_eq!(reasons.len(), 64);
    println!("{}", reasons.join("\n"));
}

#[tokio::test]
async fn a_good_file_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.gguf");
    std::fs::write(&path, Recipe::default().bytes()).unwrap();
    let seen = inspect(&path, &worker()).await.unwrap();
    let shown = serde_json::to_value(&seen).unwrap();
    assert_eq!(shown["architecture"], "llama");
    assert_eq!(shown["name"], "Random bytes");
    assert_eq!(shown["quantization"], "all F32");
    assert_eq!(shown["tools"], "native");
    assert_eq!(shown["vocabulary"], 267);
    assert_eq!(shown["context_length"], 4096);
}
