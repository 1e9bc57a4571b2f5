//! Advice for a disk: replays a load under the settings that make sense, and recommends one for Linux and one with Headtime.
//!
//! `docs/design/2026-11-29-report.md` states the score and the two rounds.

mod assumed;
mod choice;
mod mixes;
mod recorded;
mod roles;
mod rounds;
mod settings;
mod waits;

pub use assumed::Change;
pub use choice::SCAN_LEAST;
pub use mixes::{MIXES, Mix};
pub use rounds::{advise, scores};
pub use settings::{DiskSetting, Side, today};
pub use waits::Waits;

use crate::scenario::Scenario;
use headtime_sched::Class;
use serde::Serialize;

/// Question about a disk.
#[derive(Clone, Debug)]
pub struct Question {
    /// Load and drive. Schedulers, depths, gates, repeats and a scan are not used.
    pub load: Scenario,
    /// Setting of the disk today.
    pub today: DiskSetting,
    /// Seeds of the second round, 1 to 100.
    pub seeds: u32,
    /// Runs made at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
}

/// Group of processes with a name and a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Role {
    /// Name of the workload, program, device or role.
    pub name: String,
    /// Class of the requests.
    #[serde(serialize_with = "class_name")]
    pub class: Class,
    /// Measure of the role's speed.
    pub measure: SpeedMeasure,
    /// Names of the processes in a trace, as `--role` has them; empty for other loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<String>,
}

fn class_name<S: serde::Serializer>(class: &Class, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(class)
}

/// Measure of a role's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedMeasure {
    /// Requests per second, if processes wait for answers.
    Requests,
    /// Inverse of the mean response time, if requests come at fixed times.
    Response,
    /// Bytes per second of a program, from start to end.
    Program,
}

/// Results of a role in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RoleRun {
    /// Speed by the role's measure, in 1/s or bytes/s; 0 if no request finished.
    pub speed: f64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second, in MB/s (10⁶).
    pub mb_s: f64,
    /// Median response time, in ms.
    pub p50_ms: f64,
    /// 99th percentile of the response time, in ms.
    pub p99_ms: f64,
    /// Longest response time, or age of the oldest unfinished request, in ms.
    pub worst_ms: f64,
}

/// A setting with its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The setting.
    pub setting: DiskSetting,
    /// Results of each role, in the order of the roles: the first round's, or the mean over the seeds of the second.
    pub roles: Vec<RoleRun>,
    /// Weighted geometric mean of the speeds over today's: 1 is as today.
    pub score: f64,
    /// True if the setting was in the second round.
    pub second_round: bool,
}

/// Recommendation of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pick {
    /// Index of the recommended setting in [`Advice::tried`].
    pub tried: usize,
    /// True if the setting is better than today's, and with Headtime also than the one for Linux, by more than 3 %.
    pub gains: bool,
    /// Share of the second round's runs, in %, in which the score was 0.99 of today's or more.
    pub no_worse_percent: f64,
    /// Changes under which today's setting is better, with the score of the recommended setting.
    pub worse_if: Vec<(String, f64)>,
    /// Changes under which another setting is better by more than 10 %: change, setting, ratio of the scores.
    pub beaten_if: Vec<(String, String, f64)>,
    /// Setting of the same side for a person who cares more for the slowest requests of one role.
    pub quicker: Option<Quicker>,
}

/// Setting under which the slowest requests of a role take half as long or less, at no cost for this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quicker {
    /// Index of the setting in [`Advice::tried`].
    pub tried: usize,
    /// Index of the role in [`Advice::roles`].
    pub role: usize,
}

impl Pick {
    /// True if today's setting is recommended.
    pub fn is_today(&self) -> bool {
        self.tried == 0
    }
}

/// Scan of the whole disk in gaps, beside the load under Headtime's recommended setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapScan {
    /// Rate of the scan, in MB/s.
    pub mb_s: f64,
    /// Time for the whole disk at this rate, in days.
    pub days: f64,
    /// Score of the load beside the scan over the score without the scan.
    pub cost: f64,
    /// True if the drive gets two commands at most, in place of the setting's number.
    pub short_queue: bool,
}

/// Response times in ms, ascending, each with the share of requests that took no longer, 0 to 1.
pub type Curve = Vec<(f64, f64)>;

/// Answer to a question.
///
/// Invariants:
///
/// - `waits.len() = roles.len()`.
/// - `linux.tried < tried.len()`; `headtime.tried < tried.len()`.
/// - `curves[0].0 = 0`. The indices in `curves` differ, and are below `tried.len()`.
/// - `curves[i].1.len() = roles.len()`.
/// - In `tried[1..]`, settings of the second round come first, and scores descend within each round.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Title of the load, if it has one.
    pub title: Option<String>,
    /// Name of the drive's profile.
    pub drive: String,
    /// Roles of the load.
    pub roles: Vec<Role>,
    /// Time that each run simulates, in seconds.
    pub simulated_s: f64,
    /// All settings. The first is today's, and the others follow best first, with the second round's in front.
    pub tried: Vec<Tried>,
    /// Waits of each role under today's setting, by the role that the disk served meanwhile.
    pub waits: Vec<Waits>,
    /// Response times of each role, under today's setting and each recommended one: index in [`Advice::tried`], and curves by role.
    pub curves: Vec<(usize, Vec<Curve>)>,
    /// Recommendation for Linux alone.
    pub linux: Pick,
    /// Recommendation with Headtime in front.
    pub headtime: Pick,
    /// Changes of the second round.
    pub changes: Vec<Change>,
    /// Scan in gaps beside the load, if the load runs beside a scan.
    pub scan: Option<GapScan>,
    /// Seeds of the second round.
    pub seeds: u32,
    /// Runs made.
    pub runs: usize,
    /// Notes of preparation, for people.
    #[serde(skip)]
    pub notes: Vec<String>,
}
