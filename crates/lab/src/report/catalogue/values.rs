//! Values without a column in CSV, which figures measure.

use super::super::{PredictionsRun, Run};
use super::measure::{Better, Measure, measures, whole};
use super::programs::programs_kb_s;
use headtime_disk::Part;

/// All values without a column.
pub(super) fn values() -> Vec<Measure> {
    let mut all = measures! {
        Less "share_off_max", "%", "how far the throughput of an origin is from the mean of all, at most",
            whole(share_off);
        More "sequentiality_p5", "sectors", "NISE's metric, whatever the scheduler is: what 5 % of its values do not exceed",
            whole(|run| Some(run.commands.sequentiality[0]));
        Less "sequentiality_p95", "sectors", "NISE's metric, whatever the scheduler is: what 95 % of its values do not exceed",
            whole(|run| Some(run.commands.sequentiality[2]));
        Less "service_max_s", "s", "drive to completion, longest",
            whole(|run| Some(run.device_ms.max / 1e3));
        Less "service_high_ms", "ms", "drive to completion of commands of real-time requests, mean",
            whole(|run| Some(run.commands.service_ms[0].mean));
        Less "service_low_ms", "ms", "drive to completion of commands of best-effort requests, mean",
            whole(|run| Some(run.commands.service_ms[1].mean));
        More "service_gain", "%", "by how much the mean service of real-time requests is shorter than that of best-effort ones",
            whole(service_gain);
        More "scan_mb_s", "MB/s", "what a scan in the background read, others' requests too, until it was done or the run over",
            whole(|run| Some(run.freeblock?.mb_s));
        More "free_mb_s", "MB/s", "what a scan read in gaps alone",
            whole(|run| Some(run.freeblock?.free_mb_s));
        More "gap_share", "%", "what a scan read in gaps, of what passed under the waiting head while gap reads were not suspended",
            whole(|run| run.freeblock?.gap_share_percent);
        More "free_blocks", "blocks", "blocks that a scan read in gaps",
            whole(|run| Some(run.freeblock?.free_blocks));
        Less "scan_s", "s", "when a scan had read all",
            whole(|run| run.freeblock?.ended_s);
        Less "scan_left", "%", "what a scan had not read at the end of the run",
            whole(|run| Some(run.freeblock?.left_percent));
        Less "first_p99_ms", "ms", "arrival to completion of the requests of the first workload or program alone, 99 %, interpolated within a step of the histogram",
            whole(|run| Some(run.by_name.first()?.response_ms.p99_between));
        More "first_iops", "1/s", "requests per second of the first workload or program",
            whole(|run| Some(run.by_name.first()?.iops));
        Less "second_p99_ms", "ms", "arrival to completion of the requests of the second workload or program alone, 99 %, interpolated within a step of the histogram",
            whole(|run| Some(run.by_name.get(1)?.response_ms.p99_between));
        More "second_iops", "1/s", "requests per second of the second workload or program",
            whole(|run| Some(run.by_name.get(1)?.iops));
        Less "scan_p99_without_ms", "ms", "the clients' 99 % without a scan with promises, as it has estimated",
            whole(|run| Some(run.promise.as_ref()?.p99_without_ms));
        Less "scan_late_said", "times", "how often the verdict turned to one by which a scan cannot hold its date",
            whole(|run| Some(run.promise.as_ref()?.late_said));
        More "scan_in_gaps", "% of what was read", "what a scan with promises read in gaps",
            whole(|run| Some(run.promise.as_ref()?.gaps_percent));
        More "scan_in_idle", "% of what was read", "what a scan with promises read in idle time",
            whole(|run| Some(run.promise.as_ref()?.idle_percent));
        Less "scan_outright", "% of what was read", "what a scan with promises read at the cost of clients",
            whole(|run| Some(run.promise.as_ref()?.outright_percent));
        Less "gap_steps_mean", "steps", "cylinders and tracks that were looked at for a gap, mean",
            whole(|run| Some(run.freeblock?.steps_mean));
        Less "gap_steps_p50", "steps", "cylinders and tracks that were looked at for a gap, median, rounded up to a power of two less one",
            whole(|run| Some(run.freeblock?.steps_p50));
        Less "gap_steps_p90", "steps", "cylinders and tracks that were looked at for a gap, what 90 % do not exceed",
            whole(|run| Some(run.freeblock?.steps_p90));
        Less "gap_steps_p99", "steps", "cylinders and tracks that were looked at for a gap, what 99 % do not exceed",
            whole(|run| Some(run.freeblock?.steps_p99));
        Less "gap_steps_max", "steps", "cylinders and tracks that were looked at for a gap, the most",
            whole(|run| Some(run.freeblock?.steps_max as f64));
        More "predicted_150us", "%", "commands whose head time was predicted to 150 us",
            whole(|run| Some(predicted(run)?.within_150us));
        Less "predicted_150us_to_800us", "%", "commands whose head time was off by more than 150 us and at most 800",
            whole(|run| predicted(run).map(|all| all.within_800us - all.within_150us));
        Less "turn_late", "%", "commands that took one or more turns longer than predicted, with no write in the drive's buffer",
            whole(|run| Some(predicted(run)?.turn_late));
        Less "turn_early", "%", "commands that took one or more turns less",
            whole(|run| Some(predicted(run)?.turn_early));
        Less "surprise_hits", "%", "commands that the drive's buffer served, where the medium was predicted",
            whole(|run| Some(predicted(run)?.hits));
        Less "after_surprise", "%", "commands behind one that took turns more or less, came from the buffer, or ended elsewhere",
            whole(|run| Some(predicted(run)?.after_surprise));
        Less "full_windows_share", "% of windows", "of the first hundred windows of 10 ms, those in which at some time no tag of the drive was free",
            whole(|run| Some(run.commands.full_windows_share));
        Less "wait_max_s", "s", "arrival to drive, longest",
            whole(|run| Some(run.queue_ms.max / 1e3));
        Less "service_mean_ms", "ms", "drive to completion, mean",
            whole(|run| Some(run.device_ms.mean));
        More "programs_kb_s", "KB/s", "bytes that a program read and wrote, over the time of the program, summed over all programs",
            whole(programs_kb_s);
        Less "waiting_share", "%", "time in which the scheduler holds the disk though it has requests, of the whole run",
            whole(waiting_share);
        Less "destage_share", "%", "writing what waited in the drive's buffer, as a share of the time in which the arm is busy",
            whole(|run| busy_share(run, Part::Destage));
    };
    all.extend((0..10).map(tenth));
    all
}

