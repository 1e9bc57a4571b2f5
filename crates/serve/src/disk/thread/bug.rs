//! The end of a disk's thread by a bug. Every waiting client gets an error, and a message tells the administrator.

use super::Thread;
use crate::request::{Completion, Failure, Kind};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

impl Thread {
    /// Answers all unfinished requests with an error. Returns the error for the disk's owner.
    pub(super) fn end_by_a_bug(&mut self, panic: &(dyn Any + Send)) -> io::Error {
        let text = text(panic);
        self.takes_guests = false;
        let live = &mut self.live;
        let shared = &live.shared;
        shared.failed.store(true, Ordering::SeqCst);
        shared.broken.store(true, Ordering::SeqCst);
        shared.stopped.store(true, Ordering::SeqCst);
        let next = live.next.take().into_iter().chain(live.steps.abandon());
        let waiting = live
            .admission
            .iter_mut()
            .flat_map(|admission| admission.drain());
        let next = next.chain(waiting);
        let next = next.map(|next| (next.cookie, next.to, next.data));
        let pending = live.pending.drain(..).flatten();
        let pending = pending.map(|pending| {
            // Data that are missing here are held by the device, which may still use them.
            let data = pending.data.unwrap_or_default();
            (pending.cookie, pending.to, data)
        });
        let mut answered = 0u64;
        for (cookie, to, data) in pending.chain(next) {
            // If the panic came from this client's code, the other clients still have to be answered.
            let told = catch_unwind(AssertUnwindSafe(|| {
                to.complete(Completion {
                    cookie,
                    result: Err(Failure::new(Kind::Device)),
                    data,
                });
                to.wake();
            }));
            answered += u64::from(told.is_ok());
        }
        for to in live.to_wake.drain(..) {
            let _ = catch_unwind(AssertUnwindSafe(|| to.wake()));
        }
        tracing::error!(
            disk = shared.name,
            "its thread ended by a bug: {text}; {answered} unfinished requests were answered with an \
             error, what was not flushed may be lost, and the disk is gone until the server is \
             started again"
        );
        io::Error::other(format!("its thread ended by a bug: {text}"))
    }
}

/// Returns the message of a panic.
fn text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}
