//! What a model file says of itself, for people.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::fault::ModelFileError;
use super::read::{Array, Header, Value, read_header};
use super::shape::ModelShape;
use crate::memory::{MemoryPlan, predict};

/// What a model file says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFileInfo {
    /// The file.
    pub path: PathBuf,
    /// The name in the file, or else the file's own name.
    pub name: String,
    /// E.g. `llama`.
    pub architecture: String,
    /// How many numbers the model is made of.
    pub parameters: u64,
    /// E.g. `Q4_K - Medium`.
    pub quantization: String,
    /// Tokens that the model was trained to keep in view.
    pub context_length: u32,
    /// Bytes on disk (of this file; a split model has more).
    pub file_bytes: u64,
    /// Words of the vocabulary.
    pub vocabulary: u32,
    /// The same for files whose tokens mean the same; see [`ModelFileInfo::guesses_for`].
    #[serde(skip)]
    pub vocabulary_digest: [u8; 32],
    /// Whether the file brings a chat template.
    pub has_template: bool,
    /// The licence that the file names, with an address where it can be read. Untrusted, like all texts of the file.
    pub licence: Option<String>,
    /// Bytes of memory needed with a context of 8,192 tokens, or the model's own if that is less.
    pub memory_bytes: u64,
    /// The chat template.
    #[serde(skip)]
    pub template: Option<String>,
    /// What decides how much memory it takes; see [`crate::memory::predict`].
    #[serde(skip)]
    pub shape: ModelShape,
}

impl ModelFileInfo {
    /// Whether it can guess for another model, as its draft: each token has to mean the same to both, and a recurrent
    /// model cannot take guesses back. The load looks once more, at what llama.cpp made of both files.
    pub fn guesses_for(&self, other: &Self) -> Result<(), DraftFault> {
        if self.shape.state_bytes > 0 {
            return Err(DraftFault::Recurrent);
        }
        if self.shape.words != other.shape.words {
            return Err(DraftFault::Words { draft: self.shape.words, model: other.shape.words });
        }
        if self.vocabulary_digest != other.vocabulary_digest {
            return Err(DraftFault::OtherWords);
        }
        Ok(())
    }
}

/// Why a model cannot guess for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftFault {
    /// It keeps a state that cannot be taken back.
    #[error("a recurrent model cannot take guesses back")]
    Recurrent,
    /// The vocabularies differ in length.
    #[error("its vocabulary has {draft} tokens and that of the model {model}")]
    Words {
        /// Of the model that is to guess.
        draft: u64,
        /// Of the model that it is to guess for.
        model: u64,
    },
    /// The vocabularies are as long as each other.
    #[error("its tokens are other ones than those of the model")]
    OtherWords,
}

/// The context that [`ModelFileInfo::memory_bytes`] counts with, and the default one.
pub(crate) const USUAL_CONTEXT: u32 = 8192;
/// Characters of a licence's name or address.
const LONGEST_LICENCE: usize = 200;
/// More parts than any split model has.
const MOST_PARTS: i128 = 1000;

/// Reads and checks a model file without loading it.
pub fn read_info(path: &Path) -> Result<ModelFileInfo, ModelFileError> {
    let header = read_header(path).map_err(|fault| ModelFileError::new(path, fault))?;
    header.check().map_err(|fault| ModelFileError::new(path, fault))?;
    let whole = with_parts(path, &header);
    let mut info = describe(path, &header);
    info.shape = ModelShape::of(whole.as_ref().unwrap_or(&header));
    let context = info.context_length.min(USUAL_CONTEXT);
    info.memory_bytes = predict(&info.shape, &MemoryPlan { context, ..MemoryPlan::default() }).total;
    Ok(info)
}

/// The header with the tensors of all parts, when the model is split. A part that cannot be read is left out: the
/// load says so.
fn with_parts(path: &Path, header: &Header) -> Option<Header> {
    let count = header.int("split.count").filter(|count| (2..=MOST_PARTS).contains(count))?;
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(&format!("-00001-of-{count:05}.gguf"))?;
    let parts = (2..=count).map(|part| path.with_file_name(format!("{stem}-{part:05}-of-{count:05}.gguf")));
    let mut whole = header.clone();
    for part in parts.filter_map(|part| read_header(&part).ok()) {
        whole.file_bytes = whole.file_bytes.saturating_add(part.file_bytes);
        whole.tensors.extend(part.tensors);
    }
    Some(whole)
}

