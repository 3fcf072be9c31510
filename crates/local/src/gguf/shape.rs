//! The measures of a model that decide how much memory it takes.
//!
//! Invariant: taken from the header alone, and from the tensor table rather than from metadata where both say it:
//! the tensors are what is loaded.

use std::collections::BTreeMap;

use super::read::{Array, Header, TensorInfo, Value};

/// The measures of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelShape {
    /// Bytes of the file (of all its parts).
    pub file_bytes: u64,
    /// Bytes of its weights.
    pub weight_bytes: u64,
    /// Bytes of weights that the processor's kernels want in another order, and so in memory once more.
    pub reordered_bytes: u64,
    /// Of these, bytes of those that are multiplied with all tokens of a batch together: not the experts', of which each
    /// token has its own.
    pub batched_bytes: u64,
    /// Layers that keep keys and values of each token.
    pub attention: Vec<AttentionLayer>,
    /// Bytes of the state that recurrent and convolution layers keep, for one sequence.
    pub state_bytes: u64,
    /// Width of the model.
    pub width: u64,
    /// The widest row between two layers of a block.
    pub hidden: u64,
    /// Words of the vocabulary.
    pub words: u64,
    /// Bytes of the words' texts.
    pub word_bytes: u64,
    /// Merges of the tokenizer.
    pub merges: u64,
    /// Tensors.
    pub tensors: u64,
    /// How many times the usual room llama.cpp sets aside for the plan of a computation, less one.
    pub more_plan: u64,
    /// Layers that predict further tokens (multi-token prediction); without a setting they are not loaded.
    pub ahead: Vec<AheadLayer>,
}

/// A layer that predicts a further token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AheadLayer {
    /// What it keeps of each token.
    pub attention: AttentionLayer,
    /// Bytes of its weights.
    pub weight_bytes: u64,
    /// Bytes of weights that the processor's kernels want in another order.
    pub reordered_bytes: u64,
}

/// What one layer keeps of one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttentionLayer {
    /// Numbers of its key.
    pub key: u64,
    /// Numbers of its value.
    pub value: u64,
}

impl ModelShape {
    /// Whether most of it is multiplied with tiles of tokens.
    pub(crate) fn is_tiled(&self) -> bool {
        self.batched_bytes > self.weight_bytes / 2
    }

    /// The measures of the model with this header.
    pub(super) fn of(header: &Header) -> Self {
        let reader = ShapeReader::new(header);
        let (words, word_bytes) = match header.metadata.get("tokenizer.ggml.tokens") {
            Some(Value::Array(Array::Str(words))) => {
                (words.len() as u64, words.iter().map(|word| word.len() as u64).sum())
            }
            Some(_) | None => (0, 0),
        };
        let merges = match header.metadata.get("tokenizer.ggml.merges") {
            Some(Value::Array(Array::Str(merges))) => merges.len() as u64,
            Some(_) | None => 0,
        };
        Self {
            file_bytes: header.file_bytes,
            weight_bytes: header.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add),
            reordered_bytes: reader.reordered(|_| true),
            batched_bytes: reader.reordered(|name| !name.contains("_exps")),
            attention: reader.attention(),
            state_bytes: reader.state(),
            width: reader.number("embedding_length"),
            hidden: reader.hidden(),
            words,
            word_bytes,
            merges,
            tensors: header.tensors.len() as u64,
            more_plan: reader.more_plan(),
            ahead: reader.ahead(),
        }
    }
}

struct ShapeReader<'header> {
    header: &'header Header,
    architecture: &'header str,
    /// The tensors of each block by the rest of their names.
    blocks: BTreeMap<u64, BTreeMap<&'header str, &'header TensorInfo>>,
}

