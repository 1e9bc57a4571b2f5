//! A scan in the background of a random run, and an account of the delivered blocks.

use super::random::Random;
use headtime_disk::Model;
use headtime_engine::{
    Approach, Arrival, Background, BackgroundLayer, Engine, Finished, Join, Lane, Outcome, Plug,
    RequestId, SharedCell,
};
use headtime_gaps::{
    Demand, DriveQueue, Freeblock, FreeblockOptions, Hits, Idle, Limits, Prefer, Promised,
};
use headtime_sched::Class;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::NewRequest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Settings of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanPlan {
    options: FreeblockOptions,
    range: Extent,
    writes: bool,
    demand: Option<Demand>,
    promised: Option<Promised>,
}

impl ScanPlan {
    /// Draws a scan around some of the requests, on a disk of `capacity` sectors.
    pub fn draw(
        random: &mut Random,
        requests: &[(Time, NewRequest)],
        capacity: u64,
        plug: Option<Plug>,
    ) -> Option<ScanPlan> {
        let (_, near) = requests.get(random.below(requests.len().max(1) as u64) as usize)?;
        // On a drive of terabytes, an account by sector would take gigabytes.
        let least = capacity >> 25;
        let block = least.max(*random.pick(&[1, 8, 16, 128, 1_024]));
        let most = block * *random.pick(&[1, 500, 500, 20_000]);
        // Only small ranges are read to the end. In gaps alone, few of many blocks are read.
        let all = most <= 500 * block;
        let start = near.extent.start.get().saturating_sub(random.below(most)) / block * block;
        let start = start.min((capacity - 1) / block * block);
        let range = Extent::at(start, most.min(capacity - start));
        let piece = Sectors::new(*random.pick(&[8, 64, 512]));
        let after = Nanos::from_micros(*random.pick(&[0, 100, 5_000, 1_000_000]));
        let options = FreeblockOptions {
            conservatism: Nanos::from_micros(*random.pick(&[0, 0, 100, 100, 300, 300, 1_000_000])),
            picks: *random.pick(&[0, 1, 1, 1, 1, 3]),
            steps: *random.pick(&[3, u64::MAX, u64::MAX, u64::MAX]),
            limits: *random.pick(&[Limits::Outside, Limits::Outside, Limits::Firmware]),
            prefer: *random.pick(&[Prefer::Blocks, Prefer::Tracks]),
            hits: *random.pick(&[Hits::Guarded, Hits::Spared, Hits::Ignored]),
            queue: *random.pick(&[
                DriveQueue::Promised,
                DriveQueue::Kept,
                DriveQueue::Short,
                DriveQueue::Short,
                DriveQueue::Short,
            ]),
            block: Sectors::new(block),
            idle: (all && random.chance(50)).then_some(Idle { after, piece }),
        };
        let writes = random.chance(30);
        let demand = (all && random.chance(20)).then(|| Demand {
            class: *random.pick(&[Class::IDLE, Class::BEST_EFFORT, Class::REAL_TIME]),
            outstanding: 1 + random.below(4) as u32,
            piece,
        });
        // In a run of years the promises would be checked too often for a test.
        let last = requests.last().map_or(Time::ZERO, |(at, _)| *at) - Time::ZERO;
        let plugged = plug.map_or(Nanos::ZERO, |plug| plug.timeout);
        let is_short = last.max(plugged) < Nanos::from_secs(100);
        let promised = Promised {
            finish_within: random.chance(70).then(|| {
                Nanos::from_secs(1) + Nanos::from_nanos(random.below(2 * last.as_nanos() + 1))
            }),
            passed: Nanos::ZERO,
            p99: random.chance(50).then_some(0.05),
            cycle: Nanos::from_secs(1 + random.below(100_000)),
            unit: Sectors::new(8_192),
            patience: after,
        };
        Some(ScanPlan {
            options,
            range,
            writes,
            demand,
            promised: (!writes && is_short && random.chance(50)).then_some(promised),
        })
    }

    /// Returns the most drive time of the scan, if each read takes at most `slowest`.
    pub fn takes_at_most(&self, slowest: Nanos, requests: u64) -> Nanos {
        // Before each request: gap reads, one read at clients' cost, and one read in idle time for which the request waits. Besides: queued
        // reads, and one further read for each block that fails.
        let blocks = self.range.len.get() / self.options.block.get() + 1;
        let reads = requests * (u64::from(self.options.picks) + 2) + 2 * blocks;
        slowest.saturating_mul(reads)
    }

    /// Returns the scan, which reports its errors to [`Found`]. Returns `None` if the drive does not turn.
    pub fn build(&self, model: Arc<Model>, capacity: Sectors) -> Option<(Checked, Found)> {
        let scan = Freeblock::new(model, capacity, self.range, self.options)?;
        let mut scan = match (self.promised, self.writes) {
            (Some(promised), _) => scan.with_promise(promised, Sectors::new(256)),
            (None, true) => scan.writing(),
            (None, false) => scan,
        };
        scan.set_demand(self.demand);
        let wanted = scan.wanted().blocks_in(self.range);
        let wanted = wanted.map(|lba| lba.get() / self.options.block.get());
        let wanted = wanted.collect();
        let found = Found::default();
        let checked = Checked {
            scan,
            wanted,
            parts: BTreeMap::new(),
            found: found.clone(),
        };
        Some((checked, found))
    }
}

