//! Settings of a disk that are compared: scheduler, gate, commands in the drive, read-ahead.

use crate::fault::Fault;
use crate::scenario::{Alternatives, Scenario, Workload, rows_of_groups};
use headtime_config::Many;
use headtime_engine::{EngineSpec, GateSpec};
use headtime_sched::Spec;
use headtime_units::Bytes;
use serde::Serialize;
use std::fmt;

/// Where the requests of a disk are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// In the kernel, by settings of sysfs.
    Linux,
    /// In a Headtime server in front of the disk.
    Headtime,
}

/// Setting of a disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskSetting {
    /// Where requests are scheduled.
    pub side: Side,
    /// The scheduler's text.
    #[serde(serialize_with = "as_text")]
    pub scheduler: Spec,
    /// Commands in the drive at a time.
    pub depth: u32,
    /// The gate; the default one of Linux.
    #[serde(serialize_with = "as_text")]
    pub gate: GateSpec,
    /// Read-ahead of the page cache, if the load runs above one.
    #[serde(serialize_with = "as_bytes", skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<Bytes>,
}

fn as_text<T: fmt::Display, S: serde::Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn as_bytes<S: serde::Serializer>(value: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
    value.map(|bytes| bytes.0).serialize(to)
}

/// Schedulers of Linux that are simulated, by Headtime's names.
const LINUX: [&str; 3] = ["noop", "mq-deadline", "bfq"];
/// Depths that are tried with each scheduler of Linux.
const DEPTHS: [u32; 7] = [1, 2, 3, 4, 8, 16, 32];
/// Read-ahead that is tried under Linux.
const READ_AHEAD: [Bytes; 3] = [Bytes(128 << 10), Bytes(512 << 10), Bytes(2 << 20)];
/// Schedulers that are tried in a Headtime server. `sptf` is not among them, since the angle of a real disk's platter is not known.
const HEADTIME: [&str; 4] = ["deadline", "mq-deadline", "stream(deadline)", "nise"];
/// Depths that are tried without a gate of Headtime.
const FEW: [u32; 3] = [1, 2, 4];
/// Depth under a gate that limits the drive, as on a SATA drive.
const DEEP: u32 = 32;
/// Gates that are tried with [`DEEP`] commands in the drive.
const GATES: [&str; 4] = ["depth", "head-time", "rsd:age_th=8", "rsd:age_th=30"];
/// Gate that is tried if roles have different classes.
const CLASSES: &str = "rsd-priority:age_th=8:ranks=1/2";

impl DiskSetting {
    /// A setting of Linux.
    pub fn linux(scheduler: Spec, depth: u32) -> DiskSetting {
        DiskSetting {
            side: Side::Linux,
            scheduler,
            depth,
            gate: GateSpec::default(),
            read_ahead: None,
        }
    }

    /// Name of the scheduler as its side calls it: `noop` of Linux is `none`.
    pub fn scheduler_name(&self) -> String {
        match (self.side, self.scheduler.to_string()) {
            (Side::Linux, name) if name == "noop" => "none".to_owned(),
            (_, name) => name,
        }
    }

    /// Read-ahead of a load above a page cache.
    pub fn read_ahead_of(load: &Scenario) -> Option<Bytes> {
        match &load.workload {
            Workload::Programs(programs) => Some(programs.host.read_ahead),
            Workload::Synthetic(_) | Workload::Replay(_) => None,
        }
    }

    /// The scenario under this setting.
    pub fn applied(&self, load: &Scenario) -> Scenario {
        let mut scenario = load.clone();
        scenario.schedulers = Many(vec![self.scheduler.clone()]);
        let engine = &load.engines[0];
        scenario.engines = Alternatives::one(EngineSpec {
            depth: self.depth,
            gate: self.gate.clone(),
            // NBD does not tell which process asks.
            hide_processes: engine.hide_processes || self.side == Side::Headtime,
            ..engine.clone()
        });
        if let (Side::Headtime, Workload::Synthetic(groups)) = (self.side, &mut scenario.workload) {
            let (_, places) = rows_of_groups(groups);
            for (group, place) in groups.iter_mut().zip(places) {
                group.process.origin.export = place as u16 + 1;
            }
        }
        if let (Some(read_ahead), Workload::Programs(programs)) =
            (self.read_ahead, &mut scenario.workload)
        {
            programs.host.read_ahead = read_ahead;
        }
        scenario
    }

