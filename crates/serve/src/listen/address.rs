//! Where to listen, as text and as a value, and why that fails.

use headtime_linux::shown::PathShown as _;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How long another server may take to look at what is in a folder.
pub(super) const LOCK_WITHIN: Duration = Duration::from_secs(5);
pub(super) const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// What an administrator can do about a group that a socket cannot be given to.
pub const JOIN_GROUP: &str = "let the server's user join that group (in a systemd unit: SupplementaryGroups=), or give the server CAP_CHOWN";

/// Who may connect: permissions and group of the socket's file. Connecting takes permission to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permissions.
    pub mode: u32,
    /// Which group they are for; that of every file that the process makes there, if absent.
    pub group: Option<u32>,
}

impl Access {
    /// Nobody but the owner.
    pub const OWNER: Access = Access {
        mode: 0o600,
        group: None,
    };
}

/// A unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its file.
    pub path: PathBuf,
    /// Who may connect.
    pub access: Access,
}

/// For nobody but its owner.
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

/// A socket that the process was started with. The socket's file is the service manager's.
#[derive(Debug)]
pub struct InheritedSocket {
    /// Where it listens, as [`Listen`] shows it.
    pub(super) address: String,
    pub(super) listener: StdListener,
}

#[derive(Debug)]
pub(super) enum StdListener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Equal to itself alone.
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

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The machine refuses.
    #[error("{listen}: {error}")]
    Io { listen: Listen, error: io::Error },
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
        listen: Listen,
        group: u32,
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
    Unix(UnixSocket),
    /// A loopback address; port 0 lets the kernel choose.
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

    /// A unix socket for nobody but its owner.
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
