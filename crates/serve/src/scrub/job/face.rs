//! What the job and those who control it share.

use super::super::promises::Promises;
use super::super::status::{ScrubState, ScrubStatus};
use headtime_linux::clock::Wall;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the job and those who control it share.
#[derive(Debug)]
pub(crate) struct Face {
    status: Mutex<ScrubStatus>,
    /// It is to rest.
    pub paused: AtomicBool,
    /// It is to go on, whatever held it.
    pub goes_on: AtomicBool,
    /// It is to end.
    pub stopped: AtomicBool,
    /// What it has done so far is not to be relied on: it can only begin anew.
    pub must_begin_anew: AtomicBool,
    /// What is promised from now on, until the job has heard of it.
    promises: Mutex<Option<Promises>>,
    /// The job has let go of all it had, though the scrub is not over.
    let_go: Mutex<bool>,
    lets_go: Condvar,
}

impl Face {
    pub fn new(status: ScrubStatus) -> Face {
        Face {
            paused: AtomicBool::new(status.state == ScrubState::Paused),
            goes_on: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            must_begin_anew: AtomicBool::new(false),
            promises: Mutex::new(None),
            let_go: Mutex::new(false),
            lets_go: Condvar::new(),
            status: Mutex::new(status),
        }
    }

    pub fn status(&self) -> MutexGuard<'_, ScrubStatus> {
        // It is whole between statements.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something else is promised from now on.
    pub fn promise(&self, promises: Promises) {
        *self.told() = Some(promises);
        let mut status = self.status();
        status.promise = promises.unknown(Wall::now());
    }

    /// What is promised from now on, if that is news.
    pub fn promised(&self) -> Option<Promises> {
        self.told().take()
    }

    fn told(&self) -> MutexGuard<'_, Option<Promises>> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_let_go(&self) {
        *self.let_go.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.lets_go.notify_all();
    }

    /// Waits for the job to let go of what it has, for a while. Returns true if it has.
    pub fn wait_for_job(&self, limit: Duration) -> bool {
        let let_go = self.let_go.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = (self.lets_go).wait_timeout_while(let_go, limit, |let_go| !*let_go);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
