//! The report of a comparison: its figures, and how people and machines read them.
//!
//! JSON has the fields of these types. CSV, tables and figures have values of the [`catalogue`].

pub mod catalogue;
pub mod field;
mod head_time;
pub mod row;
mod spread;
mod statistics;
pub mod text;

use crate::accuracy::{Accuracy, Learning};
use crate::scenario::Header;
use headtime_disk::Part;
use headtime_engine::{CLASSES, Predictions};
use headtime_sim::{Commands, Distribution};
use headtime_units::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

pub use head_time::{HeadTime, key};
pub use spread::{AtPercents, PERCENTS, Percentiles, Spread, SpreadValue, mean_of_repeats};
pub use statistics::{mean_and_ci95, round};

/// A finished comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the program.
    pub version: &'static str,
    /// The seed.
    pub seed: u64,
    /// Identifies the scenario apart from its seed: the FNV-1a hash (64 bits, hexadecimal) of its canonical text, drive profiles and trace.
    pub scenario_hash: String,
    /// Title of the comparison, if the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Time and speed on this machine; left out of reports that must be the same everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The runs, in the order of the matrix.
    pub runs: Vec<Run>,
}

/// Time and speed of the runs on this machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Host {
    /// Wall-clock time of all runs, in seconds.
    pub wall_s: f64,
    /// Simulated requests per second of wall-clock time, over all threads.
    pub requests_per_wall_s: f64,
}

/// One run, or several repeats of one run. Counts and times are sums over the repeats, means and percentiles are averages, `max` is the
/// largest.
///
/// Invariants of a run that was made:
///
/// - `repeats ≥ 1`; `ci95.is_some()` ⇔ `repeats > 1`.
/// - `reads ≤ requests`; `failed ≤ requests`; `0 < fairness ≤ 1`.
/// - `unfinished = 0` ⇒ `oldest_unfinished_ms = 0`.
/// - `of_reads.is_some()` ⇔ `reads > 0`.
/// - `members.len() ≠ 1`.
/// - `promise.is_some()` ⇒ `freeblock.is_some()`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// The scheduler's text.
    pub scheduler: String,
    /// The drive's name.
    pub drive: String,
    /// Engine options, and the order in which the drive serves its queued commands.
    #[serde(flatten)]
    pub header: Header,
    /// Number of repeats.
    pub repeats: u32,
    /// Warm-up before measuring, in seconds.
    pub warm_up_s: f64,
    /// Requests measured.
    pub requests: u64,
    /// Measured requests that were reads.
    pub reads: u64,
    /// Measured requests that failed.
    pub failed: u64,
    /// Requests that had not finished at the end, over all repeats; not among those measured.
    pub unfinished: u64,
    /// Age of the oldest unfinished request at the end, in ms; 0 if all requests finished.
    pub oldest_unfinished_ms: f64,
    /// Measured time, in seconds, from the end of the warm-up to the end of the last request. If requests are unfinished, measuring stops
    /// at the end of the run.
    pub simulated_s: f64,
    /// Bytes per second, in MB/s (10⁶).
    pub throughput_mb_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// Jain's fairness index of the origins' throughputs, 1/n to 1.
    pub fairness: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
    /// Arrival to the drive.
    pub queue_ms: Spread,
    /// The drive to completion.
    pub device_ms: Spread,
    /// Quiet periods: from the dispatch of the last request that an origin has queued to the arrival
    /// of its next one.
    pub quiet_ms: Spread,
    /// Where the head time went, in seconds; sums to `simulated_s` for each disk.
    pub head_time: HeadTime,
    /// Disks of an array, in their order; empty for one disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberRun>,
    /// Counts of an array's coordinator, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinated: Option<CoordinatedRun>,
    /// Half the width of the 95 % confidence interval over the repeats (Student's t), if the run has several repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<Confidence>,
    /// Counts of the engine, warm-up included.
    pub engine: EngineCounts,
    /// The commands that the drive completed.
    pub commands: CommandsRun,
    /// The calls of programs, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsRun>,
    /// Waits of the scheduler and their outcomes, warm-up included.
    pub waits: WaitCounts,
    /// Observed head times of the drive's commands against predicted ones, warm-up included, if the scheduler predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictions: Option<PredictionsRun>,
    /// Results of the background scan, if the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockRun>,
    /// Outcome of the scan's promises, if any were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<PromiseRun>,
    /// Least time that any scheduler needs for the same work. `None` if the work depends on the scheduler, or if requests arrive at fixed
    /// times.
    pub bound: Option<Bound>,
    /// Reads alone, if there are any.
    pub of_reads: Option<KindRun>,
    /// Writes alone, if there are any.
    pub of_writes: Option<KindRun>,
    /// Results of each workload and program, by name.
    pub by_name: Vec<NamedRun>,
    /// Results of each origin.
    pub per_origin: Vec<OriginRun>,
    /// Results of each program, if the workload is programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRun>,
    /// The distribution of response times of the first repeat, for plots.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
    /// More of the distributions, for figures.
    #[serde(skip)]
    pub percentiles: Percentiles,
    /// Accuracy of the drive learned from outside, if a figure measures that.
    #[serde(skip)]
    pub learned: BTreeMap<Learning, Accuracy>,
    /// True if a trace fixes the share of each origin, so that fairness describes the trace and not the scheduler.
    #[serde(skip)]
    pub recorded: bool,
    /// Label among the other runs: the scheduler, and every option in which the runs differ.
    #[serde(skip)]
    pub label: String,
}

