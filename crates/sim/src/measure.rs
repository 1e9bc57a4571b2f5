//! What is measured of the requests of a run.

use crate::distribution::Distribution;
use headtime_engine::{Finished, Outcome};
use headtime_sched::{Op, Origin, Request};
use headtime_units::{Nanos, Time};
use headtime_workload::Returned;
use std::collections::BTreeMap;

/// The requests of one kind that finished.
#[derive(Clone, Debug)]
pub struct Got {
    /// How many.
    pub requests: u64,
    /// Their bytes, without those of requests that failed.
    pub bytes: u64,
    /// Arrival to completion. Percentiles have two significant digits.
    pub response: Distribution,
}

impl Default for Got {
    fn default() -> Got {
        Got {
            requests: 0,
            bytes: 0,
            response: Distribution::new(2),
        }
    }
}

impl Got {
    /// Adds requests of another kind or origin.
    pub fn add(&mut self, other: &Got) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.response.add(&other.response);
    }
}

/// What one origin got.
#[derive(Clone, Debug)]
pub struct PerOrigin {
    /// Who.
    pub origin: Origin,
    /// Its reads, if one has finished; so for the others. A kind that does not occur takes no memory,
    /// as there may be a million origins.
    pub reads: Option<Box<Got>>,
    /// Its writes.
    pub writes: Option<Box<Got>>,
    /// Its flushes and discards.
    pub others: Option<Box<Got>>,
    /// Arrival of its first request, or the end of the warm-up if that is later.
    pub first: Time,
    /// End of its last request; the end of the measurement if it has requests unfinished then.
    pub last: Time,
    /// Requests that were unfinished at the end of the measurement.
    pub unfinished: u64,
    /// How long the oldest of them had waited.
    pub oldest_unfinished: Nanos,
    /// When the last of its requests that is finished went to the drive.
    issued: Option<Time>,
}

impl PerOrigin {
    /// All its requests that finished, whatever their kind.
    pub fn all(&self) -> Got {
        let mut all = Got::default();
        for got in self.kinds() {
            all.add(got);
        }
        all
    }

    fn kinds(&self) -> impl Iterator<Item = &Got> {
        let kinds = [&self.reads, &self.writes, &self.others];
        kinds.into_iter().filter_map(|kind| kind.as_deref())
    }

    fn bytes(&self) -> u64 {
        self.kinds().map(|got| got.bytes).sum()
    }

    /// Bytes per second from [`PerOrigin::first`] to [`PerOrigin::last`], in MB/s: over the time in
    /// which it had something to ask for. An origin that was never served has a throughput of zero.
    pub fn throughput_mb_s(&self) -> f64 {
        rate(
            self.bytes() as f64 / 1e6,
            self.last.saturating_since(self.first),
        )
    }
}

fn rate(amount: f64, span: Nanos) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        amount / span.as_secs_f64()
    }
}

/// What was measured of all requests that finished after the warm-up.
#[derive(Clone, Debug)]
pub struct Measured {
    /// When measuring began: the end of the warm-up.
    pub from: Time,
    /// When measuring ended: when the last request finished, or at the limit of the run.
    pub until: Time,
    /// Requests finished.
    pub requests: u64,
    /// Of them, reads.
    pub reads: u64,
    /// Of them, such that ended with an error.
    pub failed: u64,
    /// Bytes read and written without error.
    pub bytes: u64,
    /// Arrival to completion.
    pub response: Distribution,
    /// Arrival to the drive.
    pub queue: Distribution,
    /// The drive to completion.
    pub device: Distribution,
    /// Quiet periods: the time in which a scheduler sees no request of an origin, from when it
    /// dispatched the last one to when the next one arrives (FAST'11 section 3.3). Where a drive
    /// that holds several requests of an origin completes them in another order, a period may be
    /// missed or counted too long.
    pub quiet: Distribution,
    /// Calls of processes, from when they were made to when they returned, whether they made one request, several or
    /// none: what the NCQ paper calls transactions.
    pub calls: Distribution,
    /// By origin: all that had requests finished or unfinished in the time measured.
    pub origins: Vec<PerOrigin>,
    /// Requests that were unfinished at the end of the measurement.
    pub unfinished: u64,
    /// How long the oldest of them had waited.
    pub oldest_unfinished: Nanos,
    sector_bytes: u32,
    index: BTreeMap<Origin, usize>,
    /// The origin that was last found, of those whose numbers end alike.
    recent: Box<[u32; RECENT]>,
}

/// How many origins are found without a search; a power of two.
const RECENT: usize = 256;

