//! What a point of a figure measures of a run.

use crate::report::{AtPercents, PERCENTS, PredictionsRun, Run, SpreadValue};
use headtime_disk::Part;
use headtime_probe::accuracy::{Accuracy, Learning, SECTORS};
use headtime_units::nearest;
use std::sync::LazyLock;

/// Something measured of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in figures and results.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Whether more is better; less is, otherwise.
    pub more_is_better: bool,
    /// What it is, in a line.
    pub help: &'static str,
    of: Of,
}

/// How a metric is taken of a run.
#[derive(Clone, Copy, Debug)]
enum Of {
    Value(fn(&Run) -> Option<f64>),
    /// By the number of the tenth of a scan, from 0.
    Tenth(usize),
    /// By the place in [`PERCENTS`].
    Percentile(fn(&Run) -> Option<&AtPercents>, usize),
    /// Of a drive that was learned from outside.
    Learned(Learning, OfAccuracy),
}

/// How a metric is taken of what was learned.
type OfAccuracy = fn(&Accuracy) -> Option<f64>;

impl Of {
    const fn reads(of: OfAccuracy) -> Of {
        Of::Learned(Learning::Read, of)
    }

    const fn writes(of: OfAccuracy) -> Of {
        Of::Learned(Learning::Written, of)
    }

    const fn remaps(of: OfAccuracy) -> Of {
        Of::Learned(Learning::Remapped, of)
    }
}

impl Metric {
    /// Its value for a run; nothing if the run has none.
    pub fn of(&self, run: &Run) -> Option<f64> {
        match self.of {
            Of::Value(of) => of(run),
            Of::Tenth(place) => run.freeblock?.tenths_mb_s[place],
            Of::Percentile(of, place) => of(run).map(|values| values[place]),
            Of::Learned(learning, of) => of(run.learned.get(&learning)?),
        }
    }

    /// How the drive of a run has to be learned for it, if it has. That takes seconds, and longer where all of it is read.
    pub fn learning(&self) -> Option<Learning> {
        match self.of {
            Of::Learned(learning, _) => Some(learning),
            _ => None,
        }
    }

    /// What it is of the best that any scheduler could have, in %: of rates and of times of the whole
    /// work, where a run has a bound.
    pub fn share_of_bound(&self, run: &Run) -> Option<f64> {
        let bound = run.bound?;
        match self.name {
            "throughput_mb_s" | "iops" | "time_s" | "programs_mb_s" => Some(bound.share),
            "programs_kb_s" => {
                let most = bound.programs_kb_s.filter(|most| *most > 0.0)?;
                self.of(run).map(|value| 100.0 * value / most)
            }
            _ => None,
        }
    }

    /// The metric of this name.
    ///
    /// # Errors
    ///
    /// If there is none, with the one it resembles.
    pub fn by_name(name: &str) -> Result<&'static Metric, String> {
        METRICS
            .iter()
            .find(|metric| metric.name == name)
            .ok_or_else(|| {
                let names = METRICS.iter().map(|metric| metric.name);
                let guess = nearest(name, names.clone())
                    .map(|guess| format!("did you mean `{guess}`? "))
                    .unwrap_or_default();
                let all: Vec<&str> = names.collect();
                format!(
                    "no metric is called that; {guess}allowed are {}",
                    all.join(", ")
                )
            })
    }
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

/// From the start of the first program to the end of the last, in seconds, if all have ended.
fn time(run: &Run) -> Option<f64> {
    let ends = run.programs.iter().map(|program| program.ended_s);
    let ended = ends.collect::<Option<Vec<f64>>>()?;
    let end = ended.into_iter().reduce(f64::max)?;
    let starts = run.programs.iter().map(|program| program.started_s);
    let start = starts.reduce(f64::min)?;
    (end > start).then_some(end - start)
}

/// How far the throughput of an origin is from the mean of all, in % of that; nothing of fewer than two.
fn share_off(run: &Run) -> Option<f64> {
    let rates = run.per_origin.iter().map(|origin| origin.throughput_mb_s);
    let mean = rates.clone().sum::<f64>() / run.per_origin.len() as f64;
    let off = rates.map(|rate| 100.0 * (rate - mean).abs() / mean);
    let most = off.reduce(f64::max)?;
    (run.per_origin.len() > 1 && mean > 0.0).then_some(most)
}