/// Rate of a scan in a tenth of its blocks.
fn tenth(place: usize) -> Measure {
    let number = place + 1;
    let name = format!("scan_mb_s_tenth{number}").leak();
    let help = "what a scan read while this tenth of its blocks was read";
    let of = whole(move |run| run.freeblock?.tenths_mb_s[place]);
    Measure {
        family: "scan_mb_s_tenthN",
        ..Measure::new(Better::More, name, "MB/s", help, of)
    }
}

/// Largest distance of an origin's throughput from the mean of all origins, in % of the mean; `None` for fewer than two origins.
fn share_off(run: &Run) -> Option<f64> {
    let rates = run.per_origin.iter().map(|origin| origin.throughput_mb_s);
    let mean = rates.clone().sum::<f64>() / run.per_origin.len() as f64;
    let off = rates.map(|rate| 100.0 * (rate - mean).abs() / mean);
    let most = off.reduce(f64::max)?;
    (run.per_origin.len() > 1 && mean > 0.0).then_some(most)
}

/// The predictions of a run; `None` if no command was predicted.
pub(super) fn predicted(run: &Run) -> Option<&PredictionsRun> {
    let predictions = run.predictions.as_ref();
    predictions.filter(|all| all.commands > 0)
}

fn waiting_share(run: &Run) -> Option<f64> {
    let time = &run.head_time;
    (time.total() > 0.0).then(|| time.share(Part::Waiting))
}

/// Share of a part in the time in which the arm is busy, in %.
pub(super) fn busy_share(run: &Run, part: Part) -> Option<f64> {
    let time = &run.head_time;
    let resting = [Part::Idle, Part::Waiting, Part::Held].into_iter();
    let busy = resting.fold(time.total(), |busy, part| busy - time.get(part));
    (busy > 0.0).then(|| 100.0 * time.get(part) / busy)
}

/// Reduction of the drive's service time for real-time commands against best-effort commands, in % of the latter.
fn service_gain(run: &Run) -> Option<f64> {
    let [high, low] = [0, 1].map(|class| run.commands.service_ms[class].mean);
    (high > 0.0 && low > 0.0).then(|| 100.0 * (1.0 - high / low))
}
