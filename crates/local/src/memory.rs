//! How much memory a model will take, from its header: nothing is loaded for it.
//!
//! What is predicted is the peak of resident memory of the worker's process (on Linux `VmHWM`), with the whole
//! context in use. Mapped pages of the model's file are a part of it, and named apart: the system can take them back
//! when memory is short, at the price of reading them again.
//! Invariant: pure arithmetic on a [`ModelShape`]; sums saturate.

use serde::{Deserialize, Serialize};

use crate::gguf::{AheadLayer, ModelShape, ProjectorShape};
use crate::speed::KvType;

/// How a model is going to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Tokens of context.
    pub context: u32,
    /// Tokens evaluated in one call.
    pub batch: u32,
    /// Sequences in the cache; only recurrent layers keep a state for each.
    pub sequences: u32,
    /// How keys are kept.
    pub keys: KvType,
    /// How values are kept.
    pub values: KvType,
    /// The part that sees images, if there is one: what it takes when it has looked at the largest image.
    pub projector: Option<ProjectorShape>,
    /// The small model that guesses for it, if there is one.
    pub draft: Option<ModelShape>,
    /// Whether the model guesses with a layer of its own.
    pub mtp: bool,
    /// Bytes for conversations that had to leave the cache, when the need is to be that of a full store of them; else
    /// what one conversation takes is counted.
    pub kept: Option<u64>,
}

impl Default for MemoryPlan {
    fn default() -> Self {
        Self {
            context: crate::gguf::USUAL_CONTEXT,
            batch: crate::worker::BATCH,
            sequences: crate::worker::SEQUENCES,
            keys: KvType::F16,
            values: KvType::F16,
            projector: None,
            draft: None,
            mtp: false,
            kept: None,
        }
    }
}

/// Bytes of memory that a model needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNeed {
    /// The weights: pages of the file, and what the processor's kernels want in another order.
    pub weights: u64,
    /// The part of `weights` that is mapped from the file, so that the system can take it back.
    pub mapped: u64,
    /// Keys and values of the whole context, and the states of recurrent layers.
    pub kv: u64,
    /// Buffers for computing.
    pub compute: u64,
    /// The process itself, and the vocabulary.
    pub other: u64,
    /// Conversations that left the cache, and copies of the states of recurrent layers.
    #[serde(default)]
    pub kept: u64,
    /// The small model that guesses, with its cache.
    #[serde(default)]
    pub draft: u64,
    /// All of it.
    pub total: u64,
}

/// The process with llama.cpp in it, before it knows a model; measured.
const PROCESS: u64 = if cfg!(feature = "vision") { 15 << 20 } else { 13 << 20 };
/// What the tokenizer's tables take for a word beside its text, and for a merge; measured.
const OF_WORD: u64 = 180;
const OF_MERGE: u64 = 100;
/// What the list of a file's texts takes for each while it is read.
const OF_TEXT: u64 = 32;
/// What a tensor takes in tables, and in the graphs in which it is used.
const OF_TENSOR: u64 = 12 << 10;
/// The same where llama.cpp sets more room aside, for each time more; measured. The plan of a second context takes half.
const OF_LARGE_PLAN: u64 = 8800;
/// What the part that sees takes beside its weights: tables, and the plan of its computation; measured.
const SIGHT: u64 = 4 << 20;
/// How often an image is in memory while it is looked at, beside the buffers of the computation.
const IMAGES: u64 = 2;
/// llama.cpp rounds the context up to a multiple of this.
const CONTEXT_STEP: u64 = 256;

