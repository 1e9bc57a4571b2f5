//! TLS of a build without the feature `tls`: there is none.

use super::super::stream::Moved;
use super::{TlsError, TlsFile, TlsFiles};
use crate::listen::Stream;
use std::io::{self, IoSlice, IoSliceMut};

/// Certificates of a server. This build has none.
#[derive(Clone, Debug)]
pub enum NoTls {}

impl NoTls {
    /// Fails, since this build has no TLS.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open(_files: &TlsFiles) -> Result<NoTls, TlsError> {
        Err(TlsError {
            file: TlsFile::Certificate,
            problem: "this build has no TLS; packages have it, and `cargo build --features tls`"
                .to_owned(),
        })
    }

    /// Takes other certificates. There are none.
    pub fn replace(&self, _by: &NoTls) {
        match *self {}
    }

    pub(in crate::nbd) fn has_authority(&self) -> bool {
        match *self {}
    }
}

/// Encryption of one connection. This build has none.
pub(in crate::nbd) enum NoLayer {}

impl NoLayer {
    pub(in crate::nbd) fn new(tls: &NoTls, _arrived: &[u8]) -> io::Result<NoLayer> {
        match *tls {}
    }

    pub(in crate::nbd) fn read(
        &mut self,
        _socket: &Stream,
        _into: &mut [IoSliceMut<'_>],
    ) -> io::Result<Moved> {
        match *self {}
    }

    pub(in crate::nbd) fn write(
        &mut self,
        _socket: &Stream,
        _from: &[IoSlice<'_>],
    ) -> io::Result<Moved> {
        match *self {}
    }

    pub(in crate::nbd) fn flush(&mut self, _socket: &Stream) -> io::Result<bool> {
        match *self {}
    }

    pub(in crate::nbd) fn advance(&mut self, _socket: &Stream) -> io::Result<Moved> {
        match *self {}
    }

    pub(in crate::nbd) fn holds_output(&self) -> bool {
        match *self {}
    }

    pub(in crate::nbd) fn is_shaking_hands(&self) -> bool {
        match *self {}
    }

    pub(in crate::nbd) fn client_name(&self) -> Option<String> {
        match *self {}
    }

    pub(in crate::nbd) fn close(&mut self, _socket: &Stream) {
        match *self {}
    }
}
