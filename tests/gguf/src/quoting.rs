//! A model of the true size of a real one for benchmarks, which writes one known text.
//!
//! The speed of a model does not depend on its weights, so these are random, but for one thing: the output row of
//! a token is the embedding of another, its predecessor. The model thus follows a chain of tokens, whatever it was
//! asked, and a benchmark can put the same text into a note and see it quoted.
//! Invariant: no network, no Python; the same size gives the same bytes. Two tensors more than a model that shares
//! its embedding with its output, as many operations.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::file::{Array, Value, header, pad};
use crate::model::{CHATML_TOOLS, Random, SPECIAL_TOKENS, byte_letter};

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The shape of Llama-3.2-1B in Q4_0: 910 MB.
    OneBillion,
    /// A toy of some megabytes, for a quick look.
    Small,
}

struct Dimensions {
    width: u64,
    hidden: u64,
    blocks: u32,
    heads: u32,
    heads_kv: u32,
    words: usize,
}

impl Size {
    fn dimensions(self) -> Dimensions {
        match self {
            Self::OneBillion => {
                Dimensions { width: 2048, hidden: 8192, blocks: 16, heads: 32, heads_kv: 8, words: 128_256 }
            }
            Self::Small => {
                Dimensions { width: 512, hidden: 1024, blocks: 4, heads: 8, heads_kv: 2, words: 16_384 }
            }
        }
    }
}

/// Words of the text that the model writes; the text has a quotation mark before them.
pub const QUOTED_WORDS: usize = 160;
const QUOTATION_MARK: usize = b'"' as usize;
const NEW_LINE: usize = b'\n' as usize;
const END_OF_MESSAGE: usize = 258;
const END_OF_CALL: usize = 261;

/// A benchmark model.
pub struct QuotingModel {
    dimensions: Dimensions,
    vocabulary: Vocabulary,
}

impl QuotingModel {
    /// A model of this size.
    pub fn new(size: Size) -> Self {
        let dimensions = size.dimensions();
        let vocabulary = Vocabulary::new(dimensions.words);
        Self { dimensions, vocabulary }
    }

    /// The words that it writes in answer to anything, each one token.
    pub fn quoted(&self) -> &[String] {
        &self.vocabulary.words[..QUOTED_WORDS]
    }

    /// Words that it never writes, each one token.
    pub fn others(&self) -> &[String] {
        &self.vocabulary.words[QUOTED_WORDS..]
    }

    /// The size of the file.
    pub fn file_bytes(&self) -> u64 {
        let tensors = self.tensors();
        self.head(&tensors).len() as u64 + tensors.iter().map(Planned::bytes).sum::<u64>()
    }