impl Run {
    /// Name of the scheduler, followed by `coordinated` if a coordinator has the disks of an array.
    pub fn schedulers(&self) -> String {
        match self.coordinated {
            Some(_) => format!("{} coordinated", self.scheduler),
            None => self.scheduler.clone(),
        }
    }
}

/// Counts of an array's coordinator, over all repeats, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CoordinatedRun {
    /// Streams in the array's addresses that reached the threshold.
    pub streams: u64,
    /// Slices in which all disks served one stream.
    pub slices: u64,
    /// Slices that ended early because a request did not arrive in time.
    pub broken: u64,
    /// Time of all slices, in seconds.
    pub dedicated_s: f64,
}

/// A disk of an array, over all repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MemberRun {
    /// Commands sent to the disk, warm-up included.
    pub issued: u64,
    /// Head time, in seconds.
    pub head_time: HeadTime,
}

/// Requests before which the scheduler did not search for a gap read, by cause, in % of all client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Suspended {
    /// The drive's buffer may serve the request.
    pub hit: f64,
    /// The drive has more commands than can be predicted.
    pub queue: f64,
    /// The drive serves reads at other times than predicted, or in another order.
    pub order: f64,
    /// The drive destages before many reads, and the ration of gap reads is used up.
    pub destaging: f64,
    /// Clients would lose hits of the drive's buffer.
    pub lost_hits: f64,
}

/// Errors of a program's bounds in a run that the tree has not seen, in % of the throughput: the error that a share of the epochs does
/// not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundErrors {
    /// Sum over the servers, 80 % of the epochs.
    pub error_80_percent: f64,
    /// Sum over the servers, 90 % of the epochs.
    pub error_90_percent: f64,
    /// Single servers, 90 % of their epochs.
    pub server_error_90_percent: f64,
}

/// Results of a background scan: means over the repeats, and sums of counts.
///
/// Invariants of a run that was made:
///
/// - `free_mb_s ≤ mb_s`.
/// - `gap_share_percent` and `left_percent` are in `0.0..=100.0`.
/// - `tenths_mb_s[9].is_some()` ⇔ `ended_s.is_some()`.
/// - `steps_p50 ≤ steps_p90 ≤ steps_p99`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FreeblockRun {
    /// MB (10⁶ bytes) of wanted data read per second, until the last block was read or the run was over. Blocks that clients read count
    /// too.
    pub mb_s: f64,
    /// MB (10⁶ bytes) of wanted data read in gaps per second, over the same time.
    pub free_mb_s: f64,
    /// Bytes read in gaps, in % of these and of the bytes that passed under the waiting head while gap reads were not suspended.
    /// `None` if the head did not wait, or gap reads were suspended before more than 90 % of the requests.
    pub gap_share_percent: Option<f64>,
    /// Reading rate within each tenth of the wanted data, in MB/s. `None` if a repeat did not finish that tenth.
    pub tenths_mb_s: [Option<f64>; 10],
    /// Wanted data that was left unread, in %.
    pub left_percent: f64,
    /// Blocks that cannot be read.
    pub unreadable: u64,
    /// Time at which all wanted data was read, in seconds. `None` if a repeat did not finish.
    pub ended_s: Option<f64>,
    /// Blocks read in gaps, mean.
    pub free_blocks: f64,
    /// Requests before which the scheduler searched for a gap read.
    pub gaps: u64,
    /// Requests before which the scheduler did not search, by cause, in % of all client requests.
    pub suspended_percent: Suspended,
    /// Gap reads in commands of their own before a request, in % of `gaps`.
    pub before_percent: f64,
    /// Gap reads at the front of a request's command, in % of `gaps`.
    pub with_percent: f64,
    /// Reads while no client waited.
    pub alone: u64,
    /// Steps of a search, mean.
    pub steps_mean: f64,
    /// Steps that half of the searches do not exceed, rounded up to a power of two less one.
    pub steps_p50: f64,
    /// Steps that 90 % of the searches do not exceed, rounded up likewise.
    pub steps_p90: f64,
    /// Steps that 99 % of the searches do not exceed, rounded up likewise.
    pub steps_p99: f64,
    /// Largest number of steps of one search.
    pub steps_max: u64,
}