fn programs_mb_s(run: &Run) -> Option<f64> {
    let bytes = run.programs.iter().map(|one| one.read_mb + one.written_mb);
    time(run).map(|time| bytes.sum::<f64>() / time)
}

fn programs_kb_s(run: &Run) -> Option<f64> {
    let rates = run.programs.iter().map(|one| one.throughput_mb_s);
    time(run).map(|_| rates.sum::<f64>() * 1e3)
}

/// The predictions of a run; nothing if no command was predicted.
fn predicted(run: &Run) -> Option<&PredictionsRun> {
    let predictions = run.predictions.as_ref();
    predictions.filter(|all| all.commands > 0)
}

fn waiting_share(run: &Run) -> Option<f64> {
    let time = &run.head_time;
    (time.total() > 0.0).then(|| time.share(Part::Waiting))
}

/// What a part has of the time in which the arm is busy, in %.
fn busy_share(run: &Run, part: Part) -> Option<f64> {
    let time = &run.head_time;
    let resting = [Part::Idle, Part::Waiting, Part::Held].into_iter();
    let busy = resting.fold(time.total(), |busy, part| busy - time.get(part));
    (busy > 0.0).then(|| 100.0 * time.get(part) / busy)
}

/// Calls of all programs, which the NCQ paper calls transactions.
fn calls(run: &Run) -> f64 {
    run.programs.iter().map(|program| program.calls).sum()
}

/// Transactions over the time from the first start to the last end.
pub fn tx_per_s(run: &Run) -> Option<f64> {
    time(run).map(|time| calls(run) / time)
}

/// Commands of the drive for each transaction.
pub fn commands_per_tx(run: &Run) -> Option<f64> {
    let calls = calls(run);
    (calls > 0.0).then(|| run.commands.completed as f64 / f64::from(run.repeats) / calls)
}

/// A value of the responses of transactions.
fn tx_response(run: &Run, value: SpreadValue) -> Option<f64> {
    run.transactions.map(|calls| value(&calls.response_ms))
}

/// By how much the drive is sooner done with real-time commands than with best-effort ones, in % of the latter.
fn service_gain(run: &Run) -> Option<f64> {
    let [high, low] = [0, 1].map(|class| run.commands.service_ms[class].mean);
    (high > 0.0 && low > 0.0).then(|| 100.0 * (1.0 - high / low))
}

/// So many sectors of those compared, in %.
fn of_sectors(count: u32) -> f64 {
    100.0 * f64::from(count) / f64::from(SECTORS)
}

/// So many reads of those that check a learned profile, in %.
fn of_held(learned: &Accuracy, count: u64) -> f64 {
    100.0 * count as f64 / learned.held.reads.max(1) as f64
}

macro_rules! metrics {
    ($kind:path: $($better:ident $name:literal, $unit:literal, $help:literal, $of:expr;)+) => {
        [$(Metric {
            name: $name,
            unit: $unit,
            more_is_better: metrics!($better),
            help: $help,
            of: $kind($of),
        }),+]
    };
    (more) => { true };
    (less) => { false };
}

/// All that can be measured. They stay as long as the program runs, and so do their names.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let percentiles = DISTRIBUTIONS.iter().flat_map(percentiles);
    let values = VALUES
        .iter()
        .chain(OF_READS)
        .chain(OF_WRITES)
        .chain(OF_REMAPS)
        .copied();
    let tenths = (0..10).map(tenth);
    values.chain(tenths).chain(percentiles).collect()
});

/// A distribution of which figures measure percentiles: the beginning and the end of their names, the unit, what it is, and
/// its values.
type Shown = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    fn(&Run) -> Option<&AtPercents>,
);

