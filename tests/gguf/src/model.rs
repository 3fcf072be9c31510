//! The recipe of a llama-architecture model with a byte vocabulary.

use crate::file::{Array, File, Tensor, Value};

/// A ChatML template that knows no tools.
pub const CHATML: &str = "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + \
     '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}";

/// A ChatML template with tools in the form of Hermes and Qwen.
pub const CHATML_TOOLS: &str = include_str!("chatml_tools.jinja");

/// Tokens after the 256 bytes; the first ends a document, the third ends a message.
pub const SPECIAL_TOKENS: [&str; 11] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|tool|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
    "<|pad|>",
];

/// What to make.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Decides the weights.
    pub seed: u64,
    /// The chat template; none leaves the key out.
    pub template: Option<String>,
    /// The context the model claims to be trained for.
    pub context: u32,
    /// Layers.
    pub blocks: u32,
    /// Width.
    pub width: u32,
    /// Control tokens beyond the usual ones.
    pub more_tokens: Vec<String>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seed: 1,
            template: Some(CHATML_TOOLS.to_owned()),
            context: 4096,
            blocks: 2,
            width: 64,
            more_tokens: Vec::new(),
        }
    }
}

const HEADS: u32 = 2;

impl Recipe {
    /// A model with this seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The same with another template.
    pub fn template(mut self, template: &str) -> Self {
        self.template = Some(template.to_owned());
        self
    }

    /// The bytes of a well-formed file.
    pub fn bytes(&self) -> Vec<u8> {
        self.file().bytes()
    }

    /// The file, to be changed before it is written.
    pub fn file(&self) -> File {
        let mut metadata = self.shape_metadata();
        metadata.extend(vocabulary(&self.more_tokens));
        if let Some(template) = &self.template {
            metadata.push(("tokenizer.chat_template".to_owned(), Value::Str(template.clone())));
        }
        File {
            magic: *b"GGUF",
            version: 3,
            metadata,
            tensors: self.tensors(),
            tensor_count: None,
            metadata_count: None,
        }
    }

    fn shape_metadata(&self) -> Vec<(String, Value)> {
        let pairs = [
            ("general.architecture", Value::Str("llama".to_owned())),
            ("general.name", Value::Str("Random bytes".to_owned())),
            ("general.file_type", Value::U32(0)),
            ("llama.context_length", Value::U32(self.context)),
            ("llama.embedding_length", Value::U32(self.width)),
            ("llama.block_count", Value::U32(self.blocks)),
            ("llama.feed_forward_length", Value::U32(self.width * 2)),
            ("llama.attention.head_count", Value::U32(HEADS)),
            ("llama.attention.head_count_kv", Value::U32(HEADS)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.dimension_count", Value::U32(self.width / HEADS)),
            ("llama.rope.freq_base", Value::F32(10_000.0)),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (width, hidden) = (u64::from(self.width), u64::from(self.width) * 2);
        let words = (256 + SPECIAL_TOKENS.len() + self.more_tokens.len()) as u64;
        let mut shapes = vec![("token_embd.weight".to_owned(), vec![width, words])];
        for block in 0..self.blocks {
            for (part, shape) in [
                ("attn_norm", vec![width]),
                ("attn_q", vec![width, width]),
                ("attn_k", vec![width, width]),
                ("attn_v", vec![width, width]),
                ("attn_output", vec![width, width]),
                ("ffn_norm", vec![width]),
                ("ffn_gate", vec![width, hidden]),
                ("ffn_up", vec![width, hidden]),
                ("ffn_down", vec![hidden, width]),
            ] {
                shapes.push((format!("blk.{block}.{part}.weight"), shape));
            }
        }
        shapes.push(("output_norm.weight".to_owned(), vec![width]));
        shapes.push(("output.weight".to_owned(), vec![width, words]));
        let mut random = Random::seeded(self.seed);
        shapes.into_iter().map(|(name, shape)| tensor(name, shape, &mut random)).collect()
    }
}

fn tensor(name: String, shape: Vec<u64>, random: &mut Random) -> Tensor {
    let count = shape.iter().product::<u64>() as usize;
    let data = if name.ends_with("norm.weight") {
        vec![1.0; count]
    } else {
        (0..count).map(|_| random.next() * 0.3).collect()
    };
    Tensor { name, shape, kind: 0, data, offset: None }
}

pub(crate) fn vocabulary(more: &[String]) -> Vec<(String, Value)> {
    let mut tokens: Vec<String> = (0..=255u8).map(|byte| byte_letter(byte).to_string()).collect();
    let mut kinds = vec![1; tokens.len()];
    for special in SPECIAL_TOKENS.into_iter().chain(more.iter().map(String::as_str)) {
        tokens.push(special.to_owned());
        // 3 is a control token, 4 one that text may hold.
        kinds.push(if SPECIAL_TOKENS.contains(&special) && !special.starts_with("<|") { 4 } else { 3 });
    }
    let pairs = [
        ("tokenizer.ggml.model", Value::Str("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Value::Str("gpt-2".to_owned())),
        ("tokenizer.ggml.tokens", Value::Array(Array::Str(tokens))),
        ("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds))),
        ("tokenizer.ggml.merges", Value::Array(Array::Str(Vec::new()))),
        ("tokenizer.ggml.bos_token_id", Value::U32(256)),
        ("tokenizer.ggml.eos_token_id", Value::U32(258)),
        ("tokenizer.ggml.padding_token_id", Value::U32(266)),
        ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The letter that stands for a byte in the vocabularies of GPT-2's kind.
pub(crate) fn byte_letter(byte: u8) -> char {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|b| !printable(*b)).count() as u32;
    char::from_u32(256 + rank).expect("below the surrogates")
}

/// xorshift64*: enough for weights that mean nothing.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Between -1 and 1.
    pub(crate) fn next(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}