impl<'header> ShapeReader<'header> {
    fn new(header: &'header Header) -> Self {
        let mut blocks: BTreeMap<u64, BTreeMap<&str, &TensorInfo>> = BTreeMap::new();
        for tensor in &header.tensors {
            let rest = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
            if let Some((number, part)) = rest
                && let Ok(number) = number.parse()
            {
                blocks.entry(number).or_default().insert(part, tensor);
            }
        }
        Self { header, architecture: header.str("general.architecture").unwrap_or_default(), blocks }
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn number(&self, name: &str) -> u64 {
        self.header.int(&self.key(name)).and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
    }

    /// The number for one layer, where there may be one for all.
    fn number_of(&self, name: &str, layer: u64) -> u64 {
        match self.header.metadata.get(&self.key(name)) {
            Some(Value::Array(Array::Int(values))) => {
                let value = usize::try_from(layer).ok().and_then(|layer| values.get(layer));
                value.and_then(|value| u64::try_from(*value).ok()).unwrap_or(0)
            }
            Some(_) | None => self.number(name),
        }
    }

    /// Layers with a cache of keys and values. The last ones may predict further tokens or use the caches of others.
    fn attention(&self) -> Vec<AttentionLayer> {
        let blocks = self.number("block_count");
        let own = match (self.architecture, self.number("attention.shared_kv_layers")) {
            // llama.cpp: `n_layer_kv_from_start`.
            ("gemma3n", _) => blocks.min(20),
            (_, shared) => blocks.saturating_sub(shared).saturating_sub(self.number("nextn_predict_layers")),
        };
        self.blocks.range(..own).filter_map(|(layer, parts)| self.attention_of(*layer, parts)).collect()
    }

    /// llama.cpp: `llama_context::graph_max_nodes`, 8 nodes for each tensor as a rule.
    fn more_plan(&self) -> u64 {
        match self.architecture {
            "kimi-k3" | "glm5-next" | "hrm_text" => 7,
            "qwen3next" | "kimi-linear" | "bailingmoe3" | "qwen35" | "qwen35moe" | "qwen4exp"
            | "deepseek4" | "nanbeige" | "minimax-01" | "minimax-m3" | "hy_v4" => 3,
            _ => 0,
        }
    }

    /// Layers that predict further tokens: those with the matrix that joins a token with what was made of the one before.
    fn ahead(&self) -> Vec<AheadLayer> {
        let joins = self.blocks.iter().filter(|(_, parts)| parts.contains_key("nextn.eh_proj.weight"));
        let layer = |(layer, parts): (&u64, &BTreeMap<&str, &TensorInfo>)| {
            let sum = |tensors: &mut dyn Iterator<Item = &&TensorInfo>| {
                tensors.map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
            };
            AheadLayer {
                attention: self.attention_of(*layer, parts).unwrap_or_default(),
                weight_bytes: sum(&mut parts.values()),
                reordered_bytes: sum(&mut parts.values().filter(|tensor| is_reordered(tensor))),
            }
        };
        joins.map(layer).collect()
    }

    fn attention_of(&self, layer: u64, parts: &BTreeMap<&str, &TensorInfo>) -> Option<AttentionLayer> {
        let rows = |name: &str| parts.get(name).map(|tensor| tensor.shape[1]);
        if let Some(latent) =
            rows("attn_kv_a_mqa.weight").filter(|_| self.number("attention.key_length_mla") > 0)
        {
            // Multi-head latent attention keeps the compressed row only.
            return Some(AttentionLayer { key: latent, value: 0 });
        }
        if let Some(key) = rows("attn_k.weight") {
            return Some(AttentionLayer { key, value: rows("attn_v.weight").unwrap_or(key) });
        }
        let fused = rows("attn_qkv.weight").is_some() || rows("attn_kv_b.weight").is_some();
        if !fused || parts.contains_key("ssm_conv1d.weight") || parts.contains_key("ssm_a") {
            return None;
        }
        let heads = self.number_of("attention.head_count", layer).max(1);
        let own = match self.number_of("attention.head_count_kv", layer) {
            0 => heads,
            own => own,
        };
        let head = self.number("embedding_length") / heads;
        let long = |name: &str| match self.number(name) {
            0 => head,
            length => length,
        };
        Some(AttentionLayer {
            key: own.saturating_mul(long("attention.key_length")),
            value: own.saturating_mul(long("attention.value_length")),
        })
    }

    /// Bytes of state: 32-bit numbers, `n_embd_r` and `n_embd_s` of llama.cpp for each layer of that kind.
    fn state(&self) -> u64 {
        let width = self.number("embedding_length");
        let kernel = self.number("ssm.conv_kernel").saturating_sub(1);
        let (inner, state) = (self.number("ssm.inner_size"), self.number("ssm.state_size"));
        let groups = product(&[2, self.number("ssm.group_count"), state]);
        let mamba =
            kernel.saturating_mul(inner.saturating_add(groups)).saturating_add(state.saturating_mul(inner));
        let (heads, delta) = (self.number("attention.head_count").max(1), self.number("kda.head_dim"));
        let linear =
            product(&[3, kernel.max(3), heads, delta]).saturating_add(product(&[delta, delta, heads]));
        let short = self.number("shortconv.l_cache").saturating_sub(1).saturating_mul(width);
        let shift = match self.number("token_shift_count") {
            0 => 2,
            count => count,
        };
        let mixed = width.saturating_mul(shift.saturating_add(self.number("wkv.head_size")));
        let rows = self.blocks.values().map(|parts| {
            let has = |start: &str| parts.keys().any(|name| name.starts_with(start));
            if has("time_mix_") {
                mixed
            } else if has("shortconv.") {
                short
            } else if has("ssm_") && delta > 0 {
                linear
            } else if has("ssm_") {
                mamba
            } else {
                0
            }
        });
        rows.fold(0, u64::saturating_add).saturating_mul(4)
    }

    /// The longest row that stands between two matrices of a block.
    fn hidden(&self) -> u64 {
        let experts = self.number("expert_used_count").max(1);
        let of = |(name, tensor): (&&str, &&TensorInfo)| match *name {
            name if name.ends_with("_exps.weight") => tensor.shape[1].saturating_mul(experts),
            name if name.starts_with("ffn_")
                || name.starts_with("ssm_in")
                || name.starts_with("attn_qkv") =>
            {
                tensor.shape[1]
            }
            _ => 0,
        };
        self.blocks.values().flat_map(|parts| parts.iter().map(of)).max().unwrap_or(0)
    }

    /// Bytes of the matrices that ggml's processor kernels reorder (`ggml_repack_get_optimal_repack_type`). The
    /// embeddings are looked up, not multiplied, unless they are the output matrix too.
    fn reordered(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let tied = !self.header.tensors.iter().any(|tensor| tensor.name == "output.weight");
        let multiplied = |tensor: &&TensorInfo| match tensor.name.as_str() {
            "token_embd.weight" => tied,
            name => name.ends_with(".weight") && !name.contains("per_layer_token_embd"),
        };
        let reordered = self.header.tensors.iter().filter(multiplied).filter(|tensor| is_reordered(tensor));
        let reordered = reordered.filter(|tensor| wanted(&tensor.name));
        reordered.map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
    }
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().copied().fold(1, u64::saturating_mul)
}

fn is_reordered(tensor: &TensorInfo) -> bool {
    use llama_cpp_sys_2 as sys;

    let matrix = tensor.shape[1] > 1;
    let rows = tensor.shape[1];
    if cfg!(target_arch = "x86_64") {
        let kinds = [sys::GGML_TYPE_Q4_0, sys::GGML_TYPE_Q4_K, sys::GGML_TYPE_IQ4_NL, sys::GGML_TYPE_MXFP4];
        return matrix && rows.is_multiple_of(8) && kinds.contains(&tensor.kind) && has_avx2();
    }
    if cfg!(target_arch = "aarch64") {
        let kinds = [
            sys::GGML_TYPE_Q4_0,
            sys::GGML_TYPE_Q8_0,
            sys::GGML_TYPE_Q4_K,
            sys::GGML_TYPE_Q5_K,
            sys::GGML_TYPE_Q6_K,
            sys::GGML_TYPE_IQ4_NL,
            sys::GGML_TYPE_MXFP4,
        ];
        return matrix && rows.is_multiple_of(8) && kinds.contains(&tensor.kind);
    }
    false
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}
