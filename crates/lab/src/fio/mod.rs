//! Job files of fio as scenarios.
//!
//! fio's manual and fio 3.33 define the keys; `docs/fio.md` lists their meaning here. A note names each key without a
//! meaning here, and each key that changes the load and is not simulated is an error.

mod keys;
mod output;
mod read;
mod scenario;

pub use output::{MeasuredJob, job};
pub use scenario::table;

#[cfg(test)]
mod tests;
