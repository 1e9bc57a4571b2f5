//! The simulator for Python: the library `headtime-lab` behind the package `headtime`.
//!
//! The module has what needs Rust. `headtime/__init__.py` has the functions that users call, with their documentation.

mod disk;
mod error;
mod report;
mod source;
mod sweep;
mod table;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
mod _headtime {
    use super::*;

    #[pymodule_export]
    use super::disk::Disk;
    #[pymodule_export]
    use super::report::{Drive, Report, Trace, drives, report, reproduce, run};
    #[pymodule_export]
    use super::sweep::{Plan, Swept, run_batch};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