const DISTRIBUTIONS: [Shown; 5] = [
    ("response", "_ms", "ms", "arrival to completion", |run| {
        Some(&run.percentiles.response)
    }),
    ("service", "_ms", "ms", "drive to completion", |run| {
        Some(&run.percentiles.device)
    }),
    (
        "interval",
        "_ms",
        "ms",
        "from one completion of the drive to the next",
        |run| Some(&run.percentiles.interval),
    ),
    (
        "tx_response",
        "_ms",
        "ms",
        "from a call to its return",
        |run| run.transactions.map(|_| &run.percentiles.calls),
    ),
    (
        "delay",
        "",
        "commands",
        "by how many later commands one was overtaken in the drive",
        |run| Some(&run.percentiles.delay),
    ),
];

/// The rate of a scan in one tenth of what it wanted.
fn tenth(place: usize) -> Metric {
    let number = place + 1;
    Metric {
        name: format!("scan_mb_s_tenth{number}").leak(),
        unit: "MB/s",
        more_is_better: true,
        help: format!("what a scan read while its tenth number {number} was read").leak(),
        of: Of::Tenth(place),
    }
}

/// The metrics of a distribution, one for each of [`PERCENTS`].
fn percentiles(of: &'static Shown) -> impl Iterator<Item = Metric> {
    let (name, end, unit, what, values) = *of;
    PERCENTS.iter().enumerate().map(move |(place, percent)| {
        let which = match percent {
            1.0 => "1st percentile".to_owned(),
            50.0 => "median".to_owned(),
            whole if whole.fract() == 0.0 => format!("{whole}th percentile"),
            part => format!("what {part} % do not exceed"),
        };
        let digits = percent.to_string().replace('.', "");
        Metric {
            name: format!("{name}_p{digits}{end}").leak(),
            unit,
            more_is_better: false,
            help: format!("{what}, {which}").leak(),
            of: Of::Percentile(values, place),
        }
    })
}