/// Predicts what a model needs.
pub fn predict(shape: &ModelShape, plan: &MemoryPlan) -> MemoryNeed {
    let context = u64::from(plan.context).next_multiple_of(CONTEXT_STEP);
    let (idle, idle_reordered) = if plan.mtp { (0, 0) } else { layers_ahead(shape) };
    let mapped = shape.weight_bytes.saturating_sub(idle);
    let reordered = shape.reordered_bytes.saturating_sub(idle_reordered);
    let sight = plan.projector.as_ref();
    let weights = [mapped, reordered, sight.map_or(0, |sight| sight.weight_bytes)];
    let weights = weights.into_iter().fold(0, u64::saturating_add);
    let kv = kv(shape, plan, context);
    let compute = compute(shape, plan, context).saturating_add(sight.map_or(0, looking));
    let compute = compute.saturating_add(if plan.mtp { predicting(shape, plan, context) } else { 0 });
    // The file's header and its texts are in memory only until the cache is made.
    let texts = shape.words.saturating_add(shape.merges).saturating_mul(OF_TEXT);
    let loading = shape.file_bytes.saturating_sub(shape.weight_bytes).saturating_add(texts);
    let tensors = shape.tensors.saturating_add(sight.map_or(0, |sight| sight.tensors));
    let other = PROCESS
        .saturating_add(shape.word_bytes)
        .saturating_add(shape.words.saturating_mul(OF_WORD))
        .saturating_add(shape.merges.saturating_mul(OF_MERGE))
        .saturating_add(tensors.saturating_mul(of_tensor(shape, plan)))
        .saturating_add(if sight.is_some() { SIGHT } else { 0 })
        .saturating_add(loading.saturating_sub(kv.saturating_add(compute)));
    let kept = kept(shape, plan);
    let draft = plan.draft.as_ref().map_or(0, |draft| beside(draft, plan));
    let total = [weights, kv, compute, other, kept, draft].into_iter().fold(0, u64::saturating_add);
    MemoryNeed { weights, mapped, kv, compute, other, kept, draft, total }
}

/// What a tensor takes beside its weights.
fn of_tensor(shape: &ModelShape, plan: &MemoryPlan) -> u64 {
    let second = if plan.mtp { (shape.more_plan + 1) * OF_LARGE_PLAN / 2 } else { 0 };
    OF_TENSOR + shape.more_plan * OF_LARGE_PLAN + second
}

/// Weights of the layers that predict further tokens, and the part of them that is reordered. They are mapped from the
/// file only where they are used.
fn layers_ahead(shape: &ModelShape) -> (u64, u64) {
    let sum = |of: fn(&AheadLayer) -> u64| shape.ahead.iter().map(of).fold(0, u64::saturating_add);
    (sum(|layer| layer.weight_bytes), sum(|layer| layer.reordered_bytes))
}

/// The scratch memory of a layer that predicts further tokens: that of any layer, and what the model made of each token
/// of a batch, three times (as it came, as it is kept, as it is read).
fn predicting(shape: &ModelShape, plan: &MemoryPlan, context: u64) -> u64 {
    let rows = shape.width.saturating_mul(12).saturating_mul(u64::from(plan.batch.max(1)));
    compute(shape, plan, context).saturating_add(rows)
}

/// What is kept beside the cache when the store for it is full; room in it is made before a state is copied. States of
/// recurrent layers are small and come in copies, so many for each conversation of the cache.
fn kept(shape: &ModelShape, plan: &MemoryPlan) -> u64 {
    let Some(most) = plan.kept else { return 0 };
    let copies = u64::from(plan.sequences.max(1)).saturating_mul(crate::worker::CHECKPOINTS as u64);
    most.saturating_add(shape.state_bytes.saturating_mul(copies))
}

/// What a small model takes in the same process: its cache is as long, and as wide as usual.
fn beside(draft: &ModelShape, plan: &MemoryPlan) -> u64 {
    let alone = MemoryPlan {
        context: plan.context,
        batch: crate::worker::CHUNK,
        sequences: 1,
        ..MemoryPlan::default()
    };
    predict(draft, &alone).total.saturating_sub(PROCESS)
}

fn kv(shape: &ModelShape, plan: &MemoryPlan, context: u64) -> u64 {
    let ahead = shape.ahead.iter().filter(|_| plan.mtp).map(|layer| &layer.attention);
    let layers: Vec<_> = shape.attention.iter().chain(ahead).collect();
    let keys = layers.iter().map(|layer| layer.key).fold(0, u64::saturating_add);
    let values = layers.iter().map(|layer| layer.value).fold(0, u64::saturating_add);
    let bytes_of = |numbers: u64, kept: KvType| {
        numbers.div_ceil(32).saturating_mul(kept.bytes_of_32()).saturating_mul(context)
    };
    let cells = bytes_of(keys, plan.keys).saturating_add(bytes_of(values, plan.values));
    // To take guesses back, the states after each of them are kept.
    let each = 1 + if plan.mtp { u64::from(crate::worker::OWN_GUESSES) } else { 0 };
    let states = shape.state_bytes.saturating_mul(u64::from(plan.sequences.max(1))).saturating_mul(each);
    cells.saturating_add(states)
}

