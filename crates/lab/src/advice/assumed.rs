//! Changes under which advice must hold: other values of the drive's assumed keys, and a little more load.

use crate::fault::Fault;
use crate::scenario::{Scenario, Workload, rows_of_groups};
use headtime_config::{Node, Place, Table, Value};
use headtime_disk::profile::{Profile, Trust};
use headtime_sched::Class;
use headtime_stack::Firmware;
use headtime_units::Nanos;
use headtime_workload::Pacing;
use serde::Serialize;

/// One change to the drive or to the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Description, such as `queue.stream_cap = 100ms` or `vm: 5 processes`.
    pub name: String,
    #[serde(skip)]
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq)]
enum Effect {
    Firmware(Firmware),
    Key(&'static str, Value),
    /// Index of the workload, and its number of processes.
    Processes(usize, u32),
}

/// Other values of a key of a profile.
enum Others {
    /// These values.
    Values(&'static [&'static str]),
    /// The key's value times each number.
    Times(&'static [f64]),
}

/// Keys that an assumption of a profile may have wrong, with other values. The values span what drives of one class differ by
/// (`docs/design/2026-11-29-report.md`).
const KEYS: [(&str, Others); 7] = [
    ("queue.stream_cap", Others::Values(&["100ms", "4s"])),
    ("queue.age_cap", Others::Times(&[0.25, 4.0])),
    ("queue.margin", Others::Times(&[0.0, 2.0])),
    ("cache.room_sectors", Others::Times(&[0.5, 2.0])),
    ("cache.segments", Others::Times(&[0.5, 2.0])),
    ("cache.read_ahead_max", Others::Times(&[0.25])),
    ("overhead.per_command", Others::Times(&[0.5, 2.0])),
];

/// Factor of the processes of a workload, beside one process less and one more.
const HALF_AGAIN: f64 = 1.5;

impl Change {
    /// Changes a scenario.
    pub fn apply(&self, scenario: &mut Scenario) {
        match &self.effect {
            Effect::Firmware(firmware) => {
                scenario.drives =
                    (scenario.drives.clone()).each(|drive| drive.simulated.firmware = *firmware);
            }
            Effect::Key(key, value) => {
                scenario.drives = scenario.drives.clone().each(|drive| {
                    let overrides = &mut drive.simulated.overrides;
                    let node = Node {
                        value: value.clone(),
                        place: Place::BuiltIn,
                    };
                    overrides
                        .set_value(key, node)
                        .expect("a key of a profile has tables in front of it alone");
                });
            }
            Effect::Processes(at, processes) => {
                if let Workload::Synthetic(groups) = &mut scenario.workload {
                    groups[*at].processes = *processes;
                }
            }
        }
    }
}

/// All changes that apply to a scenario on a drive. `names` has the workloads' names.
///
/// # Errors
///
/// If the profile cannot be read back.
pub fn changes(
    scenario: &Scenario,
    profile: &Profile,
    names: &[String],
) -> Result<Vec<Change>, Fault> {
    let mut all = Vec::new();
    let is_sure = |key: &str| is_sure(profile, key);
    if !is_sure("queue.policy") && Firmware::of(profile) == Firmware::Sptf {
        all.push(Change {
            name: "drive.firmware = fifo".to_owned(),
            effect: Effect::Firmware(Firmware::Fifo),
        });
    }
    let table = Table::parse(&profile.name, &profile.to_toml()).map_err(Fault::input)?;
    for (key, others) in KEYS {
        let Some(node) = table.at(key).filter(|_| !is_sure(key)) else {
            continue;
        };
        // Half of the buffer is either fewer segments or less room.
        if key == "cache.segments" && table.at("cache.room_sectors").is_some() {
            continue;
        }
        let values: Vec<Value> = match others {
            Others::Values(values) => values.iter().map(|v| Value::Text((*v).into())).collect(),
            Others::Times(factors) => {
                let times = factors.iter().map(|factor| times(&node.value, *factor));
                times.collect::<Option<_>>().unwrap_or_default()
            }
        };
        all.extend(
            values
                .into_iter()
                .filter(|value| *value != node.value)
                .map(|value| Change {
                    name: format!("{key} = {}", value.text()),
                    effect: Effect::Key(key, value),
                }),
        );
    }
    if let Workload::Synthetic(groups) = &scenario.workload {
        let (_, places) = rows_of_groups(groups);
        for (role, name) in names.iter().enumerate() {
            let own: Vec<usize> = (0..groups.len()).filter(|at| places[*at] == role).collect();
            // The first group of a role has more or fewer processes.
            let Some(&at) = own.first() else { continue };
            let group = &groups[at];
            // The number of bulk jobs is known.
            if group.process.class == Class::IDLE
                || matches!(group.process.pacing, Pacing::Open { .. })
            {
                continue;
            }
            let now: u32 = own.iter().map(|at| groups[*at].processes).sum();
            let others = now - group.processes;
            let half_again = (f64::from(now) * HALF_AGAIN).ceil() as u32;
            let mut counts = vec![now - 1, now + 1, half_again];
            counts.retain(|count| *count > others);
            counts.dedup();
            all.extend(counts.into_iter().map(|processes| Change {
                name: format!("{name}: {processes} processes"),
                effect: Effect::Processes(at, processes - others),
            }));
        }
    }
    Ok(all)
}

/// True if the profile's value of a key is measured, read from the drive, or published.
fn is_sure(profile: &Profile, key: &str) -> bool {
    let trust = |prefix: &str| {
        let of = profile.trust.iter().find(|(key, _)| key == prefix);
        of.map(|(_, trust)| *trust)
    };
    let table = key.split('.').next().unwrap_or(key);
    matches!(
        trust(key).or_else(|| trust(table)),
        Some(Trust::Measured | Trust::Learned | Trust::Read | Trust::Published)
    )
}

/// A value of a profile times a factor: a whole number of at least 1, or a duration.
fn times(value: &Value, factor: f64) -> Option<Value> {
    match value {
        Value::Integer(count) => {
            let product = (*count as f64 * factor).round() as i64;
            Some(Value::Integer(product.max(1)))
        }
        Value::Text(text) => {
            let span: Nanos = text.parse().ok()?;
            let product = (span.as_nanos() as f64 * factor).round() as u64;
            Some(Value::Text(Nanos::from_nanos(product).to_string()))
        }
        _ => None,
    }
}
