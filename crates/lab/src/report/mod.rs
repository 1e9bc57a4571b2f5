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

use crate::scenario::Header;
use headtime_disk::Part;
use headtime_engine::{CLASSES, Predictions};
use headtime_probe::accuracy::{Accuracy, Learning};
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
    /// Names the scenario, whatever the seed: the FNV-1a hash (64 bits, hexadecimal) of its
    /// canonical text, of the drive profiles and of the trace.
    pub scenario_hash: String,
    /// What it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What this machine needed; left out of reports that are to be the same everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The runs, in the order of the matrix.
    pub runs: Vec<Run>,
}

/// What this machine needed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Host {
    /// Wall-clock time of all runs, in seconds.
    pub wall_s: f64,
    /// Simulated requests per second of it, over all threads.
    pub requests_per_wall_s: f64,
}

/// One run, or several repeats of it: counts and times are summed over the repeats, means and
/// percentiles are averaged, `max` is the largest.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// The scheduler's text.
    pub scheduler: String,
    /// The drive's name.
    pub drive: String,
    /// The options of its engine, and the order in which the drive serves what it holds.
    #[serde(flatten)]
    pub header: Header,
    /// How often it was made.
    pub repeats: u32,
    /// Warm-up before measuring, in seconds.
    pub warm_up_s: f64,
    /// Requests measured.
    pub requests: u64,
    /// Of them, reads.
    pub reads: u64,
    /// Of them, such that failed.
    pub failed: u64,
    /// Requests that had not finished at the end, over all repeats; not among those measured.
    pub unfinished: u64,
    /// How long the oldest of them had waited, in ms; 0 without any.
    pub oldest_unfinished_ms: f64,
    /// Time over which was measured, in seconds: from the end of the warm-up to the end of the last
    /// request, or of the run if something was unfinished then.
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
    /// Half the width of the 95 % confidence interval over the repeats (Student's t), if there were
    /// several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<Confidence>,
    /// What the engine did, warm-up included.
    pub engine: EngineCounts,
    /// The commands that the drive completed.
    pub commands: CommandsRun,
    /// The calls of programs, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsRun>,
    /// How often the scheduler waited, and what came of it, warm-up included.
    pub waits: WaitCounts,
    /// What was predicted of the drive's commands against what they took, warm-up included, if the scheduler predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictions: Option<PredictionsRun>,
    /// What was read in the background, if anything was to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockRun>,
    /// How its promises were kept, if any were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<PromiseRun>,
    /// The least time that any scheduler needs for the same; nothing where what is
    /// done depends on the scheduler, or requests come at their times.
    pub bound: Option<Bound>,
    /// Its reads, apart from its writes, if there are such.
    pub of_reads: Option<KindRun>,
    /// Its writes, apart from its reads, if there are such.
    pub of_writes: Option<KindRun>,
    /// What each workload and program got, by its name.
    pub by_name: Vec<NamedRun>,
    /// What each origin got.
    pub per_origin: Vec<OriginRun>,
    /// What each program achieved, if there are programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRun>,
    /// The distribution of response times of the first repeat, for plots.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
    /// More of the distributions, for figures.
    #[serde(skip)]
    pub percentiles: Percentiles,
    /// What learning the drive from outside came to, if a figure measures that.
    #[serde(skip)]
    pub learned: BTreeMap<Learning, Accuracy>,
    /// Whether who gets how much was recorded in a trace, so that fairness describes the trace.
    #[serde(skip)]
    pub recorded: bool,
    /// Its name among the others: the scheduler and whatever else differs.
    #[serde(skip)]
    pub label: String,
}