impl Measured {
    pub(crate) fn new(from: Time, sector_bytes: u32) -> Measured {
        Measured {
            from,
            until: from,
            requests: 0,
            reads: 0,
            failed: 0,
            bytes: 0,
            response: Distribution::new(3),
            queue: Distribution::new(3),
            device: Distribution::new(3),
            quiet: Distribution::new(3),
            calls: Distribution::new(3),
            origins: Vec::new(),
            unfinished: 0,
            oldest_unfinished: Nanos::ZERO,
            sector_bytes,
            index: BTreeMap::new(),
            recent: Box::new([0; RECENT]),
        }
    }

    #[inline]
    pub(crate) fn finished(&mut self, now: Time, done: &Finished) {
        if now < self.from {
            return;
        }
        let arrived = done.request.arrival;
        self.until = now;
        self.requests += 1;
        self.reads += u64::from(done.request.op == Op::Read);
        let failed = done.outcome != Outcome::Done;
        self.failed += u64::from(failed);
        let moves = matches!(done.request.op, Op::Read | Op::Write) && !failed;
        let bytes = if moves {
            done.request.extent.len.bytes(self.sector_bytes)
        } else {
            0
        };
        self.bytes += bytes;
        self.response.record(now - arrived);
        self.queue.record(done.issued - arrived);
        self.device.record(now - done.issued);
        let origin = self.origin(done.request.origin, arrived);
        let kind = match done.request.op {
            Op::Read => &mut origin.reads,
            Op::Write => &mut origin.writes,
            Op::Flush | Op::Discard => &mut origin.others,
        };
        let got = kind.get_or_insert_default();
        got.requests += 1;
        got.bytes += bytes;
        got.response.record(now - arrived);
        origin.first = origin.first.min(arrived);
        origin.last = now;
        let mut quiet = None;
        if let Some(issued) = origin.issued
            && arrived > issued
        {
            quiet = Some(arrived - issued);
        }
        origin.issued = origin.issued.max(Some(done.issued));
        if let Some(quiet) = quiet {
            self.quiet.record(quiet);
        }
    }

    #[inline]
    pub(crate) fn returned(&mut self, calls: &Returned) {
        let count = calls.since(self.from);
        self.calls.record_many(calls.span, u64::from(count));
    }

    fn origin(&mut self, origin: Origin, arrived: Time) -> &mut PerOrigin {
        let Origin {
            process,
            program,
            export,
        } = origin;
        let ending = process ^ u32::from(program) << 3 ^ u32::from(export) << 5;
        let recent = &mut self.recent[ending as usize % RECENT];
        let known = self.origins.get(*recent as usize);
        if known.is_none_or(|known| known.origin != origin) {
            let next = self.origins.len();
            let found = *self.index.entry(origin).or_insert(next);
            *recent = found as u32;
            if found == next {
                self.origins.push(PerOrigin {
                    origin,
                    reads: None,
                    writes: None,
                    others: None,
                    first: arrived,
                    last: arrived,
                    unfinished: 0,
                    oldest_unfinished: Nanos::ZERO,
                    issued: None,
                });
            }
        }
        &mut self.origins[*recent as usize]
    }

    /// Ends the measurement at `until`, with these requests unfinished.
    pub(crate) fn close(&mut self, until: Time, unfinished: impl Iterator<Item = Request<()>>) {
        self.until = until;
        for request in unfinished {
            let age = until.saturating_since(request.arrival);
            self.unfinished += 1;
            self.oldest_unfinished = self.oldest_unfinished.max(age);
            let origin = self.origin(request.origin, request.arrival);
            origin.unfinished += 1;
            origin.oldest_unfinished = origin.oldest_unfinished.max(age);
            origin.first = origin.first.min(request.arrival);
            origin.last = until;
        }
        let from = self.from;
        for origin in &mut self.origins {
            origin.first = origin.first.max(from);
        }
        self.origins.sort_by_key(|origin| origin.origin);
    }

    /// The time measured: from the end of the warm-up to the end of the last request or the limit.
    pub fn span(&self) -> Nanos {
        self.until.saturating_since(self.from)
    }

    /// Bytes per second, in MB/s.
    pub fn throughput_mb_s(&self) -> f64 {
        rate(self.bytes as f64 / 1e6, self.span())
    }

    /// Requests per second.
    pub fn iops(&self) -> f64 {
        rate(self.requests as f64, self.span())
    }

    /// Jain's fairness index of the origins' throughputs, 1/n (one of n has all) to 1 (all have the
    /// same); 1 if there are none. Who starves counts with a throughput of zero. (Jain, Chiu, Hawe, DEC-TR-301, 1984.)
    pub fn fairness(&self) -> f64 {
        let rates: Vec<f64> = self
            .origins
            .iter()
            .map(PerOrigin::throughput_mb_s)
            .collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        if squares == 0.0 {
            1.0
        } else {
            sum * sum / (rates.len() as f64 * squares)
        }
    }
}
