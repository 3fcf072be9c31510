//! The measures of the part of a model that sees images, which decide how much memory it takes.
//!
//! Invariant: taken from the header alone. Where a family lets images be of any size, the largest that llama.cpp hands
//! on counts (the limits of `tools/mtmd/clip.cpp`).

use super::read::Header;

/// The measures of the part that sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProjectorShape {
    /// Bytes of its weights, which are copied into memory.
    pub weight_bytes: u64,
    /// Tensors.
    pub tensors: u64,
    /// Patches of the largest image that it looks at in one go.
    pub patches: u64,
    /// Numbers in a patch of the image.
    pub patch: u64,
    /// Width of its layers.
    pub width: u64,
    /// The rows inside of its networks.
    pub hidden: u64,
    /// Numbers that it makes of a place; the width of the model of text.
    pub output: u64,
    /// Patches that become one place.
    pub merged: u64,
    /// Whether each patch looks at its neighbours only, which takes a table of all pairs.
    pub windows: bool,
    /// Whether the model reads an image as a whole, in one batch.
    pub whole: bool,
}

/// Places that an image of any size has at most, by family.
const MOST_PLACES: [(&str, u64); 10] = [
    ("qwen2vl_merger", 4096),
    ("qwen2.5vl_merger", 4096),
    ("qwen3vl_merger", 4096),
    ("ling3vl", 4096),
    ("minimax_m3", 4096),
    ("pixtral", 1024),
    ("kimivl", 1024),
    ("gemma4v", 1120),
    ("gemma4uv", 1120),
    ("lfm2", 256),
];
/// Families whose models read an image as a whole (`mtmd_decode_use_non_causal`). Of Gemma 4 only some do, and the need
/// of the others is a little less.
const WHOLE: [&str; 4] = ["gemma3", "gemma4v", "gemma4uv", "deepseek4v"];

impl ProjectorShape {
    /// The measures of a file of this kind that makes so many numbers of each place.
    pub(super) fn of(header: &Header, kind: &str, output: u64) -> Self {
        let said = |name: &str| {
            header
                .int(&format!("clip.vision.{name}"))
                .and_then(|value| u64::try_from(value).ok())
                .unwrap_or(0)
        };
        let side = said("patch_size").max(1);
        let merge = match kind {
            "qwen2vl_merger" | "qwen2.5vl_merger" | "qwen3vl_merger" | "ling3vl" | "minimax_m3" => {
                or(said("spatial_merge_size"), 2)
            }
            "gemma3" => or(said("projector.scale_factor"), 4),
            "gemma4v" | "gemma4uv" => or(said("projector.scale_factor"), 3),
            _ => or(said("projector.scale_factor"), 1).max(said("spatial_merge_size")),
        };
        let merged = merge.saturating_mul(merge);
        let square = (said("image_size") / side).saturating_pow(2);
        let any_size = MOST_PLACES.iter().find(|(family, _)| *family == kind).map(|(_, most)| *most);
        let patches = match any_size {
            Some(places) => places.saturating_mul(merged),
            None => square.max(said("image_max_pixels") / side.saturating_pow(2)),
        };
        // Networks with a gate have two such rows at the same time.
        let gated = header.tensors.iter().any(|tensor| tensor.name == "v.blk.0.ffn_gate.weight");
        Self {
            weight_bytes: header.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add),
            tensors: header.tensors.len() as u64,
            patches,
            patch: side.saturating_pow(2).saturating_mul(3),
            width: said("embedding_length"),
            hidden: said("feed_forward_length").saturating_mul(if gated { 2 } else { 1 }),
            output,
            merged: merged.max(1),
            windows: said("n_wa_pattern") > 0,
            whole: WHOLE.contains(&kind),
        }
    }
}

fn or(said: u64, otherwise: u64) -> u64 {
    if said == 0 { otherwise } else { said }
}