/// Outcome of a scan's promises: means over the repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PromiseRun {
    /// Response time that 99 % of the client requests did not exceed during the scan.
    pub p99_ms: f64,
    /// The scan's estimate of the same percentile without the scan.
    pub p99_without_ms: f64,
    /// Excess of `p99_ms` over `p99_without_ms`, in % of the latter.
    pub p99_added_percent: f64,
    /// Blocks read in gaps, in % of all blocks read.
    pub gaps_percent: f64,
    /// Blocks read in idle time, in % of all blocks read.
    pub idle_percent: f64,
    /// Blocks read at foreground priority, in % of all blocks read.
    pub outright_percent: f64,
    /// Blocks read by clients, in % of all blocks read.
    pub others_percent: f64,
    /// Drive time that the scan requested at foreground priority, in % of the time that the scan observed.
    pub asked_percent: f64,
    /// Drive time that the scan took at foreground priority, in % of the time that the scan observed.
    pub taken_percent: f64,
    /// Number of times that the verdict changed to late.
    pub late_said: f64,
    /// Last verdict in the first repeat.
    pub verdict: &'static str,
    /// Changes of the verdict in the first repeat.
    pub changes: Vec<VerdictChange>,
}

/// Change of the verdict on a promise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VerdictChange {
    /// Time of the change, in seconds.
    pub at_s: f64,
    /// New verdict.
    pub verdict: &'static str,
}

impl Run {
    /// The parts of the head time per request, in milliseconds, in the order of [`Part::ALL`].
    pub fn parts_per_request(&self) -> [f64; Part::ALL.len()] {
        Part::ALL.map(|part| self.head_time.get(part) * 1e3 / self.requests.max(1) as f64)
    }
}

/// Half the width of 95 % confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// Half width for the throughput, in MB/s.
    pub throughput_mb_s: f64,
    /// Half width for the requests per second.
    pub iops: f64,
    /// Half width for the mean response time, in ms.
    pub response_mean_ms: f64,
    /// Half width for the 99th percentile of response times, in ms.
    pub response_p99_ms: f64,
}

/// Counts of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EngineCounts {
    /// Commands given to the drive.
    pub issued: u64,
    /// Requests that became part of another.
    pub merged: u64,
    /// Requests held back for one they overlap, or for a flush.
    pub held: u64,
    /// Times that the scheduler chose to wait.
    pub idled: u64,
    /// The most requests with the scheduler at once.
    pub queued_max: u64,
    /// Times that the scheduler had several requests to choose from.
    pub chosen: u64,
    /// Times that it served a request behind another that came later.
    pub overtaken: u64,
}

