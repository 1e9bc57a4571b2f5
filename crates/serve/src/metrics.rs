//! Measurements of a running disk.

mod histogram;
mod text;

use crate::estimate::EstimatedHeadTime;
use headtime_disk::ledger::HeadTime;
use headtime_engine::conduct::Conducted;
use headtime_engine::{CLASSES, Gating, Member, PredictionCounts, Stats, class_index};
use headtime_sched::{Class, Op, WaitStats};
use headtime_units::{Nanos, Rate, Sectors, Time};

pub use histogram::{Histogram, Times};
pub use text::{CONTENT_TYPE, Labelled, Page, render};

/// The kinds of requests, in the order of counts by kind.
pub const OPS: [(Op, &str); 4] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Flush, "flush"),
    (Op::Discard, "discard"),
];

/// The name of a kind of request, in messages too.
pub fn op_name(op: Op) -> &'static str {
    OPS[op as usize].1
}

/// The classes of requests, in the order of counts by class.
pub const CLASS_NAMES: [&str; CLASSES] = ["real-time", "best-effort", "idle"];

/// Measurements of one export. Counts by kind are in the order of [`OPS`].
#[derive(Clone, Debug, Default)]
pub struct ExportMetrics {
    /// Limit on the data in a second.
    pub rate: Option<Rate>,
    /// Requests finished, failed ones included.
    pub requests: [u64; 4],
    /// Sectors read, and written.
    pub sectors: [u64; 2],
    /// Requests that failed.
    pub failed: [u64; 4],
    /// Requests turned away because the disk takes no writes; in no other count.
    pub refused: u64,
    /// Requests that failed since they waited for the device for too long.
    pub expired: u64,
    /// Requests that came and have not finished.
    pub unfinished: u64,
    /// Time from a request's arrival until its command goes to the device.
    pub queue: Histogram,
    /// Time from then to the completion.
    pub device: Histogram,
    /// Time from a request's arrival to its completion.
    pub total: Histogram,
}

/// Measurements of a disk: counts and times since the disk was started.
///
/// A clone keeps its counts, but shares its histograms, which go on counting. The disk's thread therefore copies little
/// for a scrape.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Measurements of the exports, by number.
    pub exports: Vec<ExportMetrics>,
    /// Delay counts by class: the number of later commands that overtook each command in the device.
    pub overtaken: [Histogram; CLASSES],
    /// Lateness of completions of devices in model time.
    pub lateness: Histogram,
    /// Number of completions that came more than [`LATE`] late.
    pub late: u64,
}

/// Lateness above which a completion counts as late.
pub const LATE: Nanos = Nanos::from_micros(500);

/// Largest share of late completions with which the times of a run can be trusted.
pub const LATE_SHARE_MAX: f64 = 0.005;

impl Metrics {
    /// Zeroes, for this number of exports.
    pub fn new(exports: usize) -> Metrics {
        Metrics {
            exports: (0..exports).map(|_| ExportMetrics::default()).collect(),
            ..Metrics::default()
        }
    }

    /// Records the lateness of a completion.
    pub fn delivered(&mut self, lateness: Nanos) {
        self.lateness.record(lateness);
        self.late += u64::from(lateness > LATE);
    }

    /// Records a command that has left the device, with the number of later commands that overtook it.
    #[inline]
    pub fn overtaken(&self, class: Class, count: u32) {
        self.overtaken[class_index(class)].count(u64::from(count));
    }

    /// The share of completions that were late; zero if there were none.
    pub fn late_share(&self) -> f64 {
        match self.lateness.read().len() {
            0 => 0.0,
            delivered => self.late as f64 / delivered as f64,
        }
    }

    /// Records a request that is ended since it has waited for the device for too long.
    pub fn expired(&mut self, export: u16, op: Op, waited: Nanos) {
        let export = &mut self.exports[usize::from(export)];
        export.requests[op as usize] += 1;
        export.failed[op as usize] += 1;
        export.expired += 1;
        export.queue.record(waited);
        export.total.record(waited);
    }

    /// Records a request that has finished.
    pub fn finished(
        &mut self,
        request: &headtime_sched::Request<()>,
        issued: Time,
        now: Time,
        ok: bool,
    ) {
        let export = &mut self.exports[usize::from(request.origin.export)];
        export.unfinished -= 1;
        export.requests[request.op as usize] += 1;
        if !ok {
            export.failed[request.op as usize] += 1;
        } else if let Some(sectors) = export.sectors.get_mut(request.op as usize) {
            *sectors += request.extent.len.get();
        }
        let queue = issued - request.arrival;
        let device = now - issued;
        export.queue.record(queue);
        export.device.record(device);
        export.total.record(queue + device);
    }
}

