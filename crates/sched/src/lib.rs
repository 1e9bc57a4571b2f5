//! What a disk should do next.
//!
//! An [`Elevator`] orders pending requests and never waits. A [`Scheduler`] says what to do next and
//! may decide to wait for a request that has not arrived. [`WorkConserving`] makes a scheduler of an
//! elevator by never waiting. A policy that weighs positions is built with a [`Positioning`], its
//! own belief about the disk, which is never the disk itself.
//!
//! What is not here: a clock (time is an argument), I/O, randomness, the disk. The crate is `no_std`,
//! so that a policy cannot ask for any of them.
//!
//! # Order of calls
//!
//! ```text
//! insert ──► merged / fused ──► dispatch = Dispatch(r) ──► dispatched(r) ──► completed(r)
//!                                        = IdleUntil(t): asked again at t or on the next insert
//!                                        = Empty: nothing is queued
//! ```
//!
//! `now` never goes backwards from one call to the next.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod lba_index;
mod positioning;
mod request;
mod requests;
mod seam;

pub use lba_index::{Downward, Entry, LbaIndex, Outward, Upward};
pub use positioning::{Positioning, Predicted};
pub use request::{Class, Flags, Op, Origin, Request, Tag};
pub use requests::{Age, ListId, Requests};
pub use seam::{Candidate, Dispatch, Elevator, Scheduler, WorkConserving};
