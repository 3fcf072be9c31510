//! Why a model file cannot be used.

use std::path::{Path, PathBuf};

/// A model file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("model file `{}`: {fault}", path.display())]
pub struct ModelFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: FileFault,
}

impl ModelFileError {
    pub(crate) fn new(path: &Path, fault: impl Into<FileFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }
}

/// What is wrong with a model file.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// The system does not let us read it.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A folder or a device.
    #[error("this is not a file")]
    NotAFile,
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// Another format.
    #[error("this is not a GGUF file but {0}")]
    NotGguf(&'static str),
    /// Written on a machine of the other byte order.
    #[error("the file is big-endian; a little-endian GGUF is needed")]
    BigEndian,
    /// A version of the format that llama.cpp does not read.
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    /// The file ends too early.
    #[error("the file is cut off: {what} is not all there (the download may be incomplete)")]
    Truncated {
        /// What was being read.
        what: String,
    },
    /// The header contradicts itself.
    #[error("the header is damaged: {0}")]
    Damaged(String),
    /// A required key is not there.
    #[error("the header lacks `{0}`")]
    Missing(String),
    /// A key holds a value that no model can have.
    #[error("`{key}` is {value}, {why}")]
    Implausible {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A GGUF file, but not one that can chat.
    #[error("{0}")]
    Unsuitable(String),
    /// llama.cpp could not load it.
    #[error("llama.cpp could not load it: {0}")]
    Refused(String),
}
