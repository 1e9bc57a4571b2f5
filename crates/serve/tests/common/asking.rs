//! Asking a disk and waiting for it.

pub use crate::common::{now, submit};
