//! Counts the requests, or places in an index, that an operation looks at. The cost of an operation
//! must not grow with the requests that it does not concern. A count proves that where a clock
//! would only suggest it.
//!
//! Code under test counts with `#[cfg(test)] headtime_testkit::steps::one()`, in its own crate's tests
//! alone.

use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Counts one step of this thread.
pub fn one() {
    TAKEN.set(TAKEN.get() + 1);
}

/// Number of steps that `work` takes.
pub fn of(work: impl FnOnce()) -> u64 {
    let before = TAKEN.get();
    work();
    TAKEN.get() - before
}
