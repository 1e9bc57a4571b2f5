//! Breadth of a test.

/// Name of the environment variable that turns all cases on.
const ALL: &str = "HEADTIME_ALL_CASES";

/// All cases if `HEADTIME_ALL_CASES` is set, as `.ci/nightly` does; else the first `few`.
///
/// A test with slow cases uses this: `cargo test` then runs a small part of the cases.
pub fn cases<T>(few: usize, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let number = match std::env::var_os(ALL) {
        Some(_) => usize::MAX,
        None => few,
    };
    all.into_iter().take(number)
}
