//! The least time that any scheduler needs for the work of a run.

use crate::prepare::DriveSet;
use crate::report::{self, round};
use crate::scenario::{Cell, Group, Pace, Program, Scenario, Workload};
use headtime_bound::{Bound, Term};
use headtime_stack::Level;
use headtime_units::Nanos;
use headtime_workload::Pacing;
use std::sync::Arc;

/// Returns true if runs of a scenario have a bound that is the same under every scheduler.
///
/// The work depends on the scheduler if a time or a total number of requests ends the run, or if the run has a warm-up. Then there is no
/// bound. There is no bound either for requests at fixed times, since the time says nothing of the scheduler. Runs on a cluster or on
/// guests have none.
pub fn is_there(scenario: &Scenario) -> bool {
    let whole = scenario.run.duration.is_none() && scenario.run.warm_up.is_zero();
    // A disk may merge data with parity, and the bound on commands has data alone. A mirror chooses a disk for each read.
    let array = scenario.array.as_ref();
    let is_known = array.is_none_or(|array| array.level == Level::Raid0);
    whole
        && is_known
        && match &scenario.workload {
            Workload::Programs(programs) => {
                let ends = |entry: &Program| !entry.benchmark.is_endless();
                let is_one_host = programs.cluster.is_none() && programs.guests.is_none();
                is_one_host && programs.entries.iter().all(ends)
            }
            Workload::Replay(replay) => !matches!(replay.pace, Pace::Open(_)),
            Workload::Synthetic(groups) => {
                let ends = |group: &Group| {
                    let process = &group.process;
                    let closed = matches!(process.pacing, Pacing::Closed { .. });
                    closed && process.count.is_some() && process.until.is_none()
                };
                scenario.run.requests.is_none() && groups.iter().all(ends)
            }
        }
}

/// Key of everything that a bound depends on. `seed` is the repeat's seed.
pub fn key(scenario: &Scenario, set: &DriveSet, cell: &Cell, seed: u64) -> String {
    let engine = &cell.engine;
    let machine = (engine.depth, engine.merge, engine.merge_max);
    let drive = set.profile.to_toml();
    // Two scenarios may replay different traces under one name.
    let script = set.script.as_ref().map(Arc::as_ptr);
    let array = &scenario.array;
    format!(
        "{:?}",
        (machine, array, &scenario.workload, script, seed, drive)
    )
}

/// The bound of one repeat of a run.
#[derive(Clone, Debug)]
pub struct KnownBound {
    /// The bound.
    pub bound: Arc<Bound>,
    /// Time that the run took for the same work.
    pub took: Nanos,
}

/// A repeat of a run beside its bound.
pub struct Repeat<'a> {
    /// The bound.
    pub known: &'a KnownBound,
    /// Bytes that each program moved, if there are programs.
    pub of_program: &'a dyn Fn(u32) -> u64,
}

/// Sums up the bounds of all repeats for a report. Returns `None` if no time is needed at all.
pub fn sum_up(cell: &Cell, repeats: &[Repeat<'_>]) -> Option<report::Bound> {
    let bound = |one: &Repeat<'_>| Arc::clone(&one.known.bound);
    let seconds = |value: &dyn Fn(&Repeat<'_>) -> Nanos| {
        let sum: u64 = repeats.iter().map(|one| value(one).as_nanos()).sum();
        round(sum as f64 / 1e9, 9)
    };
    let time = seconds(&|one| bound(one).time());
    let took = seconds(&|one| one.known.took);
    if time <= 0.0 || took <= 0.0 {
        return None;
    }
    // Chooses the term that is longest in most repeats; of equals, the first.
    let longest = Term::ALL.into_iter().rev().max_by_key(|term| {
        let of = repeats.iter().filter(|one| bound(one).binds() == *term);
        of.count()
    });
    let hidden = cell.engine.hide_processes;
    let sliced = cell.scheduler.slice(!hidden).and_then(|slice| {
        let times = repeats.iter().map(|one| bound(one).with_slices(slice));
        let times: Option<Vec<Nanos>> = times.collect();
        let sum: u64 = times?.iter().map(|time| time.as_nanos()).sum();
        Some(round(sum as f64 / 1e9, 9))
    });
    let rates = repeats
        .iter()
        .map(|one| bound(one).sum_of_rates(one.of_program));
    let rates: Option<Vec<f64>> = rates.collect();
    let count = repeats.len() as f64;
    let term = |term: Term| seconds(&|one| bound(one).term(term));
    Some(report::Bound {
        by: longest.unwrap_or(Term::Arm).name(),
        time_s: time,
        share: round(100.0 * time / took, 3),
        arm_s: term(Term::Arm),
        command_s: term(Term::Command),
        chain_s: term(Term::Chain),
        with_slices_s: sliced,
        programs_kb_s: rates.map(|rates| rates.iter().sum::<f64>() / count / 1e3),
    })
}
