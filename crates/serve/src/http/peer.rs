//! The user behind a connection.

use crate::listen::Stream;

/// Client at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// User of the client, if the client connected through a socket file.
    user: Option<u32>,
}

impl Peer {
    pub fn of(stream: &Stream) -> Peer {
        let user = match stream {
            Stream::Unix(stream) => stream.peer_cred().ok().map(|peer| peer.uid()),
            Stream::Tcp(_) => None,
        };
        Peer { user }
    }

    /// Returns true if the client has the server's rights anyway: as root, or as the server's own user.
    pub fn is_trusted(self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.user.is_some_and(|user| user == own || user == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;

    #[test]
    fn root_and_the_servers_own_user_are_trusted_and_nobody_else_is() {
        let own = rustix::process::geteuid().as_raw();
        let trusted = |user| Peer { user }.is_trusted();
        assert!(trusted(Some(own)) && trusted(Some(0)));
        assert!(!trusted(Some(own + 1)) && !trusted(None));
    }
}