/// A disk's state at one time, except that histograms go on counting, see [`Metrics`].
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub now: Time,
    /// The sums over the disk's members. If the texts of members differ, they are separated by `, `. Head times and
    /// predictions are sums if all members have them.
    pub whole: MemberSnapshot,
    /// States of the members of a volume of several members; empty for one device.
    pub members: Vec<MemberSnapshot>,
    /// Counts of the coordinator of an array, if there is one.
    pub conducted: Option<Conducted>,
    /// Measurements.
    pub metrics: Metrics,
    /// Failure because of which writes are refused, if there is one.
    pub failure: Option<String>,
    /// True if a device lives in model time. Without such a device there is no lateness.
    pub in_model_time: bool,
    /// Number of sectors of the disk.
    pub capacity: Sectors,
}

/// The state of a device and its engine at one time.
///
/// Invariants:
///
/// - `head_time` or `head_time_estimated` is `None`.
/// - `abandoned ≤ timeouts`.
#[derive(Clone, Debug, Default)]
pub struct MemberSnapshot {
    /// Text of the scheduler.
    pub scheduler: String,
    /// Text of the gate.
    pub gate: String,
    /// Counts of the engine.
    pub engine: Stats,
    /// Counts of the gates: requests kept from the device, and starved commands.
    pub gating: Gating,
    /// Counts of the schedulers' waits and their outcomes.
    pub waits: WaitStats,
    /// Number of commands in the device.
    pub in_flight: u32,
    /// Number of requests that wait for the device.
    pub waiting: usize,
    /// Number of commands that were given up on and whose data the device still holds.
    pub abandoned: usize,
    /// Number of commands that were given up on.
    pub timeouts: u64,
    /// Number of commands that failed.
    pub errors: u64,
    /// Account of the arm's time, if the device has one.
    pub head_time: Option<HeadTime>,
    /// Estimated account of the arm's time, if the device has no account and a drive's profile is assumed.
    pub head_time_estimated: Option<EstimatedHeadTime>,
    /// Counts of the scheduler's predictions, if the scheduler makes any.
    pub predictions: Option<PredictionCounts>,
}

impl Snapshot {
    /// The state of a member. A disk of one device has one member.
    pub fn member(&self, member: Member) -> &MemberSnapshot {
        self.members.get(member.index()).unwrap_or(&self.whole)
    }
}

impl MemberSnapshot {
    /// The sums over members.
    pub fn sum(members: &[MemberSnapshot]) -> MemberSnapshot {
        let mut sum = MemberSnapshot {
            scheduler: texts(members, |member| &member.scheduler),
            gate: texts(members, |member| &member.gate),
            head_time: total(members, |member| member.head_time, HeadTime::add),
            head_time_estimated: total(
                members,
                |member| member.head_time_estimated,
                EstimatedHeadTime::add_all,
            ),
            predictions: total(
                members,
                |member| member.predictions,
                |sum, more| *sum += *more,
            ),
            ..MemberSnapshot::default()
        };
        for member in members {
            sum.engine += member.engine;
            sum.gating += member.gating;
            sum.waits += member.waits;
            sum.in_flight += member.in_flight;
            sum.waiting += member.waiting;
            sum.abandoned += member.abandoned;
            sum.timeouts += member.timeouts;
            sum.errors += member.errors;
        }
        sum
    }
}

/// The sum over members; `None` if a member has no value.
fn total<T>(
    members: &[MemberSnapshot],
    of: fn(&MemberSnapshot) -> Option<T>,
    add: impl Fn(&mut T, &T),
) -> Option<T> {
    let mut values = members.iter().map(of);
    let first = values.next()??;
    values.try_fold(first, |mut sum, value| {
        add(&mut sum, &value?);
        Some(sum)
    })
}

/// The common text of all members. If the texts differ, all texts in the order of the members.
fn texts(members: &[MemberSnapshot], of: fn(&MemberSnapshot) -> &String) -> String {
    let mut texts: Vec<&str> = members.iter().map(|member| of(member).as_str()).collect();
    if texts.iter().all(|text| *text == texts[0]) {
        texts.truncate(1);
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_in_the_order_of_kinds() {
        for (index, (op, _)) in OPS.into_iter().enumerate() {
            assert_eq!(op as usize, index);
        }
        for (index, name) in CLASS_NAMES.into_iter().enumerate() {
            let class: Class = name.parse().expect("a class");
            assert_eq!(class_index(class), index);
        }
    }
}