    fn head(&self, tensors: &[Planned]) -> Vec<u8> {
        let sized: Vec<_> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice(), tensor.kind as u32, tensor.bytes()))
            .collect();
        let mut head = header(&self.metadata(), &sized);
        pad(&mut head);
        head
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let tensors = self.tensors();
        let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
        out.write_all(&self.head(&tensors))?;
        let mut random = Random::seeded(11);
        for tensor in &tensors {
            self.write_tensor(tensor, &mut random, &mut out)?;
        }
        out.flush()
    }

    fn write_tensor(
        &self,
        tensor: &Planned,
        random: &mut Random,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let width = self.dimensions.width as usize;
        match &tensor.fill {
            Fill::Ones => {
                for _ in 0..tensor.shape[0] {
                    out.write_all(&1f32.to_le_bytes())?;
                }
            }
            Fill::Random { scale } => {
                let blocks = tensor.bytes() as usize / 18;
                for _ in 0..blocks {
                    out.write_all(&half(*scale))?;
                    out.write_all(&random.bits().to_le_bytes())?;
                    out.write_all(&random.bits().to_le_bytes())?;
                }
            }
            Fill::Embedding => {
                for token in 0..self.dimensions.words {
                    out.write_all(&as_q4(&embedding(token, width)))?;
                }
            }
            Fill::Output => {
                for before in self.vocabulary.predecessors() {
                    out.write_all(&as_q6(&output_row(&before, width)))?;
                }
            }
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<Planned> {
        let d = &self.dimensions;
        let (width, words) = (d.width, d.words as u64);
        let keys = width / u64::from(d.heads) * u64::from(d.heads_kv);
        // A gain of about one.
        let usual = |inputs: u64| Fill::Random { scale: 0.22 / (inputs as f32).sqrt() };
        // What the layers say is hardly heard, so that the chain is followed.
        let quiet = || Fill::Random { scale: 1e-4 };
        let mut out = vec![Planned::new("token_embd.weight", &[width, words], Kind::Q4, Fill::Embedding)];
        for block in 0..d.blocks {
            let mut add = |part: &str, shape: &[u64], kind, fill| {
                out.push(Planned::new(&format!("blk.{block}.{part}.weight"), shape, kind, fill));
            };
            add("attn_norm", &[width], Kind::F32, Fill::Ones);
            add("attn_q", &[width, width], Kind::Q4, usual(width));
            add("attn_k", &[width, keys], Kind::Q4, usual(width));
            add("attn_v", &[width, keys], Kind::Q4, usual(width));
            add("attn_output", &[width, width], Kind::Q4, quiet());
            add("ffn_norm", &[width], Kind::F32, Fill::Ones);
            add("ffn_gate", &[width, d.hidden], Kind::Q4, usual(width));
            add("ffn_up", &[width, d.hidden], Kind::Q4, usual(width));
            add("ffn_down", &[d.hidden, width], Kind::Q4, quiet());
        }
        out.push(Planned::new("output_norm.weight", &[width], Kind::F32, Fill::Ones));
        out.push(Planned::new("output.weight", &[width, words], Kind::Q6, Fill::Output));
        out
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let d = &self.dimensions;
        let pairs = [
            ("general.architecture", Value::Str("llama".to_owned())),
            ("general.name", Value::Str("Benchmark that quotes".to_owned())),
            ("general.file_type", Value::U32(2)),
            ("llama.context_length", Value::U32(131_072)),
            ("llama.embedding_length", Value::U32(d.width as u32)),
            ("llama.block_count", Value::U32(d.blocks)),
            ("llama.feed_forward_length", Value::U32(d.hidden as u32)),
            ("llama.attention.head_count", Value::U32(d.heads)),
            ("llama.attention.head_count_kv", Value::U32(d.heads_kv)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.dimension_count", Value::U32(d.width as u32 / d.heads)),
            ("llama.rope.freq_base", Value::F32(500_000.0)),
            ("tokenizer.chat_template", Value::Str(CHATML_TOOLS.to_owned())),
        ];
        let shape = pairs.into_iter().map(|(key, value)| (key.to_owned(), value));
        shape.chain(self.vocabulary.metadata()).collect()
    }
}

/// A tensor to be written.
struct Planned {
    name: String,
    shape: Vec<u64>,
    kind: Kind,
    fill: Fill,
}

/// The numbers of the element types.
#[derive(Clone, Copy)]
enum Kind {
    F32 = 0,
    Q4 = 2,
    Q6 = 14,
}

enum Fill {
    Ones,
    Random { scale: f32 },
    Embedding,
    Output,
}

impl Planned {
    fn new(name: &str, shape: &[u64], kind: Kind, fill: Fill) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), kind, fill }
    }

    fn bytes(&self) -> u64 {
        let elements: u64 = self.shape.iter().product();
        match self.kind {
            Kind::F32 => elements * 4,
            Kind::Q4 => elements / 32 * 18,
            Kind::Q6 => elements / 256 * 210,
        }
    }
}

/// Bytes, special tokens and words. Each beginning of a word is a token, and joins happen at a word's front only,
/// so that a known word is always one token.
struct Vocabulary {
    tokens: Vec<String>,
    merges: Vec<String>,
    /// Words in the order in which the model writes them, each with a blank before it when written.
    words: Vec<String>,
    ids: Vec<usize>,
}

/// Joins and tokens that lead to the words of formats, letter by letter.
fn of_formats() -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for word in OF_FORMATS {
        for end in 2..=word.len() {
            let (front, letter, token) = (&word[..end - 1], &word[end - 1..end], &word[..end]);
            if !out.iter().any(|(_, known)| known == token) {
                out.push((format!("{front} {letter}"), token.to_owned()));
            }
        }
    }
    out
}

const SYLLABLES: [&str; 32] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta", "ve",
    "wi", "xo", "yu", "za", "be", "ci", "do", "fu", "ga", "he", "jo", "ku", "la", "me", "ni",
];

/// Words of templates, calls and schemas, which real vocabularies have as tokens, too.
const OF_FORMATS: [&str; 18] = [
    "system",
    "user",
    "assistant",
    "tool",
    "call",
    "response",
    "name",
    "arguments",
    "type",
    "object",
    "string",
    "properties",
    "required",
    "text",
    "query",
    "folder",
    "notes",
    "search",
];

