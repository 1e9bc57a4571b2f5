//! The anticipatory scheduler's statistics of processes.
//!
//! Integers throughout, in the kernel's fixed point. A sample weighs 256. The accumulated weight
//! decays by an eighth with each sample.

use crate::{Jiffies, Request};
use alloc::vec::Vec;
use headtime_units::{Lba, Sectors};

/// The weight of a sample.
const SAMPLE_WEIGHT: u64 = 256;

/// Number of processes that are remembered. Above this number, quiet processes are forgotten.
const PROCESSES_MAX: usize = 4_096;

/// No slot: the end of a list.
const NIL: u32 = u32::MAX;

/// A mean with exponential decay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Average {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Average {
    /// The mean, or `None` before the first sample.
    pub fn mean(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.mean)
    }

    /// Adds a think time. Half a sample is added before the division, so that early means are too
    /// high.
    fn think(&mut self, ticks: u64) {
        self.add(ticks);
        self.mean = self.total.saturating_add(SAMPLE_WEIGHT / 2) / self.samples;
    }

    /// Adds a distance in sectors. The distance is capped at a little more than four times the mean.
    fn seek(&mut self, distance: u64) {
        let slack = match self.samples {
            ..=60 => 2 << 20,
            _ => 2 << 16,
        };
        self.add(distance.min(self.mean.saturating_mul(4).saturating_add(slack)));
        self.mean = self.total.saturating_add(self.samples / 2) / self.samples;
    }

    fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + SAMPLE_WEIGHT) / 8;
        self.total = decayed(self.total, sample);
    }
}

fn decayed(total: u64, sample: u64) -> u64 {
    let gathered = total.saturating_mul(7);
    gathered.saturating_add(sample.saturating_mul(SAMPLE_WEIGHT)) / 8
}

/// Expectation for a process without samples: the mean of the second requests of earlier processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomers {
    think: u64,
    seek: u64,
}

impl Newcomers {
    /// Expected think time, in ticks.
    pub fn think(&self) -> u64 {
        self.think / SAMPLE_WEIGHT
    }

    /// Expected seek distance, in sectors.
    pub fn seek(&self) -> u64 {
        self.seek / SAMPLE_WEIGHT
    }
}

/// Index of a process in a [`Contexts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextId(u32);

/// Statistics of a process.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub process: u32,
    /// Queued requests of the process.
    pub queued: u32,
    /// Requests of the process in the drive.
    in_drive: u32,
    /// True if the process has made a synchronous request.
    started: bool,
    /// Time at which the last synchronous request of the process completed.
    completed: Option<Jiffies>,
    /// End of the process's last synchronous request.
    position: Lba,
    pub think: Average,
    pub seek: Average,
    /// Neighbours in the list of quiet processes, if the process is quiet.
    prev: u32,
    next: u32,
}

impl Context {
    fn new(process: u32) -> Context {
        Context {
            process,
            queued: 0,
            in_drive: 0,
            started: false,
            completed: None,
            position: Lba::ZERO,
            think: Average::default(),
            seek: Average::default(),
            prev: NIL,
            next: NIL,
        }
    }

    fn is_quiet(&self) -> bool {
        self.queued == 0 && self.in_drive == 0
    }
}

/// The processes, by number.
///
/// Above [`PROCESSES_MAX`] processes, a new process takes the place of the process that has been quiet
/// for longest. If a forgotten process comes back, it counts as new.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    slots: Vec<Context>,
    /// Process and slot, by process.
    by_process: Vec<(u32, u32)>,
    pub newcomers: Newcomers,
    /// The list of processes without a request queued or in the drive. The process that has been
    /// quiet for longest is first.
    quiet_first: u32,
    quiet_last: u32,
    think_max: u64,
}

