//! The two rounds of runs, and the choice.

use super::assumed::{Change, changes};
use super::settings::{DiskSetting, Side, candidates};
use super::waits::{Waits, waits};
use super::{Advice, Curve, GapScan, Pick, Question, Role, RoleRun, SpeedMeasure, Tried};
use crate::batch;
use crate::execute::{Execution, Names, Sample, With, execute};
use crate::fault::Fault;
use crate::prepare::{Prepared, prepare};
use crate::progress::Progress;
use crate::report::{NamedRun, Run};
use crate::scenario::{Pace, RoleSpec, Scenario, WRITE_BACK, Workload};
use headtime_gaps::DriveQueue;
use headtime_sched::Class;
use headtime_stack::ScanSpec;
use headtime_units::{Bytes, Nanos};
use headtime_workload::Pacing;

/// Settings of each side that the second round repeats.
const FINALISTS: usize = 4;
/// Ratio of scores within which two settings count as equal.
const EQUAL: f64 = 1.03;
/// Least score of a run that is no worse than today's: runs of one setting with other seeds differ by more.
const NO_WORSE: f64 = 0.99;
/// Ratio of scores beyond which a recommendation is beaten.
const BEATEN: f64 = 1.1;
/// Weight of roles of class idle, beside 1 of all others.
const IDLE_WEIGHT: f64 = 0.25;
/// Least ratio of a role's speed to today's in a score. A starved role has this one.
const LEAST: f64 = 1e-3;
/// Requests of a run under today's setting beyond which runs are shorter.
const REQUESTS: u64 = 20_000;
/// Shortest measured part of a run: some turns of a scheduler that serves each of ten clients for a second.
const SHORTEST: Nanos = Nanos::from_secs(10);
/// Block of the scan in gaps: that of a scrub.
const SCAN_BLOCK: Bytes = Bytes(64 << 10);
/// Longest measured part of a run. Rare requests give no better answer in ten times as long.
const LONGEST: Nanos = Nanos::from_secs(300);
/// Requests of a run under today's setting below which the answer is doubtful.
const FEW: u64 = 100;
/// Most points of a curve of response times.
const POINTS: usize = 200;

/// One run to make: index of the setting, index of the change, and seed.
#[derive(Clone, Copy, Debug)]
struct RunTask {
    setting: usize,
    change: Option<usize>,
    seed: u64,
}