fn describe(path: &Path, header: &Header) -> ModelFileInfo {
    let architecture = header.str("general.architecture").unwrap_or_default().to_owned();
    let own_name = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let context = header.int(&format!("{architecture}.context_length")).unwrap_or(0);
    let context_length = u32::try_from(context).unwrap_or(u32::MAX);
    let embeddings = header.tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    ModelFileInfo {
        path: path.to_owned(),
        name: header.str("general.name").filter(|name| !name.is_empty()).map_or_else(own_name, str::to_owned),
        parameters: header.tensors.iter().map(|tensor| tensor.shape.iter().product::<u64>()).sum(),
        quantization: quantization(header),
        context_length,
        file_bytes: header.file_bytes,
        vocabulary: embeddings.map_or(0, |tensor| u32::try_from(tensor.shape[1]).unwrap_or(u32::MAX)),
        vocabulary_digest: vocabulary_digest(header),
        has_template: header.str("tokenizer.chat_template").is_some(),
        licence: licence(header),
        memory_bytes: 0,
        shape: ModelShape::default(),
        template: header.str("tokenizer.chat_template").map(str::to_owned),
        architecture,
    }
}

/// The kind of tokenizer decides how a token's text becomes bytes.
fn vocabulary_digest(header: &Header) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(header.str("tokenizer.ggml.model").unwrap_or_default());
    if let Some(Value::Array(Array::Str(words))) = header.metadata.get("tokenizer.ggml.tokens") {
        for word in words {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word);
        }
    }
    digest.finalize().into()
}

/// `general.license` is an SPDX expression, or `other` with a name and a link beside it (GGUF's list of standard keys).
fn licence(header: &Header) -> Option<String> {
    let said = |key: &str| {
        let text: String = header.str(key)?.trim().chars().take(LONGEST_LICENCE).collect();
        (!text.is_empty()).then_some(text)
    };
    let expression = said("general.license").filter(|text| !text.eq_ignore_ascii_case("other"));
    let named = expression.or_else(|| said("general.license.name"));
    let link = said("general.license.link").filter(|link| link.starts_with("https://"));
    match (named, link) {
        (Some(named), Some(link)) => Some(format!("{named} ({link})")),
        (named, link) => named.or(link).or_else(|| said("general.license")),
    }
}

fn quantization(header: &Header) -> String {
    let kind = header.int("general.file_type").and_then(|kind| u32::try_from(kind).ok());
    let Some(kind) = kind else { return "unknown".to_owned() };
    // SAFETY: a look-up in a table of constant texts; unknown numbers have a text too.
    let name = unsafe { llama_cpp_sys_2::llama_ftype_name(kind) };
    if name.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: a constant text of llama.cpp.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use lectern_test_gguf::{Recipe, Value};

    use super::read_info;

    #[test]
    fn the_licence_of_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        type Keys = &'static [(&'static str, &'static str)];
        let cases: [(Keys, Option<&str>); 5] = [
            (&[], None),
            (&[("general.license", "apache-2.0")], Some("apache-2.0")),
            (
                &[
                    ("general.license", "other"),
                    ("general.license.name", "Qwen Research"),
                    ("general.license.link", "https://example.org/l"),
                ],
                Some("Qwen Research (https://example.org/l)"),
            ),
            (&[("general.license", "other"), ("general.license.link", "javascript:alert(1)")], Some("other")),
            (&[("general.license", " ")], None),
        ];
        for (keys, expected) in cases {
            let mut file = Recipe::default().file();
            for (key, text) in keys {
                file.set(key, Value::Str((*text).to_owned()));
            }
            std::fs::write(&path, file.bytes()).unwrap();
            assert_eq!(read_info(&path).unwrap().licence.as_deref(), expected, "{keys:?}");
        }
    }
}
