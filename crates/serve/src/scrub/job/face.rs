//! What the job and those who control it share.

use super::super::promises::Promises;
use super::super::status::{ScrubState, ScrubStatus};
use headtime_linux::clock::Wall;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let_go: Flag,
    /// The job was told to go on, and has looked whether that can be.
    answered: Flag,
}

/// A condition to wait for.
#[derive(Debug, Default)]
struct Flag(Mutex<bool>, Condvar);

impl Flag {
    fn set(&self, is_so: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = is_so;
        self.1.notify_all();
    }

    /// Waits for a while. Returns true if it is so.
    fn wait(&self, limit: Duration) -> bool {
        let is_so = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = (self.1).wait_timeout_while(is_so, limit, |is_so| !*is_so);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Face {
    pub fn new(status: ScrubStatus) -> Face {
        Face {
            paused: AtomicBool::new(status.state == ScrubState::Paused),
            goes_on: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            must_begin_anew: AtomicBool::new(false),
            promises: Mutex::new(None),
            let_go: Flag::default(),
            answered: Flag::default(),
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
        self.let_go.set(true);
    }

    /// Waits for the job to let go of what it has, for a while. Returns true if it has.
    pub fn wait_for_job(&self, limit: Duration) -> bool {
        self.let_go.wait(limit)
    }

    /// Tells the job to go on.
    pub fn go_on(&self) {
        self.answered.set(false);
        self.goes_on.store(true, Ordering::SeqCst);
    }

    /// The job has looked whether it can go on.
    pub fn answers(&self) {
        self.answered.set(true);
    }

    /// Waits for that, for a while.
    pub fn wait_for_answer(&self, limit: Duration) {
        self.answered.wait(limit);
    }
}
