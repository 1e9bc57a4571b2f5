//! Selects a few of many rows.

/// Approximate number of lines of a page's table.
const LINES: usize = 9;

/// Selects the first row, the last row, and some in between.
pub(super) fn sparse<T>(all: &[T]) -> Vec<&T> {
    let last = all.len() - 1;
    let count = LINES.min(last).max(1);
    let mut some: Vec<usize> = (0..=count).map(|step| step * last / count).collect();
    some.dedup();
    some.into_iter().map(|index| &all[index]).collect()
}
