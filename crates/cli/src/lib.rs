//! The command `headtime`.

pub mod plot;
pub mod scenario;
