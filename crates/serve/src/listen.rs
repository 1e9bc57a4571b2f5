//! Where servers listen: unix sockets, and TCP on this machine only.
//!
//! All that listens does so through this: a socket whose server is gone is replaced, one that is
//! answered is not, its file is for whom it is meant from the beginning, and in the end what was made
//! here is removed, and nothing else.

mod unix;

pub use unix::{Access, JOIN_GROUP, UnixSocket};

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// How long another server may take to look at what is in a folder.
const LOCK_WITHIN: Duration = Duration::from_secs(5);
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The machine refuses.
    #[error("{listen}: {error}")]
    Io {
        /// Where.
        listen: Listen,
        /// Why.
        error: io::Error,
    },
    /// Another server listens there.
    #[error("{0}: another server listens there")]
    InUse(Listen),
    /// There is a file that is no socket.
    #[error("{0}: there is a file that is not a socket")]
    NotASocket(Listen),
    /// Somebody holds the folder's lock.
    #[error("{0}: somebody has locked the folder for more than {LOCK_WITHIN:?}")]
    FolderLocked(Listen),
    /// Its group could not be had.
    #[error(
        "{listen}: its file cannot be given to group {group}: {error}{}",
        what_to_do(error)
    )]
    Group {
        /// Where.
        listen: Listen,
        /// Which group.
        group: u32,
        /// Why.
        error: io::Error,
    },
    /// Who can write to the directory has put something else there before the socket's permissions
    /// could be set.
    #[error("{0}: something else has taken the place of the socket's file")]
    Replaced(Listen),
    /// An address that others can reach.
    #[error("{0}: only loopback addresses, 127.0.0.0/8 and ::1, are listened on")]
    NotLoopback(Listen),
}

fn what_to_do(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {JOIN_GROUP}"),
        _ => String::new(),
    }
}

/// Where to listen. As text: `unix:PATH` or `tcp:ADDRESS:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket.
    Unix(UnixSocket),
    /// A loopback address; port 0 lets the kernel choose.
    Tcp(SocketAddr),
}

impl Listen {
    /// A unix socket for nobody but its owner.
    pub fn unix(path: impl Into<PathBuf>) -> Listen {
        Listen::Unix(path.into().into())
    }

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
            Listen::Unix(socket) => socket.bind(),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Unix(socket) => socket.fmt(f),
            Listen::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// A text that names no place to listen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is neither unix:PATH nor tcp:ADDRESS:PORT")]
pub struct ParseListenError(String);

impl FromStr for Listen {
    type Err = ParseListenError;

    fn from_str(text: &str) -> Result<Listen, ParseListenError> {
        let error = || ParseListenError(text.to_owned());
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Listen::unix(path)),
            Some(("tcp", address)) => address.parse().map(Listen::Tcp).map_err(|_| error()),
            _ => Err(error()),
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
    Unix {
        listener: std::os::unix::net::UnixListener,
        path: PathBuf,
        /// Device and number of its file.
        file: (u64, u64),
    },
    Tcp(std::net::TcpListener),
}

impl Bound {
    /// Where; with the port that the kernel chose, if that was left to it.
    pub(crate) fn listen(&self) -> &Listen {
        &self.listen
    }

    /// For the runtime that this is called in.
    pub(crate) fn listener(&self) -> io::Result<Listener> {
        Ok(match &self.socket {
            Socket::Unix { listener, .. } => {
                Listener::Unix(UnixListener::from_std(listener.try_clone()?)?)
            }
            Socket::Tcp(listener) => Listener::Tcp(TcpListener::from_std(listener.try_clone()?)?),
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Socket::Unix { path, file, .. } = &self.socket {
            unix::remove(path, *file);
        }
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
