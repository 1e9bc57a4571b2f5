//! The sockets of a configuration.

use super::config::{AccessConfig, ListenConfig, Socket, group_error};
use headtime_config::Placed;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::listen::{Inherited, JOIN_GROUP, UnixSocket};
use headtime_serve::nbd::tls::{Tls, TlsError, TlsFile, TlsFiles};
use headtime_serve::nbd::{Listen, Network};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Sockets for NBD clients.
pub fn nbd(listen: &ListenConfig) -> Vec<Listen> {
    let sockets = listen.nbd.iter().map(|socket| match socket {
        Socket::Unix(path) => Listen::Unix(unix(path, &listen.access)),
        Socket::Tcp(address) => Listen::Tcp(*address),
    });
    sockets.collect()
}

/// Protection of the addresses among these. Reads the certificates.
///
/// # Errors
///
/// If a certificate or key cannot be used. The error has file, line and key.
pub fn network(listen: &ListenConfig) -> Result<Network, Fault> {
    Ok(Network {
        tls: listen.tls.as_ref().map(certificates).transpose()?,
        is_trusted: listen.trusted_network,
    })
}

/// Reads certificates.
///
/// # Errors
///
/// As [`network`].
pub fn certificates(files: &Placed<TlsFiles>) -> Result<Tls, Fault> {
    Tls::open(files).map_err(|TlsError { file, problem }| {
        let key = match file {
            TlsFile::Certificate => "tls_certificate",
            TlsFile::Key => "tls_key",
            TlsFile::Ca => "tls_ca",
        };
        Fault::input(files.error_at(key, problem))
    })
}

/// A note, if others than the owner may read a key. The service manager guards its credentials by other means.
fn open_key(path: &Path) -> Option<String> {
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    if mode & 0o077 == 0 || credentials.is_some_and(|folder| path.starts_with(folder)) {
        return None;
    }
    let path = path.shown();
    Some(format!(
        "listen.tls_key: {path}: others than its owner may read the key, by mode {mode:04o} (chmod 600 {path})"
    ))
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
    notes.extend(listen.tls.iter().filter_map(|files| open_key(&files.key)));
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
