//! A few of many rows.

/// About as many lines as a table of a page has.
const LINES: usize = 9;

/// The first, the last and some in between.
pub(super) fn sparse<T>(all: &[T]) -> Vec<&T> {
    let last = all.len() - 1;
    let count = LINES.min(last).max(1);
    let mut some: Vec<usize> = (0..=count).map(|step| step * last / count).collect();
    some.dedup();
    some.into_iter().map(|index| &all[index]).collect()
}
