//! A client's socket, with the encryption on it if there is any.

use super::inbox::Inbox;
use super::stream::Moved;
use super::tls::{Layer, Tls};
use crate::listen::Stream;
use headtime_linux::sys;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::task::{Context, Poll};

/// Connection to a client: plain, or with TLS after [`Channel::start_tls`].
pub(super) struct Channel {
    socket: Stream,
    layer: Option<Layer>,
}

impl Channel {
    pub(super) fn new(socket: Stream) -> Channel {
        let layer = None;
        Channel { socket, layer }
    }

    pub(super) fn socket(&self) -> &Stream {
        &self.socket
    }

    /// Name in the client's certificate.
    pub(super) fn client_name(&self) -> Option<String> {
        self.layer.as_ref()?.client_name()
    }

    /// Begins TLS, and waits until both sides agree. `arrived` has the bytes that the client has sent already. Returns false if the client
    /// has gone, or the server ends.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a certificate or a message that is refused.
    pub(super) async fn start_tls(
        &mut self,
        tls: &Tls,
        arrived: &[u8],
        inbox: &Inbox,
    ) -> io::Result<bool> {
        let Channel { socket, layer } = self;
        let layer = layer.insert(Layer::new(tls, arrived)?);
        loop {
            layer.flush(socket)?;
            if layer.holds_output() {
                poll_fn(|cx| socket.poll_write_ready(cx)).await?;
                continue;
            }
            if !layer.is_shaking_hands() {
                return Ok(true);
            }
            match layer.advance(socket)? {
                Moved::Bytes(0) => return Ok(false),
                Moved::Bytes(_) => {}
                Moved::Nothing => {
                    if !readable(socket, inbox).await? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Reads the bytes that have arrived.
    pub(super) fn read(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<Moved> {
        match &mut self.layer {
            None => self.socket.read(into),
            Some(layer) => layer.read(&self.socket, into),
        }
    }

    /// Writes as many bytes as fit. Encrypted bytes may then wait for [`Channel::flush`].
    pub(super) fn write(&mut self, from: &[IoSlice<'_>]) -> io::Result<Moved> {
        match &mut self.layer {
            None => self.socket.write(from),
            Some(layer) => layer.write(&self.socket, from),
        }
    }

    /// Writes encrypted bytes that wait. Returns true if any were written.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.layer {
            None => Ok(false),
            Some(layer) => layer.flush(&self.socket),
        }
    }

    /// True if the client has replies that it has not read. Known only of a program on this machine.
    pub(super) fn holds_unread(&self) -> bool {
        match &self.socket {
            Stream::Unix(stream) => sys::unread(stream.as_fd()) > 0,
            Stream::Tcp(_) => false,
        }
    }

    /// True if encrypted bytes wait for room in the socket.
    pub(super) fn holds_output(&self) -> bool {
        self.layer.as_ref().is_some_and(Layer::holds_output)
    }

    /// Writes all these bytes.
    pub(super) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            self.flush()?;
            match bytes.is_empty() {
                true if !self.holds_output() => return Ok(()),
                true => poll_fn(|cx| self.poll_write_ready(cx)).await?,
                false => match self.write(&[IoSlice::new(bytes)])? {
                    Moved::Bytes(written) => bytes = &bytes[written..],
                    Moved::Nothing => poll_fn(|cx| self.poll_write_ready(cx)).await?,
                },
            }
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_read_ready(cx)
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_write_ready(cx)
    }
}

/// Waits for bytes of the client. Returns false if the server ends.
pub(super) async fn readable(socket: &Stream, inbox: &Inbox) -> io::Result<bool> {
    poll_fn(|cx| match inbox.sleep(cx.waker(), false) {
        true => socket.poll_read_ready(cx),
        false => Poll::Ready(Ok(())),
    })
    .await?;
    Ok(!inbox.is_draining())
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(layer) = &mut self.layer {
            layer.close(&self.socket);
        }
    }
}
