//! Decisions on a disk's next request.
//!
//! An [`Elevator`] orders pending requests and never waits. A [`Scheduler`] decides the next step and may wait for a
//! request that has not arrived. [`WorkConserving`] turns an elevator into a scheduler that never waits. A policy that
//! weighs positions is built with a [`Positioning`]: an assumed profile of the disk, never the disk itself.
//!
//! The crate has no clock (time is an argument), no I/O, no randomness and no disk. It is `no_std`, so
//! that a policy cannot ask for any of them.
//!
//! # Order of calls
//!
//! ```text
//! insert ──► merged / fused ──► dispatch = Dispatch(r) ──► dispatched(r) ──► completed(r)
//!                                        = IdleUntil(t): asked again at t or on the next insert
//!                                        = Empty: nothing is queued
//!        └► withdraw: the request moves elsewhere, and is neither dispatched nor completed here
//! ```
//!
//! `now` never goes backwards from one call to the next.

#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

// The policies, in the order in which help and documentation show them. A new one is a line here: `build.rs` makes the
// table of these lines. Blank lines keep rustfmt from sorting them.

pub mod noop;

pub mod deadline;

pub mod mq_deadline;

pub mod clook;

pub mod sstf;

pub mod sptf;

pub mod sptf_sw;

pub mod anticipatory;

pub mod nise;

pub mod cfq;

pub mod bfq;

pub mod stream;

pub mod clairvoyant;

mod ages;
mod bound;
mod curve;
mod decayed;
mod head_state;
mod jiffies;
mod lba_index;
mod lba_table;
mod level;
mod nearest;
mod passing;
mod platter;
mod policy;
mod pool;
mod positioning;
mod registry;
mod request;
mod requests;
mod seam;
mod sorted;
mod sorted_map;
mod spec;
mod sweep;
mod text;
mod tracker;
mod trials;
mod twin;
mod waits;

pub use ages::Age;
pub use anticipatory::{Anticipatory, AnticipatoryConfig};
pub use bfq::{Bfq, BfqConfig};
pub use bound::{BoundsWaits, WaitBound};
pub use cfq::{Cfq, CfqConfig};
pub use clairvoyant::Clairvoyant;
pub use clook::Clook;
pub use curve::{CurveError, ServiceCurve};
pub use deadline::{Deadline, DeadlineConfig};
pub use head_state::HeadState;
pub use jiffies::{Hz, Jiffies};
pub use lba_index::{Downward, Entry, LbaIndex, Outward, Upward};
pub use lba_table::LbaTable;
pub use mq_deadline::MqDeadline;
pub use nise::{Nise, NiseBy, NiseConfig};
pub use noop::Noop;
pub use passing::{Buffering, Pass, Passing, TrackPart};
pub use platter::Platter;
pub use policy::{
    Among, Built, CheckAmong, Counts, Knowledge, Needs, NumberInfo, OptionInfo, Options, Parts,
    PolicyInfo, Slices, Value,
};
pub use positioning::{HeadAfter, HeadTime, Positioning, Predicted};
pub use registry::{NoPositioning, policies};
pub use request::{Backlog, Class, Flags, Op, Origin, Request, Tag};
pub use requests::{ListId, Requests};
pub use seam::{
    Candidate, Directive, Dispatch, Elevator, Foretold, Partners, Scheduler, WithTracker,
    WorkConserving,
};
pub use sorted_map::{Falling, Rising, SortedMap};
pub use spec::{Spec, SpecError, SpecErrorKind};
pub use sptf::Sptf;
pub use sstf::Sstf;
pub use stream::{Open, Stream, StreamConfig, StreamRule};
pub use text::UnknownClass;
pub use tracker::{Predicting, Surprise, Track, Tracker};
pub use trials::Trials;
pub use twin::{Ending, TrackedCommand, Twin};
pub use waits::WaitStats;

#[cfg(test)]
mod tests {
    //! Helpers of the policies' tests.

    use super::*;
    use headtime_units::{Extent, Nanos, Time};
    use std::vec::Vec;

    /// Returns the time `ms` milliseconds after the start.
    pub fn at(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    /// A read of 8 sectors that arrives at `ms`.
    pub fn read(tag: u32, lba: u64, ms: u64) -> Request {
        Request::new(Tag(tag), Op::Read, Extent::at(lba, 8), at(ms))
    }

    /// A write of 8 sectors that arrives at `ms`.
    pub fn write(tag: u32, lba: u64, ms: u64) -> Request {
        Request {
            op: Op::Write,
            ..read(tag, lba, ms)
        }
    }

    /// The request, of a process.
    pub fn of(process: u32, request: Request) -> Request {
        let origin = Origin {
            process,
            ..Origin::default()
        };
        Request { origin, ..request }
    }

    /// The request, of a class.
    pub fn class(class: Class, request: Request) -> Request {
        Request { class, ..request }
    }

    /// Returns the request, grown to `sectors` sectors from `lba` on.
    pub fn grown(request: Request, lba: u64, sectors: u64) -> Request {
        let extent = Extent::at(lba, sectors);
        Request { extent, ..request }
    }

    /// Inserts a read per address, all at time 0, with tags from 0.
    pub fn insert_all<const N: usize>(elevator: &mut impl Elevator, lbas: [u64; N]) {
        for (tag, lba) in lbas.into_iter().enumerate() {
            elevator.insert(at(0), read(tag as u32, lba, 0));
        }
    }

    /// Takes all requests, one after the other at the same time, and returns their start addresses.
    pub fn order(elevator: &mut impl Elevator, now: Time) -> Vec<u64> {
        let mut head = HeadState::START;
        core::iter::from_fn(|| {
            let request = elevator.take(now, &head)?;
            head = HeadState::behind(&request);
            Some(request.extent.start.get())
        })
        .collect()
    }
}
