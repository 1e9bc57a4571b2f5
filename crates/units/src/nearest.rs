//! The name that somebody probably meant, for messages about names that do not exist.

/// Words with more letters are not compared.
const LETTERS_MAX: usize = 64;

/// Smallest number of letters at which the beginning of a name means the name.
const BEGINNING_MIN: usize = 4;

/// Returns the candidate most similar to `word`, if one is similar enough to be meant.
///
/// A candidate is similar enough if at most a third of the letters of the longer word differ. One letter may always
/// differ. A candidate is also similar enough if it begins with `word` and `word` has at least four letters. Of
/// equally similar candidates the first is returned. Case does not count. Returns `None` if `word` is empty or has
/// more than 64 letters.
///
/// # Examples
///
/// ```
/// use headtime_units::nearest;
///
/// let policies = ["noop", "deadline", "sptf"];
/// assert_eq!(nearest("dedline", policies), Some("deadline"));
/// assert_eq!(nearest("dead", policies), Some("deadline"));
/// assert_eq!(nearest("bfq", policies), None);
/// ```
pub fn nearest<S: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let word = Letters::of(word).filter(|word| word.len > 0)?;
    let mut best: Option<(usize, S)> = None;
    for candidate in candidates {
        let Some(letters) = Letters::of(candidate.as_ref()) else {
            continue;
        };
        let distance = distance(word.get(), letters.get());
        let longer = word.len.max(letters.len);
        let similar = distance <= (longer / 3).max(1) && distance < longer;
        let begins = word.len >= BEGINNING_MIN && letters.get().starts_with(word.get());
        let meant = similar || begins;
        if meant && best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A word in lower case, without allocation.
struct Letters {
    letters: [char; LETTERS_MAX],
    len: usize,
}

impl Letters {
    /// `None` if there are too many.
    fn of(word: &str) -> Option<Letters> {
        let mut letters = ['\0'; LETTERS_MAX];
        let mut len = 0;
        for letter in word.chars().flat_map(char::to_lowercase) {
            *letters.get_mut(len)? = letter;
            len += 1;
        }
        Some(Letters { letters, len })
    }

    fn get(&self) -> &[char] {
        &self.letters[..self.len]
    }
}

/// Number of letters to insert, delete, change, or swap with a neighbour. Each letter takes part in one of these
/// changes (the optimal string alignment distance).
fn distance(a: &[char], b: &[char]) -> usize {
    // The rows of the table for the letter before last, for the last one, and for this one.
    let (mut before, mut above, mut row) = (
        [0; LETTERS_MAX + 1],
        core::array::from_fn(|j| j),
        [0; LETTERS_MAX + 1],
    );
    for i in 0..a.len() {
        row[0] = i + 1;
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            row[j + 1] = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        (before, above, row) = (above, row, before);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn finds_what_was_meant() {
        let policies = ["noop", "deadline", "mq-deadline", "sstf", "sptf"];
        for (word, meant) in [
            ("dedline", Some("deadline")),
            ("DEADLINE", Some("deadline")),
            ("dealdine", Some("deadline")),
            ("mqdeadline", Some("mq-deadline")),
            ("ssft", Some("sstf")),
            ("nop", Some("noop")),
            ("mq-d", Some("mq-deadline")),
            ("mq-", None),
            ("bfq", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, policies), meant, "{word}");
        }
        let keys = ["read_ahead", "Segments", "write_back", "duration", "r", ""];
        for (word, meant) in [
            ("raed_ahead", Some("read_ahead")),
            ("segment", Some("Segments")),
            ("dura", Some("duration")),
            ("heads", None),
            ("x", None),
            ("ré", Some("r")),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
    }

    #[test]
    fn the_first_of_equals_and_owned_names_too() {
        assert_eq!(nearest("sxtf", ["sstf", "sptf"]), Some("sstf"));
        assert_eq!(
            nearest("nop", [String::from("noop")]),
            Some(String::from("noop"))
        );
    }

    #[test]
    fn long_words_are_not_compared() {
        let long = |letters| "d".repeat(letters);
        assert_eq!(nearest(&long(64), [long(63)]), Some(long(63)));
        assert_eq!(nearest(&long(65), [long(64)]), None);
        assert_eq!(nearest(&long(64), [long(65)]), None);
        assert_eq!(nearest(&long(1_000_000), [long(64)]), None);
    }

    fn between(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        distance(&a, &b)
    }

    #[test]
    fn counts_edits() {
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("sstf", "sptf"), 1);
        assert_eq!(between("ab", "ba"), 1);
        // A letter that was swapped is not edited again.
        assert_eq!(between("ca", "abc"), 3);
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("é", "e"), 1);
    }

    proptest! {
        #[test]
        fn counts_alike_in_both_directions(a in "[ab]{0,12}", b in "[abc]{0,12}") {
            let edits = between(&a, &b);
            prop_assert_eq!(edits, between(&b, &a));
            prop_assert!(edits >= a.len().abs_diff(b.len()) && edits <= a.len().max(b.len()));
            prop_assert_eq!(edits == 0, a == b);
        }
    }
}
