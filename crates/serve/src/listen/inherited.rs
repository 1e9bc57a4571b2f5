//! Sockets that a service manager has opened for this process, as in sd_listen_fds(3).

use super::address::{InheritedSocket, Listen, StdListener};
use listenfd::ListenFd;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Why an inherited socket cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("inherited socket {number}, name \"{name}\": {problem}")]
pub struct InheritError {
    /// File descriptor.
    pub number: usize,
    /// Name in `LISTEN_FDNAMES`.
    pub name: String,
    pub problem: String,
}

/// The sockets that the process was started with, by use. They take the place of configured ones.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    /// For NBD clients: every socket whose name says nothing else.
    pub nbd: Vec<Listen>,
    /// The socket named `control`, a unix socket.
    pub control: Option<Listen>,
    /// The socket named `metrics`, a loopback address.
    pub metrics: Option<Listen>,
}

/// File descriptors of sockets begin here.
const FIRST: usize = 3;

impl Inherited {
    /// Takes the sockets that `LISTEN_FDS` counts, if `LISTEN_PID` is this process. A second call finds none.
    ///
    /// # Errors
    ///
    /// If one of the descriptors is no listening stream socket, can be reached from other machines, or does not fit its
    /// name.
    pub fn from_env() -> Result<Inherited, InheritError> {
        let names = std::env::var_os("LISTEN_FDNAMES").unwrap_or_default();
        let names = names.to_string_lossy();
        let mut sockets = ListenFd::from_env();
        let mut inherited = Inherited::default();
        let mut names = names.split(':');
        for index in 0..sockets.len() {
            let name = names.next().unwrap_or("");
            let taken = take(&mut sockets, index).map_err(|error| error.to_string());
            let placed = taken.and_then(|socket| inherited.place(name, socket));
            placed.map_err(|problem| InheritError {
                number: FIRST + index,
                name: name.to_owned(),
                problem,
            })?;
        }
        Ok(inherited)
    }

    fn place(&mut self, name: &str, socket: InheritedSocket) -> Result<(), String> {
        let is_unix = matches!(socket.listener, StdListener::Unix(_));
        let listen = Listen::Inherited(Arc::new(socket));
        let (place, fits, wanted) = match name {
            "control" => (&mut self.control, is_unix, "a unix socket"),
            "metrics" => (&mut self.metrics, !is_unix, "a loopback address"),
            _ => {
                self.nbd.push(listen);
                return Ok(());
            }
        };
        match (fits, place.is_some()) {
            (false, _) => Err(format!("is {listen}; allowed is {wanted}")),
            (true, true) => Err("there is one of this name already".to_owned()),
            (true, false) => {
                *place = Some(listen);
                Ok(())
            }
        }
    }
}

fn take(sockets: &mut ListenFd, index: usize) -> io::Result<InheritedSocket> {
    let gone = || io::Error::other("it is taken already");
    let Ok(unix) = sockets.take_unix_listener(index) else {
        let tcp = sockets.take_tcp_listener(index)?.ok_or_else(gone)?;
        let address = tcp.local_addr()?;
        if !address.ip().is_loopback() {
            let problem = format!("tcp:{address} can be reached from other machines");
            return Err(io::Error::other(problem));
        }
        tcp.set_nonblocking(true)?;
        listens(&tcp)?;
        return Ok(InheritedSocket {
            address: format!("tcp:{address}"),
            listener: StdListener::Tcp(tcp),
        });
    };
    let unix = unix.ok_or_else(gone)?;
    unix.set_nonblocking(true)?;
    listens(&unix)?;
    let address = unix.local_addr()?;
    let path = address.as_pathname().map(|path| path.display().to_string());
    Ok(InheritedSocket {
        address: format!("unix:{}", path.as_deref().unwrap_or("(no path)")),
        listener: StdListener::Unix(unix),
    })
}

fn listens(socket: impl AsFd) -> io::Result<()> {
    match rustix::net::sockopt::socket_acceptconn(socket)? {
        true => Ok(()),
        false => Err(io::Error::other("nobody listens at it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;
    use std::os::unix::net::UnixListener;

    fn unix(folder: &Folder, name: &str) -> InheritedSocket {
        InheritedSocket {
            address: format!("unix:{name}"),
            listener: StdListener::Unix(UnixListener::bind(folder.join(name)).expect("binds")),
        }
    }

    #[test]
    fn names_say_what_sockets_are_for() {
        let folder = Folder::new();
        let mut inherited = Inherited::default();
        for (name, file) in [
            ("", "a"),
            ("control", "b"),
            ("headtime.socket", "c"),
            ("nbd", "d"),
        ] {
            inherited.place(name, unix(&folder, file)).expect("fits");
        }
        let shown = inherited.nbd.iter().map(Listen::to_string);
        assert_eq!(shown.collect::<Vec<_>>(), ["unix:a", "unix:c", "unix:d"]);
        assert!(inherited.control.is_some() && inherited.metrics.is_none());
        let twice = inherited.place("control", unix(&folder, "e"));
        assert!(twice.expect_err("twice").contains("already"));
        let wrong = inherited.place("metrics", unix(&folder, "f"));
        assert_eq!(
            wrong.expect_err("no address"),
            "is unix:f; allowed is a loopback address"
        );
    }
}