impl Contexts {
    /// Builds an empty set of processes. Think times are capped at `think_max` ticks.
    pub fn new(think_max: u64) -> Contexts {
        Contexts {
            slots: Vec::new(),
            by_process: Vec::new(),
            newcomers: Newcomers::default(),
            quiet_first: NIL,
            quiet_last: NIL,
            think_max,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Contexts::new(self.think_max);
    }

    pub fn get(&self, id: ContextId) -> &Context {
        &self.slots[id.0 as usize]
    }

    /// Returns the process of a request that is queued or in the drive.
    ///
    /// # Panics
    ///
    /// If the process is not known.
    pub fn of(&self, request: &Request) -> ContextId {
        let at = self.search(request.origin.process);
        ContextId(self.by_process[at.expect("whoever has asked is known")].1)
    }

    /// Notes that a request is now queued, and updates the statistics of its process. The process
    /// `kept` is not forgotten.
    pub fn insert(&mut self, now: Jiffies, request: &Request, kept: Option<ContextId>) {
        let id = self.enter(request.origin.process, kept);
        self.learn(now, id, request);
        self.change(id, |context| context.queued += 1);
    }

    /// Notes that a request is no longer queued and does not go to the drive.
    pub fn left(&mut self, request: &Request) {
        self.change(self.of(request), |context| context.queued -= 1);
    }

    /// Notes that a queued request goes to the drive, and returns its process.
    pub fn hand_out(&mut self, request: &Request) -> ContextId {
        let id = self.of(request);
        self.change(id, |context| {
            context.queued -= 1;
            context.in_drive += 1;
        });
        id
    }

    /// Notes that a request came back from the drive, and returns its process.
    pub fn completed(&mut self, now: Jiffies, request: &Request) -> ContextId {
        let id = self.of(request);
        self.change(id, |context| {
            context.in_drive -= 1;
            if request.is_sync() {
                context.completed = Some(now);
            }
        });
        id
    }

    /// Updates the statistics of a process by a synchronous request: its own, or a close request of
    /// another process.
    pub fn learn(&mut self, now: Jiffies, id: ContextId, request: &Request) {
        if !request.is_sync() {
            return;
        }
        let context = &mut self.slots[id.0 as usize];
        if context.started {
            // A process with queued requests does not think. Requests in the drive do not count.
            let think = match context.completed {
                Some(completed) if context.queued == 0 => now.since(completed).min(self.think_max),
                _ => 0,
            };
            let seek = request.extent.start.distance(context.position).get();
            if context.think.samples == 0 {
                self.newcomers.think = decayed(self.newcomers.think, think);
                self.newcomers.seek = decayed(self.newcomers.seek, seek);
            }
            context.think.think(think);
            context.seek.seek(seek);
        }
        context.started = true;
        context.position = request.extent.end();
    }

    fn search(&self, process: u32) -> Result<usize, usize> {
        let of = |&(process, _): &(u32, u32)| process;
        self.by_process.binary_search_by_key(&process, of)
    }

    fn enter(&mut self, process: u32, kept: Option<ContextId>) -> ContextId {
        let at = match self.search(process) {
            Ok(at) => return ContextId(self.by_process[at].1),
            Err(at) => at,
        };
        let context = Context::new(process);
        let Some(slot) = self.longest_quiet(kept) else {
            let slot = u32::try_from(self.slots.len()).expect("there are fewer tags");
            self.slots.push(context);
            self.by_process.insert(at, (process, slot));
            self.link(slot);
            return ContextId(slot);
        };
        self.unlink(slot);
        let before = self.search(self.slots[slot as usize].process);
        self.by_process.remove(before.expect("it is known"));
        self.slots[slot as usize] = context;
        let at = self.search(process).expect_err("it is new");
        self.by_process.insert(at, (process, slot));
        self.link(slot);
        ContextId(slot)
    }

    /// Returns the process to forget if the limit is reached and such a process exists.
    fn longest_quiet(&self, kept: Option<ContextId>) -> Option<u32> {
        if self.slots.len() < PROCESSES_MAX {
            return None;
        }
        let mut slot = self.quiet_first;
        if kept.is_some_and(|kept| kept.0 == slot) {
            slot = self.slots[slot as usize].next;
        }
        (slot != NIL).then_some(slot)
    }

    /// Changes the request counts of a process.
    fn change(&mut self, id: ContextId, change: impl FnOnce(&mut Context)) {
        let context = &mut self.slots[id.0 as usize];
        let before = context.is_quiet();
        change(context);
        match (before, context.is_quiet()) {
            (true, false) => self.unlink(id.0),
            (false, true) => self.link(id.0),
            _ => {}
        }
    }

    /// Appends a process to the list of quiet processes.
    fn link(&mut self, slot: u32) {
        let prev = self.quiet_last;
        self.join(prev, slot);
        self.join(slot, NIL);
    }

    fn unlink(&mut self, slot: u32) {
        let context = &self.slots[slot as usize];
        self.join(context.prev, context.next);
    }

    fn join(&mut self, prev: u32, next: u32) {
        match prev {
            NIL => self.quiet_first = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => self.quiet_last = prev,
            next => self.slots[next as usize].prev = prev,
        }
    }
}

impl Context {
    /// Returns true if the distance is less than the process's mean seek distance.
    pub fn seeks_farther(&self, distance: Sectors, newcomers: &Newcomers) -> bool {
        let mean = self.seek.mean().unwrap_or(newcomers.seek());
        mean > distance.get()
    }

    /// Returns true if the process's mean or expected think time is longer than `ticks`.
    pub fn thinks_longer(&self, ticks: u64, newcomers: &Newcomers) -> bool {
        self.think.mean().unwrap_or(newcomers.think()) > ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Origin, Tag};
    use headtime_units::{Extent, Time};
    use std::vec;

    const NOW: Jiffies = Jiffies::new(1_000);

    fn read(process: u32, lba: u64) -> Request {
        Request {
            origin: Origin {
                process,
                ..Origin::default()
            },
            ..Request::new(Tag(0), Op::Read, Extent::at(lba, 8), Time::ZERO)
        }
    }

    /// Serves a request from arrival to completion, all at `now`.
    fn served(contexts: &mut Contexts, now: Jiffies, request: &Request) -> ContextId {
        contexts.insert(now, request, None);
        contexts.hand_out(request);
        contexts.completed(now, request)
    }

