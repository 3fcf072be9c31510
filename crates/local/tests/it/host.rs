//! What the process costs that shows the window: the model is its child's.

use std::path::Path;
use std::process::Command;

use lectern_core::{ChatRequest, Sampling};
use lectern_local::LocalOptions;
use lectern_test_gguf::{Architecture, Proportions, kind};

use crate::support::{ask, open, request, worker};

/// Names the model in the process that is measured.
const MEASURED: &str = "LECTERN_TEST_HOST_OF";

/// The most memory that a process held which has a model answer, in kB.
fn measured(path: &Path) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host::memory_does_not_follow_the_model", "--nocapture"])
        .env(MEASURED, path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let peak = said.lines().find_map(|line| line.split("peak:").nth(1)?.trim().parse().ok());
    peak.unwrap_or_else(|| panic!("no figure: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

async fn answers(path: &Path) {
    let options = LocalOptions { context: Some(512), ..LocalOptions::default() };
    let model = open(path, options, worker()).await;
    let ask_for = ChatRequest {
        sampling: Sampling { max_tokens: Some(2), ..Sampling::default() },
        ..request("some words")
    };
    assert_eq!(ask(&model, ask_for).await.error, None);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(&path.display().to_string()), "the host maps the model");
    model.unload().await;
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_follow_the_model() {
    if let Some(path) = std::env::var_os(MEASURED) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(answers(Path::new(&path)));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        println!("peak: {}", peak.trim().trim_end_matches(" kB"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tiny = Proportions { kind: kind::F16, ..Proportions::tiny(Architecture::Llama) };
    let large = Proportions { width: 1024, heads: 16, kv_heads: 4, hidden: 4096, blocks: 20, ..tiny.clone() };
    let peak = |name: &str, shape: &Proportions| {
        let path = folder.path().join(name);
        shape.write_hollow(&path).unwrap();
        (std::fs::metadata(&path).unwrap().len() >> 20, measured(&path))
    };
    let ((small_file, small), (large_file, large)) = (peak("tiny.gguf", &tiny), peak("large.gguf", &large));
    assert!(large_file > small_file + 500, "{large_file} MB");
    println!("FIGURE the host of a model of {small_file} MB: {small} kB; of {large_file} MB: {large} kB");
    assert!(large < small + 8_000, "{small} kB with {small_file} MB, {large} kB with {large_file} MB");
}