/// All others: whether more or less is better, name, unit, what it is, and its value.
const VALUES: &[Metric] = &metrics! { Of::Value:
    more "throughput_mb_s", "MB/s", "bytes that the disk moved for requests, per second of the run",
        |run| Some(run.throughput_mb_s);
    more "iops", "1/s", "requests per second",
        |run| Some(run.iops);
    more "fairness", "", "Jain's index of the origins' throughputs",
        |run| Some(run.fairness);
    less "share_off_max", "%", "how far the throughput of an origin is from the mean of all, at most",
        share_off;
    less "response_mean_ms", "ms", "arrival to completion, mean",
        |run| Some(run.response_ms.mean);
    less "response_max_ms", "ms", "arrival to completion, longest",
        |run| Some(run.response_ms.max);
    less "response_max_mean_ms", "ms", "arrival to completion, longest of each repeat, in the mean",
        |run| Some(run.response_ms.max_mean);
    less "tx_response_mean_ms", "ms", "from a call to its return, mean",
        |run| tx_response(run, |spread| spread.mean);
    less "tx_response_max_ms", "ms", "from a call to its return, longest",
        |run| tx_response(run, |spread| spread.max);
    less "tx_response_max_mean_ms", "ms", "from a call to its return, longest of each repeat, in the mean",
        |run| tx_response(run, |spread| spread.max_mean);
    more "tx_per_s", "Tx/s", "calls of all programs, from the start of the first to the end of the last",
        tx_per_s;
    less "commands_per_tx", "", "commands that the drive completed, for each call",
        commands_per_tx;
    more "commands_per_s", "IO/s", "commands that the drive completed, per second",
        |run| Some(run.commands.per_s);
    less "page_share", "% of commands", "commands of 4 KiB at most",
        |run| Some(run.commands.page_share);
    more "large_share", "% of commands", "commands of more than 50 sectors",
        |run| Some(run.commands.large_share);
    more "sequentiality_p5", "sectors", "NISE's metric, whatever the scheduler is: what 5 % of its values do not exceed",
        |run| Some(run.commands.sequentiality[0]);
    more "sequentiality_p50", "sectors", "the same, median",
        |run| Some(run.commands.sequentiality[1]);
    less "sequentiality_p95", "sectors", "the same, what 95 % of its values do not exceed",
        |run| Some(run.commands.sequentiality[2]);
    less "delay_max", "commands", "by how many later commands one was overtaken in the drive, at most",
        |run| Some(run.commands.delay_count.max);
    less "interval_mean_ms", "ms", "from one completion of the drive to the next, mean",
        |run| Some(run.commands.interval_ms.mean);
    less "service_max_s", "s", "drive to completion, longest",
        |run| Some(run.device_ms.max / 1e3);
    less "service_high_ms", "ms", "drive to completion of commands of real-time requests, mean",
        |run| Some(run.commands.service_ms[0].mean);
    less "service_low_ms", "ms", "drive to completion of commands of best-effort requests, mean",
        |run| Some(run.commands.service_ms[1].mean);
    more "service_gain", "%", "by how much the mean service of real-time requests is shorter than that of best-effort ones",
        service_gain;
    more "scan_mb_s", "MB/s", "what a scan in the background read, others' requests too, until it was done or the run over",
        |run| Some(run.freeblock?.mb_s);
    more "free_mb_s", "MB/s", "what a scan read in gaps alone",
        |run| Some(run.freeblock?.free_mb_s);
    more "free_blocks", "blocks", "blocks that a scan read in gaps",
        |run| Some(run.freeblock?.free_blocks);
    less "scan_s", "s", "when a scan had read all",
        |run| run.freeblock?.ended_s;
    less "scan_left", "%", "what a scan had not read at the end of the run",
        |run| Some(run.freeblock?.left_percent);
    less "first_p99_ms", "ms", "arrival to completion of the requests of the first workload or program alone, 99 %, interpolated within a step of the histogram",
        |run| Some(run.by_name.first()?.response_ms.p99_between);
    more "first_iops", "1/s", "requests per second of the first workload or program",
        |run| Some(run.by_name.first()?.iops);
    less "second_p99_ms", "ms", "arrival to completion of the requests of the second workload or program alone, 99 %, interpolated within a step of the histogram",
        |run| Some(run.by_name.get(1)?.response_ms.p99_between);
    more "second_iops", "1/s", "requests per second of the second workload or program",
        |run| Some(run.by_name.get(1)?.iops);
    less "scan_p99_without_ms", "ms", "the clients' 99 % without a scan with promises, as it has estimated",
        |run| Some(run.promise.as_ref()?.p99_without_ms);
    less "scan_late_said", "times", "how often the verdict turned to one by which a scan cannot hold its date",
        |run| Some(run.promise.as_ref()?.late_said);
    more "scan_in_gaps", "% of what was read", "what a scan with promises read in gaps",
        |run| Some(run.promise.as_ref()?.gaps_percent);
    more "scan_in_idle", "% of what was read", "the same, in idle time",
        |run| Some(run.promise.as_ref()?.idle_percent);
    less "scan_outright", "% of what was read", "the same, at the cost of clients",
        |run| Some(run.promise.as_ref()?.outright_percent);
    less "gap_steps_mean", "steps", "cylinders and tracks that were looked at for a gap, mean",
        |run| Some(run.freeblock?.steps_mean);
    less "gap_steps_p50", "steps", "the same, median, rounded up to a power of two less one",
        |run| Some(run.freeblock?.steps_p50);
    less "gap_steps_p90", "steps", "the same, what 90 % do not exceed",
        |run| Some(run.freeblock?.steps_p90);
    less "gap_steps_p99", "steps", "the same, what 99 % do not exceed",
        |run| Some(run.freeblock?.steps_p99);
    less "gap_steps_max", "steps", "the same, the most",
        |run| Some(run.freeblock?.steps_max as f64);
    more "predicted_50us", "%", "commands whose head time was predicted to 50 us",
        |run| Some(predicted(run)?.within_50us);
    more "predicted_150us", "%", "the same, to 150 us",
        |run| Some(predicted(run)?.within_150us);
    less "predicted_150us_to_800us", "%", "commands whose head time was off by more than 150 us and at most 800",
        |run| {
            let all = predicted(run)?;
            Some(all.within_800us - all.within_150us)
        };
    less "turn_late", "%", "commands that took one or more turns longer than predicted, with no write in the drive's buffer",
        |run| Some(predicted(run)?.turn_late);
    less "turn_early", "%", "commands that took one or more turns less",
        |run| Some(predicted(run)?.turn_early);
    less "surprise_hits", "%", "commands that the drive's buffer served, where the medium was predicted",
        |run| Some(predicted(run)?.hits);
    less "after_surprise", "%", "commands behind one that took turns more or less, came from the buffer, or ended elsewhere",
        |run| Some(predicted(run)?.after_surprise);
    less "interrupts", "", "completion notifications of the drive",
        |run| Some(run.commands.interrupts as f64);
    more "tags_in_use", "", "tags of the drive in use, in the mean over the time",
        |run| Some(run.commands.tags_in_use);
    less "full_share", "%", "time in which no tag of the drive was free",
        |run| Some(run.commands.full_share);
    less "full_windows_share", "% of windows", "of the first hundred windows of 10 ms, those in which at some time no tag of the drive was free",
        |run| Some(run.commands.full_windows_share);
    less "wait_max_s", "s", "arrival to drive, longest",
        |run| Some(run.queue_ms.max / 1e3);
    less "service_mean_ms", "ms", "drive to completion, mean",
        |run| Some(run.device_ms.mean);
    less "time_s", "s", "from the start of the first program to the end of the last",
        time;
    more "programs_mb_s", "MB/s", "bytes that all programs read and wrote, over that time",
        programs_mb_s;
    more "programs_kb_s", "KB/s", "bytes that a program read and wrote, over its own time, summed over all programs",
        programs_kb_s;
    less "quiet_mean_ms", "ms", "from the dispatch of the last request that a process has queued to its next one, mean",
        |run| Some(run.quiet_ms.mean);
    less "quiet_p90_ms", "ms", "the same, of which nine in ten are at most as long",
        |run| Some(run.quiet_ms.p90);
    less "waiting_share", "%", "time in which the scheduler holds the disk though it has requests, of the whole run",
        waiting_share;
    less "rotation_share", "%", "rotational latency as a share of the time in which the arm is busy",
        |run| busy_share(run, Part::Rotation);
    less "destage_share", "%", "writing what waited in the drive's buffer, as a share of that time",
        |run| busy_share(run, Part::Destage);
};

