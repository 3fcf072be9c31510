//! Files that no model can be loaded from, each wrong in one way.

use crate::file::{Array, File, Value};
use crate::model::Recipe;

/// What lies at the path.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A file of these bytes.
    Bytes(Vec<u8>),
    /// A folder.
    Folder,
    /// Nothing.
    Missing,
}

/// A file that cannot be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// What is wrong, as a file name without its ending.
    pub name: &'static str,
    /// What lies at the path.
    pub shape: Shape,
}

/// The 64 broken files.
pub fn broken() -> Vec<Broken> {
    let mut all = not_gguf();
    all.extend(truncated());
    all.extend(bad_header());
    all.extend(bad_metadata_bytes());
    all.extend(bad_tensors());
    all.extend(bad_numbers());
    all.extend(bad_vocabulary());
    all
}

fn bytes(name: &'static str, bytes: impl Into<Vec<u8>>) -> Broken {
    Broken { name, shape: Shape::Bytes(bytes.into()) }
}

fn changed(name: &'static str, change: impl FnOnce(&mut File)) -> Broken {
    let mut file = Recipe::default().file();
    change(&mut file);
    bytes(name, file.bytes())
}

fn not_gguf() -> Vec<Broken> {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1\
               258daaa5e2ca24d17e2393\nsize 12345\n";
    let mut zip = b"PK\x03\x04\x14\0\0\0\x08\0".to_vec();
    zip.resize(4000, 7);
    vec![
        Broken { name: "missing", shape: Shape::Missing },
        Broken { name: "folder", shape: Shape::Folder },
        bytes("empty", []),
        bytes("one-byte", [b'G']),
        bytes("text", "The quick brown fox jumps over the lazy dog.\n".repeat(40)),
        bytes("web-page", "<!DOCTYPE html><html><head><title>404 Not Found</title></head></html>"),
        bytes("lfs-pointer", lfs),
        bytes("zip", zip),
        changed("magic-of-ggml", |file| file.magic = *b"lmgg"),
        changed("magic-reversed", |file| file.magic = *b"FUGG"),
    ]
}

fn truncated() -> Vec<Broken> {
    let file = Recipe::default().file();
    let (whole, header) = (file.bytes(), file.header().len());
    let find = |text: &str| position(&whole, text.as_bytes());
    let cut = |name, end: usize| bytes(name, &whole[..end]);
    vec![
        cut("cut-after-magic", 4),
        cut("cut-after-version", 8),
        cut("cut-after-counts", 24),
        cut("cut-in-key-length", 28),
        cut("cut-in-key", find("general.architecture") + 7),
        cut("cut-before-value", find("general.name") + "general.name".len() + 2),
        cut("cut-in-tokens", find("tokenizer.ggml.tokens") + 900),
        cut("cut-in-token-types", find("tokenizer.ggml.token_type") + 300),
        cut("cut-in-template", find("<tools>")),
        cut("cut-in-tensor-table", find("blk.1.attn_q.weight") + 30),
        cut("cut-before-data", header),
        cut("cut-in-first-tensor", header + 500),
        cut("cut-in-the-middle", header + (whole.len() - header) / 2),
        cut("cut-one-byte", whole.len() - 1),
    ]
}

fn position(haystack: &[u8], needle: &[u8]) -> usize {
    haystack.windows(needle.len()).position(|window| window == needle).expect("the recipe writes this text")
}

fn bad_header() -> Vec<Broken> {
    vec![
        changed("version-0", |file| file.version = 0),
        changed("version-1", |file| file.version = 1),
        changed("version-99", |file| file.version = 99),
        changed("big-endian", |file| file.version = 3u32.swap_bytes()),
        changed("tensor-count-max", |file| file.tensor_count = Some(u64::MAX)),
        changed("tensor-count-huge", |file| file.tensor_count = Some(1 << 40)),
        changed("tensor-count-one-more", |file| file.tensor_count = Some(file.tensors.len() as u64 + 1)),
        changed("no-tensors", |file| file.tensors.clear()),
        changed("metadata-count-max", |file| file.metadata_count = Some(u64::MAX)),
        changed("metadata-count-one-more", |file| {
            file.metadata_count = Some(file.metadata.len() as u64 + 1);
        }),
    ]
}

