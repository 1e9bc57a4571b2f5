//! Sockets that a service manager has opened for this process, as in sd_listen_fds(3).

use super::address::{InheritedSocket, Listen, StdListener};
use listenfd::ListenFd;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Reason why inherited sockets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The number of sockets is no number.
    #[error(
        "environment variable LISTEN_FDS is {0:?}; allowed is the number of sockets, 0 to 65535, \
        as systemd sets it with LISTEN_PID; unset LISTEN_FDS if no service manager passes sockets"
    )]
    Count(String),
    /// One of the sockets does not fit.
    #[error("inherited socket {number}, name \"{name}\": {problem}")]
    Socket {
        /// File descriptor.
        number: usize,
        /// Name in `LISTEN_FDNAMES`.
        name: String,
        /// Problem of the socket, with the allowed kind.
        problem: String,
    },
}

/// The sockets that the process was started with, by use. They replace configured sockets.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    /// Sockets for NBD clients: all sockets that are not named `control` or `metrics`.
    pub nbd: Vec<Listen>,
    /// The socket named `control`, a unix socket.
    pub control: Option<Listen>,
    /// The socket named `metrics`, a loopback address.
    pub metrics: Option<Listen>,
}

/// First file descriptor of the sockets.
const FIRST: usize = 3;

impl Inherited {
    /// Takes the sockets that `LISTEN_FDS` counts, if `LISTEN_PID` is this process. A second call finds none.
    ///
    /// # Errors
    ///
    /// If `LISTEN_FDS` is no number. Also if a descriptor is no listening stream socket, or does not fit its name.
    pub fn from_env() -> Result<Inherited, InheritError> {
        let variable = |name| {
            let value = std::env::var_os(name).unwrap_or_default();
            value.to_string_lossy().into_owned()
        };
        let names = variable("LISTEN_FDNAMES");
        check_count(&variable("LISTEN_FDS"), &variable("LISTEN_PID"))?;
        let mut sockets = ListenFd::from_env();
        let mut inherited = Inherited::default();
        let mut names = names.split(':');
        for index in 0..sockets.len() {
            let name = names.next().unwrap_or("");
            let taken = take(&mut sockets, index).map_err(|error| error.to_string());
            let placed = taken.and_then(|socket| inherited.place(name, socket));
            placed.map_err(|problem| InheritError::Socket {
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
        let is_here = !is_unix && !listen.is_beyond();
        let (place, fits, wanted) = match name {
            "control" => (&mut self.control, is_unix, "a unix socket"),
            "metrics" => (&mut self.metrics, is_here, "a loopback address"),
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

/// Refuses a malformed number of sockets, if the number is for this process. `listenfd` would treat such a number as no
/// sockets. An empty variable counts as unset.
fn check_count(count: &str, process: &str) -> Result<(), InheritError> {
    let is_ours = process.is_empty() || process.parse() == Ok(std::process::id());
    match is_ours && !count.is_empty() && count.parse::<u16>().is_err() {
        true => Err(InheritError::Count(count.to_owned())),
        false => Ok(()),
    }
}

fn take(sockets: &mut ListenFd, index: usize) -> io::Result<InheritedSocket> {
    let gone = || io::Error::other("it is taken already");
    let Ok(unix) = sockets.take_unix_listener(index) else {
        let tcp = sockets.take_tcp_listener(index)?.ok_or_else(gone)?;
        let address = tcp.local_addr()?;
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
    use std::net::TcpListener;
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
    #[test]
    fn a_number_of_sockets_that_is_none_is_an_error_if_it_is_for_this_process() {
        let own = std::process::id().to_string();
        for (count, process) in [
            ("", ""),
            ("0", &own),
            ("2", ""),
            ("abc", "1x"),
            ("abc", "0"),
        ] {
            assert!(check_count(count, process).is_ok(), "{count} {process}");
        }
        for (count, process) in [("abc", ""), ("-1", &own), ("65536", &own), ("1 ", &own)] {
            let text = check_count(count, process)
                .expect_err("no number")
                .to_string();
            assert!(
                text.contains("LISTEN_FDS") && text.contains(count),
                "{text}"
            );
            assert!(text.contains("the number of sockets"), "{text}");
        }
    }

    #[test]
    fn an_address_that_others_reach_is_for_nbd_only() {
        let listener = TcpListener::bind("0.0.0.0:0").expect("binds");
        let socket = InheritedSocket {
            address: "tcp:0.0.0.0:1".to_owned(),
            listener: StdListener::Tcp(listener),
        };
        let refused = Inherited::default().place("metrics", socket);
        let text = "is tcp:0.0.0.0:1; allowed is a loopback address";
        assert_eq!(refused.expect_err("reached"), text);
    }
}