/// First error of a scan, if there is one.
pub(super) type Found = SharedCell<Option<String>>;

/// A scan with a separate account of the delivered blocks.
pub(super) struct Checked {
    scan: Freeblock<Arc<Model>>,
    /// Numbers of the blocks that are neither delivered nor unreadable.
    wanted: BTreeSet<u64>,
    /// By block: the sectors that clients have read (or written, if the scan writes) while the block was wanted.
    parts: BTreeMap<u64, BTreeSet<u64>>,
    found: Found,
}

impl Checked {
    fn wrong(&self, what: impl FnOnce() -> String) {
        self.found.lock().get_or_insert_with(what);
    }

    /// The numbers of the blocks that lie whole in an extent.
    fn whole(&self, extent: Extent) -> std::ops::Range<u64> {
        let wanted = self.scan.wanted();
        let (block, blocks) = (wanted.block(), wanted.blocks());
        let first = extent.start.get().div_ceil(block);
        // The last block may be short.
        let end = wanted.block_at(Lba::new((blocks - 1) * block)).end();
        let last = match extent.end() >= end {
            true => blocks,
            false => extent.end().get() / block,
        };
        first..last.max(first)
    }

    /// Compares the scan's count with the separate account.
    fn same(&self) {
        let unreadable = self.scan.unreadable().count() as u64;
        let (left, wanted) = (self.scan.unread(), self.wanted.len() as u64);
        if left != wanted {
            self.wrong(|| {
                format!("a scan wants {left} blocks ({unreadable} unreadable), and {wanted} have not been delivered")
            });
        }
    }
}

impl BackgroundLayer for Checked {
    type Under = Freeblock<Arc<Model>>;

    fn under(&self) -> &Self::Under {
        &self.scan
    }

    fn under_mut(&mut self) -> &mut Self::Under {
        &mut self.scan
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let asked = self.scan.joins(now, engine, approach)?;
        let (arrival, _, join) = &asked;
        let RequestId::Background(id) = arrival.id else {
            self.wrong(|| format!("a scan asks as {}", arrival.id));
            return Some(asked);
        };
        let block = self.scan.options().block.get();
        let numbers = self.scan.asked(id).iter().map(|lba| lba.get() / block);
        let numbers: BTreeSet<u64> = numbers.collect();
        if numbers.is_empty() || !numbers.is_subset(&self.wanted) {
            self.wrong(|| format!("{arrival:?} is for {numbers:?}, which are not all wanted"));
        }
        // A scan never writes unwanted blocks.
        let all: BTreeSet<u64> = self.whole(arrival.extent).collect();
        if self.scan.writes() && (arrival.op.is_read() || *join == Join::With || all != numbers) {
            self.wrong(|| format!("{arrival:?} writes {all:?} for {numbers:?}, {join:?}"));
        }
        Some(asked)
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        let counts = match self.scan.writes() {
            true => done.request.op.changes(),
            false => done.request.op.is_read(),
        };
        let counts = counts && done.outcome == Outcome::Done;
        let asked: BTreeSet<u64> = self.in_flight();
        if counts {
            for block in self.whole(done.request.extent) {
                // A block under way is delivered by the scan's own request.
                if !asked.contains(&block) {
                    self.wanted.remove(&block);
                }
            }
        }
        self.scan.seen(now, done);
        if counts {
            self.seen_in_part(done.request.extent, &asked);
        }
        self.same();
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let block = self.scan.options().block.get();
        let asked = self.scan.asked(done.id).iter();
        let asked: Vec<u64> = asked.map(|lba| lba.get() / block).collect();
        self.scan.finished(now, done, data);
        for block_number in asked {
            let first = Lba::new(block_number * block);
            let over = done.outcome == Outcome::Done || self.scan.is_unreadable(first);
            if over && !self.wanted.remove(&block_number) {
                self.wrong(|| format!("block {block_number} is delivered twice by {done:?}"));
            }
        }
        self.same();
    }
}

impl Checked {
    /// Notes that a client has read a part of a block. The scan may count the block as read once all of its sectors have been read, and not
    /// before.
    fn seen_in_part(&mut self, extent: Extent, asked: &BTreeSet<u64>) {
        let block = self.scan.options().block.get();
        for number in [
            extent.start.get() / block,
            extent.end().get().saturating_sub(1) / block,
        ] {
            if !self.wanted.contains(&number) || asked.contains(&number) {
                continue;
            }
            let all = self.scan.wanted().block_at(Lba::new(number * block));
            let from = extent.start.max(all.start).get();
            let to = extent.end().min(all.end()).get();
            let read = self.parts.entry(number).or_default();
            read.extend(from..to);
            if !self.scan.wanted().has(number) {
                if (read.len() as u64) < all.len.get() {
                    let sectors = read.len();
                    self.wrong(|| {
                        format!("block {number} counts, of which {sectors} sectors have been read")
                    });
                }
                self.wanted.remove(&number);
            }
        }
    }

    fn in_flight(&self) -> BTreeSet<u64> {
        let block = self.scan.options().block.get();
        let asked = self.scan.all_asked();
        asked.map(|lba| lba.get() / block).collect()
    }
}
