//! The device that is probed.

use crate::fault::Fault;
use headtime_linux::shown::one_line;
use headtime_serve::file::{self, File, FileOptions};
use headtime_serve::probed::{Kernel, Probed};
use std::path::Path;

/// Opens a device; for writing only if something may be written.
pub(super) fn device(path: &Path, writes: bool) -> Result<Probed<File>, Fault> {
    let mut options = FileOptions::new(path);
    options.read_only = !writes;
    let opened = file::open(&options).map_err(|error| Fault::File(error.to_string()))?;
    let kernel =
        Kernel::of(path, Path::new("/sys")).map_err(|error| Fault::reading(path, &error))?;
    let probed = Probed::new(one_line(&path.to_string_lossy()), opened);
    Ok(probed.with_kernel(kernel))
}
