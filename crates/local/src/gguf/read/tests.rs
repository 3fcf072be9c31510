use std::io::Cursor;

use lectern_test_gguf::{Recipe, Shape, broken};
use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8]) -> Result<Header, FileFault> {
    Reader { source: Cursor::new(bytes), at: 0, len: bytes.len() as u64 }.header()
}

#[test]
fn reads_a_whole_header() {
    let header = read(&Recipe::default().bytes()).unwrap();
    header.check().unwrap();
    assert_eq!(header.tensors.len(), 21);
    assert_eq!(header.str("general.architecture"), Some("llama"));
    assert_eq!(header.int("llama.block_count"), Some(2));
    let embeddings = &header.tensors[0];
    assert_eq!((embeddings.shape, embeddings.bytes), ([64, 267, 1, 1], 64 * 267 * 4));
}

#[test]
fn every_cut_of_the_header_is_an_error() {
    let file = Recipe::default().file();
    let whole = file.bytes();
    for end in (0..file.header().len()).step_by(7) {
        assert!(read(&whole[..end]).is_err(), "cut at {end}");
    }
}

/// Most of the 64 are found here; the rest must be found by llama.cpp, in a child process.
#[test]
fn most_broken_files_never_reach_llama() {
    let mut passed = Vec::new();
    for file in broken() {
        if let Shape::Bytes(bytes) = file.shape
            && read(&bytes).and_then(|header| header.check()).is_ok()
        {
            passed.push(file.name);
        }
    }
    assert_eq!(passed, ["tensor-missing", "tensor-shape-wrong", "tokenizer-unknown"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((0usize..9000, any::<u8>()), 1..8)) {
        let mut bytes = Recipe::default().bytes();
        for (at, byte) in flips {
            bytes[at] = byte;
        }
        if let Ok(header) = read(&bytes) {
            let _ = header.check();
        }
    }

    #[test]
    fn any_bytes_after_the_magic_never_panic(tail in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tail);
        let _ = read(&bytes);
    }
}
