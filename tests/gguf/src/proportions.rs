//! Models of other kinds and true proportions: random where they have to compute, hollow where only their size counts.
//!
//! Invariant: a hollow file takes no space on disk; its weights are zeros that nobody wrote.

use std::io::{self, Write};
use std::path::Path;

use crate::file::{Array, File, Tensor, Value};
use crate::model::{Random, vocabulary};

/// The kind of a model's layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Attention and a gated network.
    Llama,
    /// Attention and four experts, two of which are used.
    Mixture,
    /// Short convolutions, and attention in every third layer (LFM2).
    Hybrid,
    /// A state-space model without attention (Mamba).
    Recurrent,
    /// Gated delta rules, attention in every third layer, and one more layer that predicts a further token (Qwen3.5).
    Predicting,
}

/// What a layer that predicts a further token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicts {
    /// What the model says.
    Rightly,
    /// Something.
    Anything,
}

/// Numbers of ggml's tensor types.
pub mod kind {
    /// 32-bit numbers.
    pub const F32: u32 = 0;
    /// 16-bit numbers.
    pub const F16: u32 = 1;
    /// 4 bits and a scale for 32 numbers.
    pub const Q4_0: u32 = 2;
    /// 8 bits and a scale for 32 numbers.
    pub const Q8_0: u32 = 8;
    /// 4 bits, with scales of scales.
    pub const Q4_K: u32 = 12;
    /// 6 bits, with scales of scales.
    pub const Q6_K: u32 = 14;
}

/// The measures of a model.
#[derive(Clone, Debug)]
pub struct Proportions {
    /// Its layers.
    pub architecture: Architecture,
    /// Width.
    pub width: u64,
    /// Heads of attention.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Width of the network.
    pub hidden: u64,
    /// Layers.
    pub blocks: u64,
    /// Words beyond the bytes and the usual special tokens.
    pub more_words: usize,
    /// Merges of the tokenizer.
    pub merges: usize,
    /// The type of its matrices, see [`kind`].
    pub kind: u32,
    /// The context the model claims to be trained for.
    pub context: u32,
    /// The chat template.
    pub template: String,
}

impl Proportions {
    /// A tiny model that computes in milliseconds.
    pub fn tiny(architecture: Architecture) -> Self {
        Self {
            architecture,
            width: 64,
            heads: 2,
            kv_heads: 2,
            hidden: 128,
            blocks: 3,
            more_words: 0,
            merges: 0,
            kind: kind::F32,
            context: 8192,
            template: crate::CHATML_TOOLS.to_owned(),
        }
    }

    /// The bytes of a file with random weights, which are 32-bit numbers.
    pub fn random(&self, seed: u64) -> Vec<u8> {
        self.with_random_weights(seed).bytes()
    }

    /// A model that is sure of each token, whatever stood before the last one. Its layer that predicts a further token is as
    /// sure: of the same, or of something else.
    pub fn sure(&self, seed: u64, predicts: Predicts) -> Vec<u8> {
        let mut file = self.with_random_weights(seed);
        for tensor in &mut file.tensors {
            let width = self.width as usize;
            let says =
                ["attn_output.", "ffn_down.", "ssm_out."].iter().any(|part| tensor.name.contains(part));
            match predicts {
                Predicts::Rightly if tensor.name == "output.weight" => scale(tensor, 16.0),
                Predicts::Anything if tensor.name == "output.weight" => scale(tensor, 4.0),
                Predicts::Rightly if says => tensor.data.fill(0.0),
                Predicts::Rightly if tensor.name.contains("eh_proj") => {
                    // The token passes, and what the model made of the one before does not.
                    tensor.data = (0..2 * width * width)
                        .map(|at| if at % (2 * width) == at / (2 * width) { 1.0 } else { 0.0 })
                        .collect();
                }
                Predicts::Rightly | Predicts::Anything => {}
            }
        }
        file.bytes()
    }

    fn with_random_weights(&self, seed: u64) -> File {
        let mut file = Self { kind: kind::F32, ..self.clone() }.file();
        let mut random = Random::seeded(seed);
        for tensor in &mut file.tensors {
            let count = tensor.shape.iter().product::<u64>();
            let fixed = tensor.name.contains("norm");
            tensor.data = (0..count).map(|_| if fixed { 1.0 } else { random.next() * 0.3 }).collect();
            if tensor.name.ends_with("ssm_a") {
                // A state has to fade.
                tensor.data.iter_mut().for_each(|value| *value = -value.abs() - 0.1);
            }
        }
        file
    }

    /// Writes a file whose weights are all zero, and which takes no space on disk.
    pub fn write_hollow(&self, path: &Path) -> io::Result<()> {
        let file = self.file();
        let mut out = std::fs::File::create(path)?;
        out.write_all(&file.header())?;
        let data: u64 = file.tensors.iter().map(|tensor| tensor.size().next_multiple_of(32)).sum();
        out.set_len((file.header().len() as u64).next_multiple_of(32) + data)
    }