impl Run {
    /// The scheduler, and whether those of an array are coordinated.
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
    /// Slices of them that ended since a request did not come in time.
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

/// Shares of the requests of clients before which no gap read was looked for, in %.
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

/// What was read in the background: means over the repeats, and sums where it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FreeblockRun {
    /// MB (10⁶ bytes) of what was wanted, per second until all was read, or the run over. What others asked for counts.
    pub mb_s: f64,
    /// The same of what was read in gaps alone.
    pub free_mb_s: f64,
    /// Bytes read in gaps, in % of these and of the bytes that passed under the waiting head while gap reads were not suspended.
    /// `None` if the head did not wait, or gap reads were suspended before more than 90 % of the requests.
    pub gap_share_percent: Option<f64>,
    /// The first for each tenth of what was wanted, where that was read.
    pub tenths_mb_s: [Option<f64>; 10],
    /// What was not read, in % of what was wanted.
    pub left_percent: f64,
    /// Blocks that cannot be read.
    pub unreadable: u64,
    /// When all was read, in seconds.
    pub ended_s: Option<f64>,
    /// Blocks that were read in gaps, mean.
    pub free_blocks: f64,
    /// Requests before which something was looked for.
    pub gaps: u64,
    /// Shares of the requests before which nothing was looked for, in %, by cause.
    pub suspended_percent: Suspended,
    /// In how many of them something was read in a command of its own, in %.
    pub before_percent: f64,
    /// In how many at the front of the request, in %.
    pub with_percent: f64,
    /// Reads while nobody waited.
    pub alone: u64,
    /// Steps of a search, mean.
    pub steps_mean: f64,
    /// Steps that half of the searches do not exceed, rounded up to a power of two less one.
    pub steps_p50: f64,
    /// The same for 90 %.
    pub steps_p90: f64,
    /// The same for 99 %.
    pub steps_p99: f64,
    /// The most of one.
    pub steps_max: u64,
}

/// What was promised of a scan, and what came of it: means over the repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PromiseRun {
    /// What 99 % of the clients' requests did not exceed while it read.
    pub p99_ms: f64,
    /// The same without it, as it has estimated.
    pub p99_without_ms: f64,
    /// By how much the first is longer, in % of the second.
    pub p99_added_percent: f64,
    /// What was read in gaps, in % of what was read.
    pub gaps_percent: f64,
    /// In idle time.
    pub idle_percent: f64,
    /// At the cost of clients.
    pub outright_percent: f64,
    /// By clients.
    pub others_percent: f64,
    /// The share of the time until the end that the scan asked for at the cost of clients, and took.
    pub asked_percent: f64,
    /// See there.
    pub taken_percent: f64,
    /// How often it was said that its date cannot hold, each after it was not.
    pub late_said: f64,
    /// What was last said of it, in the first repeat.
    pub verdict: &'static str,
    /// When that changed, and to what, in the first repeat.
    pub changes: Vec<VerdictChange>,
}

/// Something else was said of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VerdictChange {
    /// When, in seconds.
    pub at_s: f64,
    /// What.
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
    /// Of the throughput, in MB/s.
    pub throughput_mb_s: f64,
    /// Of the requests per second.
    pub iops: f64,
    /// Of the mean response time, in ms.
    pub response_mean_ms: f64,
    /// Of the 99th percentile of response times, in ms.
    pub response_p99_ms: f64,
}

/// What the engine did.
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

/// The commands that a drive completed, over all repeats. Where it has one at a time there are counts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CommandsRun {
    /// How many.
    pub completed: u64,
    /// Commands per second.
    pub per_s: f64,
    /// Their mean size, in bytes.
    pub mean_bytes: f64,
    /// Those of 4 KiB at most, in % of all.
    pub page_share: f64,
    /// Those of more than 25 KiB (50 sectors), in % of all.
    pub large_share: f64,
    /// The metric by which NISE tells loads apart, in sectors: what 5, 50 and 95 % of its values do not exceed.
    pub sequentiality: [f64; 3],
    /// By how many later ones each was overtaken in the drive; of the longest, the mean over the repeats.
    pub delay_count: DelayRun,
    /// From one completion to the next.
    pub interval_ms: Spread,
    /// From the drive's taking a command to its completion: of real-time, best-effort and idle requests.
    pub service_ms: [Spread; CLASSES],
    /// Completion notifications, each an interrupt of the host.
    pub interrupts: u64,
    /// Tags in use, in the mean over the time.
    pub tags_in_use: f64,
    /// Time in which no tag was free, in % of all.
    pub full_share: f64,
    /// Of the first hundred windows of 10 ms, those in which at some time no tag was free, in %.
    pub full_windows_share: f64,
}

/// A distribution of delay counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DelayRun {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What 90 % do not exceed; so for the others.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The largest of each repeat, in the mean.
    pub max: f64,
}

impl CommandsRun {
    /// Of all repeats, which took so many seconds, on a drive with sectors of so many bytes.
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

/// The calls of programs, which the NCQ paper calls transactions, whether they made one request, several or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TransactionsRun {
    /// How many returned after the warm-up, over all repeats.
    pub calls: u64,
    /// Calls a second from the first start of a program to the last end, warm-up included; nothing if one had not ended.
    pub per_s: Option<f64>,
    /// Commands that the drive completed, for each call.
    pub commands_per_call: Option<f64>,
    /// From a call to its return.
    pub response_ms: Spread,
}

