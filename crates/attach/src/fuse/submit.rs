//! Hands a request to a disk from a thread that may wait.

use headtime_serve::disk::{Disk, Refused};
use headtime_serve::request::Submission;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Submits a request, and waits while the disk's queue is full. This back-pressure leaves further requests with the kernel.
///
/// # Errors
///
/// If the disk has stopped; the request comes back.
pub(super) fn submit(disk: &Disk, submission: Submission) -> Result<(), Submission> {
    match disk.submit(submission) {
        Ok(()) => Ok(()),
        Err(Refused::Stopped(back)) => Err(back),
        Err(Refused::Full(back)) => wait(disk.submit_when_room(back)),
    }
}

/// Runs a future on this thread. The thread sleeps while there is nothing to do.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        std::thread::park();
    }
}
