//! Measurements of a running disk.

mod histogram;
mod text;

use crate::estimate::EstimatedHeadTime;
use headtime_disk::ledger::HeadTime;
use headtime_engine::conduct::Conducted;
use headtime_engine::{CLASSES, Gating, Member, PredictionCounts, Stats, class_index};
use headtime_sched::{Class, Op, WaitStats};
use headtime_units::{Nanos, Sectors, Time};

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
    /// Requests finished, failed ones included.
    pub requests: [u64; 4],
    /// Sectors read, and written.
    pub sectors: [u64; 2],
    /// Requests that failed.
    pub failed: [u64; 4],
    /// Requests turned away because the disk takes no writes; in no other count.
    pub refused: u64,
    /// Requests that came and have not finished.
    pub unfinished: u64,
    /// From arrival to when the command goes to the device.
    pub queue: Histogram,
    /// From there to completion.
    pub device: Histogram,
    /// Both.
    pub total: Histogram,
}

/// Measurements of a disk: counts and times since it was started.
///
/// A clone keeps its counts, while its histograms go on counting: the disk's thread must copy
/// little for a scrape.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// By number of the export.
    pub exports: Vec<ExportMetrics>,
    /// By class: by how many later commands each was overtaken in the device, its delay count.
    pub overtaken: [Histogram; CLASSES],
    /// How late completions of a device in model time were delivered.
    pub lateness: Histogram,
    /// Of those, how many came more than [`LATE`] late.
    pub late: u64,
}

/// Beyond this a completion counts as late.
pub const LATE: Nanos = Nanos::from_micros(500);

/// If more than this share of completions was late, the times of a run are not to be trusted.
pub const LATE_SHARE_MAX: f64 = 0.005;

impl Metrics {
    /// Zeroes, for so many exports.
    pub fn new(exports: usize) -> Metrics {
        Metrics {
            exports: (0..exports).map(|_| ExportMetrics::default()).collect(),
            ..Metrics::default()
        }
    }

    /// Notes a delivery.
    pub fn delivered(&mut self, lateness: Nanos) {
        self.lateness.record(lateness);
        self.late += u64::from(lateness > LATE);
    }

    /// Notes a command that the device is done with, and by how many later ones it was overtaken there.
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

    /// Notes a request that finished.
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

/// A disk's state at one time; but see [`Metrics`] for its histograms.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub now: Time,
    /// The sums over its members. Texts of members that differ are separated by `, `. Head times and predictions are
    /// sums if all members have them.
    pub whole: MemberSnapshot,
    /// Each member of a volume of several; empty for one device.
    pub members: Vec<MemberSnapshot>,
    /// Counts of the coordinator of an array, if there is one.
    pub conducted: Option<Conducted>,
    /// Measurements.
    pub metrics: Metrics,
    /// Why writes are refused, if they are because something failed.
    pub failure: Option<String>,
    /// True if a device lives in model time, so that lateness means something.
    pub in_model_time: bool,
    /// Sectors of the disk.
    pub capacity: Sectors,
}

/// The state of a device and its engine at one time.
#[derive(Clone, Debug, Default)]
pub struct MemberSnapshot {
    /// The text of its scheduler.
    pub scheduler: String,
    /// The text of its gate.
    pub gate: String,
    /// What the engine did.
    pub engine: Stats,
    /// What its gates kept from the device, and which commands starved there.
    pub gating: Gating,
    /// How often its schedulers waited, and what came of it.
    pub waits: WaitStats,
    /// Commands in the device.
    pub in_flight: u32,
    /// Requests that wait for it.
    pub waiting: usize,
    /// Commands given up on whose data the device still holds.
    pub abandoned: usize,
    /// Commands that were given up on.
    pub timeouts: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Where the arm's time went, if the device knows.
    pub head_time: Option<HeadTime>,
    /// Where it is estimated to have gone, if the device does not know and a drive is believed.
    pub head_time_estimated: Option<EstimatedHeadTime>,
    /// Counts of the scheduler's predictions, if it makes any.
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

/// The text of all members, or the texts in the order of the members if they differ.
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
