//! The format of a saved state.
//!
//! First what llama.cpp wrote (`llama_state_seq_save_file`), then the checkpoints, then the header as JSON, then a
//! trailer: length of the header, SHA-256 of the header, SHA-256 of everything before, magic number. llama.cpp reads
//! its part and does not mind the rest.
//! Invariant: a file that ends differently, or whose digests are wrong, is an error; nothing of it is believed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

/// The last bytes of a file; the number at the end is the version of the format.
const MAGIC: &[u8; 8] = b"LECTKV01";
const TRAILER: u64 = 8 + 32 + 32 + 8;
/// More than the tokens and replies of the longest conversation.
const LONGEST_HEADER: u64 = 256 << 20;

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header<H> {
    /// Model, template, settings and versions that the state belongs to.
    pub(crate) key: String,
    pub(crate) conversation: String,
    /// The tokens of prompt and reply.
    pub(crate) tokens: Vec<i32>,
    /// How many of them were evaluated.
    pub(crate) cached: usize,
    pub(crate) history: H,
    /// Digest of what stands before the messages.
    pub(crate) setting: String,
    /// Checkpoints in the order in which they stand.
    pub(crate) checkpoints: Vec<SavedCheckpoint>,
}

/// A checkpoint in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedCheckpoint {
    /// Tokens it had read.
    pub(crate) at: usize,
    pub(crate) bytes: u64,
    /// Where it begins.
    pub(crate) offset: u64,
}

/// Why a file is not believed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Cut short, or not such a file.
    #[error("it does not end like a saved state")]
    NotAState,
    /// A digest is wrong.
    #[error("it is damaged")]
    Damaged,
    /// The header is not of this shape.
    #[error("its header cannot be read: {0}")]
    Header(#[from] serde_json::Error),
}

/// Completes a file that llama.cpp began: checkpoints, header, trailer; then makes it last.
pub(crate) fn seal<H: Serialize>(
    path: &Path,
    mut header: Header<H>,
    checkpoints: &[(usize, &[u8])],
) -> Result<(), FileError> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut digest = Sha256::new();
    let mut offset = feed(&mut file, &mut digest, u64::MAX)?;
    let mut append = |file: &mut File, bytes: &[u8]| {
        digest.update(bytes);
        file.write_all(bytes)
    };
    header.checkpoints.clear();
    for (at, bytes) in checkpoints {
        append(&mut file, bytes)?;
        header.checkpoints.push(SavedCheckpoint { at: *at, bytes: bytes.len() as u64, offset });
        offset += bytes.len() as u64;
    }
    let text = serde_json::to_vec(&header)?;
    append(&mut file, &text)?;
    append(&mut file, &(text.len() as u64).to_le_bytes())?;
    append(&mut file, &Sha256::digest(&text))?;
    let digest = digest.finalize();
    file.write_all(&digest)?;
    file.write_all(MAGIC)?;
    file.sync_all()?;
    Ok(())
}

/// Reads the header alone; its own digest is checked.
pub(crate) fn read_header<H: DeserializeOwned>(path: &Path) -> Result<Header<H>, FileError> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.checked_sub(TRAILER).ok_or(FileError::NotAState)?;
    let mut trailer = [0; TRAILER as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut trailer)?;
    if &trailer[72..] != MAGIC {
        return Err(FileError::NotAState);
    }
    let mut count = [0; 8];
    count.copy_from_slice(&trailer[..8]);
    let count = u64::from_le_bytes(count);
    if count > start || count > LONGEST_HEADER {
        return Err(FileError::NotAState);
    }
    file.seek(SeekFrom::Start(start - count))?;
    let mut text = vec![0; usize::try_from(count).map_err(|_| FileError::NotAState)?];
    file.read_exact(&mut text)?;
    if Sha256::digest(&text)[..] != trailer[8..40] {
        return Err(FileError::Damaged);
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Checks the digest of the whole file.
pub(crate) fn verify(path: &Path) -> Result<(), FileError> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let covered = length.checked_sub(40).ok_or(FileError::NotAState)?;
    let mut digest = Sha256::new();
    if feed(&mut file, &mut digest, covered)? != covered {
        return Err(FileError::NotAState);
    }
    let mut end = [0; 40];
    file.read_exact(&mut end)?;
    if &end[32..] != MAGIC {
        return Err(FileError::NotAState);
    }
    if digest.finalize()[..] != end[..32] { Err(FileError::Damaged) } else { Ok(()) }
}

/// The bytes of a checkpoint of a file that was verified.
pub(crate) fn checkpoint_bytes(path: &Path, checkpoint: SavedCheckpoint) -> Result<Vec<u8>, FileError> {
    let mut file = File::open(path)?;
    let end = checkpoint.offset.checked_add(checkpoint.bytes).ok_or(FileError::NotAState)?;
    if end > file.metadata()?.len() {
        return Err(FileError::NotAState);
    }
    file.seek(SeekFrom::Start(checkpoint.offset))?;
    let mut bytes = vec![0; usize::try_from(checkpoint.bytes).map_err(|_| FileError::NotAState)?];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Digests at most so many bytes from where the file stands; gives how many there were.
fn feed(file: &mut File, digest: &mut Sha256, most: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 18];
    let mut done = 0;
    while done < most {
        let want = buffer.len().min(usize::try_from(most - done).unwrap_or(usize::MAX));
        let count = file.read(&mut buffer[..want])?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
        done += count as u64;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("state");
        std::fs::write(&path, b"what llama.cpp wrote").unwrap();
        let header = Header {
            key: "key".to_owned(),
            conversation: "one".to_owned(),
            tokens: vec![1, 2, 3],
            cached: 2,
            history: "history".to_owned(),
            setting: String::new(),
            checkpoints: Vec::new(),
        };
        seal(&path, header, &[(2, b"abc"), (3, b"defg")]).unwrap();
        path
    }

    #[test]
    fn what_was_sealed_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = sealed(folder.path());
        verify(&path).unwrap();
        let header: Header<String> = read_header(&path).unwrap();
        assert_eq!((header.tokens.as_slice(), header.history.as_str()), (&[1, 2, 3][..], "history"));
        let second = header.checkpoints[1];
        assert_eq!((second.at, checkpoint_bytes(&path, second).unwrap()), (3, b"defg".to_vec()));
        assert!(std::fs::read(&path).unwrap().starts_with(b"what llama.cpp wrote"));
    }

    #[test]
    fn no_cut_and_no_flipped_bit_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = sealed(folder.path());
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(verify(&path).is_err(), "cut at {length}");
        }
        for place in 0..whole.len() {
            let mut other = whole.clone();
            other[place] ^= 1;
            std::fs::write(&path, other).unwrap();
            assert!(verify(&path).is_err(), "changed at {place}");
            // Reading the header of a damaged file must be safe too.
            let _ = read_header::<String>(&path);
        }
    }
}
