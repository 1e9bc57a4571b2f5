//! Front ends of a server beside its sockets: FUSE files and loop devices.

use headtime_lab::fault::Fault;
use std::pin::Pin;
use std::sync::Arc;

/// Future that is ready when something has ended by itself.
pub type Gone = Pin<Box<dyn Future<Output = ()>>>;

/// A front end that must end before the server's disks.
pub struct Front {
    /// Future that is ready when the front end has ended by itself. The server then ends too.
    pub gone: Gone,
    /// Ends the front end. May wait until users have closed its files.
    pub end: Box<dyn FnOnce() -> Result<(), Fault> + Send>,
    /// Ends the front end at once, since the process ends. The call does not wait for users, and may come while `end`
    /// waits.
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
