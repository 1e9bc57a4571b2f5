//! A value with several owners.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value with several owners, such as a background job that its maker inspects between two events.
///
/// A clone is another owner of the same value.
#[derive(Default)]
pub struct SharedCell<T>(Arc<Mutex<T>>);

impl<T> SharedCell<T> {
    /// Makes a value with one owner.
    pub fn new(value: T) -> SharedCell<T> {
        SharedCell(Arc::new(Mutex::new(value)))
    }

    /// Waits until no other owner uses the value. An owner that calls this twice at a time waits forever.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for SharedCell<T> {
    fn clone(&self) -> SharedCell<T> {
        SharedCell(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
