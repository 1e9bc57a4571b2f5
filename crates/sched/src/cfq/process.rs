//! The statistics of each process: think time, seek distance, and queues.

use super::queue::QueueId;
use crate::decayed::Decayed;
use crate::level::LEVELS;
use crate::{Jiffies, SortedMap};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba};

/// Number of processes that are remembered. Above this number, only processes with requests are
/// remembered.
pub(super) const REMEMBERED_MAX: usize = 4_096;

/// A distance above this number of sectors is a seek.
pub(super) const SEEK_SECTORS: u64 = 8_192;

/// Names a process among those remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CfqContextId(pub u32);

/// Statistics of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct CfqContext {
    process: u32,
    /// Time of the last event.
    used: Jiffies,
    /// Requests of the process that are queued or in the drive.
    pub requests: u32,
    /// Time at which the last synchronous request of the process completed. At first, the time at which
    /// the process came.
    pub last_completion: Jiffies,
    /// End of the process's last request, in order of arrival.
    last_end: Option<Lba>,
    think: Decayed,
    seek: Decayed,
    /// Queues for the process's synchronous requests.
    pub queues: [Option<QueueId>; LEVELS],
}

impl CfqContext {
    fn new(process: u32, now: Jiffies) -> CfqContext {
        CfqContext {
            process,
            used: now,
            requests: 0,
            last_completion: now,
            last_end: None,
            think: Decayed::default(),
            seek: Decayed::default(),
            queues: [None; LEVELS],
        }
    }

    /// Adds a request that arrives now. Think times are capped at `think_max`.
    pub fn arrives(&mut self, now: Jiffies, extent: Extent, think_max: u64) {
        self.used = now;
        let think = now.since(self.last_completion).min(think_max);
        self.think.add(think, |_| 128);
        // The cap keeps one far request among many from spoiling the mean.
        let leeway = match self.seek.samples {
            0..=60 => 2 * 1024 * 1024,
            _ => 2 * 1024 * 64,
        };
        let most = self.seek.mean.saturating_mul(4).saturating_add(leeway);
        let distance = match self.last_end {
            Some(end) => end.distance(extent.start).get(),
            None => 0,
        };
        self.seek.add(distance.min(most), |samples| samples / 2);
        self.last_end = Some(extent.end());
    }

    /// Notes that a request of the process came back.
    fn completes(&mut self, now: Jiffies, sync: bool) {
        self.used = now;
        if sync {
            self.last_completion = now;
        }
    }

    /// Returns the mean think time in ticks, if the mean is valid.
    pub fn think_mean(&self) -> Option<u64> {
        self.think.is_valid().then_some(self.think.mean)
    }

    /// Returns true if the process seeks, even by few samples.
    pub fn is_seeky(&self) -> bool {
        self.seek.mean > SEEK_SECTORS
    }

    /// Returns true if the process seeks, by a valid mean.
    pub fn is_surely_seeky(&self) -> bool {
        self.seek.is_valid() && self.is_seeky()
    }

    /// Returns the distance in sectors within which another request is as good as a request of this
    /// process.
    pub fn close_by(&self) -> u64 {
        if self.seek.is_valid() {
            self.seek.mean
        } else {
            SEEK_SECTORS
        }
    }
}

/// The processes remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct CfqContexts {
    slots: Vec<CfqContext>,
    free: Vec<CfqContextId>,
    by_process: SortedMap<u32, CfqContextId>,
    /// Processes without requests, by the time of the last event and by process. `None` until a process
    /// must be forgotten for the first time.
    idle: Option<SortedMap<(Jiffies, u32), CfqContextId>>,
}

impl CfqContexts {
    /// Returns the process with this number, if it is remembered.
    pub fn find(&self, process: u32) -> Option<CfqContextId> {
        self.by_process.get(&process)
    }

    /// Returns the number of processes.
    pub fn len(&self) -> usize {
        self.by_process.len()
    }

    /// Begins to remember a process.
    pub fn add(&mut self, process: u32, now: Jiffies) -> CfqContextId {
        let fresh = CfqContext::new(process, now);
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.0 as usize] = fresh;
                id
            }
            None => {
                self.slots.push(fresh);
                CfqContextId(self.slots.len() as u32 - 1)
            }
        };
        let before = self.by_process.insert(process, id);
        assert!(before.is_none(), "process {process} is remembered");
        self.rest(id);
        id
    }

    /// Notes that a process has one more request.
    pub fn begin(&mut self, id: CfqContextId) {
        if self[id].requests == 0 {
            self.wake(id);
        }
        self[id].requests += 1;
    }

    /// Notes that a request of a process came back.
    pub fn completes(&mut self, id: CfqContextId, now: Jiffies, sync: bool) {
        self[id].completes(now, sync);
        self.end(id);
    }

    /// Notes that a request of a process is gone.
    pub fn end(&mut self, id: CfqContextId) {
        self[id].requests -= 1;
        self.rest(id);
    }

    /// Returns the process without requests that has been idle for longest. `spared` processes are
    /// skipped.
    pub fn oldest_idle(
        &mut self,
        spared: impl Fn(&CfqContexts, CfqContextId) -> bool,
    ) -> Option<CfqContextId> {
        if self.idle.is_none() {
            let mut idle = SortedMap::new();
            for (process, id) in self.by_process.iter() {
                if self[id].requests == 0 {
                    idle.insert((self[id].used, process), id);
                }
            }
            self.idle = Some(idle);
        }
        let mut idle = self.idle.iter().flat_map(SortedMap::iter);
        idle.find_map(|(_, id)| {
            #[cfg(test)]
            headtime_testkit::steps::one();
            (!spared(self, id)).then_some(id)
        })
    }

    /// Forgets a process without requests, and returns its queues.
    pub fn remove(&mut self, id: CfqContextId) -> [Option<QueueId>; LEVELS] {
        let process = self[id].process;
        let there = self.by_process.remove(&process);
        assert!(there == Some(id), "process {process} is not remembered");
        self.wake(id);
        self.free.push(id);
        self[id].queues
    }

    /// Adds a process to the idle processes if it has no requests.
    fn rest(&mut self, id: CfqContextId) {
        let CfqContext {
            used,
            process,
            requests,
            ..
        } = self[id];
        if let Some(idle) = &mut self.idle
            && requests == 0
        {
            idle.insert((used, process), id);
        }
    }

    /// Removes a process from the idle processes.
    fn wake(&mut self, id: CfqContextId) {
        let CfqContext { used, process, .. } = self[id];
        if let Some(idle) = &mut self.idle {
            let there = idle.remove(&(used, process));
            assert!(there == Some(id), "process {process} has no requests");
        }
    }
}