    #[test]
    fn samples_and_zero_think_times_read_as_in_the_kernel() {
        let mut average = Average::default();
        assert_eq!(average.mean(), None);
        let seen: Vec<(u64, u64)> = (0..6)
            .map(|_| {
                average.think(0);
                (average.samples, average.mean)
            })
            .collect();
        assert_eq!(
            seen,
            [(32, 4), (60, 2), (84, 1), (105, 1), (123, 1), (139, 0)]
        );
    }

    #[test]
    fn distances_are_capped_by_what_is_usual() {
        let mut average = Average::default();
        let far = 1 << 40;
        let mut means = Vec::new();
        for _ in 0..4 {
            average.seek(far);
            means.push(average.mean);
        }
        // The cap is four times the mean plus 2^21 for the first three distances, and plus 2^17
        // then.
        let mut mean = 0_u64;
        let (mut samples, mut total) = (0_u64, 0_u64);
        let expected: Vec<u64> = [2_097_152, 2_097_152, 2_097_152, 131_072]
            .into_iter()
            .map(|slack| {
                samples = (7 * samples + 256) / 8;
                total = (7 * total + 256 * (4 * mean + slack)) / 8;
                mean = (total + samples / 2) / samples;
                mean
            })
            .collect();
        assert_eq!(means, expected);
        assert_eq!(means[0], 2_097_152);
    }

    #[test]
    fn nothing_is_learned_from_the_first_request_nor_from_writes() {
        let mut contexts = Contexts::new(4);
        let id = served(&mut contexts, NOW, &read(1, 100));
        assert_eq!(contexts.get(id).think.mean(), None);
        let write = Request {
            op: Op::Write,
            ..read(1, 5_000)
        };
        served(&mut contexts, NOW + 50, &write);
        assert_eq!(contexts.get(id).think.mean(), None);
        // 108 is the end of the read. The write has no effect.
        served(&mut contexts, NOW + 2, &read(1, 108));
        let context = contexts.get(id);
        assert_eq!(context.seek.mean(), Some(0));
        // 2 ticks of thinking: (64 + 128) / 32.
        assert_eq!(context.think.mean(), Some(6));
        assert_eq!(contexts.newcomers.think(), 0);
        assert_eq!(contexts.newcomers.think, 2 * 256 / 8);
    }

    #[test]
    fn thinking_is_capped_and_nobody_thinks_while_a_request_is_queued() {
        let think = |mut contexts: Contexts, queued: bool| {
            let id = served(&mut contexts, NOW, &read(1, 0));
            if queued {
                // This request's own sample is a think time of zero.
                contexts.insert(NOW, &read(1, 8), None);
            }
            contexts.insert(NOW + 1_000, &read(1, 16), None);
            contexts.get(id).think.total
        };
        assert_eq!(think(Contexts::new(19), false), 19 * 32);
        assert_eq!(think(Contexts::new(19), true), 0);
    }

    #[test]
    fn a_request_in_the_drive_does_not_keep_from_thinking() {
        let mut contexts = Contexts::new(19);
        let id = served(&mut contexts, NOW, &read(1, 0));
        contexts.insert(NOW, &read(1, 8), None);
        contexts.hand_out(&read(1, 8));
        contexts.insert(NOW + 3, &read(1, 16), None);
        assert_eq!(contexts.get(id).think.total, 3 * 32);
    }

    #[test]
    fn the_longest_quiet_are_forgotten_above_the_limit() {
        let mut contexts = Contexts::new(4);
        let processes = PROCESSES_MAX as u32;
        let busy = read(0, 0);
        contexts.insert(NOW, &busy, None);
        for process in 1..processes {
            served(&mut contexts, NOW, &read(process, 0));
        }
        let kept = contexts.of(&read(1, 0));
        // Process 2 was quiet and is busy again. Process 3 has been quiet for longest, except for
        // process 1, which is exempt.
        served(&mut contexts, NOW, &read(2, 0));
        for process in processes..processes + 10 {
            contexts.insert(NOW, &read(process, 0), Some(kept));
        }
        assert_eq!(contexts.slots.len(), PROCESSES_MAX);
        let known: Vec<u32> = (0..20)
            .filter(|process| contexts.search(*process).is_ok())
            .collect();
        let mut expected = vec![0, 1, 2];
        expected.extend(13..20);
        assert_eq!(known, expected);
        assert!(contexts.by_process.is_sorted());

        // A process with requests is never forgotten: the table grows.
        let mut contexts = Contexts::new(4);
        for process in 0..processes + 10 {
            contexts.insert(NOW, &read(process, 0), None);
        }
        assert_eq!(contexts.slots.len(), PROCESSES_MAX + 10);
    }

    #[test]
    fn the_largest_addresses_do_not_overflow() {
        let mut contexts = Contexts::new(4);
        for lba in [0, u64::MAX - 8, 0, u64::MAX - 8] {
            served(&mut contexts, NOW, &read(1, lba));
        }
        let id = contexts.of(&read(1, 0));
        assert!(contexts.get(id).seek.mean().unwrap() >= 2_097_152);
    }
}