/// Answers a question.
///
/// # Errors
///
/// If the load does not run on the drive under today's setting. Other settings that do not run are left out.
pub fn advise(question: &Question, with: With<'_>) -> Result<Advice, Fault> {
    let mut load = question.load.clone();
    let cluster =
        matches!(&load.workload, Workload::Programs(programs) if programs.cluster.is_some());
    if load.array.is_some() || cluster {
        let problem = "a report is about one disk; leave out [array] or [cluster]";
        return Err(Fault::Input(problem.to_owned()));
    }
    load.run.repeats = 1;
    load.freeblock = None;
    let first_seed = load.seed;
    let mut recorded = record(&load, &question.today, None, with)?;
    if shorten(&mut load, &recorded.run) {
        recorded = record(&load, &question.today, None, with)?;
    }
    let roles = recorded.roles.clone();
    let classes = roles.windows(2).any(|pair| pair[0].class != pair[1].class);
    let names: Vec<String> = roles.iter().map(|role| role.name.clone()).collect();
    let profile = &recorded.prepared.drives[0].profile;
    let changes = changes(&load, profile, &names)?;
    let mut settings = vec![question.today.clone()];
    let others = candidates(&load, classes)?.into_iter();
    settings.extend(others.filter(|setting| *setting != question.today));
    let rounds = Rounds {
        load: &load,
        settings: &settings,
        changes: &changes,
        roles: &roles,
        jobs: question.jobs,
        with,
    };
    let task = |setting| RunTask {
        setting,
        change: None,
        seed: first_seed,
    };
    let first = rounds.run((0..settings.len()).map(task).collect())?;
    let of_today = first[0]
        .clone()
        .ok_or_else(|| Fault::Input("the load does not run under today's setting".to_owned()))?;
    let scores: Vec<Option<f64>> = first
        .iter()
        .map(|runs| runs.as_ref().map(|runs| score(&roles, runs, &of_today)))
        .collect();
    let mut finalists = vec![0];
    for side in [Side::Linux, Side::Headtime] {
        let mut of_side: Vec<usize> = (1..settings.len())
            .filter(|at| settings[*at].side == side && scores[*at].is_some())
            .collect();
        let score = |at: usize| scores[at].unwrap_or_default();
        let best = of_side.iter().map(|at| score(*at)).fold(0.0, f64::max);
        // Among equals those that change least go on.
        of_side.sort_by(|a, b| {
            let is_less = |at: usize| score(at) * EQUAL < best;
            let (less, other) = (is_less(*a), is_less(*b));
            let order = less.cmp(&other).then_with(|| match less {
                true => score(*b).total_cmp(&score(*a)),
                false => settings[*a]
                    .distance(&settings[0])
                    .cmp(&settings[*b].distance(&settings[0])),
            });
            order.then(score(*b).total_cmp(&score(*a)))
        });
        finalists.extend(of_side.into_iter().take(FINALISTS));
    }
    let cases: Vec<(Option<usize>, u64)> = (0..u64::from(question.seeds))
        .map(|more| (None, first_seed.wrapping_add(more)))
        .chain((0..changes.len()).map(|change| (Some(change), first_seed)))
        .collect();
    let tasks: Vec<RunTask> = finalists
        .iter()
        .flat_map(|setting| {
            cases.iter().map(|(change, seed)| RunTask {
                setting: *setting,
                change: *change,
                seed: *seed,
            })
        })
        .collect();
    let runs = settings.len() + tasks.len();
    let second = rounds.run(tasks)?;
    // Results by finalist, by case.
    let second: Vec<&[Option<Vec<RoleRun>>]> = second.chunks(cases.len()).collect();
    let ratios: Vec<Vec<Option<f64>>> = second
        .iter()
        .map(|results| {
            let pairs = results.iter().zip(second[0]);
            let ratio =
                pairs.map(|(own, today)| Some(score(&roles, own.as_ref()?, today.as_ref()?)));
            ratio.collect()
        })
        .collect();
    let means: Vec<f64> = ratios
        .iter()
        .map(|ratios| mean(ratios, question.seeds as usize))
        .collect();
    let choice = |side| {
        let chosen = choose(&finalists, &settings, &means, side);
        (
            chosen,
            pick(chosen, &finalists, &settings, &ratios, &cases, &changes),
        )
    };
    let (linux, mut linux_pick) = choice(Side::Linux);
    let (headtime, mut headtime_pick) = choice(Side::Headtime);
    linux_pick.gains = means[linux] > EQUAL;
    headtime_pick.gains = means[headtime] > EQUAL * means[linux].max(1.0);
    let mut tried: Vec<(usize, Tried)> = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        let Some(runs) = &first[at] else { continue };
        let finalist = finalists.iter().position(|finalist| *finalist == at);
        let (roles, score) = match finalist {
            Some(place) => (mean_of_seeds(second[place], question.seeds), means[place]),
            None => (runs.clone(), scores[at].unwrap_or_default()),
        };
        tried.push((
            at,
            Tried {
                setting: setting.clone(),
                roles,
                score,
                second_round: finalist.is_some(),
            },
        ));
    }
    tried[1..].sort_by(|(_, a), (_, b)| {
        let order = b.second_round.cmp(&a.second_round);
        order.then(b.score.partial_cmp(&a.score).expect("scores are numbers"))
    });
    let place = |setting: usize| {
        let at = tried.iter().position(|(at, _)| *at == setting);
        at.expect("a recommended setting was tried")
    };
    linux_pick.tried = place(finalists[linux]);
    headtime_pick.tried = place(finalists[headtime]);
    let mut curves = vec![(0, recorded.curves(roles.len()))];
    for at in [linux_pick.tried, headtime_pick.tried] {
        if curves.iter().all(|(known, _)| *known != at) {
            let of = record(&load, &tried[at].1.setting, Some(&roles), with)?;
            curves.push((at, of.curves(roles.len())));
        }
    }
    let mut notes = recorded.prepared.notes.clone();
    if recorded.run.requests < FEW {
        notes.push(format!(
            "the load has {} requests, too few for a sure answer",
            recorded.run.requests
        ));
    }
    if let Workload::Replay(replay) = &load.workload {
        let lacks = |role: &&RoleSpec| roles.iter().all(|there| there.name != role.name);
        let lacking = replay.roles.iter().filter(lacks);
        notes.extend(lacking.map(|role| {
            format!("role {}: no request is of its processes; `headtime trace info` names the processes", role.name)
        }));
    }
    let scan = scan(
        &rounds,
        &settings[finalists[headtime]],
        &first[finalists[headtime]],
    )?;
    Ok(Advice {
        title: load.title.clone(),
        drive: profile.name.clone(),
        simulated_s: recorded.run.simulated_s,
        tried: tried.into_iter().map(|(_, tried)| tried).collect(),
        waits: recorded.waits(roles.len()),
        curves,
        linux: linux_pick,
        headtime: headtime_pick,
        changes,
        scan,
        seeds: question.seeds,
        runs: runs + 4,
        notes,
        roles,
    })
}

