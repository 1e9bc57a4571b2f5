//! What stands before a server's disks beside its sockets.

use crate::fault::Fault;
use std::pin::Pin;
use std::sync::Arc;

/// Ready when something has ended by itself.
pub type Gone = Pin<Box<dyn Future<Output = ()>>>;

/// What stands before a server's disks beside its sockets, and has to end before they do.
pub struct Front {
    /// That ends the server.
    pub gone: Gone,
    /// Ends it. May wait for those who use it.
    pub end: Box<dyn FnOnce() -> Result<(), Fault> + Send>,
    /// Ends it, whoever uses it; the process is about to end. May come while `end` waits.
    pub abandon: Arc<dyn Fn()>,
}

impl Front {
    /// Nothing, which never ends by itself.
    pub fn none() -> Front {
        Front {
            gone: Box::pin(std::future::pending()),
            end: Box::new(|| Ok(())),
            abandon: Arc::new(|| {}),
        }
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}
