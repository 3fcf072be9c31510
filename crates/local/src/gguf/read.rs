//! The GGUF format: magic, metadata, tensor table.
//!
//! Invariant: lengths and counts are believed only after they were compared with the bytes that are left.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::fault::FileFault;

/// Everything that stands before the tensor data.
#[derive(Clone, Debug)]
pub struct Header {
    /// Metadata by key.
    pub metadata: HashMap<String, Value>,
    /// Tensors in the order of the file.
    pub tensors: Vec<TensorInfo>,
    /// Length of the file in bytes.
    pub file_bytes: u64,
}

/// A metadata value; integers of every width become `Int`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any integer.
    Int(i128),
    /// Any float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text; bytes that are not UTF-8 are replaced.
    Str(String),
    /// An array.
    Array(Array),
}

/// A metadata array. Elements are kept where a check needs them.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Of strings, as they stand.
    Str(Vec<Vec<u8>>),
    /// Of integers.
    Int(Vec<i64>),
    /// Of something else: how many.
    Other(u64),
}

/// A row of the tensor table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// E.g. `blk.0.attn_q.weight`.
    pub name: String,
    /// Sizes, fastest first; always four.
    pub shape: [u64; 4],
    /// The number of its ggml type.
    pub kind: u32,
    /// Bytes it takes.
    pub bytes: u64,
}

const DEFAULT_ALIGNMENT: u64 = 32;
/// Keys of real files are below 100 bytes; the format allows 65,535.
const LONGEST_KEY: u64 = 65_535;
/// ggml keeps names in 64 bytes with a final zero.
const LONGEST_TENSOR_NAME: u64 = 63;

/// Reads the header of a file.
pub(super) fn read_header(path: &Path) -> Result<Header, FileFault> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Err(FileFault::NotAFile);
    }
    if meta.len() == 0 {
        return Err(FileFault::Empty);
    }
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    Reader { source: file, at: 0, len: meta.len() }.header()
}

struct Reader<R> {
    source: R,
    at: u64,
    len: u64,
}

impl<R: Read> Reader<R> {
    fn header(mut self) -> Result<Header, FileFault> {
        self.magic()?;
        self.version()?;
        let tensor_count = self.u64("the tensor count")?;
        let metadata_count = self.u64("the metadata count")?;
        // The shortest possible row: an empty name and so on.
        self.fits(tensor_count, 24, "tensors")?;
        self.fits(metadata_count, 13, "metadata keys")?;
        let metadata = self.metadata(metadata_count)?;
        let alignment = alignment(&metadata)?;
        let tensors = self.tensors(tensor_count, alignment)?;
        Ok(Header { metadata, tensors, file_bytes: self.len })
    }

    fn magic(&mut self) -> Result<(), FileFault> {
        let mut start = [0; 16];
        let len = self.len.min(16) as usize;
        self.bytes(&mut start[..4.min(len)], "the magic number")?;
        if len >= 4 && &start[..4] == b"GGUF" {
            return Ok(());
        }
        let rest = len.saturating_sub(4);
        if rest > 0 {
            self.bytes(&mut start[4..4 + rest], "the first bytes")?;
        }
        Err(FileFault::NotGguf(other_format(&start[..len])))
    }

    fn version(&mut self) -> Result<(), FileFault> {
        match self.u32("the version")? {
            2 | 3 => Ok(()),
            version if version & 0xffff == 0 && version != 0 => Err(FileFault::BigEndian),
            version => Err(FileFault::Version(version)),
        }
    }

    fn metadata(&mut self, count: u64) -> Result<HashMap<String, Value>, FileFault> {
        let mut out = HashMap::new();
        for index in 0..count {
            let key = self.string(LONGEST_KEY, &format!("the key of metadata {index}"))?;
            let key = String::from_utf8(key)
                .map_err(|_| FileFault::Damaged(format!("the key of metadata {index} is not text")))?;
            if key.is_empty() {
                return Err(FileFault::Damaged(format!("the key of metadata {index} is empty")));
            }
            let kind = self.u32(&format!("the type of `{key}`"))?;
            let value = self.value(kind, &key)?;
            if out.contains_key(&key) {
                return Err(FileFault::Damaged(format!("`{key}` stands there twice")));
            }
            out.insert(key, value);
        }
        Ok(out)
    }