/// How often a scheduler held the disk for a request that had not come, over all repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitCounts {
    /// Streams that came to be waited for.
    pub streams_established: u64,
    /// How many of them could still go on at the end.
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
    /// The same, while writes may have waited in the drive's buffer: most likely it wrote some of them first.
    pub destaging: f64,
    /// One or more turns earlier than predicted.
    pub turn_early: f64,
    /// From the drive's buffer, so sooner than predicted.
    pub hits: f64,
    /// At another point of the turn.
    pub elsewhere: f64,
    /// Behind one of those five.
    pub after_surprise: f64,
    /// Errors in us, to 10 us, and how many commands had them; negative if the command was sooner done. Beyond 20 ms they count as
    /// that.
    pub errors_us: Vec<(i64, u64)>,
}

impl PredictionsRun {
    /// Reads off what was counted.
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
    /// How many were measured.
    pub requests: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second, in MB/s.
    pub throughput_mb_s: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
}

/// What one workload, program or device got: the requests of all its processes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NamedRun {
    /// What it is called.
    pub name: String,
    /// The program; 0 if none.
    pub program: u32,
    /// Processes that asked for something.
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
    /// How long the oldest of them had waited, in ms; 0 without any.
    pub oldest_unfinished_ms: f64,
    /// Its reads, over the same time.
    pub of_reads: Option<KindRun>,
    /// Its writes.
    pub of_writes: Option<KindRun>,
}

/// The least time that any scheduler needs for what a run does, over all repeats; see
/// `docs/design/2026-11-22-bound.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bound {
    /// Which of the parts is the least time: `arm`, `command` or `chain`.
    pub by: &'static str,
    /// The least time, in seconds.
    pub time_s: f64,
    /// The least time in % of what the run took for the same, at most 100.
    pub share: f64,
    /// Sectors under the head, and movements.
    pub arm_s: f64,
    /// Commands, and their data on the bus.
    pub command_s: f64,
    /// What processes do one thing after the other.
    pub chain_s: f64,
    /// The least time with a change between processes for each slice of the scheduler; nothing if it
    /// has none. Not a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_slices_s: Option<f64>,
    /// With programs: the most that their own rates sum up to, in KB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs_kb_s: Option<f64>,
}

/// What one origin got.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OriginRun {
    /// The process; 0 if not known.
    pub process: u32,
    /// The program; 0 if not known.
    pub program: u16,
    /// Whether nobody else has its name, so that it has no row of its own beside that.
    #[serde(skip)]
    pub alone: bool,
    /// The device of the trace, if the workload is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Requests measured.
    pub requests: u64,
    /// Requests that had not finished at the end, over all repeats.
    pub unfinished: u64,
    /// How long the oldest of them had waited, in ms; 0 without any.
    pub oldest_unfinished_ms: f64,
    /// Bytes per second while it was active, in MB/s.
    pub throughput_mb_s: f64,
    /// Arrival to completion.
    pub response_ms: Spread,
}

/// What a program achieved, by its own account; means over the repeats.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRun {
    /// What it is called.
    pub name: String,
    /// The benchmark that it runs.
    pub benchmark: &'static str,
    /// Which of the scenario's programs it is made by, from 0.
    #[serde(skip)]
    pub entry: usize,
    /// Its number.
    pub program: u32,
    /// When its first process began, in seconds since the start of the run.
    pub started_s: f64,
    /// When its last process ended; nothing if one was running at the end.
    pub ended_s: Option<f64>,
    /// Bytes that its calls read, in MB.
    pub read_mb: f64,
    /// Bytes that its calls wrote, in MB.
    pub written_mb: f64,
    /// Both, per second from its start to its end, or to that of the run.
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
    /// When its run had left its profile, by the planner of windows, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_profile_s: Option<f64>,
    /// When its goal could no longer be met, by the planner of windows, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hopeless_s: Option<f64>,
    /// Errors of the bounds, if another run alone judged them.
    #[serde(flatten)]
    pub bound_errors: Option<BoundErrors>,
    /// Its processes.
    pub processes: Vec<ProcessRun>,
}

/// What a process of a program achieved; means over the repeats.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRun {
    /// Its number.
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
    /// As people call it: its process, else its device, else its program.
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
