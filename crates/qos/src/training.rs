//! Requests that cover many localities, to train with.

use crate::features::PIECE_BYTES;
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Sectors};
use headtime_workload::Random;

/// Options of the training workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingOptions {
    /// Seed of every random draw.
    pub seed: u64,
    /// Number of requests: 20,000 in the paper.
    pub requests: u64,
    /// Number of processes, 1 or more: 8 in the paper.
    pub processes: u32,
    /// Longest distance: 10 GB in the paper.
    pub reach: Bytes,
}

impl Default for TrainingOptions {
    fn default() -> TrainingOptions {
        TrainingOptions {
            seed: 1,
            requests: 20_000,
            processes: 8,
            reach: Bytes(10_000_000_000),
        }
    }
}

/// A request of the training workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingRequest {
    /// Number of the call, counted from 0. In a call, each process makes one request. The next call begins when all requests of
    /// a call have completed (collective I/O).
    pub call: u64,
    /// The process, counted from 0.
    pub process: u32,
    /// Read or write.
    pub op: Op,
    /// Sectors, counted from the beginning of the file or area.
    pub extent: Extent,
}

/// The synthetic workload of sections 3.1 and 4.1.1 of the paper. Several processes share a file, and each call has a request of
/// each process. A simulation or a live run executes the requests.
///
/// # Readings
///
/// An epoch's features are means. If each request were drawn by itself, the features would be the same in each epoch. So 8
/// calls share one size, distance, probability of a sequential request and share of reads:
///
/// | number | drawn from |
/// |---|---|
/// | size | 4 to 128 KiB by steps of 4 KiB, uniformly |
/// | distance | 0, or 4 KiB to `reach`: each doubling is equally likely, so small distances have smaller steps |
/// | probability of a sequential request | 0, 1/4, 1/2, 3/4, 1 |
/// | share of reads | 0 to 1, uniformly |
///
/// A request that is not sequential begins at the distance from the previous request's end, forwards or backwards with equal
/// chance. At an end of the area the direction is reversed, or the request begins at the far end.
#[derive(Clone, Debug)]
pub struct Training {
    random: Random,
    options: TrainingOptions,
    sector_bytes: u64,
    /// Bytes of the area.
    area: u64,
    made: u64,
    pattern: Pattern,
    /// Byte behind the last request.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pattern {
    size: u64,
    distance: u64,
    sequential: f64,
    reads: f64,
}

/// Calls with the same pattern. Errors of trees hardly depend on this number, from 1 to 64.
const CALLS: u64 = 8;

/// Smallest request, and the unit of places and sizes.
const BLOCK: u64 = 4096;

impl Training {
    /// The workload on an area of some sectors of `sector_bytes` bytes.
    ///
    /// # Panics
    ///
    /// If the area has less than 128 KiB, a block of 4 KiB is no multiple of a sector, or there are no processes.
    pub fn new(options: TrainingOptions, area: Sectors, sector_bytes: u32) -> Training {
        let bytes = u64::from(sector_bytes);
        assert!(
            bytes > 0 && BLOCK.is_multiple_of(bytes),
            "blocks have whole sectors"
        );
        let area = area.bytes(sector_bytes) / BLOCK * BLOCK;
        assert!(
            area >= PIECE_BYTES.0,
            "the area has room for the largest request"
        );
        assert!(options.processes > 0, "processes make calls");
        let mut random = Random::new(options.seed, 0, 0);
        Training {
            pattern: Pattern::drawn(&mut random, options.reach),
            random,
            options,
            sector_bytes: bytes,
            area,
            made: 0,
            end: 0,
        }
    }

    /// Place of the next request, in bytes.
    fn place(&mut self) -> u64 {
        let Pattern {
            size,
            distance,
            sequential,
            ..
        } = self.pattern;
        let last = self.area - size;
        if self.random.chance(sequential) {
            // At the end of the area the sequence continues at the beginning.
            return if self.end <= last { self.end } else { 0 };
        }
        let ahead = self
            .end
            .checked_add(distance)
            .filter(|place| *place <= last);
        let back = self
            .end
            .checked_sub(distance)
            .filter(|place| *place <= last);
        let (first, second) = if self.random.chance(0.5) {
            (ahead, back)
        } else {
            (back, ahead)
        };
        let far = if self.end < self.area / 2 { last } else { 0 };
        first.or(second).unwrap_or(far)
    }
}

impl Pattern {
    fn drawn(random: &mut Random, reach: Bytes) -> Pattern {
        // Distances in blocks: 0, then 1, 2 to 3, 4 to 7, and so on up to the reach.
        let reach = reach.0 / BLOCK;
        let doublings = u64::from(u64::BITS - reach.leading_zeros());
        let distance = match random.below(doublings + 1) {
            0 => 0,
            nth => {
                let from = 1 << (nth - 1);
                from + random.below(from.min(reach - from + 1))
            }
        };
        Pattern {
            size: BLOCK * (1 + random.below(PIECE_BYTES.0 / BLOCK)),
            distance: BLOCK * distance,
            sequential: random.below(5) as f64 / 4.0,
            reads: random.unit(),
        }
    }
}

impl Iterator for Training {
    type Item = TrainingRequest;

    fn next(&mut self) -> Option<TrainingRequest> {
        if self.made == self.options.requests {
            return None;
        }
        let processes = u64::from(self.options.processes);
        let (call, process) = (self.made / processes, self.made % processes);
        if self.made > 0 && process == 0 && call.is_multiple_of(CALLS) {
            self.pattern = Pattern::drawn(&mut self.random, self.options.reach);
        }
        self.made += 1;
        let place = self.place();
        let reads = self.random.chance(self.pattern.reads);
        self.end = place + self.pattern.size;
        let sectors = |bytes: u64| bytes / self.sector_bytes;
        Some(TrainingRequest {
            call,
            process: process as u32,
            op: if reads { Op::Read } else { Op::Write },
            extent: Extent::at(sectors(place), sectors(self.pattern.size)),
        })
    }
}
