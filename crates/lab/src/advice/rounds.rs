//! The two rounds of runs.

use super::assumed::{Change, changes};
use super::choice::{EQUAL, better_scan, choose, pick, quicker};
use super::recorded::record;
use super::roles::{mean, mean_of_seeds, role_runs, score};
use super::settings::{DiskSetting, Side, candidates};
use super::{Advice, Curve, GapScan, Question, Role, RoleRun, SpeedMeasure, Tried};
use crate::batch;
use crate::execute::{Execution, With, execute};
use crate::fault::Fault;
use crate::prepare::prepare;
use crate::progress::Progress;
use crate::report::Run;
use crate::scenario::{Group, RoleSpec, Scenario, Workload};
use headtime_gaps::DriveQueue;
use headtime_host::DiskSize;
use headtime_stack::ScanSpec;
use headtime_units::{Bytes, Nanos};

/// Settings of each side that the second round repeats.
const FINALISTS: usize = 4;
/// Requests of a run under today's setting beyond which runs are shorter.
const REQUESTS: u64 = 20_000;
/// Shortest measured part of a run: some turns of a scheduler that serves each of ten clients for a second.
const SHORTEST: Nanos = Nanos::from_secs(10);
/// Longest measured part of a run. Rare requests give no better answer in ten times as long.
const LONGEST: Nanos = Nanos::from_secs(300);
/// Least warm-up of made-up loads. `bfq` raises the weight of new processes for 10.5 s on an average drive.
const WARM_UP: Nanos = Nanos::from_secs(12);
/// Part of the requests that an open load may leave unfinished. With more, the load exceeds the disk.
const UNFINISHED_PART: u64 = 20;
/// Requests of a run under today's setting below which the answer is doubtful.
const FEW: u64 = 100;
/// Block of the scan in gaps; a scrub has the same.
const SCAN_BLOCK: Bytes = Bytes(64 << 10);

/// Results of the roles in a run. `None` if the setting does not run.
type MaybeRoles = Option<Vec<RoleRun>>;

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
/// If the load is not about one disk, or does not run on the drive under today's setting. Other settings that do not run are left out.
pub fn advise(question: &Question, with: With<'_>) -> Result<Advice, Fault> {
    let (mut load, mut notes) = one_disk(&question.load)?;
    let (disk, deepest) = drive(&load, &question.today, with)?;
    let today = DiskSetting {
        depth: question.today.depth.min(deepest),
        ..question.today.clone()
    };
    if today.depth < question.today.depth {
        notes.push(format!(
            "the drive takes {deepest} commands at a time, so no setting has more"
        ));
    }
    let mut recorded = record(&load, &today, None, with)?;
    let mut runs = 1;
    if shorten(&mut load, &recorded.run) {
        recorded = record(&load, &today, None, with)?;
        runs += 1;
    }
    notes.extend(recorded.prepared.notes.iter().cloned());
    let roles = recorded.roles.clone();
    notes.extend(doubts(&load, &roles, &recorded.run));
    let names: Vec<String> = roles.iter().map(|role| role.name.clone()).collect();
    let changes = changes(&load, &recorded.prepared.drives[0].profile, &names)?;
    let classes = roles.windows(2).any(|pair| pair[0].class != pair[1].class);
    let mut settings = vec![today];
    let others = candidates(&load, classes, deepest).into_iter();
    settings.extend(
        others
            .filter(|setting| *setting != settings[0])
            .collect::<Vec<_>>(),
    );
    let rounds = Rounds {
        load: &load,
        settings: &settings,
        changes: &changes,
        roles: &roles,
        jobs: question.jobs,
        with,
    };
    let first = rounds.first(role_runs(&roles, &recorded.run))?;
    let scores = rounds.scores(&first);
    let finalists = rounds.finalists(&scores);
    let second = rounds.second(&finalists, &first, question.seeds)?;
    runs += settings.len() + finalists.len() * (second.names.len() - 1);
    let means: Vec<f64> = (second.ratios.iter())
        .map(|ratios| mean(ratios, question.seeds as usize))
        .collect();
    let mut tried: Vec<(usize, Tried)> = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        let (Some(runs), Some(score)) = (&first[at], scores[at]) else {
            continue;
        };
        let place = finalists.iter().position(|finalist| *finalist == at);
        let setting = setting.clone();
        let of = match place {
            Some(place) => Tried {
                setting,
                roles: mean_of_seeds(&second.results[place], question.seeds),
                score: means[place],
                second_round: true,
            },
            None => Tried {
                setting,
                roles: runs.clone(),
                score,
                second_round: false,
            },
        };
        tried.push((at, of));
    }
    tried[1..].sort_by(|(_, a), (_, b)| {
        let order = b.second_round.cmp(&a.second_round);
        order.then(b.score.total_cmp(&a.score))
    });
    let finals: Vec<&DiskSetting> = finalists.iter().map(|at| &settings[*at]).collect();
    let recommend = |side: Side| {
        let chosen = choose(&finals, &means, side);
        let place = tried.iter().position(|(at, _)| *at == finalists[chosen]);
        let place = place.expect("each finalist was tried");
        let of = pick(chosen, place, &finals, &second.ratios, &second.names);
        (chosen, of)
    };
    let (chosen_linux, mut linux) = recommend(Side::Linux);
    let (chosen_headtime, mut headtime) = recommend(Side::Headtime);
    linux.gains = means[chosen_linux] > EQUAL;
    headtime.gains = means[chosen_headtime] > EQUAL * means[chosen_linux].max(1.0);
    let tried: Vec<Tried> = tried.into_iter().map(|(_, tried)| tried).collect();
    for of in [&mut linux, &mut headtime] {
        of.quicker = quicker(&roles, &tried, of.tried);
    }
    let mut curves: Vec<(usize, Vec<Curve>)> = vec![(0, recorded.curves())];
    for at in [linux.tried, headtime.tried] {
        if curves.iter().all(|(known, _)| *known != at) {
            let of = record(&load, &tried[at].setting, Some(&roles), with)?;
            curves.push((at, of.curves()));
            runs += 1;
        }
    }
    let of_headtime = finalists[chosen_headtime];
    let without = first[of_headtime].as_ref().expect("a finalist runs");
    let scan = rounds.scan(&settings[of_headtime], without, disk)?;
    Ok(Advice {
        title: load.title.clone(),
        drive: recorded.prepared.drives[0].profile.name.clone(),
        simulated_s: recorded.run.simulated_s,
        tried,
        waits: recorded.waits(),
        curves,
        linux,
        headtime,
        changes,
        scan,
        seeds: question.seeds,
        runs: runs + 2,
        notes,
        roles,
    })
}