/// Commands that a drive completed, over all repeats. For a drive that takes one command at a time, only counts are given.
///
/// Invariants of a run that was made:
///
/// - `page_share`, `large_share`, `full_share` and `full_windows_share` are in `0.0..=100.0`.
/// - `page_share + large_share ≤ 100`, up to rounding.
/// - `completed = 0` ⇒ `per_s = mean_bytes = page_share = large_share = 0`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CommandsRun {
    /// Number of commands.
    pub completed: u64,
    /// Commands per second.
    pub per_s: f64,
    /// Mean size of a command, in bytes.
    pub mean_bytes: f64,
    /// Commands of at most 4 KiB, in % of all.
    pub page_share: f64,
    /// Commands of more than 25 KiB (50 sectors), in % of all.
    pub large_share: f64,
    /// NISE's metric of sequentiality, in sectors: the 5th, 50th and 95th percentile.
    pub sequentiality: [f64; 3],
    /// Number of later commands that overtook each command in the drive. The largest is averaged over the repeats.
    pub delay_count: DelayRun,
    /// From one completion to the next.
    pub interval_ms: Spread,
    /// Time from the drive's acceptance of a command to completion, for real-time, best-effort and idle requests.
    pub service_ms: [Spread; CLASSES],
    /// Completion notifications, each an interrupt of the host.
    pub interrupts: u64,
    /// Tags in use, in the mean over the time.
    pub tags_in_use: f64,
    /// Time in which no tag was free, in % of all.
    pub full_share: f64,
    /// Share of the first hundred windows of 10 ms in which no tag was free at some time, in %.
    pub full_windows_share: f64,
}

/// A distribution of delay counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DelayRun {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Mean over the repeats of the largest delay count.
    pub max: f64,
}

impl CommandsRun {
    /// Sums up the commands of all repeats. The repeats took `seconds` on a drive with sectors of `sector_bytes`.
    pub fn of(repeats: &[&Commands], seconds: f64, sector_bytes: u32) -> CommandsRun {
        let sum = |value: fn(&Commands) -> u64| repeats.iter().map(|one| value(one)).sum::<u64>();
        let mean = |value: &dyn Fn(&Commands) -> f64| {
            round(
                repeats.iter().map(|one| value(one)).sum::<f64>() / repeats.len() as f64,
                6,
            )
        };
        let completed = sum(|one| one.completed);
        let each = |amount: f64| round(amount / completed.max(1) as f64, 6);
        let [p50, p90, p99, p999] = mean_of_repeats(repeats, |one| {
            one.delays.percentiles([50.0, 90.0, 99.0, 99.9])
        });
        let service = |class: usize| {
            let of: Vec<&Distribution> = repeats.iter().map(|one| &one.service[class]).collect();
            Spread::of(&of)
        };
        let intervals: Vec<&Distribution> = repeats.iter().map(|one| &one.intervals).collect();
        CommandsRun {
            completed,
            per_s: match seconds > 0.0 {
                true => round(completed as f64 / seconds, 6),
                false => 0.0,
            },
            mean_bytes: each(sum(|one| one.sectors) as f64 * f64::from(sector_bytes)),
            page_share: each(100.0 * sum(|one| one.one_page) as f64),
            large_share: each(100.0 * sum(|one| one.large) as f64),
            sequentiality: mean_of_repeats(repeats, |one| {
                one.sequentiality.percentiles([5.0, 50.0, 95.0])
            }),
            delay_count: DelayRun {
                mean: mean(&|one| one.delays.mean()),
                p50,
                p90,
                p99,
                p999,
                max: mean(&|one| one.delays.max() as f64),
            },
            interval_ms: Spread::of(&intervals),
            service_ms: std::array::from_fn(service),
            interrupts: sum(|one| one.interrupts),
            tags_in_use: mean(&Commands::tags_in_use),
            full_share: mean(&|one| 100.0 * one.full_share()),
            full_windows_share: mean(&|one| 100.0 * one.full_windows_share()),
        }
    }
}

/// Calls of programs, with any number of requests each. The NCQ paper calls them transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TransactionsRun {
    /// Calls that returned after the warm-up, over all repeats.
    pub calls: u64,
    /// Calls per second, warm-up included, from the first start of a program to the last end. `None` if a program had not ended.
    pub per_s: Option<f64>,
    /// Commands that the drive completed, for each call.
    pub commands_per_call: Option<f64>,
    /// From a call to its return.
    pub response_ms: Spread,
}

/// Counts of waits, in which a scheduler held the disk for a request that had not arrived, over all repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitCounts {
    /// Streams that the scheduler established, and waited for.
    pub streams_established: u64,
    /// Established streams that could still continue at the end.
    pub streams: u64,
    /// Waits that began.
    pub waits: u64,
    /// Waits in which the request came and was served.
    pub waits_won: u64,
    /// Waits that ended otherwise.
    pub waits_lost: u64,
}

