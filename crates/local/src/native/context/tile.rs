//! How many tokens the processor's kernels take at once.
//!
//! Invariant: pure; it decides about time alone, never about what is computed.

/// ggml multiplies reordered matrices (`ggml-cpu/repack.cpp`) with tiles of tokens: with AVX-512 with sixteen, elsewhere
/// with four. What is left over is multiplied with token by token, and the whole matrix is read for each. A batch that is
/// filled up to whole tiles is done sooner: 14 tokens of a model with 1.2 billion parameters in a third of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tile {
    /// A token more costs what it costs.
    #[default]
    None,
    /// Four.
    Four,
    /// Sixteen, and fours of what is left.
    Sixteen,
}

impl Tile {
    /// Of this processor, for matrices that are reordered.
    pub(crate) fn of_processor() -> Self {
        if has_wide_kernels() { Self::Sixteen } else { Self::Four }
    }

    /// So many tokens more make this batch whole; none where that takes longer.
    pub(super) fn filling(self, tokens: usize) -> usize {
        let over = |tile: usize| tokens % tile;
        match self {
            Self::None => 0,
            Self::Four if over(4) < 2 => 0,
            Self::Four => 4 - over(4),
            // One or two tokens by themselves, or four, take no longer than sixteen.
            Self::Sixteen if matches!(over(16), 0 | 1 | 2 | 4) => 0,
            Self::Sixteen => 16 - over(16),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_wide_kernels() -> bool {
    std::arch::is_x86_feature_detected!("avx512bw") && std::arch::is_x86_feature_detected!("avx512dq")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide_kernels() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_made_whole_where_that_is_sooner() {
        let filled = |tile: Tile, tokens| tokens + tile.filling(tokens);
        for tokens in 1..200 {
            assert_eq!(filled(Tile::None, tokens), tokens);
            assert!(filled(Tile::Sixteen, tokens) < tokens + 14 && filled(Tile::Four, tokens) < tokens + 3);
        }
        assert_eq!(
            [1, 2, 3, 4, 5, 14, 17, 58].map(|tokens| filled(Tile::Sixteen, tokens)),
            [1, 2, 16, 4, 16, 16, 17, 64]
        );
        assert_eq!([1, 2, 3, 4, 5, 14].map(|tokens| filled(Tile::Four, tokens)), [1, 4, 4, 4, 5, 16]);
    }
}
