//! What the fuzz targets check, beyond that nothing panics.

pub mod trace;
