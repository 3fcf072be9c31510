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
    /// Thirty-two (AMX, `ggml-cpu/amx`): fewer are no slower than whole ones, so only attention is served.
    ThirtyTwo,
}

/// Tokens that flash attention takes at once (`GGML_FA_TILE_Q`). Fewer are looked at one after the other, and each token of
/// the context takes four times as long: 49 new tokens behind 2,000 take 0.50 s with fifteen more, 0.90 without (the same
/// model, AMX).
const QUERIES: usize = 64;
/// Of these it takes so many to cost what a whole tile costs.
const AS_A_TILE: usize = 18;
/// So many tokens of the context cost what one more token of the batch does, as far as attention is saved at all.
const AS_A_TOKEN: usize = 2000;
/// So many tokens more cost what a second tile of thirty-two does.
const AS_A_SECOND_TILE: usize = 8;

impl Tile {
    /// Of this processor, for matrices that are reordered, by the kind of code that was chosen for it.
    pub(crate) fn of_processor(code: Option<&str>) -> Self {
        match code {
            Some("sapphirerapids") => Self::ThirtyTwo,
            _ if has_wide_kernels() => Self::Sixteen,
            _ => Self::Four,
        }
    }

    /// So many tokens more make this batch whole; none where that takes longer. `behind` stand before it; `in_tiles`:
    /// attention may be computed in tiles, too.
    pub(super) fn filling(self, tokens: usize, behind: usize, in_tiles: bool) -> usize {
        match QUERIES.checked_sub(tokens) {
            Some(missing) if in_tiles && self.serves_attention(tokens, behind, missing) => missing,
            _ => self.filling_matrices(tokens),
        }
    }

    fn serves_attention(self, tokens: usize, behind: usize, missing: usize) -> bool {
        match self {
            Self::None => false,
            Self::ThirtyTwo if tokens > 32 => true,
            Self::ThirtyTwo => {
                tokens > AS_A_TILE && behind * (tokens - AS_A_TILE) >= AS_A_TOKEN * AS_A_SECOND_TILE
            }
            Self::Four | Self::Sixteen => {
                tokens > AS_A_TILE && behind * (tokens - AS_A_TILE) >= AS_A_TOKEN * missing
            }
        }
    }

    fn filling_matrices(self, tokens: usize) -> usize {
        let over = |tile: usize| tokens % tile;
        match self {
            Self::None | Self::ThirtyTwo => 0,
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
        let filled = |tile: Tile, tokens| tokens + tile.filling(tokens, 0, false);
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

    #[test]
    fn a_batch_is_made_whole_for_attention_where_much_stands_behind() {
        let filled = |tile: Tile, tokens, behind| tokens + tile.filling(tokens, behind, true);
        let counts = [1, 14, 24, 33, 48, 60, 64, 80];
        let all = |tile, behind| counts.map(|tokens| filled(tile, tokens, behind));
        assert_eq!(all(Tile::ThirtyTwo, 0), [1, 14, 24, 64, 64, 64, 64, 80]);
        assert_eq!(all(Tile::ThirtyTwo, 3000), [1, 14, 64, 64, 64, 64, 64, 80]);
        assert_eq!(all(Tile::Sixteen, 0), [1, 16, 32, 33, 48, 64, 64, 80]);
        assert_eq!(all(Tile::Sixteen, 2000), [1, 16, 32, 33, 64, 64, 64, 80]);
        assert_eq!(all(Tile::Four, 8000), [1, 16, 24, 64, 64, 64, 64, 80]);
        assert_eq!(all(Tile::None, 8000), counts);
    }
}
