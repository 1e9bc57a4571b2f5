//! Errors of recordings.

use headtime_workload::RingError;
use std::io;
use thiserror::Error;

/// Reason for which a device cannot be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The device does not exist, is no block device, or is empty.
    #[error("{device}: {problem}")]
    Device {
        device: String,
        /// Problem of the device.
        problem: String,
    },
    /// tracefs is not mounted, and cannot be mounted.
    #[error(
        "tracefs is not mounted, and cannot be for this program alone ({source}); as root, mount it with \
         `mount -t tracefs tracefs /sys/kernel/tracing`"
    )]
    NoTracefs {
        /// Error of the system.
        source: io::Error,
    },
    /// A file of tracefs cannot be used.
    #[error(
        "tracefs: cannot {what} {file}: {source}{}",
        if source.kind() == io::ErrorKind::PermissionDenied { "; recording needs root" } else { "" }
    )]
    Tracefs {
        /// Operation, such as `make` or `read`.
        what: &'static str,
        /// Path of the file, from the root of tracefs.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The kernel's buffer has an unknown format.
    #[error("tracefs: {0}")]
    Ring(#[from] RingError),
}
