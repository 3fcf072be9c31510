//! What a model is said to need, against what its worker takes.

use std::path::Path;

use lectern_core::{ChatRequest, Sampling};
use lectern_local::memory::{MemoryNeed, MemoryPlan, predict};
use lectern_local::{LocalOptions, read_info};
use lectern_test_gguf::{Architecture, Proportions, kind};

use crate::support::{ask, open, request, worker};

/// The peak of resident memory of a process, in bytes.
fn peak_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Predicted and real memory of a model that answers with a prompt of many batches.
async fn both(path: &Path, context: u32) -> (MemoryNeed, u64) {
    let plan = MemoryPlan { context, ..MemoryPlan::default() };
    let need = predict(&read_info(path).unwrap().shape, &plan);
    let options = LocalOptions { context: Some(context), ..LocalOptions::default() };
    let model = open(path, options, worker()).await;
    let ask_for = ChatRequest {
        sampling: Sampling { max_tokens: Some(4), ..Sampling::default() },
        ..request(&"some words ".repeat(30))
    };
    let reply = ask(&model, ask_for).await;
    assert_eq!(reply.error, None);
    (need, peak_of(model.worker_id().await.unwrap()))
}

fn shapes() -> Vec<(&'static str, Proportions, u32)> {
    let base = Proportions {
        width: 512,
        heads: 8,
        kv_heads: 4,
        hidden: 1536,
        blocks: 12,
        more_words: 30_000,
        merges: 30_000,
        ..Proportions::tiny(Architecture::Llama)
    };
    let of = |architecture, kind| Proportions { architecture, kind, ..base.clone() };
    vec![
        ("tiny", Proportions::tiny(Architecture::Llama), 4096),
        ("f16", of(Architecture::Llama, kind::F16), 4096),
        ("q4_0, reordered", of(Architecture::Llama, kind::Q4_0), 8192),
        ("q8_0", of(Architecture::Llama, kind::Q8_0), 8192),
        ("q4_k, deep", Proportions { blocks: 40, ..of(Architecture::Llama, kind::Q4_K) }, 2048),
        (
            "many words",
            Proportions { more_words: 120_000, merges: 200_000, ..of(Architecture::Llama, kind::Q8_0) },
            2048,
        ),
        ("mixture", of(Architecture::Mixture, kind::Q8_0), 4096),
        ("hybrid", of(Architecture::Hybrid, kind::F16), 8192),
        ("recurrent", of(Architecture::Recurrent, kind::F16), 4096),
    ]
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_predicted_within_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hollow.gguf");
    let mut wrong = Vec::new();
    for (name, shape, context) in shapes() {
        shape.write_hollow(&path).unwrap();
        let (need, real) = both(&path, context).await;
        let off = need.total as f64 / real as f64 - 1.0;
        let mega = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let line = format!(
            "{name}: predicted {:.1} MB (weights {:.1}, kv {:.1}, compute {:.1}, other {:.1}), took {:.1} MB, {:+.1} %",
            mega(need.total),
            mega(need.weights),
            mega(need.kv),
            mega(need.compute),
            mega(need.other),
            mega(real),
            off * 100.0
        );
        println!("{line}");
        if off.abs() > 0.1 {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
