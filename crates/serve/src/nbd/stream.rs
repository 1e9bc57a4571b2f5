//! Reading from a client's connection, and writing to it.

use crate::listen::Stream;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};
use tokio::io::Interest;

/// Result of a read or a write on a socket.
pub(super) enum Moved {
    Bytes(usize),
    /// The call would have to wait.
    Nothing,
}

impl Stream {
    /// Reads the bytes that have arrived.
    ///
    /// A call that fills less than the room has emptied the socket. The next call then waits until the kernel reports more.
    /// [`Stream::write`] waits in the same way.
    pub(super) fn read(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<Moved> {
        let room: usize = into.iter().map(|slice| slice.len()).sum();
        self.try_io(Interest::READABLE, room, |fd| {
            Ok(rustix::io::readv(fd, into)?)
        })
    }

    /// Writes as many bytes as fit.
    pub(super) fn write(&self, from: &[IoSlice<'_>]) -> io::Result<Moved> {
        let len: usize = from.iter().map(|slice| slice.len()).sum();
        self.try_io(Interest::WRITABLE, len, |fd| {
            // If the client has gone, the call returns an error and raises no signal.
            let mut nothing = SendAncillaryBuffer::default();
            Ok(sendmsg(fd, from, &mut nothing, SendFlags::NOSIGNAL)?)
        })
    }

    fn try_io(
        &self,
        interest: Interest,
        whole: usize,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<Moved> {
        let mut part = None;
        let call = || {
            loop {
                return match call(self.as_fd()) {
                    // Reported as an empty socket, so that tokio forgets its readiness. Tokio remembers the end of the stream, and errors,
                    // separately.
                    Ok(moved) if 0 < moved && moved < whole => {
                        part = Some(moved);
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => result,
                };
            }
        };
        let result = match self {
            Stream::Unix(stream) => stream.try_io(interest, call),
            Stream::Tcp(stream) => stream.try_io(interest, call),
        };
        match (result, part) {
            (Ok(moved), _) | (Err(_), Some(moved)) => Ok(Moved::Bytes(moved)),
            (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => Ok(Moved::Nothing),
            (Err(error), None) => Err(error),
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Unix(stream) => stream.poll_read_ready(cx),
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
        }
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Unix(stream) => stream.poll_write_ready(cx),
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}
