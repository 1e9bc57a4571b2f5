//! Where servers listen: unix sockets, and TCP on this machine only.
//!
//! All that listens does so through this: a socket whose server is gone is replaced, one that is
//! answered is not, its file is for whom it is meant from the beginning, and in the end what was made
//! here is removed, and nothing else.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
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
    /// An address that others can reach.
    #[error("{0}: only loopback addresses, 127.0.0.0/8 and ::1, are listened on")]
    NotLoopback(Listen),
}

/// Where to listen. As text: `unix:PATH` or `tcp:ADDRESS:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket.
    Unix {
        /// Its file.
        path: PathBuf,
        /// Who may connect: permissions of the file, 0600 unless told otherwise.
        mode: u32,
    },
    /// A loopback address; port 0 lets the kernel choose.
    Tcp(SocketAddr),
}

impl Listen {
    /// A unix socket for nobody but its owner.
    pub fn unix(path: impl Into<PathBuf>) -> Listen {
        Listen::Unix {
            path: path.into(),
            mode: 0o600,
        }
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
            Listen::Unix { path, mode } => self.bind_unix(path, *mode),
        }
    }

    fn bind_unix(&self, path: &Path, mode: u32) -> Result<Bound, BindError> {
        let failed = |error: io::Error| BindError::Io {
            listen: self.clone(),
            error,
        };
        // Of servers that start at the same time only one looks at what is there.
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let mut tries = LOCK_WITHIN.as_millis() / LOCK_AGAIN.as_millis();
        loop {
            match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                // Another server takes a moment; somebody else may hold it for ever.
                Err(Errno::WOULDBLOCK) if tries > 0 => {
                    tries -= 1;
                    let again = LOCK_AGAIN.try_into().expect("is short");
                    // Of nothing: a signal only makes it shorter.
                    let _ = rustix::event::poll(&mut [], Some(&again));
                }
                Err(Errno::WOULDBLOCK) => return Err(BindError::FolderLocked(self.clone())),
                Err(error) => return Err(failed(error.into())),
            }
        }
        self.make_way(path)?;
        let listener = listen_unix(path, mode).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
        let file = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Bound {
            listen: self.clone(),
            socket: Socket::Unix {
                listener,
                path: path.to_owned(),
                file: (file.dev(), file.ino()),
            },
        })
    }

    /// Removes the socket of a server that is gone.
    fn make_way(&self, path: &Path) -> Result<(), BindError> {
        let failed = |error: io::Error| BindError::Io {
            listen: self.clone(),
            error,
        };
        let file = match std::fs::symlink_metadata(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if !file.file_type().is_socket() {
            return Err(BindError::NotASocket(self.clone()));
        }
        match answers(path) {
            Ok(true) => Err(BindError::InUse(self.clone())),
            Ok(false) => std::fs::remove_file(path).map_err(failed),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Whether a server is behind a socket.
fn answers(path: &Path) -> io::Result<bool> {
    // One that has more clients waiting than it lets wait would not be got through to.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A unix socket whose file never had more permissions than `mode`.
fn listen_unix(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the permissions of the socket, less the process's mask (unix(7)).
    rustix::fs::fchmod(socket.as_fd(), Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket.into())
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Unix { path, .. } => write!(f, "unix:{}", path.display()),
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
        // Unless it has been replaced.
        if let Socket::Unix { path, file, .. } = &self.socket
            && let Ok(found) = std::fs::symlink_metadata(path)
            && (found.dev(), found.ino()) == *file
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
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

#[cfg(test)]
mod tests;