/// The load of a question, once, without a scan, and no longer than [`LONGEST`]. Also returns a note for each omission.
fn one_disk(load: &Scenario) -> Result<(Scenario, Vec<String>), Fault> {
    let mut load = load.clone();
    let cluster = match &load.workload {
        Workload::Programs(programs) => programs.cluster.is_some(),
        Workload::Synthetic(_) | Workload::Replay(_) => false,
    };
    if load.array.is_some() || cluster {
        let problem = "a report is about one disk; leave out [array] or [cluster]";
        return Err(Fault::Input(problem.to_owned()));
    }
    if load.drives.len() > 1 {
        let problem = "a report is about one drive; give one in drive.profile and drive.firmware";
        return Err(Fault::Input(problem.to_owned()));
    }
    let mut notes = Vec::new();
    if load.freeblock.take().is_some() {
        notes.push("[freeblock] is left out: a report has a scan of its own".to_owned());
    }
    load.run.repeats = 1;
    // A load that ends by itself may be over before then.
    let is_endless = |group: &Group| group.process.count.is_none() && group.process.until.is_none();
    if let (Workload::Synthetic(groups), Some(duration), None) =
        (&load.workload, load.run.duration, load.run.requests)
        && load.run.warm_up < WARM_UP
        && groups.iter().all(is_endless)
    {
        let more = WARM_UP - load.run.warm_up;
        load.run.warm_up = WARM_UP;
        load.run.duration = Some(duration.saturating_add(more));
        notes.push(format!(
            "the first {WARM_UP} of each run do not count: bfq prefers new processes for about 10 s"
        ));
    }
    let longest = load.run.warm_up.saturating_add(LONGEST);
    if let (Workload::Synthetic(_), Some(duration)) = (&load.workload, &mut load.run.duration)
        && *duration > longest
    {
        notes.push(format!("each run takes {longest} in place of {duration}"));
        *duration = longest;
    }
    Ok((load, notes))
}

/// Size of the drive, and the commands that the drive takes at a time.
fn drive(load: &Scenario, today: &DiskSetting, with: With<'_>) -> Result<(DiskSize, u32), Fault> {
    // With more commands than the profile says, a simulated drive takes more.
    let one = DiskSetting {
        depth: 1,
        ..today.clone()
    };
    let prepared = prepare(one.applied(load), with.stock)?;
    let drive = &prepared.drives[0];
    Ok((drive.one_disk(), drive.profile.queue.depth))
}

