//! Damaged texts, for tests of readers.

use proptest::prelude::*;

/// One of the texts, which are ASCII, with a piece of up to 11 bytes replaced by another. Most results are still
/// TOML, so that readers get far.
pub fn damaged(texts: &[&'static str]) -> impl Strategy<Value = String> {
    let of = proptest::sample::select(texts.to_vec());
    let piece = "[\"'\\[\\]{}=,.a-z0-9 \n:-]{0,12}";
    (of, 0.0..1.0, 0_usize..12, piece).prop_map(|(of, start, len, piece)| {
        let start = (start * of.len() as f64) as usize;
        let end = (start + len).min(of.len());
        format!("{}{piece}{}", &of[..start], &of[end..])
    })
}
