//! Listens at unix sockets, and at TCP addresses of this machine only.
//!
//! Every server listens through this module. It replaces a socket file whose server is gone, and
//! never one that a server answers. The socket file has its final permissions from the first moment
//! on. At the end the module removes what it has made, and nothing else.

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
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

impl Listen {
    pub(crate) fn bind(&self) -> Result<Bound, BindError> {
        let failed = |error: io::Error| BindError::Io {
            listen: self.clone(),
            error,
        };
        match self {
            Listen::Tcp(address) if !address.ip().is_loopback() => {
                Err(BindError::NotLoopback(self.clone()))
            }
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

/// A socket that is listened on. Its file is removed with this.
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
    /// Where; with the port that the kernel chose, if that was left to it.
    pub(crate) fn listen(&self) -> &Listen {
        &self.listen
    }

    /// For the runtime that this is called in.
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
    /// Through a file.
    Unix(UnixStream),
    /// Through a loopback address.
    Tcp(TcpStream),
}

/// A socket as the runtime sees it.
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
                // Answers are gathered before they are written.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
        }
    }
}

/// The next connection to any of them.
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

/// Between attempts to accept when the machine has no file descriptors left.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
