//! Front ends of a server beside its sockets: FUSE files and loop devices.

use headtime_lab::fault::Fault;
use std::pin::Pin;
use std::sync::Arc;

/// Ready when something has ended by itself.
pub type Gone = Pin<Box<dyn Future<Output = ()>>>;

/// A front end that has to end before the server's disks do.
pub struct Front {
    /// Ready when the front end ended by itself, which ends the server.
    pub gone: Gone,
    /// Ends the front end. May wait for its users.
    pub end: Box<dyn FnOnce() -> Result<(), Fault> + Send>,
    /// Ends the front end in spite of its users, since the process ends. May be called while `end` waits.
    pub abandon: Arc<dyn Fn()>,
}

impl Front {
    /// Returns an empty front end, which never ends by itself.
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