/// The scratch memory of a batch: the widest rows of a block, and the mask (as 32-bit and as 16-bit numbers). Logits
/// are computed for the last token only, and copied out. An image that is read as a whole makes the batch larger.
fn compute(shape: &ModelShape, plan: &MemoryPlan, context: u64) -> u64 {
    let rows = shape.hidden.saturating_add(shape.width).saturating_mul(3);
    let mask = context.saturating_mul(6);
    let logits = shape.words.saturating_mul(8);
    let whole = plan.projector.is_some_and(|sight| sight.whole);
    let batch = if whole { plan.batch.max(crate::worker::WHOLE_IMAGE) } else { plan.batch };
    u64::from(batch.max(1)).saturating_mul(rows.saturating_mul(4).saturating_add(mask)).saturating_add(logits)
}

/// The scratch memory of looking at an image, for all of its patches at once: what a layer keeps at the same time (in its
/// attention five rows, and keys and values once more at half the width; in its network the widest rows), or the image
/// itself and its patches in a row before the first layer. Besides the image in its stages, and what comes of it.
fn looking(sight: &ProjectorShape) -> u64 {
    let attention = sight.width.saturating_mul(11) / 2;
    let network = sight.width.saturating_mul(2).saturating_add(sight.hidden);
    let before = sight.patch.saturating_mul(2).saturating_add(sight.width);
    let row = attention.max(network).max(before);
    let patches = sight.patches;
    let rows =
        patches.saturating_mul(row.saturating_add(sight.patch.saturating_mul(IMAGES))).saturating_mul(4);
    let pairs = if sight.windows { patches.saturating_mul(patches).saturating_mul(6) } else { 0 };
    let places = (patches / sight.merged.max(1)).saturating_mul(sight.output).saturating_mul(8);
    [rows, pairs, places].into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::AttentionLayer;

    #[test]
    fn a_smaller_cache_type_and_a_shorter_context_need_less() {
        let shape = ModelShape {
            file_bytes: 1 << 30,
            weight_bytes: 1 << 30,
            attention: vec![AttentionLayer { key: 512, value: 512 }; 16],
            width: 2048,
            hidden: 8192,
            words: 128_256,
            ..ModelShape::default()
        };
        let need = |context, kept| {
            predict(&shape, &MemoryPlan { context, keys: kept, values: kept, ..MemoryPlan::default() })
        };
        // 16 layers of 1,024 numbers of two bytes for each of 8,192 tokens.
        assert_eq!(need(8192, KvType::F16).kv, 16 * 1024 * 2 * 8192);
        assert_eq!(need(8192, KvType::Q8_0).kv * 32, need(8192, KvType::F16).kv * 17);
        assert!(need(4096, KvType::F16).total < need(8192, KvType::F16).total);
        let whole = need(8192, KvType::F16);
        assert_eq!(whole.total, whole.weights + whole.kv + whole.compute + whole.other);
        let plan = MemoryPlan {
            context: 8192,
            draft: Some(shape.clone()),
            kept: Some(256 << 20),
            ..MemoryPlan::default()
        };
        let full = predict(&shape, &plan);
        assert!(full.kept >= 256 << 20 && full.draft > shape.weight_bytes, "{full:?}");
        assert_eq!(full.total, whole.total + full.kept + full.draft);
    }

    #[test]
    fn impossible_numbers_saturate() {
        let shape = ModelShape {
            weight_bytes: u64::MAX,
            attention: vec![AttentionLayer { key: u64::MAX, value: u64::MAX }],
            words: u64::MAX,
            ..ModelShape::default()
        };
        assert_eq!(predict(&shape, &MemoryPlan::default()).total, u64::MAX);
    }
}