    /// Number of values in which two settings differ, and the distance of their depths in powers of two.
    pub fn distance(&self, other: &DiskSetting) -> (u32, u32) {
        let differs = [
            self.side != other.side,
            self.scheduler != other.scheduler,
            self.gate != other.gate,
            self.read_ahead != other.read_ahead,
            self.depth != other.depth,
        ];
        let count = differs.into_iter().map(u32::from).sum();
        (count, self.depth.ilog2().abs_diff(other.depth.ilog2()))
    }
}

/// `mq-deadline, 32 commands in the drive`
impl fmt::Display for DiskSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.scheduler_name();
        match self.gate == GateSpec::default() {
            true => write!(f, "{name}")?,
            false => write!(f, "{name} with gate {}", self.gate)?,
        }
        match self.depth {
            1 => write!(f, ", 1 command in the drive")?,
            depth => write!(f, ", {depth} commands in the drive")?,
        }
        match self.read_ahead {
            Some(read_ahead) => write!(f, ", read-ahead {read_ahead}"),
            None => Ok(()),
        }
    }
}

/// Reads a setting of Linux: `SCHEDULER` or `SCHEDULER@DEPTH`.
///
/// # Errors
///
/// If the scheduler is not simulated, or the depth is no number from 1 to 256.
pub fn today(text: &str) -> Result<DiskSetting, Fault> {
    let (name, depth) = match text.rsplit_once('@') {
        Some((name, depth)) => (name, depth),
        None => (text, "32"),
    };
    let depth = depth.parse().ok().filter(|depth| (1..=256).contains(depth));
    let depth = depth.ok_or_else(|| {
        let problem = "the depth is no number from 1 to 256; write SCHEDULER@DEPTH, as in none@32";
        Fault::Usage(format!("--today {text}: {problem}"))
    })?;
    let scheduler = name.parse::<Spec>().ok();
    let scheduler = scheduler.filter(|spec| LINUX.contains(&spec.to_string().as_str()));
    let scheduler = scheduler.ok_or_else(|| {
        let names = LINUX.map(|name| if name == "noop" { "none" } else { name });
        let problem = "is no scheduler of Linux that is simulated; allowed are";
        Fault::Usage(format!(
            "--today {text}: `{name}` {problem} {}",
            names.join(", ")
        ))
    })?;
    Ok(DiskSetting::linux(scheduler, depth))
}

/// All settings to try for a load, today's setting apart. `classes` is true if roles have different classes, `deepest` is the number of
/// commands that the drive takes at a time.
///
/// # Panics
///
/// Never: tests parse each text.
pub fn candidates(load: &Scenario, classes: bool, deepest: u32) -> Vec<DiskSetting> {
    let read_ahead: Vec<Option<Bytes>> = match &load.workload {
        Workload::Programs(_) => READ_AHEAD.into_iter().map(Some).collect(),
        Workload::Synthetic(_) | Workload::Replay(_) => vec![None],
    };
    let spec = |name: &str| -> Spec { name.parse().expect("a scheduler's text") };
    let mut all: Vec<DiskSetting> = Vec::new();
    let mut add = |setting: DiskSetting| {
        for read_ahead in &read_ahead {
            let setting = DiskSetting {
                read_ahead: *read_ahead,
                ..setting.clone()
            };
            if !all.contains(&setting) {
                all.push(setting);
            }
        }
    };
    for name in LINUX {
        let depths = DEPTHS.into_iter().filter(|depth| *depth <= deepest);
        depths.for_each(|depth| add(DiskSetting::linux(spec(name), depth)));
    }
    let gates = GATES.into_iter().chain(classes.then_some(CLASSES));
    let gates: Vec<GateSpec> = gates
        .map(|gate| gate.parse().expect("a gate's text"))
        .collect();
    for name in HEADTIME {
        let with = |depth, gate: &GateSpec| DiskSetting {
            side: Side::Headtime,
            gate: gate.clone(),
            ..DiskSetting::linux(spec(name), depth)
        };
        for depth in FEW.into_iter().filter(|depth| *depth <= deepest) {
            add(with(depth, &GateSpec::default()));
        }
        // A gate has nothing to choose before a drive that takes one command at a time.
        if deepest > 1 {
            gates
                .iter()
                .for_each(|gate| add(with(deepest.min(DEEP), gate)));
        }
    }
    all
}