/// What learning the drive of a run by reads alone came to, against its profile.
const OF_READS: &[Metric] = &metrics! { Of::reads:
    less "probe_rotation_ppm", "ppm", "by how much the learned turn is off",
        |learned| Some(learned.turn_ppm.abs());
    more "probe_lengths", "% of sectors", "sectors of 10,000 whose track has the learned length",
        |learned| Some(of_sectors(learned.lengths));
    more "probe_borders", "% of borders", "borders of zones that are learned within a track",
        |learned| Some(100.0 * learned.borders.0 as f64 / learned.borders.1.max(1) as f64);
    less "probe_no_borders", "borders", "borders that are learned where no zone ends within a track",
        |learned| Some(learned.no_borders as f64);
    more "probe_skews", "% of sectors", "sectors of 10,000 in whose zone all skews are learned within a sector",
        |learned| Some(of_sectors(learned.skewed));
    more "probe_angles", "% of sectors", "sectors of 10,000 within 20 us of their learned angle",
        |learned| Some(of_sectors(learned.angles));
    more "probe_surfaces", "learned over true", "surfaces",
        |learned| Some(f64::from(learned.heads.0) / f64::from(learned.heads.1));
    more "probe_order", "% of units", "units whose order of surfaces is learned: cylinder-first, serpentine, or by groups",
        |learned| Some(if learned.order_is_right() { 100.0 } else { 0.0 });
    more "probe_groups", "% of sectors", "sectors of 10,000 in whose zone as many tracks of a surface as are learned come before the next one's turn",
        |learned| Some(of_sectors(learned.grouped));
    less "probe_seeks_us", "us", "processing and seek, root mean square of the error over the learned table",
        |learned| Some(learned.seeks);
    less "probe_minutes", "min", "time of the drive's that learning took",
        |learned| Some(learned.spent.as_millis_f64() / 60_000.0);
    more "probe_held_50us", "% of reads", "5,000 reads that were not learned from, predicted within 50 us",
        |learned| Some(of_held(learned, learned.held.within[0]));
    more "probe_held_150us", "% of reads", "the same, within 150 us",
        |learned| Some(of_held(learned, learned.held.within[1]));
    more "probe_held_300us", "% of reads", "the same, within 300 us",
        |learned| Some(of_held(learned, learned.held.within[2]));
    less "probe_held_late", "% of reads", "of these reads, a turn later than predicted",
        |learned| Some(of_held(learned, learned.held.late));
    less "probe_held_early", "% of reads", "of these reads, a turn earlier",
        |learned| Some(of_held(learned, learned.held.early));
};

