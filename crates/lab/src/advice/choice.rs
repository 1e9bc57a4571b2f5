//! The choice among the settings of the second round, and how sure the choice is.

use super::roles::LEAST;
use super::settings::{DiskSetting, Side};
use super::{GapScan, Pick, Quicker, Role, Tried};
use headtime_sched::Class;

/// Ratio of scores within which two settings count as equal.
pub(super) const EQUAL: f64 = 1.03;
/// Least score of a run that is no worse than today's: runs of one setting with other seeds differ by more.
const NO_WORSE: f64 = 0.99;
/// Ratio of scores beyond which a recommendation is beaten.
const BEATEN: f64 = 1.1;

/// Part of the recommended setting's 99th percentile that a quicker setting has at most, and part of its speed that this setting has at
/// least, both of one role.
const QUICKER: (f64, f64) = (0.5, 0.97);
/// 99th percentile below which nobody needs a quicker setting, in ms: some turns of a disk.
const QUICK_MS: f64 = 50.0;
/// Least score of a quicker setting, and least speed of each role, relative to the recommended setting's.
const QUICKER_LEAST: (f64, f64) = (0.5, 0.1);

/// Least score of the load beside a scan, relative to the load alone, at which the scan costs little.
const SCAN_COST: f64 = 0.95;
/// Rate below which a scan finds hardly any gaps, in MB/s: a disk of 18 TB in six years.
pub const SCAN_LEAST: f64 = 0.1;

/// The better of two scans. A scan that finds gaps is better than a scan that does not. If both scans cost little, the faster scan is better.
/// Otherwise the cheaper scan is better.
pub(super) fn better_scan(one: GapScan, other: GapScan) -> GapScan {
    let rank = |scan: &GapScan| {
        let costs_little = scan.cost >= SCAN_COST;
        let value = if costs_little { scan.mb_s } else { scan.cost };
        (scan.mb_s >= SCAN_LEAST, costs_little, value)
    };
    match rank(&other) > rank(&one) {
        true => other,
        false => one,
    }
}

/// Place of the recommended setting among the finalists. The first finalist is today's setting. Settings of one side compete; today's setting competes
/// on the side of Linux.
pub(super) fn choose(finals: &[&DiskSetting], means: &[f64], side: Side) -> usize {
    let of_side = || (0..finals.len()).filter(|place| finals[*place].side == side);
    let best = of_side().map(|place| means[place]).fold(0.0, f64::max);
    let near = of_side().filter(|place| means[*place] * EQUAL >= best);
    let least = near.min_by_key(|place| finals[*place].distance(finals[0]));
    least.unwrap_or(0)
}

/// The setting for a person who cares more for the slowest requests of one role than for the score: the best score among the settings of
/// the same side that help the role with the longest 99th percentile. Roles of class idle do not count.
pub(super) fn quicker(roles: &[Role], tried: &[Tried], chosen: usize) -> Option<Quicker> {
    let own = &tried[chosen];
    let others = (0..tried.len()).filter(|at| tried[*at].setting.side == own.setting.side);
    let others: Vec<usize> = others
        .filter(|at| {
            let other = &tried[*at];
            let mut speeds = other.roles.iter().zip(&own.roles);
            other.score >= QUICKER_LEAST.0 * own.score
                && speeds.all(|(is, was)| is.speed > 0.0 && is.speed >= QUICKER_LEAST.1 * was.speed)
        })
        .collect();
    let mut slowest: Vec<usize> = (0..roles.len())
        .filter(|role| roles[*role].class < Class::IDLE && own.roles[*role].p99_ms >= QUICK_MS)
        .collect();
    slowest.sort_by(|a, b| own.roles[*b].p99_ms.total_cmp(&own.roles[*a].p99_ms));
    slowest.into_iter().find_map(|role| {
        let helps = |at: &&usize| {
            let (is, was) = (&tried[**at].roles[role], &own.roles[role]);
            is.p99_ms <= QUICKER.0 * was.p99_ms && is.speed >= QUICKER.1 * was.speed
        };
        let best = others.iter().filter(helps);
        let best = best.max_by(|a, b| tried[**a].score.total_cmp(&tried[**b].score))?;
        Some(Quicker { tried: *best, role })
    })
}

/// How sure the recommendation of the finalist `chosen` is. `tried` is the index of the setting in the advice, `ratios` has the scores by
/// finalist, by case, and `cases` the names of the cases.
pub(super) fn pick(
    chosen: usize,
    tried: usize,
    finals: &[&DiskSetting],
    ratios: &[Vec<Option<f64>>],
    cases: &[String],
) -> Pick {
    let (mut better, mut worse_if, mut beaten_if) = (0, Vec::new(), Vec::new());
    for (case, name) in cases.iter().enumerate() {
        let own = ratios[chosen][case].unwrap_or(LEAST);
        if own >= NO_WORSE {
            better += 1;
        } else {
            worse_if.push((name.clone(), own));
        }
        let rivals = (0..finals.len()).filter(|place| finals[*place].side == finals[chosen].side);
        let rivals = rivals.filter_map(|place| Some((place, ratios[place][case]?)));
        let best = rivals.max_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some((place, best)) = best.filter(|(_, best)| *best > own * BEATEN) {
            beaten_if.push((name.clone(), finals[place].to_string(), best / own));
        }
    }
    Pick {
        tried,
        gains: false,
        no_worse_percent: 100.0 * f64::from(better) / cases.len() as f64,
        worse_if,
        beaten_if,
        quicker: None,
    }
}

#[cfg(test)]
mod tests;
