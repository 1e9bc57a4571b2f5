//! A run with the times of each request: who waits for whom, and curves of response times.

use super::roles::roles;
use super::settings::DiskSetting;
use super::waits::{Waits, waits};
use super::{Curve, Role};
use crate::execute::{Execution, Names, Sample, With, execute};
use crate::fault::Fault;
use crate::prepare::{Prepared, prepare};
use crate::report::Run;
use crate::scenario::Scenario;

/// Most points of a curve of response times.
const POINTS: usize = 200;

/// A run with the times of each request.
pub(super) struct Recorded {
    pub prepared: Prepared,
    pub run: Run,
    pub roles: Vec<Role>,
    /// Requests with the index of their role, in the order of completion.
    samples: Vec<(usize, Sample)>,
}

/// Runs a load under a setting, and records its requests. Takes the roles of `known`, or finds them in the run.
pub(super) fn record(
    load: &Scenario,
    setting: &DiskSetting,
    known: Option<&[Role]>,
    with: With<'_>,
) -> Result<Recorded, Fault> {
    let prepared = prepare(setting.applied(load), with.stock)?;
    let how = Execution {
        jobs: Some(1),
        record: true,
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

    /// Waits of each role, by the role that the disk served meanwhile.
    pub fn waits(&self) -> Vec<Waits> {
        waits(&self.samples, self.roles.len(), self.from())
    }

    /// Response times of each role in ms, ascending, with the share of requests that took no longer. At most [`POINTS`] of each role.
    pub fn curves(&self) -> Vec<Curve> {
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
        (0..self.roles.len()).map(curve).collect()
    }
}
