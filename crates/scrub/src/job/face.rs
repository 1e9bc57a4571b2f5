//! State that the job and the controlling threads share.

use super::super::promises::Promises;
use super::super::status::{ScrubState, ScrubStatus};
use headtime_linux::clock::Wall;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// State that the job and the controlling threads share.
#[derive(Debug)]
pub(crate) struct Face {
    status: Mutex<ScrubStatus>,
    /// Set to pause the scrub.
    pub paused: AtomicBool,
    /// Set to continue the scrub in spite of earlier errors.
    pub goes_on: AtomicBool,
    /// Set to end the scrub.
    pub stopped: AtomicBool,
    /// True if the results so far cannot be relied on, so that the scrub can only begin anew.
    pub must_begin_anew: AtomicBool,
    /// New promises that the job has not taken yet.
    promises: Mutex<Option<Promises>>,
    /// Set when the job has released its files, though the scrub may not be over.
    let_go: Flag,
    /// Set when the job has tried to continue after `go_on`.
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

    /// Waits up to `limit`. Returns true if the flag is set.
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
        // Every statement leaves the status consistent, so a panic of another thread does no harm.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the promises.
    pub fn promise(&self, promises: Promises) {
        *self.new_promises() = Some(promises);
        let mut status = self.status();
        status.promise = promises.unknown(Wall::now());
    }

    /// Takes the new promises, if there are any.
    pub fn promised(&self) -> Option<Promises> {
        self.new_promises().take()
    }

    /// Locks the promises that the job has not taken yet.
    fn new_promises(&self) -> MutexGuard<'_, Option<Promises>> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_let_go(&self) {
        self.let_go.set(true);
    }

    /// Waits up to `limit` until the job has released its files. Returns true if the job has.
    pub fn wait_for_job(&self, limit: Duration) -> bool {
        self.let_go.wait(limit)
    }

    /// Tells the job to continue.
    pub fn go_on(&self) {
        self.answered.set(false);
        self.goes_on.store(true, Ordering::SeqCst);
    }

    /// Notes that the job has tried to continue.
    pub fn answers(&self) {
        self.answered.set(true);
    }

    /// Waits up to `limit` until the job has tried to continue.
    pub fn wait_for_answer(&self, limit: Duration) {
        self.answered.wait(limit);
    }
}
