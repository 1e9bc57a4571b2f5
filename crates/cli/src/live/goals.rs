//! Programs with goals: reads their configuration, and plans windows of time on the disks.

use super::config::{Config, ProgramConfig};
use super::disk::PreparedDisk;
use super::disks::{Prepared, Running};
use headtime_engine::{GateOrder, Member};
use headtime_lab::fault::Fault;
use headtime_linux::clock::{Clock, until};
use headtime_qos::{Model, Profile, Setting, TimeOfDay, TrainOptions};
use headtime_serve::disk::Disk;
use headtime_serve::goals::feed::{Notes, SECTOR_BYTES};
use headtime_serve::goals::{Goals, GoalsOptions, Profiled, ProgramOptions, Seeks};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two readings of the disks' notes.
const TICK: Duration = Duration::from_millis(20);

/// Reads the files of the programs of a configuration. Returns `None` if there are no programs.
///
/// # Errors
///
/// If a file cannot be read, is damaged or is of another kind, or if a goal is impossible.
pub fn prepare(config: &Config, disks: &[Prepared]) -> Result<Option<GoalsOptions>, Fault> {
    if config.programs.is_empty() {
        return Ok(None);
    }
    let disks: Vec<&Prepared> = disks.iter().filter(|disk| disk.has_programs()).collect();
    let first = &disks[0].members[0];
    let names = disks.iter().map(|disk| disk.name().to_owned()).collect();
    let gate = &first.config.stack.engine.gate;
    let mut options = GoalsOptions::new(names, gate, seek(first));
    read_programs(&mut options, &config.programs)?;
    Ok(Some(options))
}

/// Reads the files of programs, and checks their goals.
///
/// # Errors
///
/// If a file cannot be read, is damaged or is of another kind, or if a goal is impossible.
pub fn read_programs(options: &mut GoalsOptions, programs: &[ProgramConfig]) -> Result<(), Fault> {
    for program in programs {
        options.programs.push(ProgramOptions {
            name: program.name.clone(),
            exports: program.exports.clone(),
            goal: program.goal,
            known: known(program, options)?,
            p99: program.p99,
        });
    }
    for (index, program) in programs.iter().enumerate() {
        if program.p99.is_some() {
            let possible = options.check_p99();
            possible.map_err(|problem| program.error("p99", problem))?;
        }
        if let Some(goal) = program.goal {
            let possible = options.check(index, goal);
            possible.map_err(|refused| program.error("goal", refused.to_string()))?;
        }
    }
    Ok(())
}

/// Seek times of a disk's assumed drive, if there is one.
fn seek(disk: &PreparedDisk) -> Option<Seeks> {
    let (curve, belief) = (disk.known.curve()?, disk.known.belief()?);
    let scale = belief.geometry.sector_bytes / SECTOR_BYTES;
    Some(Seeks::new(curve, scale.into()))
}

fn known(program: &ProgramConfig, options: &GoalsOptions) -> Result<Option<Profiled>, Fault> {
    let Some(path) = &program.profile else {
        return Ok(None);
    };
    let wrong =
        |key, problem: String| program.error(key, format!("program {}: {problem}", program.name));
    let profile = Profile::from_text(&read(program, "profile", path)?);
    let profile = profile.map_err(|error| wrong("profile", error.to_string()))?;
    let wanted = Setting {
        site: options.site(),
        program: program.name.clone(),
        epoch: options.planning.epoch,
        servers: options.servers(),
        ..profile.setting.clone()
    };
    let fits = |setting: &Setting| {
        setting.expect(&options.site(), &program.name)?;
        setting.expect_like(&wanted)
    };
    fits(&profile.setting).map_err(|differs| wrong("profile", differs.to_string()))?;
    let model = match &program.tree {
        Some(tree) => {
            let model = Model::from_text(&read(program, "tree", tree)?);
            let model = model.map_err(|error| wrong("tree", error.to_string()))?;
            fits(model.setting()).map_err(|differs| wrong("tree", differs.to_string()))?;
            model
        }
        None => {
            let trained = Model::train(
                std::slice::from_ref(&profile),
                None,
                &TrainOptions::default(),
            );
            trained
                .map_err(|error| wrong("profile", error.to_string()))?
                .model
        }
    };
    let model = Arc::new(model);
    Ok(Some(Profiled { profile, model }))
}

fn read(program: &ProgramConfig, key: &str, path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|error| {
        Fault::reading(path, &error).of(&format!("program {}: {key}", program.name))
    })
}

/// Goals of programs on running disks.
#[derive(Debug)]
pub struct Kept {
    /// The goals.
    pub goals: Arc<Mutex<Goals>>,
    /// Disks that programs share.
    disks: Vec<Disk>,
}

impl Kept {
    /// Prepares goals for the shared disks, and takes the disks' notes.
    pub fn new(options: GoalsOptions, running: &mut [Running]) -> Kept {
        let noted = running
            .iter_mut()
            .filter_map(|running| Some((running.notes.take()?, running.disk.clone())));
        let (notes, disks): (Vec<Notes>, Vec<Disk>) = noted.unzip();
        let goals = Arc::new(Mutex::new(Goals::new(options, notes)));
        Kept { goals, disks }
    }

    /// Plans windows and sends them to the disks, without end.
    pub async fn keep(&self, clock: Clock) {
        let mut orders = Vec::new();
        let until = |time: TimeOfDay| until(time.hour, time.minute);
        loop {
            tokio::time::sleep(TICK).await;
            let mut goals = self.goals.lock().unwrap_or_else(PoisonError::into_inner);
            goals.tick(clock.now(), &until, &mut orders);
            drop(goals);
            for order in orders.drain(..) {
                for disk in &self.disks {
                    let members = disk.members() as u16;
                    let order = of_member(order, disk.sector_bytes(), members);
                    (0..members).for_each(|member| disk.order_gate(Member(member), order));
                }
            }
        }
    }
}

/// Converts an order for a whole disk into an order for each member. Sectors are striped over the members, so each member gets an equal
/// part of a rate.
fn of_member(order: GateOrder, sector_bytes: u32, members: u16) -> GateOrder {
    match order {
        GateOrder::Rate { lane, rate } => {
            let bytes = rate.saturating_mul(u64::from(SECTOR_BYTES));
            let rate = bytes.div_ceil(u64::from(sector_bytes) * u64::from(members));
            GateOrder::Rate { lane, rate }
        }
        other => other,
    }
}

/// Describes a difference of programs in another reading of the configuration.
pub fn fixed_difference(old: &[ProgramConfig], new: &[ProgramConfig]) -> Option<String> {
    (old != new).then(|| {
        "qos: program: another value takes a restart; `headtime control SOCKET qos goal` sets a goal".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_engine::Lane;

    #[test]
    fn each_member_of_a_stripe_has_its_part_of_a_rate() {
        let lane = Lane(1);
        let rate = |rate| GateOrder::Rate { lane, rate };
        assert_eq!(of_member(rate(9_000), 512, 1), rate(9_000));
        assert_eq!(of_member(rate(9_000), 512, 3), rate(3_000));
        assert_eq!(of_member(rate(9_000), 4096, 3), rate(375));
        // A rate above zero never becomes zero for a member.
        assert_eq!(of_member(rate(1), 4096, 3), rate(1));
        assert_eq!(of_member(rate(0), 512, 3), rate(0));
        let assign = GateOrder::Assign { of: 1, lane };
        assert_eq!(of_member(assign, 512, 3), assign);
    }
}
