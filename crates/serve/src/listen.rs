//! Listens at unix sockets and TCP addresses.
//!
//! Every server listens through this module. The module replaces a socket file whose server is gone, but never a socket
//! file whose server answers. A socket file has its final permissions from the first moment on. At the end the module
//! removes only the socket files that it has made.

mod address;
mod inherited;
mod unix;

pub use address::{
    Access, BindError, InheritedSocket, JOIN_GROUP, Listen, ParseListenError, UnixSocket,
};
pub use inherited::{InheritError, Inherited};

use address::StdListener;

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

impl Listen {
    /// Listens, if no other machine reaches the socket.
    pub(crate) fn bind_here(&self) -> Result<Bound, BindError> {
        match self.is_beyond() {
            true => Err(BindError::NotLoopback(self.clone())),
            false => self.bind(),
        }
    }

    pub(crate) fn bind(&self) -> Result<Bound, BindError> {
        let failed = |error: io::Error| BindError::Io {
            listen: self.clone(),
            error,
        };
        match self {
            Listen::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Ok(Bound {
                    listen: Listen::Tcp(address),
                    socket: Socket::Tcp(listener),
                })
            }
            Listen::Unix(socket) => Ok(Bound {
                listen: self.clone(),
                socket: Socket::Unix(socket.bind()?),
            }),
            Listen::Inherited(socket) => Ok(Bound {
                listen: self.clone(),
                socket: Socket::Inherited(Arc::clone(socket)),
            }),
        }
    }
}

/// A socket on which the server listens. Dropping this value removes the socket's file.
#[derive(Debug)]
pub(crate) struct Bound {
    listen: Listen,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Unix(unix::BoundFile),
    Tcp(std::net::TcpListener),
    Inherited(Arc<InheritedSocket>),
}

impl Bound {
    /// The socket's address. If port 0 was asked for, the address has the port that the kernel chose.
    pub(crate) fn listen(&self) -> &Listen {
        &self.listen
    }

    /// Returns a listener for the runtime in which this is called.
    pub(crate) fn listener(&self) -> io::Result<Listener> {
        Ok(match &self.socket {
            Socket::Unix(bound) => {
                Listener::Unix(UnixListener::from_std(bound.listener.try_clone()?)?)
            }
            Socket::Tcp(listener) => Listener::Tcp(TcpListener::from_std(listener.try_clone()?)?),
            Socket::Inherited(socket) => match &socket.listener {
                StdListener::Unix(unix) => {
                    Listener::Unix(UnixListener::from_std(unix.try_clone()?)?)
                }
                StdListener::Tcp(tcp) => Listener::Tcp(TcpListener::from_std(tcp.try_clone()?)?),
            },
        })
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Connection through a socket file.
    Unix(UnixStream),
    /// Connection through an address.
    Tcp(TcpStream),
}

impl Stream {
    /// Address of the peer, for messages.
    pub(crate) fn peer_name(&self) -> String {
        match self {
            Stream::Tcp(stream) => match stream.peer_addr() {
                Ok(address) => address.to_string(),
                Err(_) => "a client that has gone".to_owned(),
            },
            Stream::Unix(_) => "a client of a unix socket".to_owned(),
        }
    }

    /// Number of the peer: the same for all connections of a user's process at a socket file, and of an address. Different
    /// peers have different numbers as a rule.
    pub(crate) fn peer(&self) -> u32 {
        match self {
            Stream::Unix(stream) => match stream.peer_cred() {
                Ok(peer) => {
                    let process = peer.pid().unwrap_or_default() as u32;
                    process.wrapping_add(peer.uid().rotate_left(16))
                }
                Err(_) => 0,
            },
            Stream::Tcp(stream) => match stream.peer_addr().map(|address| address.ip()) {
                Ok(IpAddr::V4(address)) => address.to_bits(),
                Ok(IpAddr::V6(address)) => {
                    let bits = address.to_bits();
                    (bits ^ bits >> 32 ^ bits >> 64 ^ bits >> 96) as u32
                }
                Err(_) => 0,
            },
        }
    }
}

/// A listening socket in the runtime.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn poll_accept(&self, cx: &mut std::task::Context<'_>) -> Poll<io::Result<Stream>> {
        match self {
            Listener::Unix(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, _)| Stream::Unix(stream)),
            Listener::Tcp(listener) => listener.poll_accept(cx).map(|accepted| {
                let (stream, _) = accepted?;
                // Answers are collected into large writes, so the kernel must not delay small ones.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
        }
    }
}

/// Returns the next connection to any of the listeners.
pub(crate) async fn accept(listeners: &[Listener]) -> io::Result<Stream> {
    poll_fn(|cx| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}

/// Pause between attempts to accept when the machine has no file descriptors left.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