/// Reasons to doubt the answer.
fn doubts(load: &Scenario, roles: &[Role], run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    if run.requests < FEW {
        notes.push(format!(
            "the load has {} requests, too few for a sure answer",
            run.requests
        ));
    }
    let is_open = roles
        .iter()
        .any(|role| role.measure == SpeedMeasure::Response);
    if is_open && run.unfinished * UNFINISHED_PART > run.requests {
        notes.push(format!(
            "under today's setting {} requests are unfinished at the end: the load exceeds the disk, so response times grow with the length of a run",
            run.unfinished
        ));
    }
    if let Workload::Replay(replay) = &load.workload {
        let lacks = |role: &&RoleSpec| roles.iter().all(|there| there.name != role.name);
        let lacking = replay.roles.iter().filter(lacks);
        notes.extend(lacking.map(|role| {
            let name = &role.name;
            format!("role {name}: no request is of its processes; `headtime trace info` names the processes")
        }));
    }
    notes
}

/// Shortens runs of a load with many requests, so that an answer takes minutes at most. Returns true if the length changed.
fn shorten(load: &mut Scenario, run: &Run) -> bool {
    let (Workload::Synthetic(_), Some(duration)) = (&load.workload, load.run.duration) else {
        return false;
    };
    let measured = duration.saturating_sub(load.run.warm_up);
    let part = REQUESTS as f64 / run.requests.max(1) as f64;
    let wanted = Nanos::from_millis_f64(measured.as_millis_f64() * part).max(SHORTEST);
    load.run.duration = Some(load.run.warm_up + wanted.min(measured));
    load.run.duration != Some(duration)
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
    let tasks = (0..settings.len()).map(|setting| rounds.plain(setting));
    Ok(rounds.scores(&rounds.run(tasks.collect())?))
}

struct Rounds<'a> {
    load: &'a Scenario,
    /// All settings; the first is today's.
    settings: &'a [DiskSetting],
    changes: &'a [Change],
    roles: &'a [Role],
    jobs: Option<u16>,
    with: With<'a>,
}

/// The second round. A case is a seed or a change.
struct Second {
    /// Names of the cases, the seeds in front. The first is the first round's.
    names: Vec<String>,
    /// Results by finalist, by case.
    results: Vec<Vec<MaybeRoles>>,
    /// Scores by finalist, by case.
    ratios: Vec<Vec<Option<f64>>>,
}

