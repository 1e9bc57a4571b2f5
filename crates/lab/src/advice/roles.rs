//! Roles of a load, their speeds in a run, and the score of a setting.

use super::{Role, RoleRun, SpeedMeasure};
use crate::prepare::Prepared;
use crate::report::{NamedRun, Run};
use crate::scenario::{Pace, WRITE_BACK, Workload, rows_of_groups};
use headtime_sched::Class;
use headtime_workload::Pacing;

/// Weight of roles of class idle, beside 1 of all others.
const IDLE_WEIGHT: f64 = 0.25;
/// Least ratio of a role's speed to today's in a score. A starved role has this one.
pub(super) const LEAST: f64 = 1e-3;

/// Roles of a load, in the order of the run's names.
pub(super) fn roles(prepared: &Prepared, run: &Run) -> Vec<Role> {
    let scenario = &prepared.scenario;
    let names = run.by_name.iter().filter(|named| named.name != WRITE_BACK);
    names
        .enumerate()
        .map(|(at, named)| {
            let mut processes = Vec::new();
            let (class, measure) = match &scenario.workload {
                Workload::Synthetic(groups) => {
                    let (_, places) = rows_of_groups(groups);
                    let first = places.iter().position(|place| *place == at);
                    let process = &groups[first.expect("each name is a group's")].process;
                    let measure = match process.pacing {
                        Pacing::Closed { .. } => SpeedMeasure::Requests,
                        Pacing::Open { .. } => SpeedMeasure::Response,
                    };
                    (process.class, measure)
                }
                Workload::Replay(replay) => {
                    let measure = match replay.pace {
                        Pace::Open(_) => SpeedMeasure::Response,
                        Pace::Closed(_) | Pace::ClosedPerProcess => SpeedMeasure::Requests,
                    };
                    let role = replay.roles.iter().find(|role| role.name == named.name);
                    processes = match role {
                        Some(role) => role.processes.clone(),
                        None => vec![named.name.clone()],
                    };
                    (role.map_or_else(Class::default, |role| role.class), measure)
                }
                Workload::Programs(programs) => {
                    let entry = run.programs.get(at).map(|program| program.entry);
                    let entry = entry.and_then(|entry| programs.entries.get(entry));
                    (
                        entry.map_or_else(Class::default, |entry| entry.class),
                        SpeedMeasure::Program,
                    )
                }
            };
            Role {
                name: named.name.clone(),
                class,
                measure,
                processes,
            }
        })
        .collect()
}

/// Results of the roles in a run.
pub(super) fn role_runs(roles: &[Role], run: &Run) -> Vec<RoleRun> {
    let of = |(at, role): (usize, &Role)| {
        let named = run.by_name.iter().find(|named| named.name == role.name);
        let empty = NamedRun::default();
        let named = named.unwrap_or(&empty);
        let response = named.response_ms;
        let waited = named.unfinished as f64 * named.oldest_unfinished_ms / 2.0;
        let (requests, unfinished) = (named.requests as f64, named.unfinished as f64);
        let mean = (requests * response.mean + waited) / (requests + unfinished).max(1.0);
        let speed = match role.measure {
            SpeedMeasure::Requests => named.iops,
            SpeedMeasure::Response if named.requests > 0 => 1e3 / mean.max(1e-6),
            SpeedMeasure::Response => 0.0,
            SpeedMeasure::Program => run.programs.get(at).map_or(0.0, |one| one.throughput_mb_s),
        };
        RoleRun {
            speed,
            iops: named.iops,
            mb_s: match run.programs.get(at) {
                Some(program) => program.throughput_mb_s,
                None => named.throughput_mb_s,
            },
            p50_ms: response.p50,
            p99_ms: response.p99,
            worst_ms: response.max.max(named.oldest_unfinished_ms),
        }
    };
    roles.iter().enumerate().map(of).collect()
}

/// Weight of a role in scores.
fn weight(role: &Role) -> f64 {
    match role.class == Class::IDLE {
        true => IDLE_WEIGHT,
        false => 1.0,
    }
}

/// Weighted geometric mean, over the roles, of a speed divided by the speed today.
pub(super) fn score(roles: &[Role], runs: &[RoleRun], today: &[RoleRun]) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for ((role, run), today) in roles.iter().zip(runs).zip(today) {
        let ratio = match (run.speed > 0.0, today.speed > 0.0) {
            (false, false) => 1.0,
            (true, false) => 1.0 / LEAST,
            (_, true) => (run.speed / today.speed).clamp(LEAST, 1.0 / LEAST),
        };
        sum += weight(role) * ratio.ln();
        weights += weight(role);
    }
    (sum / weights).exp()
}

/// Geometric mean of a setting's scores: `seeds` scores of seeds, then scores of changes. A change counts only if it lowers the score: no setting is
/// recommended for an assumption that it would gain from. A run that failed counts as a starved one.
pub(super) fn mean(scores: &[Option<f64>], seeds: usize) -> f64 {
    let logs = scores.iter().map(|score| score.unwrap_or(LEAST).ln());
    let logs: Vec<f64> = logs.collect();
    let (seeds, changes) = logs.split_at(seeds);
    let usual = seeds.iter().sum::<f64>() / seeds.len() as f64;
    let changes = changes.iter().map(|log| log.min(usual));
    ((seeds.iter().sum::<f64>() + changes.sum::<f64>()) / logs.len() as f64).exp()
}

/// Means over the runs of the seeds, which come first. The worst is the worst of all.
pub(super) fn mean_of_seeds(results: &[Option<Vec<RoleRun>>], seeds: u32) -> Vec<RoleRun> {
    let runs: Vec<&Vec<RoleRun>> = results.iter().take(seeds as usize).flatten().collect();
    let roles = runs.first().map_or(0, |runs| runs.len());
    let of = |role: usize| {
        let mean = |value: fn(&RoleRun) -> f64| {
            let sum: f64 = runs.iter().map(|run| value(&run[role])).sum();
            sum / runs.len() as f64
        };
        RoleRun {
            speed: mean(|run| run.speed),
            iops: mean(|run| run.iops),
            mb_s: mean(|run| run.mb_s),
            p50_ms: mean(|run| run.p50_ms),
            p99_ms: mean(|run| run.p99_ms),
            worst_ms: runs
                .iter()
                .map(|run| run[role].worst_ms)
                .fold(0.0, f64::max),
        }
    };
    (0..roles).map(of).collect()
}

#[cfg(test)]
mod tests;
