//! Why a device cannot be recorded.

use headtime_workload::RingError;
use std::io;
use thiserror::Error;

/// Why a device cannot be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not there, or is no block device, or has nothing in it.
    #[error("{device}: {problem}")]
    Device {
        device: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no tracefs, and none can be had.
    #[error(
        "tracefs is not mounted, and cannot be for this program alone ({source}); as root, mount it with \
         `mount -t tracefs tracefs /sys/kernel/tracing`"
    )]
    NoTracefs {
        /// What the system said.
        source: io::Error,
    },
    /// A file of tracefs does not do what it should.
    #[error(
        "tracefs: cannot {what} {file}: {source}{}",
        if source.kind() == io::ErrorKind::PermissionDenied { "; recording needs root" } else { "" }
    )]
    Tracefs {
        /// `make`, `read` or such.
        what: &'static str,
        /// The file, from tracefs's root.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's buffer says what is not understood.
    #[error("tracefs: {0}")]
    Ring(#[from] RingError),
}