/// Scores of all settings of an advice on another load with the same roles, relative to today's setting on that load. `None` for a setting
/// that does not run.
///
/// # Errors
///
/// As [`advise`].
pub fn scores(
    load: &Scenario,
    advice: &Advice,
    jobs: Option<u16>,
    with: With<'_>,
) -> Result<Vec<Option<f64>>, Fault> {
    let settings: Vec<DiskSetting> = (advice.tried.iter())
        .map(|tried| tried.setting.clone())
        .collect();
    let rounds = Rounds {
        load,
        settings: &settings,
        changes: &[],
        roles: &advice.roles,
        jobs,
        with,
    };
    let task = |setting| RunTask {
        setting,
        change: None,
        seed: load.seed,
    };
    let runs = rounds.run((0..settings.len()).map(task).collect())?;
    let today = runs[0].clone().unwrap_or_default();
    let score = |runs: &Option<Vec<RoleRun>>| Some(score(&advice.roles, runs.as_ref()?, &today));
    Ok(runs.iter().map(score).collect())
}

/// Shortens runs of a load with many requests, so that an answer takes minutes at most. Returns true if the length changed.
fn shorten(load: &mut Scenario, run: &Run) -> bool {
    let Workload::Synthetic(_) = &load.workload else {
        return false;
    };
    let Some(duration) = load.run.duration else {
        return false;
    };
    let measured = duration.saturating_sub(load.run.warm_up);
    let part = REQUESTS as f64 / run.requests.max(1) as f64;
    let wanted = Nanos::from_millis_f64(measured.as_millis_f64() * part).clamp(SHORTEST, LONGEST);
    load.run.duration = Some(load.run.warm_up + wanted.min(measured));
    load.run.duration != Some(duration)
}

/// A run with the times of each request.
struct Recorded {
    prepared: Prepared,
    run: Run,
    roles: Vec<Role>,
    /// Requests with the index of their role, in the order of completion.
    samples: Vec<(usize, Sample)>,
}

/// Runs a load under a setting, and records its requests. Roles are those of `known`, or else those of the run.
fn record(
    load: &Scenario,
    setting: &DiskSetting,
    known: Option<&[Role]>,
    with: With<'_>,
) -> Result<Recorded, Fault> {
    let prepared = prepare(setting.applied(load), with.stock)?;
    // Requests of several disks are not recorded.
    let record = prepared.drives[0].map().is_none();
    let how = Execution {
        jobs: Some(1),
        record,
        ..Execution::default()
    };
    let mut executed = execute(&prepared, how, with)?;
    let run = executed.runs.swap_remove(0);
    let programs: Vec<&str> = run.programs.iter().map(|one| one.name.as_str()).collect();
    let names = Names::of(&prepared, &programs);
    let roles = known.map_or_else(|| roles(&prepared, &run), <[Role]>::to_vec);
    // Names without requests have no role.
    let role_of = |name: &&str| roles.iter().position(|role| role.name == *name);
    let role_of: Vec<Option<usize>> = names.texts().iter().map(role_of).collect();
    let samples = executed.samples.into_iter().next().unwrap_or_default();
    let known = samples.into_iter().filter_map(|sample| {
        let role = role_of[names.place(&sample.origin)?]?;
        Some((role, sample))
    });
    Ok(Recorded {
        samples: known.collect(),
        roles,
        prepared,
        run,
    })
}

