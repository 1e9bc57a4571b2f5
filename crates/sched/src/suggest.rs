//! The name that somebody probably meant.

use alloc::string::String;
use alloc::vec::Vec;

/// Names longer than this are not compared.
const LENGTH_MAX: usize = 64;

/// The name most similar to `text`, if one is similar: at most a third of its letters differ, or one.
/// The first of several.
pub(crate) fn nearest(text: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    if text.len() > LENGTH_MAX {
        return None;
    }
    let mut best: Option<(usize, String)> = None;
    for name in names {
        let letters: Vec<char> = name.chars().collect();
        let distance = distance(&text, &letters);
        let near = distance <= (letters.len() / 3).max(1);
        if near && best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// How many letters must be put in, left out, changed, or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let change = above[j] + usize::from(x != y);
            let mut least = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn finds_what_was_meant() {
        let names = || {
            ["noop", "deadline", "mq-deadline", "sstf", "sptf"]
                .map(str::to_string)
                .into_iter()
        };
        for (text, meant) in [
            ("dedline", Some("deadline")),
            ("DEADLINE", Some("deadline")),
            ("dealdine", Some("deadline")),
            ("mqdeadline", Some("mq-deadline")),
            ("ssft", Some("sstf")),
            ("nop", Some("noop")),
            ("bfq", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, names()).as_deref(), meant, "{text}");
        }
        assert_eq!(nearest(&"d".repeat(1_000_000), names()), None);
    }

    #[test]
    fn counts_edits() {
        let between = |a: &str, b: &str| {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            assert_eq!(distance(&a, &b), distance(&b, &a));
            distance(&a, &b)
        };
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("sstf", "sptf"), 1);
        assert_eq!(between("ab", "ba"), 1);
        assert_eq!(between("", "abc"), 3);
    }
}
