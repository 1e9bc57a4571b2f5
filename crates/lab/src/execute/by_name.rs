//! Sums up the results of each workload, program or device, by name.

use crate::prepare::Prepared;
use crate::report::{KindRun, NamedRun, Spread, oldest_ms, round};
use crate::scenario::{RoleSpec, WRITE_BACK, Workload, rows_of_groups};
use headtime_sched::Origin;
use headtime_sim::{Got, Measured, PerOrigin};
use headtime_units::Nanos;

/// Names of the workloads, programs or devices of a run.
#[derive(Debug)]
pub enum Names {
    /// Workloads by name. Each group of processes has the number of its last process, and the place of its name. Processes count from 1,
    /// through all groups.
    Groups(Vec<String>, Vec<(u32, usize)>),
    /// Programs by their numbers, and last the name for requests of no program.
    Programs(Vec<String>),
    /// Devices of a trace by their numbers.
    Devices(Vec<String>),
    /// Roles of a trace's processes, which are programs by number, and last the name for processes of no role.
    Roles(Vec<String>),
}

impl Names {
    /// Names in a scenario. `programs` names its programs, if the scenario has any.
    pub fn of(prepared: &Prepared, programs: &[&str]) -> Names {
        match &prepared.scenario.workload {
            Workload::Synthetic(groups) => {
                let mut last = 0;
                let ends = groups.iter().map(|group| {
                    last += group.processes;
                    last
                });
                let (names, places) = rows_of_groups(groups);
                Names::Groups(names, ends.zip(places).collect())
            }
            Workload::Programs(_) => {
                let names = programs.iter().map(|name| (*name).to_owned());
                Names::Programs(names.chain([WRITE_BACK.to_owned()]).collect())
            }
            Workload::Replay(replay) if !replay.roles.is_empty() => {
                let names = replay.roles.iter().map(|role| role.name.clone());
                Names::Roles(names.chain([RoleSpec::OTHERS.to_owned()]).collect())
            }
            Workload::Replay(_) => {
                let devices = prepared.devices.iter();
                Names::Devices(devices.map(|device| format!("device {device}")).collect())
            }
        }
    }

    /// All names, in their order.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Names::Groups(names, _)
            | Names::Programs(names)
            | Names::Devices(names)
            | Names::Roles(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// The index of the name that an origin has.
    pub fn place(&self, origin: &Origin) -> Option<usize> {
        match self {
            Names::Groups(_, groups) => {
                let own = groups.iter().find(|(last, _)| origin.process <= *last);
                own.map(|(_, name)| *name)
            }
            Names::Programs(names) | Names::Roles(names) => match usize::from(origin.program) {
                0 => Some(names.len() - 1),
                program => Some(program - 1),
            },
            Names::Devices(_) => usize::from(origin.export).checked_sub(1),
        }
    }
}

/// Origins with one name in one repeat.
#[derive(Clone, Debug, Default)]
struct Share<'a> {
    of: Vec<&'a PerOrigin>,
}

impl Share<'_> {
    /// Time from the first request to the last, or to the end if requests are unfinished.
    fn span(&self) -> Nanos {
        let first = self.of.iter().map(|of| of.first).min();
        let last = self.of.iter().map(|of| of.last).max();
        match (first, last) {
            (Some(first), Some(last)) => last.saturating_since(first),
            _ => Nanos::ZERO,
        }
    }

    /// Sums by kind, for each kind that occurs. Each sum adds a distribution for each origin, so it is made once.
    fn sums(&self) -> Sums {
        let kinds: [fn(&PerOrigin) -> Option<&Got>; 3] = [
            |of| of.reads.as_deref(),
            |of| of.writes.as_deref(),
            |of| of.others.as_deref(),
        ];
        kinds.map(|kind| sum(self.of.iter().filter_map(|of| kind(of))))
    }
}

/// Reads, writes and other requests.
type Sums = [Option<Got>; 3];

fn sum<'a>(all: impl Iterator<Item = &'a Got>) -> Option<Got> {
    all.fold(None, |mut sum: Option<Got>, got| {
        sum.get_or_insert_default().add(got);
        sum
    })
}

