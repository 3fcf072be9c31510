//! What a model is said to need, against what its worker takes.

use std::path::Path;

use lectern_core::{ChatRequest, Sampling};
use lectern_local::memory::{MemoryNeed, MemoryPlan, predict};
use lectern_local::{CacheOptions, LocalOptions, SpeedOptions, read_info};
#[cfg(feature = "vision")]
use lectern_local::{ProjectorChoice, projector_of};
use lectern_test_gguf::{Architecture, Proportions, kind};
#[cfg(feature = "vision")]
use lectern_test_gguf::{Family, Lens, Recipe};

#[cfg(feature = "vision")]
use crate::images::{looking, picture};
use crate::support::{ask, open, request, worker};

/// The peak of resident memory of a process, in bytes.
fn peak_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Predicted and real memory of a model that answers with a prompt of many batches.
async fn both(path: &Path, context: u32, mtp: bool) -> (MemoryNeed, u64) {
    let plan = MemoryPlan { context, mtp, ..MemoryPlan::default() };
    let need = predict(&read_info(path).unwrap().shape, &plan);
    let speed = SpeedOptions { mtp, ..SpeedOptions::default() };
    let options = LocalOptions { context: Some(context), speed, ..LocalOptions::default() };
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
    let deep = Proportions { blocks: 48, ..of(Architecture::Predicting, kind::Q4_0) };
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
        ("with a layer ahead", of(Architecture::Predicting, kind::Q8_0), 8192),
        ("with a layer ahead, guessing", of(Architecture::Predicting, kind::Q8_0), 8192),
        ("with a layer ahead, deep", deep.clone(), 2048),
        ("with a layer ahead, deep, guessing", deep, 2048),
    ]
}

/// What was predicted beside what it took, and whether it is within a tenth.
fn compared(name: &str, need: MemoryNeed, real: u64) -> (String, bool) {
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
    (line, off.abs() <= 0.1)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_predicted_within_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hollow.gguf");
    let mut wrong = Vec::new();
    for (name, shape, context) in shapes() {
        shape.write_hollow(&path).unwrap();
        let (need, real) = both(&path, context, name.ends_with("guessing")).await;
        let (line, near) = compared(name, need, real);
        println!("FIGURE memory of {line}");
        if !near {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Parts that see, the length of a side of the largest image that each looks at, and a context that this image nearly
/// fills where all of it is read in one batch: the need is that of a full one.
#[cfg(feature = "vision")]
fn lenses() -> Vec<(&'static str, Lens, u32, u32)> {
    let of = |family, side, patch, width, blocks| Lens {
        family,
        side,
        patch,
        width,
        hidden: width * 4,
        blocks,
        heads: 4,
    };
    vec![
        ("small images, many weights", of(Family::Llava, 24, 14, 512, 8), 336, 8192),
        ("images in one go", of(Family::Gemma, 64, 14, 512, 2), 896, 2048),
        ("images of any size", of(Family::Qwen, 40, 8, 128, 1), 1024, 8192),
    ]
}

#[cfg(all(target_os = "linux", feature = "vision"))]
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_seeing_is_predicted_within_a_tenth() {
    let mut wrong = Vec::new();
    for (name, lens, side, context) in lenses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Tiny-VL.gguf");
        let recipe = Recipe { context: 8192, ..Recipe::default() };
        std::fs::write(&path, lens.family.model(recipe).bytes()).unwrap();
        lens.write_hollow(&folder.path().join("mmproj-Tiny-VL.gguf"), 64).unwrap();
        let info = read_info(&path).unwrap();
        let projector = projector_of(&info, &ProjectorChoice::Beside).unwrap().unwrap().shape;
        let plan = MemoryPlan { context, projector: Some(projector), ..MemoryPlan::default() };
        let blind = predict(&info.shape, &MemoryPlan { projector: None, ..plan.clone() });
        let need = predict(&info.shape, &plan);
        assert!(need.weights > blind.weights && need.compute > blind.compute, "{name}: {need:?}");
        let options = LocalOptions { context: Some(context), ..LocalOptions::default() };
        let model = open(&path, options, worker()).await;
        let reply = ask(&model, looking(&[picture(side, side, 1)], "What is it?")).await;
        assert_eq!(reply.error, None, "{name}");
        let (line, near) = compared(name, need, peak_of(model.worker_id().await.unwrap()));
        println!("FIGURE memory of {line}, {:?} tokens of the image", reply.usage.image_tokens);
        if !near {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_a_draft_model_is_predicted_within_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let (large, small) = (folder.path().join("large.gguf"), folder.path().join("small.gguf"));
    let shape = |blocks| Proportions {
        width: 512,
        heads: 8,
        kv_heads: 4,
        hidden: 1536,
        blocks,
        more_words: 20_000,
        merges: 20_000,
        kind: kind::Q8_0,
        ..Proportions::tiny(Architecture::Llama)
    };
    shape(16).write_hollow(&large).unwrap();
    shape(8).write_hollow(&small).unwrap();
    let context = 8192;
    let draft = Some(read_info(&small).unwrap().shape);
    let need =
        predict(&read_info(&large).unwrap().shape, &MemoryPlan { context, draft, ..MemoryPlan::default() });
    let speed = SpeedOptions { draft: Some(small), ..SpeedOptions::default() };
    let model =
        open(&large, LocalOptions { context: Some(context), speed, ..LocalOptions::default() }, worker())
            .await;
    let ask_for = ChatRequest {
        sampling: Sampling { max_tokens: Some(12), ..Sampling::default() },
        ..request(&"some words ".repeat(30))
    };
    assert_eq!(ask(&model, ask_for).await.error, None);
    let (line, near) = compared("draft", need, peak_of(model.worker_id().await.unwrap()));
    println!("{line}");
    assert!(near, "{line}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_conversations_that_left_the_cache_is_predicted_within_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hollow.gguf");
    let shape = Proportions {
        width: 256,
        heads: 4,
        kv_heads: 4,
        hidden: 256,
        blocks: 24,
        more_words: 3000,
        merges: 3000,
        ..Proportions::tiny(Architecture::Llama)
    };
    shape.write_hollow(&path).unwrap();
    let (context, kept) = (4096, 96 << 20);
    let plan = MemoryPlan { context, kept: Some(kept), ..MemoryPlan::default() };
    let need = predict(&read_info(&path).unwrap().shape, &plan);
    let cache = CacheOptions { memory_bytes: kept, ..CacheOptions::default() };
    let options = LocalOptions { context: Some(context), cache, ..LocalOptions::default() };
    let model = open(&path, options, worker()).await;
    // Each takes about a third of the context; the store for those that leave it is filled more than once.
    for number in 0..14 {
        let ask_for = ChatRequest {
            conversation: format!("conversation {number}").as_str().into(),
            sampling: Sampling { max_tokens: Some(2), ..Sampling::default() },
            ..request(&format!("{number} ").repeat(600))
        };
        assert_eq!(ask(&model, ask_for).await.error, None);
    }
    let (line, near) = compared("a full store", need, peak_of(model.worker_id().await.unwrap()));
    println!("{line}");
    assert!(near, "{line}");
}