impl Rounds<'_> {
    /// The run of a setting without a change, with the load's seed.
    fn plain(&self, setting: usize) -> RunTask {
        RunTask {
            setting,
            change: None,
            seed: self.load.seed,
        }
    }

    /// The first round, with the results of today's setting in front.
    fn first(&self, today: Vec<RoleRun>) -> Result<Vec<MaybeRoles>, Fault> {
        let others = (1..self.settings.len()).map(|setting| self.plain(setting));
        let others = self.run(others.collect())?;
        Ok([Some(today)].into_iter().chain(others).collect())
    }

    /// Scores of results. The first results are of today's setting.
    fn scores(&self, results: &[MaybeRoles]) -> Vec<Option<f64>> {
        let score = |runs: &MaybeRoles| {
            let today = results[0].as_ref()?;
            Some(score(self.roles, runs.as_ref()?, today))
        };
        results.iter().map(score).collect()
    }

    /// Settings of the second round: today's, and the best of each side. Of equal settings, the setting with fewest changes goes on.
    fn finalists(&self, scores: &[Option<f64>]) -> Vec<usize> {
        let mut finalists = vec![0];
        for side in [Side::Linux, Side::Headtime] {
            let of_side = (1..self.settings.len()).filter(|at| self.settings[*at].side == side);
            let mut of_side: Vec<(usize, f64)> =
                of_side.filter_map(|at| Some((at, scores[at]?))).collect();
            let best = of_side.iter().map(|(_, score)| *score).fold(0.0, f64::max);
            of_side.sort_by(|(a, of_a), (b, of_b)| {
                let is_less = |score: f64| score * EQUAL < best;
                let distance = |at: usize| self.settings[at].distance(&self.settings[0]);
                let order = is_less(*of_a).cmp(&is_less(*of_b));
                let order = order.then_with(|| match is_less(*of_a) {
                    true => of_b.total_cmp(of_a),
                    false => distance(*a).cmp(&distance(*b)),
                });
                order.then(of_b.total_cmp(of_a))
            });
            finalists.extend(of_side.into_iter().take(FINALISTS).map(|(at, _)| at));
        }
        finalists
    }

    /// The second round. The first seed's results are there already.
    fn second(
        &self,
        finalists: &[usize],
        first: &[MaybeRoles],
        seeds: u32,
    ) -> Result<Second, Fault> {
        let seed = |more: u32| self.load.seed.wrapping_add(u64::from(more));
        let of_seeds = (0..seeds).map(|more| (None, seed(more)));
        let of_changes = (0..self.changes.len()).map(|change| (Some(change), seed(0)));
        let cases: Vec<(Option<usize>, u64)> = of_seeds.chain(of_changes).collect();
        let tasks = finalists.iter().flat_map(|setting| {
            cases[1..].iter().map(|(change, seed)| RunTask {
                setting: *setting,
                change: *change,
                seed: *seed,
            })
        });
        let mut made = self.run(tasks.collect())?.into_iter();
        let results = finalists.iter().map(|at| {
            let others = made.by_ref().take(cases.len() - 1);
            [first[*at].clone()].into_iter().chain(others).collect()
        });
        let results: Vec<Vec<MaybeRoles>> = results.collect();
        let ratios = results.iter().map(|own| {
            let pairs = own.iter().zip(&results[0]);
            let ratio =
                pairs.map(|(own, today)| Some(score(self.roles, own.as_ref()?, today.as_ref()?)));
            ratio.collect()
        });
        let name = |(change, seed): &(Option<usize>, u64)| match change {
            Some(change) => self.changes[*change].name.clone(),
            None => format!("seed {seed}"),
        };
        Ok(Second {
            names: cases.iter().map(name).collect(),
            ratios: ratios.collect(),
            results,
        })
    }

    /// Makes runs. A run that fails, as for a scheduler that does not fit the load, is absent.
    ///
    /// # Errors
    ///
    /// [`Fault::Interrupted`].
    fn run(&self, tasks: Vec<RunTask>) -> Result<Vec<MaybeRoles>, Fault> {
        let progress = self.with.progress;
        progress.begin(tasks.len() as u64);
        let made = batch::all(self.jobs, tasks, |task| self.one(task))?;
        progress.end();
        made.into_iter().map(unless_it_fails).collect()
    }

    fn one(&self, task: RunTask) -> Result<Vec<RoleRun>, Fault> {
        let mut scenario = self.settings[task.setting].applied(self.load);
        scenario.seed = task.seed;
        if let Some(change) = task.change {
            self.changes[change].apply(&mut scenario);
        }
        Ok(role_runs(self.roles, &self.execute(scenario)?))
    }

    fn execute(&self, scenario: Scenario) -> Result<Run, Fault> {
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

    /// Runs scans in gaps beside the load under a setting: with the setting's queue in the drive, and with a short queue. Returns the
    /// [better](better_scan) scan. `without` has the roles without a scan.
    fn scan(
        &self,
        setting: &DiskSetting,
        without: &[RoleRun],
        disk: DiskSize,
    ) -> Result<Option<GapScan>, Fault> {
        let bytes = disk.capacity.get() as f64 * f64::from(disk.sector_bytes);
        let queues = vec![DriveQueue::Kept, DriveQueue::Short];
        let made = batch::all(self.jobs, queues, |queue| {
            let mut scenario = setting.applied(self.load);
            scenario.freeblock = Some(ScanSpec {
                queue,
                block: Some(SCAN_BLOCK),
                ..ScanSpec::default()
            });
            let run = self.execute(scenario)?;
            Ok(run.freeblock.as_ref().map(|scan| GapScan {
                mb_s: scan.free_mb_s,
                days: bytes / (scan.free_mb_s.max(1e-9) * 1e6) / 86_400.0,
                cost: score(self.roles, &role_runs(self.roles, &run), without),
                short_queue: queue == DriveQueue::Short,
            }))
        })?;
        let scans = made
            .into_iter()
            .map(|scan| Ok(unless_it_fails(scan)?.flatten()));
        let scans: Vec<Option<GapScan>> = scans.collect::<Result<_, Fault>>()?;
        Ok(scans.into_iter().flatten().reduce(better_scan))
    }
}

/// `None` for a run that fails.
///
/// # Errors
///
/// [`Fault::Interrupted`].
fn unless_it_fails<T>(made: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Fault::Interrupted) => Err(Fault::Interrupted),
        Err(_) => Ok(None),
    }
}
