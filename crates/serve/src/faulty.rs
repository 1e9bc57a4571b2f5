//! Wraps a device and injects faults on request.
//!
//! An emulated drive injects its own faults. This wrapper injects faults around a file, by the same [`Control::Fault`].
//! The code above can therefore be tested with either device.

use crate::backing::{Lost, Made};
use crate::device::{Aborted, Allocation, Control, ControlError, Device, Done, Geometry, Parts};
use crate::request::{Failure, Kind};
use headtime_disk::drive::Fault;
use headtime_disk::ledger::HeadTime;
use headtime_engine::DriveTag;
use headtime_sched::{Backlog, Op, Request};
use headtime_units::{Extent, Sectors, Time};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Faults of a file that a drive's model does not have. Shared with the caller that injects them.
#[derive(Debug, Default)]
pub struct Switch {
    writes: AtomicU32,
    flushes: AtomicU32,
    keep: AtomicBool,
}

impl Switch {
    /// Makes the next `times` writes and discards fail with `EIO`, without executing them.
    pub fn fail_writes(&self, times: u32) {
        self.writes.store(times, Ordering::Relaxed);
    }

    /// Makes the next `times` flushes fail with `EIO`.
    pub fn fail_flushes(&self, times: u32) {
        self.flushes.store(times, Ordering::Relaxed);
    }

    /// With `keep`, an aborted command that was lost leaves its data with the device, as with a kernel that still waits
    /// for a drive. Without `keep`, the device releases such data.
    pub fn keep_lost(&self, keep: bool) {
        self.keep.store(keep, Ordering::Relaxed);
    }

    fn fails(&self, op: Op) -> bool {
        let times = match op {
            Op::Write | Op::Discard => &self.writes,
            Op::Flush => &self.flushes,
            Op::Read => return false,
        };
        let one_less = |left: u32| left.checked_sub(1);
        times
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }
}

/// A device with injected faults.
///
/// - [`Fault::Unreadable`]: reads of any of the sectors fail at once, until the sectors are written. There are no
///   retries, since there is no medium.
/// - [`Fault::Stall`]: commands that arrive during the stall wait.
/// - [`Fault::LoseNext`]: the next command does not end until it is given up on.
pub struct Faulty<D> {
    inner: D,
    switch: Arc<Switch>,
    unreadable: Vec<Extent>,
    stalled_until: Time,
    /// Commands that wait for the end of a stall.
    held: VecDeque<(Request<DriveTag>, Parts)>,
    to_lose: u32,
    lost: Vec<(DriveTag, Parts)>,
    /// Data of lost commands that were given up on.
    kept: Vec<Parts>,
    /// Commands that failed here.
    done: VecDeque<Done>,
    /// Operations of the commands in the inner device, by tag.
    ops: Vec<Op>,
}

impl<D: Device> Faulty<D> {
    /// Wraps a device, without a fault so far.
    pub fn new(inner: D, switch: Arc<Switch>) -> Faulty<D> {
        Faulty {
            inner,
            switch,
            unreadable: Vec::new(),
            stalled_until: Time::ZERO,
            held: VecDeque::new(),
            to_lose: 0,
            lost: Vec::new(),
            kept: Vec::new(),
            done: VecDeque::new(),
            ops: Vec::new(),
        }
    }

    fn begin(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        let bad = match command.op {
            Op::Read => self
                .unreadable
                .iter()
                .filter(|bad| bad.overlaps(command.extent))
                .map(|bad| bad.start.max(command.extent.start))
                .min(),
            _ => None,
        };
        let failure = match bad {
            Some(at) => Failure {
                kind: Kind::Medium,
                at: Some(at),
                errno: None,
            },
            None if self.switch.fails(command.op) => Failure {
                kind: Kind::Device,
                at: None,
                errno: Some(libc::EIO),
            },
            None => {
                let index = command.tag.index();
                if self.ops.len() <= index {
                    self.ops.resize(index + 1, Op::Read);
                }
                self.ops[index] = command.op;
                self.inner.submit(now, command, parts);
                return;
            }
        };
        self.done.push_back(Done {
            tag: command.tag,
            at: now,
            result: Err(failure),
            parts,
        });
    }