impl Recorded {
    fn from(&self) -> f64 {
        self.run.warm_up_s
    }

    fn waits(&self, roles: usize) -> Vec<Waits> {
        match self.samples.is_empty() {
            true => Vec::new(),
            false => waits(&self.samples, roles, self.from()),
        }
    }

    /// Response times of each role in ms, ascending, with the share of requests that took no longer. At most [`POINTS`] of each role.
    fn curves(&self, roles: usize) -> Vec<Curve> {
        let curve = |role| {
            let own = self.samples.iter();
            let own = own.filter(|(of, one)| *of == role && one.done >= self.from());
            let mut times: Vec<f64> = own.map(|(_, one)| 1e3 * (one.done - one.arrived)).collect();
            times.sort_by(f64::total_cmp);
            let count = times.len();
            let points = count.min(POINTS);
            let point = |point: usize| {
                let at = (point + 1) * count / points - 1;
                (times[at], (at + 1) as f64 / count as f64)
            };
            (0..points).map(point).collect()
        };
        (0..roles).map(curve).collect()
    }
}

/// Roles of a load, in the order of the run's names.
fn roles(prepared: &Prepared, run: &Run) -> Vec<Role> {
    let scenario = &prepared.scenario;
    let names = run.by_name.iter().filter(|named| named.name != WRITE_BACK);
    names
        .enumerate()
        .map(|(at, named)| {
            let (class, measure) = match &scenario.workload {
                Workload::Synthetic(groups) => {
                    let process = &groups[at].process;
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
            }
        })
        .collect()
}

/// Results of the roles in a run.
fn role_runs(roles: &[Role], run: &Run) -> Vec<RoleRun> {
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

/// Weighted geometric mean of the speeds over those of `today`.
fn score(roles: &[Role], runs: &[RoleRun], today: &[RoleRun]) -> f64 {
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

/// Geometric mean of a setting's scores, of which the first `seeds` are of seeds. A change counts only if it lowers the score: no setting is
/// recommended for an assumption that it would gain from. A run that failed counts as a starved one.
fn mean(scores: &[Option<f64>], seeds: usize) -> f64 {
    let logs = scores.iter().map(|score| score.unwrap_or(LEAST).ln());
    let logs: Vec<f64> = logs.collect();
    let (seeds, changes) = logs.split_at(seeds);
    let usual = seeds.iter().sum::<f64>() / seeds.len() as f64;
    let changes = changes.iter().map(|log| log.min(usual));
    ((seeds.iter().sum::<f64>() + changes.sum::<f64>()) / logs.len() as f64).exp()
}

/// Means over the runs of the seeds, which come first. The worst is the worst of all.
fn mean_of_seeds(results: &[Option<Vec<RoleRun>>], seeds: u32) -> Vec<RoleRun> {
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

/// Place of the recommended setting among the finalists. Settings of one side compete; today's setting competes on the side of Linux.
fn choose(finalists: &[usize], settings: &[DiskSetting], means: &[f64], side: Side) -> usize {
    let today = &settings[0];
    let of_side = (0..finalists.len()).filter(|place| settings[finalists[*place]].side == side);
    let of_side: Vec<usize> = of_side.collect();
    let best = of_side
        .iter()
        .map(|place| means[*place])
        .fold(0.0, f64::max);
    let near = of_side
        .iter()
        .filter(|place| means[**place] * EQUAL >= best);
    let least = near.min_by_key(|place| settings[finalists[**place]].distance(today));
    least.copied().unwrap_or(0)
}

/// How sure a recommendation is.
fn pick(
    chosen: usize,
    finalists: &[usize],
    settings: &[DiskSetting],
    ratios: &[Vec<Option<f64>>],
    cases: &[(Option<usize>, u64)],
    changes: &[Change],
) -> Pick {
    let is_today = finalists[chosen] == 0;
    let side = settings[finalists[chosen]].side;
    let name = |(change, seed): &(Option<usize>, u64)| match change {
        Some(change) => changes[*change].name.clone(),
        None => format!("seed {seed}"),
    };
    let (mut better, mut worse_if, mut beaten_if) = (0, Vec::new(), Vec::new());
    for (case, of) in cases.iter().enumerate() {
        let own = ratios[chosen][case].unwrap_or(LEAST);
        if own >= NO_WORSE {
            better += 1;
        } else {
            worse_if.push((name(of), own));
        }
        let rivals = (0..finalists.len()).filter(|place| settings[finalists[*place]].side == side);
        let rivals = rivals.filter_map(|place| Some((place, ratios[place][case]?)));
        let best = rivals.max_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some((place, best)) = best.filter(|(_, best)| *best > own * BEATEN) {
            let setting = settings[finalists[place]].to_string();
            beaten_if.push((name(of), setting, best / own));
        }
    }
    Pick {
        tried: 0,
        is_today,
        gains: false,
        better_percent: 100.0 * f64::from(better) / cases.len() as f64,
        worse_if,
        beaten_if,
    }
}

struct Rounds<'a> {
    load: &'a Scenario,
    settings: &'a [DiskSetting],
    changes: &'a [Change],
    roles: &'a [Role],
    jobs: Option<u16>,
    with: With<'a>,
}

impl Rounds<'_> {
    /// Makes runs. A run that fails, as for a scheduler that does not fit the load, is absent.
    ///
    /// # Errors
    ///
    /// [`Fault::Interrupted`].
    fn run(&self, tasks: Vec<RunTask>) -> Result<Vec<Option<Vec<RoleRun>>>, Fault> {
        let progress = self.with.progress;
        progress.begin(tasks.len() as u64);
        let made = batch::all(self.jobs, tasks, |task| self.one(task))?;
        progress.end();
        let read = made.into_iter().map(|made| match made {
            Ok(runs) => Ok(Some(runs)),
            Err(Fault::Interrupted) => Err(Fault::Interrupted),
            Err(_) => Ok(None),
        });
        read.collect()
    }

    fn one(&self, task: RunTask) -> Result<Vec<RoleRun>, Fault> {
        let mut scenario = self.settings[task.setting].applied(self.load);
        scenario.seed = task.seed;
        if let Some(change) = task.change {
            self.changes[change].apply(&mut scenario);
        }
        Ok(role_runs(self.roles, &self.report(scenario)?))
    }

    fn report(&self, scenario: Scenario) -> Result<Run, Fault> {
        let prepared = prepare(scenario, self.with.stock)?;
        let how = Execution {
            jobs: Some(1),
            ..Execution::default()
        };
        let hidden = Progress::default();
        let with = With {
            progress: &hidden,
            ..self.with
        };
        Ok(execute(&prepared, how, with)?.runs.swap_remove(0))
    }
}

/// Runs a scan in gaps beside the load under a setting. A scan needs few commands in the drive.
fn scan(
    rounds: &Rounds<'_>,
    setting: &DiskSetting,
    without: &Option<Vec<RoleRun>>,
) -> Result<Option<GapScan>, Fault> {
    let mut scenario = setting.applied(rounds.load);
    scenario.freeblock = Some(ScanSpec {
        queue: DriveQueue::Short,
        block: Some(SCAN_BLOCK),
        ..ScanSpec::default()
    });
    let run = match rounds.report(scenario) {
        Ok(run) => run,
        Err(Fault::Interrupted) => return Err(Fault::Interrupted),
        Err(_) => return Ok(None),
    };
    let (Some(scan), Some(without)) = (run.freeblock, without) else {
        return Ok(None);
    };
    let bytes = prepare(setting.applied(rounds.load), rounds.with.stock)?.drives[0].one_disk();
    let bytes = bytes.capacity.get() as f64 * f64::from(bytes.sector_bytes);
    Ok(Some(GapScan {
        mb_s: scan.mb_s,
        days: bytes / (scan.mb_s.max(1e-9) * 1e6) / 86_400.0,
        cost: score(rounds.roles, &role_runs(rounds.roles, &run), without),
    }))
}

#[cfg(test)]
mod tests;
