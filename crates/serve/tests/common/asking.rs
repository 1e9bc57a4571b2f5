//! Asking a disk and waiting for it.

use headtime_serve::disk::{Disk, Refused};
use headtime_serve::request::Submission;
use std::thread::yield_now;

/// Hands a request over as soon as there is room.
pub fn submit(disk: &Disk, mut submission: Submission) {
    loop {
        match disk.submit(submission) {
            Ok(()) => return,
            Err(Refused::Full(back)) => {
                submission = back;
                yield_now();
            }
            Err(Refused::Stopped(_)) => panic!("the disk has stopped"),
        }
    }
}

/// What comes of it, waited for.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().expect("a runtime").block_on(future)
}