/// Observed head times of commands against predicted ones, over all repeats: shares in %.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PredictionsRun {
    /// Commands that were predicted.
    pub commands: u64,
    /// Off by at most 50 us.
    pub within_50us: f64,
    /// Off by at most 150 us.
    pub within_150us: f64,
    /// Off by at most 300 us.
    pub within_300us: f64,
    /// Off by at most 800 us.
    pub within_800us: f64,
    /// One or more turns later than predicted, at the predicted point of the turn.
    pub turn_late: f64,
    /// One or more turns later than predicted, while writes may have waited in the drive's buffer. The drive most likely destaged writes
    /// first.
    /// first.
    pub destaging: f64,
    /// One or more turns earlier than predicted.
    pub turn_early: f64,
    /// From the drive's buffer, so sooner than predicted.
    pub hits: f64,
    /// At another point of the turn.
    pub elsewhere: f64,
    /// Behind a command of one of the preceding five kinds.
    pub after_surprise: f64,
    /// Errors in us, to 10 us, and the number of commands with each. Negative errors are commands that completed early. Errors beyond 20 ms
    /// count as 20 ms.
    pub errors_us: Vec<(i64, u64)>,
}

impl PredictionsRun {
    /// Turns counts of predictions into shares.
    pub fn of(counted: &Predictions) -> PredictionsRun {
        let counts = counted.counts();
        let share = |count: u64| round(100.0 * count as f64 / counts.commands.max(1) as f64, 6);
        let within = |micros| share(counted.within(Nanos::from_micros(micros)));
        PredictionsRun {
            commands: counts.commands,
            within_50us: within(50),
            within_150us: within(150),
            within_300us: within(300),
            within_800us: within(800),
            turn_late: share(counts.turns_late),
            destaging: share(counts.destaging),
            turn_early: share(counts.turns_early),
            hits: share(counts.hits),
            elsewhere: share(counts.elsewhere),
            after_surprise: share(counts.after_surprise),
            errors_us: counted
                .errors()
                .map(|(nanos, count)| (nanos / 1_000, count))
                .collect(),
        }
    }
}

/// A figure of requests of one kind.
pub type KindValue = fn(&KindRun) -> f64;

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindRun {
    /// Number of measured requests.
    pub requests: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second, in MB/s.
    pub throughput_mb_s: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
}

/// Results of one workload, program or device: the requests of all its processes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NamedRun {
    /// Name of the workload, program or device.
    pub name: String,
    /// The program; 0 if none.
    pub program: u32,
    /// Processes that made requests.
    pub processes: u32,
    /// Requests measured.
    pub requests: u64,
    /// Requests per second while it was active.
    pub iops: f64,
    /// Bytes per second while it was active, in MB/s.
    pub throughput_mb_s: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
    /// Requests that had not finished at the end, over all repeats.
    pub unfinished: u64,
    /// Age of the oldest unfinished request at the end, in ms; 0 if all requests finished.
    pub oldest_unfinished_ms: f64,
    /// Reads alone, over the same time.
    pub of_reads: Option<KindRun>,
    /// Writes alone, over the same time.
    pub of_writes: Option<KindRun>,
}

/// Least time that any scheduler needs for the work of a run, over all repeats; see `docs/design/2026-11-22-bound.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bound {
    /// Which of the parts is the least time: `arm`, `command` or `chain`.
    pub by: &'static str,
    /// The least time, in seconds.
    pub time_s: f64,
    /// The least time in % of the time that the run took for the same work, at most 100.
    pub share: f64,
    /// Sectors under the head, and movements.
    pub arm_s: f64,
    /// Commands, and their data on the bus.
    pub command_s: f64,
    /// Steps that processes take one after the other.
    pub chain_s: f64,
    /// The least time with a change between processes for each slice of the scheduler; `None` if the scheduler has no slices. Not a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_slices_s: Option<f64>,
    /// With programs: the most that their own rates sum up to, in KB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs_kb_s: Option<f64>,
}

/// Results of one origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OriginRun {
    /// The process; 0 if not known.
    pub process: u32,
    /// The program; 0 if not known.
    pub program: u16,
    /// True if the run has several names and no other origin shares this origin's name. The row of the name then stands for the origin too.
    /// name.
    #[serde(skip)]
    pub alone: bool,
    /// The device of the trace, if the workload is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Requests measured.
    pub requests: u64,
    /// Requests that had not finished at the end, over all repeats.
    pub unfinished: u64,
    /// Age of the oldest unfinished request at the end, in ms; 0 if all requests finished.
    pub oldest_unfinished_ms: f64,
    /// Bytes per second while it was active, in MB/s.
    pub throughput_mb_s: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
}

