//! Addresses of sockets as text and as a value, and errors of listening.

use headtime_linux::shown::PathShown as _;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for another server that has locked a folder while it checks the folder's socket files.
pub(super) const LOCK_WITHIN: Duration = Duration::from_secs(5);
pub(super) const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Advice to the administrator if a socket's file cannot be given to a group.
pub const JOIN_GROUP: &str = "let the server's user join that group (in a systemd unit: SupplementaryGroups=), or give the server CAP_CHOWN";

/// Permissions and group of a socket's file, which decide who may connect. Connecting needs the permission to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permission bits of the file.
    pub mode: u32,
    /// Group of the file; if absent, the group of every file that the process makes in the folder.
    pub group: Option<u32>,
}

impl Access {
    /// Access for the owner alone.
    pub const OWNER: Access = Access {
        mode: 0o600,
        group: None,
    };
}

/// A unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// Path of the socket's file.
    pub path: PathBuf,
    /// Permissions and group of the socket's file.
    pub access: Access,
}

/// Makes a unix socket for its owner alone.
impl<P: Into<PathBuf>> From<P> for UnixSocket {
    fn from(path: P) -> UnixSocket {
        UnixSocket {
            path: path.into(),
            access: Access::OWNER,
        }
    }
}

impl fmt::Display for UnixSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix:{}", self.path.shown())
    }
}

/// A socket that the process was started with. The socket's file belongs to the service manager.
#[derive(Debug)]
pub struct InheritedSocket {
    /// Address of the socket, as [`Listen`] shows it.
    pub(super) address: String,
    pub(super) listener: StdListener,
}

#[derive(Debug)]
pub(super) enum StdListener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A socket is equal to itself alone.
impl PartialEq for InheritedSocket {
    fn eq(&self, other: &InheritedSocket) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for InheritedSocket {}

impl InheritedSocket {
    /// Returns the address, if every user of the machine can connect.
    pub(super) fn tcp(&self) -> Option<std::net::SocketAddr> {
        match &self.listener {
            StdListener::Tcp(tcp) => tcp.local_addr().ok(),
            StdListener::Unix(_) => None,
        }
    }
}

/// Reason why a server cannot listen on a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A system call failed.
    #[error("{listen}: {error}")]
    Io { listen: Listen, error: io::Error },
    /// Another server listens at the address.
    #[error("{0}: another server listens there")]
    InUse(Listen),
    /// The path leads to a file that is no socket.
    #[error("{0}: there is a file that is not a socket")]
    NotASocket(Listen),
    /// Another program holds the folder's lock.
    #[error("{0}: somebody has locked the folder for more than {LOCK_WITHIN:?}")]
    FolderLocked(Listen),
    /// The socket's file cannot be given to its group.
    #[error(
        "{listen}: its file cannot be given to group {group}: {error}{}",
        what_to_do(error)
    )]
    Group {
        listen: Listen,
        group: u32,
        error: io::Error,
    },
    /// Another user with write access to the directory has replaced the file before the socket's permissions could be
    /// set.
    #[error("{0}: something else has taken the place of the socket's file")]
    Replaced(Listen),
    /// The address can be reached from other machines.
    #[error("{0}: only loopback addresses, 127.0.0.0/8 and ::1, are listened on")]
    NotLoopback(Listen),
}

fn what_to_do(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {JOIN_GROUP}"),
        _ => String::new(),
    }
}

/// Address of a socket. As text: `unix:PATH` or `tcp:ADDRESS:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Unix(UnixSocket),
    /// An address; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// A socket that the process was started with.
    Inherited(Arc<InheritedSocket>),
}

impl Listen {
    /// The address, if every user of the machine can connect.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Listen::Unix(_) => None,
            Listen::Tcp(address) => Some(*address),
            Listen::Inherited(socket) => socket.tcp(),
        }
    }

    /// True if other machines may reach the socket.
    pub fn is_beyond(&self) -> bool {
        self.tcp()
            .is_some_and(|address| !address.ip().is_loopback())
    }

    /// Makes a unix socket for its owner alone.
    pub fn unix(path: impl Into<PathBuf>) -> Listen {
        Listen::Unix(path.into().into())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Unix(socket) => socket.fmt(f),
            Listen::Tcp(address) => write!(f, "tcp:{address}"),
            Listen::Inherited(socket) => f.write_str(&socket.address),
        }
    }
}

/// Error of a text that is no address of a socket.
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
