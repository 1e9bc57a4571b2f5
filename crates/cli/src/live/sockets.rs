//! The sockets of a configuration.

use super::config::{AccessConfig, ListenConfig, Socket, group_error};
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::listen::{Inherited, JOIN_GROUP, UnixSocket};
use headtime_serve::nbd::Listen;
use std::path::Path;

/// Sockets for NBD clients.
pub fn nbd(listen: &ListenConfig) -> Vec<Listen> {
    let sockets = listen.nbd.iter().map(|socket| match socket {
        Socket::Unix(path) => Listen::Unix(unix(path, &listen.access)),
        Socket::Tcp(address) => Listen::Tcp(*address),
    });
    sockets.collect()
}

/// Control socket, if there is one.
pub fn control(listen: &ListenConfig) -> Option<Listen> {
    let path = listen.control.as_deref()?;
    Some(Listen::Unix(unix(path, &listen.control_access)))
}

/// Sockets that the process was started with.
///
/// # Errors
///
/// If a socket cannot be used.
pub fn inherited() -> Result<Inherited, Fault> {
    Inherited::from_env().map_err(|error| Fault::File(error.to_string()))
}

fn unix(path: &Path, access: &AccessConfig) -> UnixSocket {
    UnixSocket {
        path: path.to_owned(),
        access: access.access(),
    }
}

/// Checks, before the sockets exist, that every permitted user can connect. Returns a note for each obstacle that is not an error.
///
/// # Errors
///
/// If a socket could not be given to its group.
pub fn look(listen: &ListenConfig) -> Result<Vec<String>, Fault> {
    let nbd = listen.nbd.iter().filter_map(|socket| match socket {
        Socket::Unix(path) => Some((path, &listen.access)),
        Socket::Tcp(_) => None,
    });
    let control = listen
        .control
        .iter()
        .map(|path| (path, &listen.control_access));
    let mut notes = Vec::new();
    for (path, access) in nbd.chain(control) {
        let socket = unix(path, access);
        if let Some(group) = &access.group
            && !socket.may_be_given()
        {
            let problem = format!("{socket} cannot be given to this group; {JOIN_GROUP}");
            return Err(group_error(group, &problem));
        }
        if let Some(folder) = socket.closed_by() {
            notes.push(format!(
                "{socket}{access}: who is let in cannot get there, as {} is closed to them (chmod g+x or o+x)",
                folder.shown()
            ));
        }
    }
    Ok(notes)
}
