//! The recipe of the part of a model that sees: a `clip` file of llama.cpp's `mtmd`, with random weights.
//!
//! Invariant: images of the tiny ones are 32 pixels wide and patches 8, so that an image is 16 patches at the most that it
//! is scaled to.

use std::io::{self, Write};
use std::path::Path;

use crate::file::{Array, File, Tensor, Value};
use crate::model::{Random, Recipe};

/// Families that put images into their models in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// LLaVA: 16 places, read one after the other, with nothing around them.
    Llava,
    /// Gemma 3: 4 places, which see each other, between two words.
    Gemma,
    /// Qwen 2 VL: as many places as the image is large, with fewer positions than places.
    Qwen,
}

/// The measures of the part that sees.
#[derive(Clone, Copy, Debug)]
pub struct Lens {
    /// How it puts images into its model.
    pub family: Family,
    /// Patches in each direction of an image of fixed size.
    pub side: u64,
    /// Pixels in each direction of a patch.
    pub patch: u64,
    /// Width of its layers.
    pub width: u64,
    /// Width of its networks.
    pub hidden: u64,
    /// Layers.
    pub blocks: u32,
    /// Heads of attention.
    pub heads: u32,
}

/// Words that stand around images in these families; a [`Recipe`] needs them among its tokens.
pub const AROUND_IMAGES: [&str; 4] =
    ["<start_of_image>", "<end_of_image>", "<|vision_start|>", "<|vision_end|>"];

impl Family {
    /// The file that sees for a model of this width.
    pub fn projector(self, seed: u64, width: u32) -> File {
        let mut file = Lens::tiny(self).file(width);
        let mut random = Random::seeded(seed);
        for tensor in &mut file.tensors {
            let count = tensor.shape.iter().product::<u64>() as usize;
            let base = if tensor.name.contains(".ln") && tensor.name.ends_with("weight") { 1.0 } else { 0.0 };
            tensor.data = (0..count).map(|_| base + random.next() * 0.3).collect();
        }
        file
    }

    /// A model of text that takes what this family sees.
    pub fn model(self, mut recipe: Recipe) -> File {
        recipe.more_tokens.extend(AROUND_IMAGES.map(str::to_owned));
        let mut file = recipe.file();
        if self == Self::Qwen {
            for (key, _) in &mut file.metadata {
                if let Some(rest) = key.strip_prefix("llama.") {
                    *key = format!("qwen2vl.{rest}");
                }
            }
            file.set("general.architecture", Value::Str("qwen2vl".to_owned()));
            let sections = Array::I32(vec![4, 6, 6, 0]);
            file.set("qwen2vl.rope.dimension_sections", Value::Array(sections));
        }
        file
    }
}

impl Lens {
    /// A few thousand numbers.
    pub fn tiny(family: Family) -> Self {
        Self { family, side: 4, patch: 8, width: 32, hidden: 64, blocks: 2, heads: 2 }
    }

    /// Writes a file for a model of this width whose weights are all zero, and which takes no space on disk.
    pub fn write_hollow(&self, path: &Path, width: u32) -> io::Result<()> {
        let file = self.file(width);
        let mut out = std::fs::File::create(path)?;
        out.write_all(&file.header())?;
        let data: u64 = file.tensors.iter().map(|tensor| tensor.size().next_multiple_of(32)).sum();
        out.set_len((file.header().len() as u64).next_multiple_of(32) + data)
    }

    /// The file, without numbers in its tensors.
    fn file(&self, width: u32) -> File {
        File {
            magic: *b"GGUF",
            version: 3,
            metadata: self.metadata(width),
            tensors: self.tensors(u64::from(width)),
            tensor_count: None,
            metadata_count: None,
        }
    }

    fn metadata(&self, width: u32) -> Vec<(String, Value)> {
        let kind = match self.family {
            Family::Llava => "mlp",
            Family::Gemma => "gemma3",
            Family::Qwen => "qwen2vl_merger",
        };
        let thirds = |value: f32| Value::Array(Array::F32(vec![value; 3]));
        let pairs = [
            ("general.architecture", Value::Str("clip".to_owned())),
            ("general.type", Value::Str("mmproj".to_owned())),
            ("clip.has_vision_encoder", Value::Bool(true)),
            ("clip.projector_type", Value::Str(kind.to_owned())),
            ("clip.use_gelu", Value::Bool(true)),
            ("clip.vision.embedding_length", Value::U32(self.width as u32)),
            ("clip.vision.feed_forward_length", Value::U32(self.hidden as u32)),
            ("clip.vision.block_count", Value::U32(self.blocks)),
            ("clip.vision.projection_dim", Value::U32(width)),
            ("clip.vision.attention.head_count", Value::U32(self.heads)),
            ("clip.vision.attention.layer_norm_epsilon", Value::F32(1e-5)),
            ("clip.vision.image_size", Value::U32((self.side * self.patch) as u32)),
            ("clip.vision.patch_size", Value::U32(self.patch as u32)),
            ("clip.vision.projector.scale_factor", Value::U32(2)),
            ("clip.vision.image_mean", thirds(0.5)),
            ("clip.vision.image_std", thirds(0.5)),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn tensors(&self, width: u64) -> Vec<Tensor> {
        let mut shapes =
            vec![("v.patch_embd.weight".to_owned(), vec![self.patch, self.patch, 3, self.width])];
        for block in 0..self.blocks {
            for part in ["attn_q", "attn_k", "attn_v", "attn_out"] {
                shapes.push((format!("v.blk.{block}.{part}.weight"), vec![self.width, self.width]));
                shapes.push((format!("v.blk.{block}.{part}.bias"), vec![self.width]));
            }
            for part in ["ln1", "ln2"] {
                shapes.push((format!("v.blk.{block}.{part}.weight"), vec![self.width]));
                shapes.push((format!("v.blk.{block}.{part}.bias"), vec![self.width]));
            }
            for (part, from, to) in
                [("ffn_up", self.width, self.hidden), ("ffn_down", self.hidden, self.width)]
            {
                shapes.push((format!("v.blk.{block}.{part}.weight"), vec![from, to]));
                shapes.push((format!("v.blk.{block}.{part}.bias"), vec![to]));
            }
        }
        shapes.extend(self.own(width).into_iter().map(|(name, shape)| (name.to_owned(), shape)));
        let tensor = |(name, shape): (String, Vec<u64>)| Tensor {
            name,
            shape,
            kind: 0,
            data: Vec::new(),
            offset: None,
        };
        shapes.into_iter().map(tensor).collect()
    }

    fn own(&self, width: u64) -> Vec<(&'static str, Vec<u64>)> {
        let places = vec![self.width, self.side * self.side];
        let merged = |from: u64| {
            vec![
                ("mm.0.weight", vec![from, width]),
                ("mm.0.bias", vec![width]),
                ("mm.2.weight", vec![width, width]),
                ("mm.2.bias", vec![width]),
            ]
        };
        match self.family {
            Family::Llava => [vec![("v.position_embd.weight", places)], merged(self.width)].concat(),
            Family::Gemma => vec![
                ("v.position_embd.weight", places),
                ("v.patch_embd.bias", vec![self.width]),
                ("mm.input_projection.weight", vec![width, self.width]),
                ("mm.soft_emb_norm.weight", vec![self.width]),
            ],
            Family::Qwen => [
                vec![("v.patch_embd.weight.1", vec![self.patch, self.patch, 3, self.width])],
                merged(self.width * 4),
            ]
            .concat(),
        }
    }
}
