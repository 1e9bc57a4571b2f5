//! What tests of disks share.

use crossbeam_queue::ArrayQueue;
use headtime_linux::clock::Clock;
use headtime_serve::request::{Completer, Completion};
use headtime_units::{Nanos, Time};
use std::sync::Arc;
use std::thread::yield_now;

/// Keeps completions until they are asked for.
#[derive(Debug)]
pub struct Inbox(ArrayQueue<Completion>);

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        self.0
            .push(completion)
            .expect("room for what was submitted");
    }
}

impl Inbox {
    /// One with room for so many.
    pub fn new(room: usize) -> Arc<Inbox> {
        Arc::new(Inbox(ArrayQueue::new(room)))
    }

    /// A completion, if one is there.
    pub fn poll(&self) -> Option<Completion> {
        self.0.pop()
    }

    /// The next completion. A test that waited for ever could leave a file system frozen behind.
    pub fn wait(&self) -> Completion {
        let clock = Clock::start();
        loop {
            match self.poll() {
                Some(completion) => return completion,
                None => yield_now(),
            }
            assert!(
                clock.now() < Time::ZERO + Nanos::from_secs(60),
                "no answer in a minute"
            );
        }
    }
}