    fn value(&mut self, kind: u32, key: &str) -> Result<Value, FileFault> {
        let what = format!("the value of `{key}`");
        Ok(match kind {
            0 => Value::Int(self.array::<1>(&what)?[0].into()),
            1 => Value::Int(i8::from_le_bytes(self.array(&what)?).into()),
            2 => Value::Int(u16::from_le_bytes(self.array(&what)?).into()),
            3 => Value::Int(i16::from_le_bytes(self.array(&what)?).into()),
            4 => Value::Int(self.u32(&what)?.into()),
            5 => Value::Int(i32::from_le_bytes(self.array(&what)?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array(&what)?).into()),
            7 => Value::Bool(self.array::<1>(&what)?[0] != 0),
            8 => Value::Str(String::from_utf8_lossy(&self.string(u64::MAX, &what)?).into_owned()),
            9 => Value::Array(self.elements(key, &what)?),
            10 => Value::Int(self.u64(&what)?.into()),
            11 => Value::Int(i64::from_le_bytes(self.array(&what)?).into()),
            12 => Value::Float(f64::from_le_bytes(self.array(&what)?)),
            _ => return Err(FileFault::Damaged(format!("`{key}` has the unknown type {kind}"))),
        })
    }

    fn elements(&mut self, key: &str, what: &str) -> Result<Array, FileFault> {
        let kind = self.u32(what)?;
        let count = self.u64(what)?;
        let width = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 => return Err(FileFault::Damaged(format!("`{key}` is an array of arrays"))),
            _ => return Err(FileFault::Damaged(format!("`{key}` is an array of the unknown type {kind}"))),
        };
        self.fits(count, width, &format!("`{key}`"))?;
        match kind {
            8 => (0..count).map(|_| self.string(u64::MAX, what)).collect::<Result<_, _>>().map(Array::Str),
            6 | 7 | 12 => {
                self.skip(count * width, what)?;
                Ok(Array::Other(count))
            }
            _ => (0..count)
                .map(|_| match self.value(kind, key)? {
                    Value::Int(int) => Ok(int as i64),
                    Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Array(_) => Ok(0),
                })
                .collect::<Result<_, _>>()
                .map(Array::Int),
        }
    }

    fn tensors(&mut self, count: u64, alignment: u64) -> Result<Vec<TensorInfo>, FileFault> {
        let mut names = HashSet::new();
        let mut rows = Vec::new();
        for index in 0..count {
            let (tensor, offset) = self.tensor(index)?;
            if !names.insert(tensor.name.clone()) {
                return Err(FileFault::Damaged(format!("tensor `{}` stands there twice", tensor.name)));
            }
            if !offset.is_multiple_of(alignment) {
                return Err(FileFault::Damaged(format!("tensor `{}` is not aligned", tensor.name)));
            }
            rows.push((tensor, offset));
        }
        // The data starts at the next aligned byte.
        let data = self.at.next_multiple_of(alignment);
        for (tensor, offset) in &rows {
            let end = data.checked_add(*offset).and_then(|start| start.checked_add(tensor.bytes));
            if end.is_none_or(|end| end > self.len) {
                return Err(FileFault::Truncated { what: format!("tensor `{}`", tensor.name) });
            }
        }
        Ok(rows.into_iter().map(|(tensor, _)| tensor).collect())
    }

    fn tensor(&mut self, index: u64) -> Result<(TensorInfo, u64), FileFault> {
        let what = format!("row {index} of the tensor table");
        let name = self.string(LONGEST_TENSOR_NAME, &what)?;
        let name = String::from_utf8_lossy(&name).into_owned();
        let dimensions = self.u32(&what)?;
        if !(1..=4).contains(&dimensions) {
            return Err(FileFault::Damaged(format!("tensor `{name}` has {dimensions} dimensions")));
        }
        let mut shape = [1; 4];
        for size in &mut shape[..dimensions as usize] {
            *size = self.u64(&what)?;
        }
        let kind = self.u32(&what)?;
        let offset = self.u64(&what)?;
        let bytes = tensor_bytes(&name, shape, kind)?;
        Ok((TensorInfo { name, shape, kind, bytes }, offset))
    }

    /// Refuses a count that cannot be true for the bytes that are left.
    fn fits(&self, count: u64, width: u64, what: &str) -> Result<(), FileFault> {
        if count.checked_mul(width).is_some_and(|bytes| bytes <= self.len - self.at) {
            return Ok(());
        }
        Err(FileFault::Truncated { what: format!("the list of {count} {what}") })
    }

    fn string(&mut self, longest: u64, what: &str) -> Result<Vec<u8>, FileFault> {
        let len = self.u64(what)?;
        if len > self.len - self.at {
            return Err(FileFault::Truncated { what: what.to_owned() });
        }
        if len > longest {
            return Err(FileFault::Damaged(format!("{what} is {len} bytes long")));
        }
        let mut out = vec![0; len as usize];
        self.bytes(&mut out, what)?;
        Ok(out)
    }

    fn u32(&mut self, what: &str) -> Result<u32, FileFault> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, FileFault> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], FileFault> {
        let mut out = [0; N];
        self.bytes(&mut out, what)?;
        Ok(out)
    }

    fn skip(&mut self, count: u64, what: &str) -> Result<(), FileFault> {
        let copied = std::io::copy(&mut self.source.by_ref().take(count), &mut std::io::sink())?;
        self.at += copied;
        if copied == count { Ok(()) } else { Err(FileFault::Truncated { what: what.to_owned() }) }
    }

    fn bytes(&mut self, out: &mut [u8], what: &str) -> Result<(), FileFault> {
        self.source.read_exact(out).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => FileFault::Truncated { what: what.to_owned() },
            _ => FileFault::Io(error),
        })?;
        self.at += out.len() as u64;
        Ok(())
    }
}