/// Results of a program, by the program's own account; means over the repeats.
///
/// Invariants:
///
/// - `late_percent.is_some()` ⇒ `goal_s.is_some()` and `ended_s.is_some()`.
/// - `left_profile_s`, `hopeless_s`, `seeks_longer_percent`, `shared_percent` or `bound_errors` is given ⇒ `goal_s.is_some()`.
/// - `seeks_longer_percent` and `shared_percent` are in `0.0..=100.0`.
/// - `ended_s = Some(end)` ⇒ `started_s ≤ end`.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRun {
    /// Name of the program.
    pub name: String,
    /// The benchmark that it runs.
    pub benchmark: &'static str,
    /// Index of the scenario's entry that makes this program.
    #[serde(skip)]
    pub entry: usize,
    /// Number of the program.
    pub program: u32,
    /// When its first process began, in seconds since the start of the run.
    pub started_s: f64,
    /// When its last process ended; nothing if one was running at the end.
    pub ended_s: Option<f64>,
    /// Bytes that its calls read, in MB.
    pub read_mb: f64,
    /// Bytes that its calls wrote, in MB.
    pub written_mb: f64,
    /// MB read and written per second, from the program's start to its end, or to the end of the run.
    pub throughput_mb_s: f64,
    /// Calls of read, write, direct and sync that returned.
    pub calls: f64,
    /// Time in which any of its processes had a call outstanding, in seconds; of programs on a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_s: Option<f64>,
    /// Time in which the program was to end, in seconds; of programs with a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_s: Option<f64>,
    /// Run time over the goal, in percent of the goal: above 0 if the program was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_percent: Option<f64>,
    /// Time at which the planner of windows found that the run had left its profile, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_profile_s: Option<f64>,
    /// Time at which the planner of windows found that the goal could no longer be met, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hopeless_s: Option<f64>,
    /// Periods in which seeks to other programs' data took longer than waits for the program's next request, in percent of the
    /// periods in which the planner of windows compared both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeks_longer_percent: Option<f64>,
    /// Periods in which the program was served in the shared window, in percent of the periods in which it was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_percent: Option<f64>,
    /// Errors of the bounds, if another run of the program alone judged them.
    #[serde(flatten)]
    pub bound_errors: Option<BoundErrors>,
    /// Results of the program's processes.
    pub processes: Vec<ProcessRun>,
}

/// Results of one process of a program; means over the repeats.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRun {
    /// Number of the process.
    pub process: u32,
    /// When it began, in seconds since the start of the run.
    pub started_s: f64,
    /// When it ended; nothing if it was running at the end.
    pub ended_s: Option<f64>,
    /// Bytes that its calls read, in MB.
    pub read_mb: f64,
    /// Bytes that its calls wrote, in MB.
    pub written_mb: f64,
}

impl OriginRun {
    /// Name for people: the process, else the device, else the program.
    pub fn name(&self) -> String {
        match (self.process, &self.device) {
            (0, Some(device)) => format!("device {device}"),
            (0, None) => format!("program {}", self.program),
            (process, _) => format!("process {process}"),
        }
    }
}

/// The age of the oldest request left unfinished, in ms.
pub fn oldest_ms(ages: impl Iterator<Item = Nanos>) -> f64 {
    round(ages.max().unwrap_or_default().as_millis_f64(), 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_time_in_json_has_its_parts_in_their_order() {
        let times = HeadTime::of(|part| f64::from(part as u8));
        assert_eq!(
            serde_json::to_string(&times).unwrap(),
            "{\"seek\":0.0,\"switch\":1.0,\"rotation\":2.0,\"transfer\":3.0,\"overhead\":4.0,\
             \"read_ahead\":5.0,\"destage\":6.0,\"read_modify_write\":7.0,\"waiting\":8.0,\
             \"held\":9.0,\"idle\":10.0}"
        );
        assert_eq!(times.total(), 55.0);
        assert_eq!(times.share(Part::Idle), 100.0 * 10.0 / 55.0);
        assert_eq!(HeadTime::default().share(Part::Idle), 0.0);
    }
}
