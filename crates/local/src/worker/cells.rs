//! Images among tokens: each place of the cache that an image takes is a number below zero, made of the image's digest.
//!
//! So all that compares tokens - prefixes, branches, states on disk - compares images too. A number also says whether its
//! image begins there, and whether it takes a position of its own: images in models with positions of several dimensions
//! (M-RoPE) take fewer positions than places. Invariant: pure.

use llama_cpp_2::token::LlamaToken;
use sha2::{Digest, Sha256};

/// Set in the first place of an image.
const BEGINS: u32 = 1 << 30;
/// Set where the positions go on.
const ADVANCES: u32 = 1 << 29;

/// The places of a piece of an image.
pub(super) fn cells(digest: &str, piece: usize, places: usize, positions: usize) -> Vec<LlamaToken> {
    let cell = |place: usize| {
        let hash = Sha256::digest(format!("{digest} {piece} {place}"));
        let mut number = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]) & (ADVANCES - 1);
        number |= 1 << 31;
        number |= if place == 0 { BEGINS } else { 0 };
        number |= if place < positions { ADVANCES } else { 0 };
        LlamaToken(number.cast_signed())
    };
    (0..places).map(cell).collect()
}

/// Whether this is a place of an image.
pub(super) fn is_cell(token: LlamaToken) -> bool {
    token.0 < 0
}

/// The position behind these tokens.
pub(super) fn position(tokens: &[LlamaToken]) -> usize {
    tokens.iter().filter(|token| token.0 >= 0 || token.0.cast_unsigned() & ADVANCES != 0).count()
}

/// At most so many of these tokens, and no part of an image: those behind what is kept have to see it whole.
pub(super) fn whole(tokens: &[LlamaToken], count: usize) -> usize {
    let inside = |at: usize| {
        tokens.get(at).is_some_and(|token| is_cell(*token) && token.0.cast_unsigned() & BEGINS == 0)
    };
    (0..=count).rev().find(|at| !inside(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(count: i32) -> Vec<LlamaToken> {
        (0..count).map(LlamaToken).collect()
    }

    #[test]
    fn images_are_told_apart_and_count_their_positions() {
        let (one, other) = (cells("one", 0, 20, 20), cells("other", 0, 20, 20));
        assert!(one.iter().all(|cell| is_cell(*cell)) && !text(3).into_iter().any(is_cell));
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
        assert_eq!(one, cells("one", 0, 20, 20));
        assert_ne!(one, cells("one", 1, 20, 20));
        assert_eq!(position(&one), 20);
        assert_eq!(position(&[text(7), cells("flat", 0, 12, 4), text(2)].concat()), 13);
    }

    #[test]
    fn an_image_is_kept_whole_or_not_at_all() {
        let tokens = [text(5), cells("a", 0, 4, 2), cells("b", 0, 3, 3), text(2)].concat();
        let kept = [5, 5, 5, 5, 9, 9, 9, 12, 13, 14];
        for (count, kept) in (5..).zip(kept) {
            assert_eq!(whole(&tokens, count), kept, "of {count}");
        }
        assert_eq!(whole(&cells("a", 0, 4, 4), 3), 0);
        assert_eq!(whole(&[], 0), 0);
    }
}
