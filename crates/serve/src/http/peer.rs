//! Who asks.

use crate::listen::Stream;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// The number of its user, if it came through a file.
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

    /// Returns true if it may do itself what the server may.
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