fn alignment(metadata: &HashMap<String, Value>) -> Result<u64, FileFault> {
    match metadata.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::Int(value)) if (1..=1 << 20).contains(value) && (*value as u64).is_power_of_two() => {
            Ok(*value as u64)
        }
        Some(Value::Int(other)) => {
            Err(FileFault::Damaged(format!("the alignment {other} is not a power of two")))
        }
        Some(Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Array(_)) => {
            Err(FileFault::Damaged("the alignment is not a number".to_owned()))
        }
    }
}

fn tensor_bytes(name: &str, shape: [u64; 4], kind: u32) -> Result<u64, FileFault> {
    let damaged = |why: String| FileFault::Damaged(format!("tensor `{name}` {why}"));
    let (block, size) = type_size(kind).ok_or_else(|| damaged(format!("has the unknown type {kind}")))?;
    if !shape[0].is_multiple_of(block) {
        return Err(damaged(format!("has rows of {} elements, not a multiple of {block}", shape[0])));
    }
    let count = shape.iter().try_fold(1u64, |all, size| all.checked_mul(*size));
    let bytes = count.and_then(|count| (count / block).checked_mul(size));
    match bytes {
        Some(bytes) if i64::try_from(bytes).is_ok() => Ok(bytes),
        Some(_) | None => Err(damaged(format!("has the impossible shape {shape:?}"))),
    }
}

/// Elements and bytes of a block of a ggml type.
fn type_size(kind: u32) -> Option<(u64, u64)> {
    if kind >= llama_cpp_sys_2::GGML_TYPE_COUNT {
        return None;
    }
    // SAFETY: table look-ups in ggml; the index was just checked.
    let (block, size) =
        unsafe { (llama_cpp_sys_2::ggml_blck_size(kind), llama_cpp_sys_2::ggml_type_size(kind)) };
    // Types that ggml has removed have no size.
    (block > 0 && size > 0).then_some((block as u64, size as u64))
}

fn other_format(start: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a ZIP archive (a PyTorch file?)"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"version https://", "a Git LFS pointer; fetch the file itself with `git lfs pull`"),
        (b"<!DOCTYPE", "a web page; the download went wrong"),
        (b"<html", "a web page; the download went wrong"),
        (b"FUGG", "a GGUF file of the other byte order"),
        (b"lmgg", "an old GGML file; convert it or get a GGUF"),
        (b"tjgg", "an old GGJT file; convert it or get a GGUF"),
    ];
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return name;
    }
    if start.get(8..9) == Some(b"{") {
        return "a Safetensors file; convert it or get a GGUF";
    }
    if start.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')) {
        return "a text file";
    }
    "something else"
}

#[cfg(test)]
mod tests;
