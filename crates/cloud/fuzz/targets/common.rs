//! What holds for every body: it is read without a panic, and the same however it is cut.

use lectern_cloud::{Provider, decode};

/// The first bytes say how the rest is cut: each is the length of a piece, again and again.
pub fn read(provider: Provider, input: &[u8]) {
    let (lengths, body) = input.split_at(input.len().min(4));
    let whole = decode::recorded(provider, body, 0);
    let mut rest = body;
    let mut pieces = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().map_or(1, |length| usize::from(*length).max(1));
        let (piece, more) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    assert_eq!(decode::pieces(provider, pieces.into_iter()), whole);
}