/// Averages the results of one kind over the repeats, each with the time that it covers. Returns `None` if no repeat has requests of this
/// kind.
fn kind(repeats: &[(Option<&Got>, Nanos)]) -> Option<KindRun> {
    let there: Vec<&Got> = repeats.iter().filter_map(|(got, _)| *got).collect();
    if there.is_empty() {
        return None;
    }
    let rate = |amount: fn(&Got) -> f64| {
        let each = repeats.iter().map(|(got, span)| match got {
            Some(got) if !span.is_zero() => amount(got) / span.as_secs_f64(),
            _ => 0.0,
        });
        round(each.sum::<f64>() / repeats.len() as f64, 6)
    };
    let responses: Vec<_> = there.iter().map(|got| &got.response).collect();
    Some(KindRun {
        requests: there.iter().map(|got| got.requests).sum(),
        iops: rate(|got| got.requests as f64),
        throughput_mb_s: rate(|got| got.bytes as f64 / 1e6),
        response_ms: Spread::of(&responses),
    })
}

/// The reads and the writes of repeats, apart.
fn reads_and_writes(repeats: &[(Sums, Nanos)]) -> [Option<KindRun>; 2] {
    [0, 1].map(|of| {
        let each = repeats
            .iter()
            .map(|(sums, span)| (sums[of].as_ref(), *span));
        kind(&each.collect::<Vec<_>>())
    })
}

/// The reads and the writes of whole runs, apart.
pub fn kinds(measured: &[&Measured]) -> [Option<KindRun>; 2] {
    let repeats = measured.iter().map(|one| {
        let of = one.origins.iter().collect();
        (Share { of }.sums(), one.span())
    });
    reads_and_writes(&repeats.collect::<Vec<_>>())
}

/// Results of each name.
pub fn by_name(names: &Names, measured: &[&Measured]) -> Vec<NamedRun> {
    let texts = names.texts();
    // By name, by repeat.
    let mut shares = vec![vec![Share::default(); measured.len()]; texts.len()];
    for (repeat, one) in measured.iter().enumerate() {
        for origin in &one.origins {
            let share = names
                .place(&origin.origin)
                .and_then(|at| shares.get_mut(at));
            if let Some(share) = share {
                share[repeat].of.push(origin);
            }
        }
    }
    let rows = texts.iter().zip(shares).enumerate();
    rows.filter_map(|(at, (name, shares))| {
        let all = || shares.iter().flat_map(|share| &share.of);
        // A host without write-back has no row for it, nor a trace for roles without requests.
        let may_lack = *name == WRITE_BACK || matches!(names, Names::Roles(_));
        if may_lack && all().next().is_none() {
            return None;
        }
        let repeats: Vec<(Sums, Nanos)> = shares
            .iter()
            .map(|share| (share.sums(), share.span()))
            .collect();
        let any = repeats.iter();
        let any: Vec<(Option<Got>, Nanos)> = any
            .map(|(sums, span)| (sum(sums.iter().flatten()), *span))
            .collect();
        let any: Vec<_> = any
            .iter()
            .map(|(got, span)| (got.as_ref(), *span))
            .collect();
        let [of_reads, of_writes] = reads_and_writes(&repeats);
        let processes = shares.iter().map(|share| {
            let mut processes: Vec<u32> = share.of.iter().map(|of| of.origin.process).collect();
            processes.sort_unstable();
            processes.dedup();
            processes.len()
        });
        let any = kind(&any).unwrap_or_default();
        Some(NamedRun {
            name: (*name).to_owned(),
            program: match names {
                Names::Programs(_) if *name != WRITE_BACK => at as u32 + 1,
                _ => all()
                    .map(|of| u32::from(of.origin.program))
                    .max()
                    .unwrap_or(0),
            },
            processes: processes.max().unwrap_or(0) as u32,
            requests: any.requests,
            iops: any.iops,
            throughput_mb_s: any.throughput_mb_s,
            response_ms: any.response_ms,
            unfinished: all().map(|of| of.unfinished).sum(),
            oldest_unfinished_ms: oldest_ms(all().map(|of| of.oldest_unfinished)),
            of_reads,
            of_writes,
        })
    })
    .collect()
}
