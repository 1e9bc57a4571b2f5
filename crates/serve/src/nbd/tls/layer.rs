//! TLS by rustls.

use super::super::stream::Moved;
use super::{TlsError, TlsFile, TlsFiles, name};
use crate::listen::Stream;
use headtime_linux::shown::PathShown as _;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Certificates of a server, for all its connections.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<Mutex<Arc<ServerConfig>>>,
    has_authority: bool,
}

impl Tls {
    /// Reads certificate, key and authorities.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or has nothing of its kind, or if the key and the certificate do not match.
    pub fn open(files: &TlsFiles) -> Result<Tls, TlsError> {
        let provider = Arc::new(default_provider());
        let chain = certificates(&files.certificate, TlsFile::Certificate)?;
        let key = key(&files.key)?;
        let verifier = match &files.ca {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(path) => {
                let roots = authorities(path)?;
                WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
                    .build()
                    .map_err(|error| wrong(TlsFile::Ca, path, error))?
            }
        };
        let mut config = builder(provider)
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InvalidCertificate(_) => {
                    wrong(TlsFile::Certificate, &files.certificate, error)
                }
                rustls::Error::InconsistentKeys(_) => {
                    let problem = format!(
                        "is not the key of {}; allowed is the key with which that certificate was made",
                        files.certificate.shown()
                    );
                    wrong(TlsFile::Key, &files.key, problem)
                }
                error => wrong(TlsFile::Key, &files.key, error),
            })?;
        // A resumed session would not check the client's certificate again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls {
            config: Arc::new(Mutex::new(Arc::new(config))),
            has_authority: files.ca.is_some(),
        })
    }

    /// Takes the certificates of `by` for all connections from now on. Present connections go on.
    ///
    /// # Panics
    ///
    /// If only one of both has authorities of clients.
    pub fn replace(&self, by: &Tls) {
        assert_eq!(
            self.has_authority, by.has_authority,
            "authorities of clients"
        );
        let config = by.config();
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if every client needs a certificate.
    pub(in crate::nbd) fn has_authority(&self) -> bool {
        self.has_authority
    }
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of both versions")
}

fn wrong(file: TlsFile, path: &Path, problem: impl std::fmt::Display) -> TlsError {
    TlsError {
        file,
        problem: format!("{}: {problem}", path.shown()),
    }
}

fn content(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| wrong(file, path, format!("cannot read: {error}")))
}

fn certificates(path: &Path, file: TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = content(file, path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(wrong(
            file,
            path,
            "holds no certificate; allowed are certificates in PEM (-----BEGIN CERTIFICATE-----)",
        )),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = content(TlsFile::Key, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        wrong(
            TlsFile::Key,
            path,
            "holds no key; allowed is a key in PEM without a password (-----BEGIN PRIVATE KEY-----)",
        )
    })
}

fn authorities(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, TlsFile::Ca)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(TlsFile::Ca, path, error))?;
    }
    Ok(Arc::new(roots))
}

/// Bytes that are read from a socket at a time: a few records of TLS, of 16 KiB each.
const INPUT_BYTES: usize = 64 << 10;

/// Encryption of one connection. rustls bounds its own buffers to 64 KiB of messages of the handshake, and 64 KiB of output.
///
/// Invariant: `start` is at most `end`, which is at most the length of `input`.
pub(in crate::nbd) struct Layer {
    connection: Box<ServerConnection>,
    /// Bytes of the socket. The bytes from `start` to `end` are still encrypted.
    input: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Layer {
    /// Begins TLS. `arrived` has the bytes that the client has sent already.
    pub(in crate::nbd) fn new(tls: &Tls, arrived: &[u8]) -> io::Result<Layer> {
        let connection = ServerConnection::new(tls.config()).map_err(io::Error::other)?;
        let mut input = vec![0; INPUT_BYTES.max(arrived.len())].into_boxed_slice();
        input[..arrived.len()].copy_from_slice(arrived);
        Ok(Layer {
            connection: Box::new(connection),
            input,
            start: 0,
            end: arrived.len(),
        })
    }

    /// Reads plain bytes that have arrived.
    pub(in crate::nbd) fn read(
        &mut self,
        socket: &Stream,
        into: &mut [IoSliceMut<'_>],
    ) -> io::Result<Moved> {
        loop {
            match self.connection.reader().read_vectored(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "no end of TLS came",
                    ));
                }
                result => return Ok(Moved::Bytes(result?)),
            }
            if let Moved::Nothing = self.advance(socket)? {
                return Ok(Moved::Nothing);
            }
        }
    }

    /// Hands bytes of the socket to rustls. The end of the socket is 0 bytes.
    pub(in crate::nbd) fn advance(&mut self, socket: &Stream) -> io::Result<Moved> {
        if self.start == self.end {
            match socket.read(&mut [IoSliceMut::new(&mut self.input)])? {
                Moved::Nothing => return Ok(Moved::Nothing),
                Moved::Bytes(bytes) => (self.start, self.end) = (0, bytes),
            }
        }
        let mut arrived = &self.input[self.start..self.end];
        let taken = self.connection.read_tls(&mut arrived)?;
        self.start += taken;
        if let Err(error) = self.connection.process_new_packets() {
            // The alert tells the client the reason, if the client still listens.
            let _ = self.flush(socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(Moved::Bytes(taken))
    }

    /// Encrypts as many bytes as there is room for, and writes as many as fit. The rest waits for [`Layer::flush`].
    pub(in crate::nbd) fn write(
        &mut self,
        socket: &Stream,
        from: &[IoSlice<'_>],
    ) -> io::Result<Moved> {
        self.flush(socket)?;
        let taken = self.connection.writer().write_vectored(from)?;
        self.flush(socket)?;
        match taken {
            0 => Ok(Moved::Nothing),
            taken => Ok(Moved::Bytes(taken)),
        }
    }

    /// Writes encrypted bytes. Returns true if any were written.
    pub(in crate::nbd) fn flush(&mut self, socket: &Stream) -> io::Result<bool> {
        let mut any = false;
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Sink(socket)) {
                Ok(_) => any = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(any)
    }

    /// True if encrypted bytes wait for room in the socket.
    pub(in crate::nbd) fn holds_output(&self) -> bool {
        self.connection.wants_write()
    }

    pub(in crate::nbd) fn is_shaking_hands(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Name in the client's certificate, for messages.
    pub(in crate::nbd) fn client_name(&self) -> Option<String> {
        name::of(self.connection.peer_certificates()?.first()?)
    }

    /// Tells the client that no more bytes follow, if the socket has room.
    pub(in crate::nbd) fn close(&mut self, socket: &Stream) {
        self.connection.send_close_notify();
        let _ = self.flush(socket);
    }
}

/// Writes to a socket, for rustls.
struct Sink<'a>(&'a Stream);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.write(parts)? {
            Moved::Bytes(written) => Ok(written),
            Moved::Nothing => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