impl core::ops::Index<CfqContextId> for CfqContexts {
    type Output = CfqContext;

    fn index(&self, id: CfqContextId) -> &CfqContext {
        &self.slots[id.0 as usize]
    }
}

impl core::ops::IndexMut<CfqContextId> for CfqContexts {
    fn index_mut(&mut self, id: CfqContextId) -> &mut CfqContext {
        &mut self.slots[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_seek_among_sequential_requests_is_cut_short() {
        let mut context = CfqContext::new(0, Jiffies::new(0));
        let mut come = |start: u64| {
            context.arrives(Jiffies::new(0), Extent::at(start, 8), 4);
            context.seek.mean
        };
        // The first request counts as no seek at any address.
        assert_eq!(come(1_000_000), 0);
        assert_eq!(come(1_000_008), 0);
        assert_eq!(come(1_000_016), 0);
        // From the fourth request on, the distance is capped at four means plus 131072 sectors.
        let jump = come(500_000_000);
        assert_eq!(jump, (131_072 * 256 / 8 + 105 / 2) / 105);
        assert!(context.is_surely_seeky());
    }

    #[test]
    fn the_first_three_seeks_count_for_more() {
        let mut context = CfqContext::new(0, Jiffies::new(0));
        context.arrives(Jiffies::new(0), Extent::at(0, 8), 4);
        context.arrives(Jiffies::new(0), Extent::at(1 << 40, 8), 4);
        assert_eq!(context.seek.mean, (2_097_152 * 256 / 8 + 30) / 60);
        assert!(context.is_seeky() && !context.is_surely_seeky());
        assert_eq!(context.close_by(), SEEK_SECTORS);
    }

    #[test]
    fn think_time_runs_from_the_last_completion_and_is_capped() {
        let mut context = CfqContext::new(0, Jiffies::new(7));
        let mut come = |now| {
            context.arrives(Jiffies::new(now), Extent::at(0, 8), 4);
            context.think.total
        };
        assert_eq!(come(7), 0);
        assert_eq!(come(8), 32);
        assert_eq!(come(50), (7 * 32 + 256 * 4) / 8);
        context.completes(Jiffies::new(60), false);
        assert_eq!(context.last_completion, Jiffies::new(7));
        context.completes(Jiffies::new(61), true);
        assert_eq!(context.last_completion, Jiffies::new(61));
    }

    #[test]
    fn processes_are_found_and_forgotten() {
        let mut contexts = CfqContexts::default();
        let ids = [30, 10, 20].map(|process| contexts.add(process, Jiffies::new(process.into())));
        assert_eq!(contexts.find(10), Some(ids[1]));
        assert_eq!(contexts.find(11), None);
        contexts.begin(ids[1]);
        assert_eq!(contexts.oldest_idle(|_, _| false), Some(ids[2]));
        assert_eq!(contexts.oldest_idle(|_, id| id == ids[2]), Some(ids[0]));
        contexts.remove(ids[2]);
        assert_eq!((contexts.find(20), contexts.len()), (None, 2));
        // The slot is reused.
        assert_eq!(contexts.add(40, Jiffies::new(99)), ids[2]);
        assert_eq!(contexts.find(30), Some(ids[0]));
    }

    #[test]
    fn who_did_nothing_for_longest_is_found_without_a_look_at_the_busy() {
        let mut contexts = CfqContexts::default();
        let ids: Vec<CfqContextId> = (0..10_000)
            .map(|process| {
                let id = contexts.add(process, Jiffies::new(process.into()));
                contexts.begin(id);
                id
            })
            .collect();
        let steps = headtime_testkit::steps::of(|| {
            for (now, id) in (20_000..).zip(ids.iter().rev().step_by(10)) {
                assert_eq!(contexts.oldest_idle(|_, _| false), None);
                contexts.completes(*id, Jiffies::new(now), true);
                assert_eq!(contexts.oldest_idle(|_, _| false), Some(*id));
                // If two processes have been idle since the same tick, the lower number is forgotten.
                contexts.completes(ids[0], Jiffies::new(now), true);
                assert_eq!(contexts.oldest_idle(|_, _| false), Some(ids[0]));
                for id in [ids[0], *id] {
                    contexts.begin(id);
                }
            }
        });
        assert!(steps <= 2_000, "{steps} looks");
    }
}