    /// Writing makes sectors readable again.
    fn written(&mut self, parts: &Parts) {
        if self.unreadable.is_empty() {
            return;
        }
        for good in parts.iter().map(|part| part.extent) {
            let mut left = Vec::new();
            for &bad in &self.unreadable {
                if !bad.overlaps(good) {
                    left.push(bad);
                    continue;
                }
                if bad.start < good.start {
                    left.push(Extent::new(bad.start, good.start - bad.start));
                }
                if good.end() < bad.end() {
                    left.push(Extent::new(good.end(), bad.end() - good.end()));
                }
            }
            self.unreadable = left;
        }
    }
}

impl<D: Device> Device for Faulty<D> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        if self.to_lose > 0 {
            self.to_lose -= 1;
            self.lost.push((command.tag, parts));
        } else if now < self.stalled_until {
            self.held.push_back((*command, parts));
        } else {
            self.begin(now, command, parts);
        }
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        if !self.kept.is_empty() && !self.switch.keep.load(Ordering::Relaxed) {
            self.kept.clear();
        }
        if !self.held.is_empty() && now >= self.stalled_until {
            while let Some((command, parts)) = self.held.pop_front() {
                self.begin(now, &command, parts);
            }
            // The disk's thread does not know that commands were submitted, so it does not kick the device.
            self.inner.kick();
        }
        if let Some(done) = self.done.pop_front() {
            return Some(done);
        }
        let done = self.inner.poll(now)?;
        if done.result.is_ok() && self.ops.get(done.tag.index()) == Some(&Op::Write) {
            self.written(&done.parts);
        }
        Some(done)
    }

    fn in_model_time(&self) -> bool {
        self.inner.in_model_time()
    }

    fn next_event(&self) -> Option<Time> {
        let stalled = (!self.held.is_empty()).then_some(self.stalled_until);
        match (stalled, self.inner.next_event()) {
            (Some(stalled), Some(inner)) => Some(stalled.min(inner)),
            (stalled, inner) => stalled.or(inner),
        }
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.ready_fd()
    }

    fn kick(&mut self) {
        self.inner.kick();
    }

    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted {
        let held = self.held.iter().position(|(held, _)| held.tag == tag);
        if let Some((_, parts)) = held.and_then(|at| self.held.remove(at)) {
            return Aborted::Undone(parts);
        }
        let Some(at) = self.lost.iter().position(|(lost, _)| *lost == tag) else {
            return self.inner.abort(now, tag);
        };
        let (_, parts) = self.lost.swap_remove(at);
        match self.switch.keep.load(Ordering::Relaxed) {
            true => {
                self.kept.push(parts);
                Aborted::Abandoned
            }
            false => Aborted::Undone(parts),
        }
    }

    fn abandoned(&self) -> usize {
        let kept = match self.switch.keep.load(Ordering::Relaxed) {
            true => self.kept.len(),
            false => 0,
        };
        kept + self.inner.abandoned()
    }

    fn discards_to_zeroes(&self) -> bool {
        self.inner.discards_to_zeroes()
    }

    fn head_time(&mut self, now: Time) -> Option<HeadTime> {
        self.inner.head_time(now)
    }

    fn note_pending(&mut self, now: Time, backlog: Backlog) {
        self.inner.note_pending(now, backlog);
    }

    fn control(&mut self, now: Time, what: &Control) -> Result<Sectors, ControlError> {
        let Control::Fault(fault) = what else {
            return self.inner.control(now, what);
        };
        match *fault {
            Fault::Unreadable { extent, .. } => {
                let capacity = self.geometry().capacity;
                let end = extent.start.get().checked_add(extent.len.get());
                if end.is_none_or(|end| end > capacity.get()) {
                    return Err(ControlError::Outside { extent, capacity });
                }
                if extent.len > Sectors::ZERO {
                    self.unreadable.push(extent);
                }
            }
            Fault::Stall(span) => {
                self.stalled_until = self.stalled_until.max(now.saturating_add(span))
            }
            Fault::LoseNext => self.to_lose += 1,
        }
        Ok(Sectors::ZERO)
    }

    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        self.inner.allocation()
    }

    fn made(&self) -> Made {
        self.inner.made()
    }

    fn check_backing(&self) -> Result<(), Lost> {
        self.inner.check_backing()
    }
}

impl<D: std::fmt::Debug> std::fmt::Debug for Faulty<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Faulty({:?})", self.inner)
    }
}
