//! What is measured of a disk while it runs.

use hdrhistogram::Histogram;
use headtime_disk::ledger::HeadTime;
use headtime_engine::Stats;
use headtime_units::{Nanos, Sectors, Time};

/// A histogram of nanoseconds: up to an hour, to 1 %.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds are in order")
}

/// What is measured of one export.
#[derive(Clone, Debug)]
pub struct ExportMetrics {
    /// Requests finished: reads, writes, flushes, discards.
    pub requests: [u64; 4],
    /// Sectors read, and written.
    pub sectors: [u64; 2],
    /// Requests that failed.
    pub failed: u64,
    /// Requests that came and have not finished.
    pub unfinished: u64,
    /// From arrival to when the command goes to the device, ns.
    pub queue: Histogram<u64>,
    /// From there to completion, ns.
    pub device: Histogram<u64>,
    /// Both, ns.
    pub total: Histogram<u64>,
}

impl ExportMetrics {
    fn new() -> ExportMetrics {
        ExportMetrics {
            requests: [0; 4],
            sectors: [0; 2],
            failed: 0,
            unfinished: 0,
            queue: histogram(),
            device: histogram(),
            total: histogram(),
        }
    }
}

/// What is measured of a disk: counts and times since it was started.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// By number of the export.
    pub exports: Vec<ExportMetrics>,
    /// How late completions of a device in model time were delivered, ns.
    pub lateness: Histogram<u64>,
    /// Of those, how many came more than 0.5 ms late.
    pub late: u64,
    /// Commands that were given up on.
    pub timeouts: u64,
    /// Commands that failed.
    pub errors: u64,
}

/// Beyond this a completion counts as late.
pub const LATE: Nanos = Nanos::from_micros(500);

impl Metrics {
    /// Zeroes, for so many exports.
    pub fn new(exports: usize) -> Metrics {
        Metrics {
            exports: (0..exports).map(|_| ExportMetrics::new()).collect(),
            lateness: histogram(),
            late: 0,
            timeouts: 0,
            errors: 0,
        }
    }

    /// Notes a delivery.
    pub fn delivered(&mut self, lateness: Nanos) {
        self.lateness.saturating_record(lateness.as_nanos().max(1));
        self.late += u64::from(lateness > LATE);
    }

    /// Notes a request that finished.
    pub fn finished(
        &mut self,
        request: &headtime_sched::Request,
        issued: Time,
        now: Time,
        ok: bool,
    ) {
        let export = &mut self.exports[usize::from(request.origin.export)];
        export.unfinished -= 1;
        export.requests[request.op as usize] += 1;
        if !ok {
            export.failed += 1;
        } else if let Some(sectors) = export.sectors.get_mut(request.op as usize) {
            *sectors += request.extent.len.get();
        }
        let queue = issued - request.arrival;
        let device = now - issued;
        export.queue.saturating_record(queue.as_nanos());
        export.device.saturating_record(device.as_nanos());
        export.total.saturating_record((queue + device).as_nanos());
    }
}

/// A disk's state at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When.
    pub now: Time,
    /// The text of its scheduler.
    pub scheduler: String,
    /// What was measured.
    pub metrics: Metrics,
    /// What the engine did.
    pub engine: Stats,
    /// Commands in the device.
    pub in_flight: u32,
    /// Requests that wait for it.
    pub waiting: usize,
    /// Commands given up on whose data the device still holds.
    pub abandoned: usize,
    /// Whether writes are refused because one failed.
    pub failed: bool,
    /// Where the arm's time went, if the device knows.
    pub head_time: Option<HeadTime>,
    /// Sectors of the device.
    pub capacity: Sectors,
}
