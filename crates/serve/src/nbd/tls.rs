//! TLS of clients over TCP.
//!
//! A build without the feature `tls` has no value of [`Tls`]. So the compiler removes the encrypted path from all other modules.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod layer;
#[cfg(feature = "tls")]
mod name;

#[cfg(not(feature = "tls"))]
pub(super) use absent::NoLayer as Layer;
#[cfg(not(feature = "tls"))]
pub use absent::NoTls as Tls;
#[cfg(feature = "tls")]
pub(super) use layer::Layer;
#[cfg(feature = "tls")]
pub use layer::Tls;

use std::path::PathBuf;

/// Files that TLS needs, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the server and of the authorities between the server and a root, in this order.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// Authorities of clients. If there are any, a client needs a certificate that one of the authorities has signed.
    pub ca: Option<PathBuf>,
}

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    Certificate,
    Key,
    Ca,
}

/// Reason why TLS cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TlsError {
    /// File with the problem.
    pub file: TlsFile,
    /// The problem, with the path and the allowed content.
    pub problem: String,
}
