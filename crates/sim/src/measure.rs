//! Measurements of the requests of a run.

use crate::distribution::Distribution;
use headtime_engine::{Finished, Outcome};
use headtime_sched::{Op, Origin, Request};
use headtime_units::{Nanos, Time};
use headtime_workload::Returned;
use std::collections::BTreeMap;

/// Finished requests of one kind.
#[derive(Clone, Debug)]
pub struct Got {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of the requests that succeeded.
    pub bytes: u64,
    /// Times from arrival to completion. Percentiles have two significant digits.
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

/// Measurements of one origin.
#[derive(Clone, Debug)]
pub struct PerOrigin {
    /// The origin.
    pub origin: Origin,
    /// The origin's finished reads; `None` if no read has finished. A kind without requests takes no memory, since there may be a million
    /// origins.
    pub reads: Option<Box<Got>>,
    /// The origin's finished writes, as for reads.
    pub writes: Option<Box<Got>>,
    /// The origin's finished flushes and discards, as for reads.
    pub others: Option<Box<Got>>,
    /// Arrival of the origin's first request, or the end of the warm-up if that is later.
    pub first: Time,
    /// End of the origin's last request; the end of the measurement if requests are unfinished then.
    pub last: Time,
    /// Requests that were unfinished at the end of the measurement.
    pub unfinished: u64,
    /// Age of the oldest unfinished request.
    pub oldest_unfinished: Nanos,
    /// Latest time at which one of the finished requests went to the drive.
    issued: Option<Time>,
}

impl PerOrigin {
    /// Returns the finished requests of all kinds.
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

    /// Returns the bytes per second from [`PerOrigin::first`] to [`PerOrigin::last`], in MB/s: over the time in which the origin had
    /// requests. An origin that was never served has a throughput of zero.
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

/// Measurements of all requests that finished after the warm-up.
///
/// Invariants:
///
/// - `reads ≤ requests`; `failed ≤ requests`.
/// - `response`, `queue` and `device` have `requests` times each.
/// - `requests` = Σ of the finished requests of `origins`; `unfinished` = Σ of `unfinished` of `origins`.
/// - `unfinished = 0` ⇒ `oldest_unfinished = 0`.
/// - `index[origin] = i` ⇔ `origins[i].origin = origin`, until the end of the measurement sorts `origins`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Start of the measurement: the end of the warm-up.
    pub from: Time,
    /// End of the measurement: the end of the last request, or the limit of the run.
    pub until: Time,
    /// Finished requests.
    pub requests: u64,
    /// Finished reads.
    pub reads: u64,
    /// Requests that ended with an error.
    pub failed: u64,
    /// Bytes read and written without error.
    pub bytes: u64,
    /// Times from arrival to completion.
    pub response: Distribution,
    /// Times from arrival to the drive.
    pub queue: Distribution,
    /// Times from the drive to completion.
    pub device: Distribution,
    /// Quiet periods: times in which a scheduler has no request of an origin, from the dispatch of its last request to the arrival of the
    /// next request (FAST'11 section 3.3). If a drive completes several requests of an origin in another order, a period may be missed or
    /// counted too long.
    pub quiet: Distribution,
    /// Times of processes' calls from start to return. A call made one request, several or none. The NCQ paper speaks of transactions.
    pub calls: Distribution,
    /// Measurements of each origin that had finished or unfinished requests in the measured time.
    pub origins: Vec<PerOrigin>,
    /// Requests that were unfinished at the end of the measurement.
    pub unfinished: u64,
    /// Age of the oldest unfinished request.
    pub oldest_unfinished: Nanos,
    sector_bytes: u32,
    index: BTreeMap<Origin, usize>,
    /// Index of the origin that was found last, by the low bits of the origin's numbers.
    recent: Box<[u32; RECENT_ORIGINS]>,
}

/// Number of origins that are found without a search; a power of two.
const RECENT_ORIGINS: usize = 256;

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
            recent: Box::new([0; RECENT_ORIGINS]),
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
        let recent = &mut self.recent[ending as usize % RECENT_ORIGINS];
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

    /// Returns the measured time: from the end of the warm-up to the end of the last request, or to the limit.
    pub fn span(&self) -> Nanos {
        self.until.saturating_since(self.from)
    }

    /// Returns the throughput in MB/s.
    pub fn throughput_mb_s(&self) -> f64 {
        rate(self.bytes as f64 / 1e6, self.span())
    }

    /// Returns the requests per second.
    pub fn iops(&self) -> f64 {
        rate(self.requests as f64, self.span())
    }

    /// Returns Jain's fairness index of the origins' throughputs, from 1/n (one of n has all) to 1 (all have the same); 1 if there are no
    /// origins. A starved origin counts with a throughput of zero. (Jain, Chiu, Hawe, DEC-TR-301, 1984.)
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