impl Vocabulary {
    fn new(size: usize) -> Self {
        let formats = of_formats();
        let size = size - formats.len();
        let mut tokens: Vec<String> = (0..=255u8).map(|byte| byte_letter(byte).to_string()).collect();
        tokens.extend(SPECIAL_TOKENS.iter().map(|token| (*token).to_owned()));
        let mut known: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
        let (mut merges, mut words, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let mut random = Random::seeded(5);
        while tokens.len() < size {
            let count = 2 + random.bits() as usize % 3;
            let word: String =
                (0..count).map(|_| SYLLABLES[random.bits() as usize % SYLLABLES.len()]).collect();
            let mut front = byte_letter(b' ').to_string();
            for letter in word.chars() {
                let longer = format!("{front}{letter}");
                if tokens.len() < size && !known.contains_key(&longer) {
                    merges.push(format!("{front} {letter}"));
                    known.insert(longer.clone(), tokens.len());
                    tokens.push(longer.clone());
                }
                front = longer;
            }
            if let Some(id) =
                known.get(&front).filter(|id| ids.len() < 4 * QUOTED_WORDS && !ids.contains(*id))
            {
                ids.push(*id);
                words.push(word);
            }
        }
        // Last, so that every join of a word's front comes before them.
        for (merge, token) in formats {
            merges.push(merge);
            tokens.push(token);
        }
        Self { tokens, merges, words, ids }
    }

    /// For each token those that it follows, the one that it follows gladly first.
    fn predecessors(&self) -> Vec<Vec<usize>> {
        let chain = &self.ids[..QUOTED_WORDS];
        let last = chain[chain.len() - 1];
        // Without a place in the chain, a token follows the one with the number before it, or else none that is.
        let taken =
            |token: &usize| [NEW_LINE, QUOTATION_MARK, END_OF_CALL].contains(token) || chain.contains(token);
        let count = self.tokens.len();
        let usual =
            |token: usize| token.checked_sub(1).filter(|before| !taken(before)).unwrap_or(count + token);
        let mut before: Vec<Vec<usize>> = (0..count).map(|token| vec![usual(token)]).collect();
        before[chain[0]] = vec![QUOTATION_MARK];
        for pair in chain.windows(2) {
            before[pair[1]] = vec![pair[0]];
        }
        before[END_OF_MESSAGE] = vec![last, END_OF_CALL];
        // Where a message may not end, as inside an argument, the text ends.
        before[QUOTATION_MARK] = vec![NEW_LINE, last];
        before
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let special = 256..256 + SPECIAL_TOKENS.len();
        let kinds = (0..self.tokens.len()).map(|id| match special.contains(&id) {
            true if self.tokens[id].starts_with("<|") => 3,
            true => 4,
            false => 1,
        });
        let pairs = [
            ("tokenizer.ggml.model", Value::Str("gpt2".to_owned())),
            ("tokenizer.ggml.pre", Value::Str("gpt-2".to_owned())),
            ("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds.collect()))),
            ("tokenizer.ggml.tokens", Value::Array(Array::Str(self.tokens.clone()))),
            ("tokenizer.ggml.merges", Value::Array(Array::Str(self.merges.clone()))),
            ("tokenizer.ggml.bos_token_id", Value::U32(256)),
            ("tokenizer.ggml.eos_token_id", Value::U32(END_OF_MESSAGE as u32)),
            ("tokenizer.ggml.padding_token_id", Value::U32(266)),
            ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Values from -8 to 7, the same for the same token.
fn embedding(token: usize, width: usize) -> Vec<i8> {
    let mut random = Random::seeded(1000 + token as u64);
    let mut out = Vec::with_capacity(width);
    while out.len() < width {
        let bits = random.bits();
        out.extend((0..16).map(|nibble| (bits >> (4 * nibble) & 15) as i8 - 8));
    }
    out.truncate(width);
    out
}

/// Values from -32 to 31: four times the embedding of the token before, and half as loud those of others.
fn output_row(before: &[usize], width: usize) -> Vec<i8> {
    let mut out: Vec<i16> =
        embedding(before[0], width).into_iter().map(|value| 4 * i16::from(value)).collect();
    for other in &before[1..] {
        for (sum, value) in out.iter_mut().zip(embedding(*other, width)) {
            *sum += 3 * i16::from(value);
        }
    }
    out.into_iter().map(|value| value.clamp(-32, 31) as i8).collect()
}

/// Blocks of `block_q4_0` (ggml-common.h): a scale and 32 nibbles.
fn as_q4(values: &[i8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() / 32 * 18);
    for block in values.chunks_exact(32) {
        out.extend(half(0.2));
        out.extend((0..16).map(|i| (block[i] + 8) as u8 | ((block[i + 16] + 8) as u8) << 4));
    }
    out
}

/// Blocks of `block_q6_K` (ggml-common.h): low nibbles, high pairs of bits, 16 scales (all one), one scale.
fn as_q6(values: &[i8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() / 256 * 210);
    // The narrower the model, the louder, so that it is as sure of the next word.
    let scale = half(1.4 / values.len() as f32);
    for block in values.chunks_exact(256) {
        let raw: Vec<u8> = block.iter().map(|value| (value + 32) as u8).collect();
        let (first, second) = raw.split_at(128);
        for part in [first, second] {
            out.extend((0..64).map(|i| (part[i] & 15) | (part[i + 64] & 15) << 4));
        }
        for part in [first, second] {
            out.extend((0..32).map(|i| {
                part[i] >> 4 | part[i + 32] >> 4 << 2 | part[i + 64] >> 4 << 4 | part[i + 96] >> 4 << 6
            }));
        }
        out.extend([1u8; 16]);
        out.extend(scale);
    }
    out
}

/// A small positive number in half precision (IEEE 754 binary16), rounded down.
fn half(value: f32) -> [u8; 2] {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    let mantissa = (bits >> 13 & 0x3ff) as u16;
    debug_assert!((1..31).contains(&exponent), "a normal number");
    ((exponent as u16) << 10 | mantissa).to_le_bytes()
}