/// Overwrites bytes at some distance after a text of the file.
fn patched(name: &'static str, after: &str, skip: usize, patch: &[u8]) -> Broken {
    let mut all = Recipe::default().bytes();
    let at = position(&all, after.as_bytes()) + after.len() + skip;
    all[at..at + patch.len()].copy_from_slice(patch);
    bytes(name, all)
}

fn bad_metadata_bytes() -> Vec<Broken> {
    vec![
        patched("value-type-unknown", "general.name", 0, &99u32.to_le_bytes()),
        patched("element-type-unknown", "tokenizer.ggml.tokens", 4, &99u32.to_le_bytes()),
        patched("array-of-arrays", "tokenizer.ggml.tokens", 4, &9u32.to_le_bytes()),
        patched("array-length-huge", "tokenizer.ggml.tokens", 8, &(1u64 << 60).to_le_bytes()),
        patched("string-length-huge", "general.name", 4, &u64::MAX.to_le_bytes()),
        changed("key-twice", |file| {
            let first = file.metadata[3].clone();
            file.metadata.push(first);
        }),
        changed("alignment-3", |file| {
            file.set("general.alignment", Value::U32(3));
        }),
        changed("alignment-0", |file| {
            file.set("general.alignment", Value::U32(0));
        }),
    ]
}

fn bad_tensors() -> Vec<Broken> {
    vec![
        changed("tensor-twice", |file| {
            file.tensor("blk.0.attn_k.weight").name = "blk.0.attn_q.weight".into()
        }),
        changed("tensor-missing", |file| {
            file.tensors.retain(|tensor| tensor.name != "blk.1.ffn_down.weight")
        }),
        changed("tensor-offset-beyond", |file| file.tensor("output.weight").offset = Some(1 << 34)),
        changed("tensor-offset-overflow", |file| {
            file.tensor("output.weight").offset = Some(u64::MAX - 31);
        }),
        changed("tensor-offset-unaligned", |file| file.tensor("output.weight").offset = Some(33)),
        changed("tensor-size-overflow", |file| {
            file.tensor("output.weight").shape = vec![1 << 33, 1 << 33];
        }),
        changed("tensor-five-dimensions", |file| {
            file.tensor("output.weight").shape = vec![64, 267, 1, 1, 1];
        }),
        changed("tensor-type-unknown", |file| file.tensor("output.weight").kind = 99),
        changed("tensor-shape-wrong", |file| file.tensor("blk.0.attn_q.weight").shape = vec![32, 128]),
    ]
}

fn bad_numbers() -> Vec<Broken> {
    let with = |name, key: &'static str, value: Value| {
        changed(name, |file| {
            file.set(key, value);
        })
    };
    let without = |name, key: &'static str| {
        changed(name, |file| {
            file.remove(key);
        })
    };
    vec![
        without("architecture-missing", "general.architecture"),
        with("architecture-unknown", "general.architecture", Value::Str("lhama".into())),
        without("block-count-missing", "llama.block_count"),
        with("block-count-0", "llama.block_count", Value::U32(0)),
        with("block-count-1000", "llama.block_count", Value::U32(1000)),
        with("context-2e9", "llama.context_length", Value::U32(2_000_000_000)),
        with("heads-0", "llama.attention.head_count", Value::U32(0)),
        with("experts-huge", "llama.expert_count", Value::U32(2_000_000_000)),
        with("rope-scaling-unknown", "llama.rope.scaling.type", Value::Str("spiral".into())),
    ]
}

fn bad_vocabulary() -> Vec<Broken> {
    vec![
        changed("no-vocabulary", |file| {
            file.metadata.retain(|(key, _)| !key.starts_with("tokenizer."));
        }),
        changed("tokens-twice", |file| change_tokens(file, |tokens| tokens[70] = tokens[71].clone())),
        changed("tokens-fewer-than-rows", |file| change_tokens(file, |tokens| tokens.truncate(100))),
        changed("tokenizer-unknown", |file| {
            file.set("tokenizer.ggml.model", Value::Str("runes".into()));
        }),
    ]
}

fn change_tokens(file: &mut File, change: impl FnOnce(&mut Vec<String>)) {
    for (key, value) in &mut file.metadata {
        if let ("tokenizer.ggml.tokens", Value::Array(Array::Str(tokens))) = (key.as_str(), value) {
            change(tokens);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn sixty_four_different_files() {
        let all = broken();
        let mut names: Vec<_> = all.iter().map(|one| one.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 64);
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.shape != one.shape), "{} is a copy", one.name);
        }
    }
}
