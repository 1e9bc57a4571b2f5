//! Opens the device to be probed.

use headtime_lab::fault::{Fault, name};
use headtime_linux::shown::one_line;
use headtime_serve::file::{self, File, FileOptions};
use headtime_serve::probed::{Kernel, Probed, Remote};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a device. The device is opened for writing only if the probe may write.
pub(in super::super) fn device(path: &Path, writes: bool) -> Result<Probed<File>, Fault> {
    let mut options = FileOptions::new(path);
    options.read_only = !writes;
    let opened = file::open(&options).map_err(|error| Fault::File(error.to_string()))?;
    let kernel =
        Kernel::of(path, Path::new("/sys")).map_err(|error| Fault::reading(path, &error))?;
    let probed = Probed::new(one_line(&path.to_string_lossy()), opened);
    Ok(probed.with_kernel(kernel))
}

/// Connects to an export behind the socket of an NBD server. Returns `None` if the path is no socket.
pub(in super::super) fn remote(path: &Path, export: Option<&str>) -> Result<Option<Remote>, Fault> {
    if !fs::metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return match export {
            None => Ok(None),
            Some(_) => Err(Fault::Usage(format!(
                "--export: {} is no socket of an NBD server",
                name(path)
            ))),
        };
    }
    let remote = Remote::connect(path, export.unwrap_or_default());
    let remote = remote.map_err(|error| Fault::File(format!("{}: {error}", name(path))))?;
    Ok(Some(remote))
}