    fn file(&self) -> File {
        let more: Vec<String> = (0..self.more_words).map(|number| format!("word{number:06}")).collect();
        let mut metadata = self.metadata();
        metadata.extend(vocabulary(&more));
        metadata.push(("tokenizer.chat_template".to_owned(), Value::Str(self.template.clone())));
        let mut file = File {
            magic: *b"GGUF",
            version: 3,
            metadata,
            tensors: self.tensors(),
            tensor_count: None,
            metadata_count: None,
        };
        let merges = (0..self.merges).map(|number| format!("m{number:06} n{number:06}")).collect();
        file.set("tokenizer.ggml.merges", Value::Array(Array::Str(merges)));
        file
    }

    fn name(&self) -> &'static str {
        match self.architecture {
            Architecture::Llama | Architecture::Mixture => "llama",
            Architecture::Hybrid => "lfm2",
            Architecture::Recurrent => "mamba",
            Architecture::Predicting => "qwen35",
        }
    }

    fn has_attention(&self, block: u64) -> bool {
        match self.architecture {
            Architecture::Llama | Architecture::Mixture => true,
            Architecture::Hybrid => block % 3 == 1,
            Architecture::Recurrent => false,
            Architecture::Predicting => block % 3 == 2 || block == self.blocks,
        }
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let number = |value: u64| Value::U32(u32::try_from(value).unwrap_or(u32::MAX));
        let mut out = vec![
            ("general.architecture".to_owned(), Value::Str(self.name().to_owned())),
            ("general.name".to_owned(), Value::Str("Proportions".to_owned())),
        ];
        let mut own = |key: &str, value: Value| out.push((format!("{}.{key}", self.name()), value));
        own("context_length", Value::U32(self.context));
        own("embedding_length", number(self.width));
        own("block_count", number(self.blocks + self.ahead()));
        own("feed_forward_length", number(self.hidden));
        own("attention.layer_norm_rms_epsilon", Value::F32(1e-5));
        match self.architecture {
            Architecture::Recurrent => {
                own("attention.head_count", Value::U32(0));
                own("ssm.conv_kernel", Value::U32(4));
                own("ssm.inner_size", number(self.width * 2));
                own("ssm.state_size", Value::U32(STATE as u32));
                own("ssm.time_step_rank", number(self.width / 16));
            }
            Architecture::Predicting => {
                own("attention.head_count", number(self.heads));
                own("attention.head_count_kv", number(self.kv_heads));
                own("rope.freq_base", Value::F32(10_000.0));
                let quarter = (self.width / self.heads / 8) as i32;
                own(
                    "rope.dimension_sections",
                    Value::Array(Array::I32(vec![2 * quarter, quarter, quarter, 0])),
                );
                own("full_attention_interval", Value::U32(3));
                own("nextn_predict_layers", number(self.ahead()));
                own("ssm.conv_kernel", Value::U32(4));
                own("ssm.inner_size", number(self.width));
                own("ssm.state_size", Value::U32(STATE as u32));
                own("ssm.time_step_rank", number(self.width / STATE));
                own("ssm.group_count", number(self.width / STATE / 2));
            }
            Architecture::Llama | Architecture::Mixture | Architecture::Hybrid => {
                own("attention.head_count", number(self.heads));
                let heads = |block| if self.has_attention(block) { self.kv_heads as i32 } else { 0 };
                own(
                    "attention.head_count_kv",
                    Value::Array(Array::I32((0..self.blocks).map(heads).collect())),
                );
                own("rope.dimension_count", number(self.width / self.heads));
                own("rope.freq_base", Value::F32(10_000.0));
            }
        }
        match self.architecture {
            Architecture::Mixture => {
                own("expert_count", Value::U32(4));
                own("expert_used_count", Value::U32(2));
            }
            Architecture::Hybrid => own("shortconv.l_cache", Value::U32(3)),
            Architecture::Llama | Architecture::Recurrent | Architecture::Predicting => {}
        }
        out
    }

    /// Layers that predict further tokens.
    fn ahead(&self) -> u64 {
        u64::from(self.architecture == Architecture::Predicting)
    }

    fn tensors(&self) -> Vec<Tensor> {
        let words = (256 + crate::SPECIAL_TOKENS.len() + self.more_words) as u64;
        let mut out = vec![self.tensor("token_embd.weight".to_owned(), vec![self.width, words])];
        for block in 0..self.blocks + self.ahead() {
            let parts = match self.architecture {
                Architecture::Recurrent => self.state_space(),
                Architecture::Predicting => self.delta_rule(block),
                Architecture::Llama | Architecture::Mixture | Architecture::Hybrid => self.block(block),
            };
            out.extend(
                parts.into_iter().map(|(part, shape)| self.tensor(format!("blk.{block}.{part}"), shape)),
            );
        }
        let last_norm = match self.architecture {
            Architecture::Hybrid => "token_embd_norm.weight",
            Architecture::Llama
            | Architecture::Mixture
            | Architecture::Recurrent
            | Architecture::Predicting => "output_norm.weight",
        };
        out.push(self.tensor(last_norm.to_owned(), vec![self.width]));
        out.push(self.tensor("output.weight".to_owned(), vec![self.width, words]));
        out
    }

    fn block(&self, block: u64) -> Vec<(&'static str, Vec<u64>)> {
        let (width, hidden) = (self.width, self.hidden);
        let head = width / self.heads;
        let mut out = vec![("attn_norm.weight", vec![width]), ("ffn_norm.weight", vec![width])];
        if self.has_attention(block) {
            out.extend([
                ("attn_q.weight", vec![width, width]),
                ("attn_k.weight", vec![width, head * self.kv_heads]),
                ("attn_v.weight", vec![width, head * self.kv_heads]),
                ("attn_output.weight", vec![width, width]),
            ]);
            if self.architecture == Architecture::Hybrid {
                out.extend([("attn_q_norm.weight", vec![head]), ("attn_k_norm.weight", vec![head])]);
            }
        } else {
            out.extend([
                ("shortconv.conv.weight", vec![3, width]),
                ("shortconv.in_proj.weight", vec![width, 3 * width]),
                ("shortconv.out_proj.weight", vec![width, width]),
            ]);
        }
        if self.architecture == Architecture::Mixture {
            out.extend([
                ("ffn_gate_inp.weight", vec![width, 4]),
                ("ffn_gate_exps.weight", vec![width, hidden, 4]),
                ("ffn_up_exps.weight", vec![width, hidden, 4]),
                ("ffn_down_exps.weight", vec![hidden, width, 4]),
            ]);
        } else {
            out.extend([
                ("ffn_gate.weight", vec![width, hidden]),
                ("ffn_up.weight", vec![width, hidden]),
                ("ffn_down.weight", vec![hidden, width]),
            ]);
        }
        out
    }

    fn state_space(&self) -> Vec<(&'static str, Vec<u64>)> {
        let (width, inner, rank) = (self.width, self.width * 2, self.width / 16);
        vec![
            ("attn_norm.weight", vec![width]),
            ("ssm_in.weight", vec![width, 2 * inner]),
            ("ssm_conv1d.weight", vec![4, inner]),
            ("ssm_conv1d.bias", vec![inner]),
            ("ssm_x.weight", vec![inner, rank + 2 * STATE]),
            ("ssm_dt.weight", vec![rank, inner]),
            ("ssm_dt.bias", vec![inner]),
            ("ssm_a", vec![STATE, inner]),
            ("ssm_d", vec![inner]),
            ("ssm_out.weight", vec![inner, width]),
        ]
    }

    fn delta_rule(&self, block: u64) -> Vec<(&'static str, Vec<u64>)> {
        let (width, hidden, head) = (self.width, self.hidden, self.width / self.heads);
        let mut out = vec![
            ("attn_norm.weight", vec![width]),
            ("post_attention_norm.weight", vec![width]),
            ("ffn_gate.weight", vec![width, hidden]),
            ("ffn_up.weight", vec![width, hidden]),
            ("ffn_down.weight", vec![hidden, width]),
        ];
        if self.has_attention(block) {
            out.extend([
                // Queries and gates.
                ("attn_q.weight", vec![width, 2 * width]),
                ("attn_k.weight", vec![width, head * self.kv_heads]),
                ("attn_v.weight", vec![width, head * self.kv_heads]),
                ("attn_output.weight", vec![width, width]),
                ("attn_q_norm.weight", vec![head]),
                ("attn_k_norm.weight", vec![head]),
            ]);
        } else {
            let heads = width / STATE;
            // Half as many heads of queries and of keys as of values.
            out.extend([
                ("attn_qkv.weight", vec![width, 2 * width]),
                ("attn_gate.weight", vec![width, width]),
                ("ssm_conv1d.weight", vec![4, 2 * width]),
                ("ssm_dt.bias", vec![heads]),
                ("ssm_a", vec![heads]),
                ("ssm_beta.weight", vec![width, heads]),
                ("ssm_alpha.weight", vec![width, heads]),
                ("ssm_norm.weight", vec![STATE]),
                ("ssm_out.weight", vec![width, width]),
            ]);
        }
        if block == self.blocks {
            out.extend([
                ("nextn.eh_proj.weight", vec![2 * width, width]),
                ("nextn.enorm.weight", vec![width]),
                ("nextn.hnorm.weight", vec![width]),
            ]);
        }
        out
    }

    /// Vectors, and matrices that are not multiplied by rows of whole blocks, stay 32-bit numbers.
    fn tensor(&self, name: String, shape: Vec<u64>) -> Tensor {
        let small = ["conv", "ssm_a", "ssm_dt", "ffn_gate_inp"].iter().any(|part| name.contains(part));
        let kind = if shape.len() < 2 || small { kind::F32 } else { self.kind };
        Tensor { name, shape, kind, data: Vec::new(), offset: None }
    }
}

fn scale(tensor: &mut Tensor, factor: f32) {
    tensor.data.iter_mut().for_each(|value| *value *= factor);
}

const STATE: u64 = 16;