/// What learning it by reads and writes came to.
const OF_WRITES: &[Metric] = &metrics! { Of::writes:
    less "probe_write_seeks_us", "us", "processing and seek of writes, root mean square of the error over the learned table, where all of the disk may be written",
        |learned| learned.write_seeks;
    less "probe_settle_us", "us", "what the arm takes longer for a write than for a read, root mean square of the error over the learned table",
        |learned| learned.settle;
    less "probe_head_switch_us", "us", "switching heads, error",
        |learned| Some(learned.head_switch);
};

/// What reading all of a unit of the drive of a run came to, a hundred sectors of which are remapped.
const OF_REMAPS: &[Metric] = &metrics! { Of::remaps:
    more "probe_remaps", "% of sectors", "sectors that are elsewhere, of a hundred and of those on the medium with them, that are found where all are read",
        |learned| Some(100.0 * learned.remaps.0 as f64 / learned.remaps.1.max(1) as f64);
    less "probe_remaps_wrong", "sectors", "sectors that are told to be elsewhere and are not",
        |learned| Some(learned.not_remapped as f64);
    less "probe_remaps_minutes", "min", "time of the drive's that learning it and reading all took",
        |learned| Some(learned.spent.as_millis_f64() / 60_000.0);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::HeadTime;

    #[test]
    fn rates_and_makespans_are_shares_of_the_bound_and_nothing_else_is() {
        let mut run = Run {
            bound: Some(crate::report::Bound {
                share: 80.0,
                programs_kb_s: Some(500.0),
                ..Default::default()
            }),
            ..Run::default()
        };
        run.programs.push(crate::report::ProgramRun {
            name: "grep".to_owned(),
            benchmark: "grep",
            entry: 0,
            program: 1,
            started_s: 0.0,
            ended_s: Some(10.0),
            read_mb: 2.0,
            written_mb: 0.0,
            throughput_mb_s: 0.2,
            calls: 0.0,
            processes: Vec::new(),
        });
        let share = |name, run: &Run| Metric::by_name(name).unwrap().share_of_bound(run);
        for name in ["throughput_mb_s", "iops", "time_s", "programs_mb_s"] {
            assert_eq!(share(name, &run), Some(80.0), "{name}");
        }
        // The programs' own rates have a bound of their own: 200 of 500 KB/s.
        assert_eq!(share("programs_kb_s", &run), Some(40.0));
        assert_eq!(share("response_mean_ms", &run), None);
        run.bound = None;
        assert!(
            METRICS
                .iter()
                .all(|metric| metric.share_of_bound(&run).is_none())
        );
    }

    #[test]
    fn transactions_are_calls_over_the_time_of_all_programs() {
        let program = |started_s, ended_s, calls| crate::report::ProgramRun {
            name: String::new(),
            benchmark: "transactions",
            entry: 0,
            program: 1,
            started_s,
            ended_s,
            read_mb: 0.0,
            written_mb: 0.0,
            throughput_mb_s: 0.0,
            calls,
            processes: Vec::new(),
        };
        let mut run = Run {
            repeats: 2,
            ..Run::default()
        };
        run.commands.completed = 120;
        let rate = Metric::by_name("tx_per_s").unwrap();
        let each = Metric::by_name("commands_per_tx").unwrap();
        assert_eq!((rate.of(&run), each.of(&run)), (None, None), "no programs");
        run.programs.push(program(1.0, Some(4.0), 20.0));
        run.programs.push(program(2.0, Some(6.0), 10.0));
        // 30 calls from second 1 to second 6; 120 commands of two repeats.
        assert_eq!((rate.of(&run), each.of(&run)), (Some(6.0), Some(2.0)));
        run.programs.push(program(2.0, None, 0.0));
        assert_eq!(rate.of(&run), None, "one has not ended");
    }

    #[test]
    fn the_gain_of_high_priority_is_of_the_service_of_the_others() {
        let mut run = Run::default();
        let gain = Metric::by_name("service_gain").unwrap();
        run.commands.service_ms[1].mean = 200.0;
        assert_eq!(gain.of(&run), None, "nobody asked in the real-time class");
        run.commands.service_ms[0].mean = 150.0;
        assert_eq!(gain.of(&run), Some(25.0));
        run.commands.service_ms[0].mean = 250.0;
        assert_eq!(gain.of(&run), Some(-25.0));
    }

    #[test]
    fn percentiles_are_means_over_the_repeats_from_1_to_99_9() {
        let fast = PERCENTS;
        let slow = PERCENTS.map(|percent| 3.0 * percent);
        let mut run = Run::default();
        run.percentiles.response = crate::report::mean_of_repeats(&[fast, slow], |values| *values);
        let of = |name: &str, run: &Run| Metric::by_name(name).unwrap().of(run);
        for (name, percent) in [("1", 1.0), ("10", 10.0), ("50", 50.0), ("999", 99.9)] {
            let name = format!("response_p{name}_ms");
            assert_eq!(of(&name, &run), Some(2.0 * percent), "{name}");
        }
        assert_eq!(of("delay_p999", &run), Some(0.0));
        assert_eq!(of("tx_response_p99_ms", &run), None, "there are no calls");
        run.transactions = Some(Default::default());
        run.percentiles.calls[12] = 7.0;
        assert_eq!(of("tx_response_p99_ms", &run), Some(7.0));
    }

    #[test]
    fn names_of_metrics_are_unique() {
        for (number, metric) in METRICS.iter().enumerate() {
            let earlier = &METRICS[..number];
            assert!(
                earlier.iter().all(|other| other != metric),
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn the_share_of_waiting_is_of_the_whole_run() {
        let mut run = Run::default();
        let metric = Metric::by_name("waiting_share").unwrap();
        assert_eq!(metric.of(&run), None, "nothing ran");
        let of = |waiting: f64| {
            HeadTime::of(|part| match part {
                Part::Seek => 1.0,
                Part::Idle | Part::Held => 2.0,
                Part::Waiting => waiting,
                _ => 0.0,
            })
        };
        run.head_time = of(0.0);
        assert_eq!(metric.of(&run), Some(0.0));
        run.head_time = of(5.0);
        assert_eq!(metric.of(&run), Some(50.0));
    }

    #[test]
    fn shares_are_off_the_mean_by_the_one_that_is_farthest_from_it() {
        let mut run = Run::default();
        let metric = Metric::by_name("share_off_max").unwrap();
        assert_eq!(metric.of(&run), None, "nobody");
        let mut add = |rate: f64| {
            run.per_origin.push(crate::report::OriginRun {
                throughput_mb_s: rate,
                ..Default::default()
            });
            metric.of(&run)
        };
        assert_eq!(add(8.0), None, "alone");
        assert_eq!(add(12.0), Some(20.0));
        assert_eq!(add(4.0), Some(50.0));
        let nothing = Run {
            per_origin: vec![crate::report::OriginRun::default(); 2],
            ..Run::default()
        };
        assert_eq!(metric.of(&nothing), None, "nobody got anything");
    }

    #[test]
    fn names_are_unique_and_guessed() {
        for (number, metric) in METRICS.iter().enumerate() {
            assert!(
                METRICS[..number]
                    .iter()
                    .all(|other| other.name != metric.name),
                "{}",
                metric.name
            );
            assert_eq!(Metric::by_name(metric.name).unwrap(), metric);
        }
        let error = Metric::by_name("throughput_mbs").unwrap_err();
        assert!(error.contains("did you mean `throughput_mb_s`?"), "{error}");
    }
}
