//! A GGUF file as plain data, and how it is written.

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `uint32`
    U32(u32),
    /// `int32`
    I32(i32),
    /// `uint64`
    U64(u64),
    /// `float32`
    F32(f32),
    /// `bool`
    Bool(bool),
    /// `string`
    Str(String),
    /// `array`
    Array(Array),
}

/// A metadata array.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Of `string`.
    Str(Vec<String>),
    /// Of `int32`.
    I32(Vec<i32>),
    /// Of `float32`.
    F32(Vec<f32>),
}

/// A tensor of 32-bit floats, and where its header says that it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// E.g. `blk.0.attn_q.weight`.
    pub name: String,
    /// Sizes, fastest first.
    pub shape: Vec<u64>,
    /// The number of the element type; 0 is `F32`.
    pub kind: u32,
    /// The values.
    pub data: Vec<f32>,
    /// An offset to write in place of the right one.
    pub offset: Option<u64>,
}

/// A GGUF file before it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The first four bytes.
    pub magic: [u8; 4],
    /// Format version.
    pub version: u32,
    /// Metadata in order.
    pub metadata: Vec<(String, Value)>,
    /// Tensors in order.
    pub tensors: Vec<Tensor>,
    /// A tensor count to write in place of the right one.
    pub tensor_count: Option<u64>,
    /// A metadata count to write in place of the right one.
    pub metadata_count: Option<u64>,
}

const ALIGNMENT: usize = 32;

impl Tensor {
    /// The bytes that the header promises.
    pub fn size(&self) -> u64 {
        let (block, bytes) = match self.kind {
            1 => (1, 2),
            2 => (32, 18),
            8 => (32, 34),
            12 => (256, 144),
            14 => (256, 210),
            _ => (1, 4),
        };
        self.shape.iter().product::<u64>() / block * bytes
    }
}

impl File {
    /// Sets a metadata value, in place when the key is there.
    pub fn set(&mut self, key: &str, value: Value) -> &mut Self {
        match self.metadata.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
        self
    }

    /// Removes a metadata value.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.metadata.retain(|(name, _)| name != key);
        self
    }

    /// The tensor of this name.
    ///
    /// # Panics
    /// When there is none: a mistake in the test.
    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect("the recipe makes this tensor")
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        pad(&mut out);
        for tensor in &self.tensors {
            for value in &tensor.data {
                out.extend(value.to_le_bytes());
            }
            pad(&mut out);
        }
        out
    }

    /// The bytes up to the tensor data, not padded.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.magic);
        out.extend(self.version.to_le_bytes());
        out.extend(self.tensor_count.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.metadata_count.unwrap_or(self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            string(&mut out, key);
            write_value(&mut out, value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            string(&mut out, &tensor.name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            for size in &tensor.shape {
                out.extend(size.to_le_bytes());
            }
            out.extend(tensor.kind.to_le_bytes());
            out.extend(tensor.offset.unwrap_or(offset).to_le_bytes());
            offset += stored(tensor).next_multiple_of(ALIGNMENT as u64);
        }
        out
    }
}

/// A tensor without values is hollow.
fn stored(tensor: &Tensor) -> u64 {
    if tensor.data.is_empty() { tensor.size() } else { tensor.data.len() as u64 * 4 }
}

pub(crate) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    let mut tagged = |kind: u32, bytes: &[u8]| {
        out.extend(kind.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::U32(v) => tagged(4, &v.to_le_bytes()),
        Value::I32(v) => tagged(5, &v.to_le_bytes()),
        Value::F32(v) => tagged(6, &v.to_le_bytes()),
        Value::Bool(v) => tagged(7, &[u8::from(*v)]),
        Value::U64(v) => tagged(10, &v.to_le_bytes()),
        Value::Str(v) => {
            tagged(8, &[]);
            string(out, v);
        }
        Value::Array(array) => {
            tagged(9, &[]);
            write_array(out, array);
        }
    }
}

fn write_array(out: &mut Vec<u8>, array: &Array) {
    let mut head = |kind: u32, len: usize| {
        out.extend(kind.to_le_bytes());
        out.extend((len as u64).to_le_bytes());
    };
    match array {
        Array::Str(items) => {
            head(8, items.len());
            items.iter().for_each(|item| string(out, item));
        }
        Array::I32(items) => {
            head(5, items.len());
            items.iter().for_each(|item| out.extend(item.to_le_bytes()));
        }
        Array::F32(items) => {
            head(6, items.len());
            items.iter().for_each(|item| out.extend(item.to_le_bytes()));
        }
    }
}

/// A header of these metadata and tensors (name, sizes, element type, bytes), not padded.
pub(crate) fn header(metadata: &[(String, Value)], tensors: &[(&str, &[u64], u32, u64)]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        string(&mut out, key);
        write_value(&mut out, value);
    }
    let mut offset = 0u64;
    for (name, shape, kind, bytes) in tensors {
        string(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|size| out.extend(size.to_le_bytes()));
        out.extend(kind.to_le_bytes());
        out.extend(offset.to_le_bytes());
        // All sizes of the quoting model are multiples of the alignment.
        offset += bytes;
    }
    out
}
