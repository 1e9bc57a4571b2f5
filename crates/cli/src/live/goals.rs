//! Programs with goals: from the configuration to windows of time on the disks.

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

/// Time between two looks at the notes of the disks.
const TICK: Duration = Duration::from_millis(20);

/// Reads the files of the programs of a configuration; `None` if there are no programs.
///
/// # Errors
///
/// If a file cannot be read, is damaged or of something else, or if a goal is impossible.
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
/// If a file cannot be read, is damaged or of something else, or if a goal is impossible.
pub fn read_programs(options: &mut GoalsOptions, programs: &[ProgramConfig]) -> Result<(), Fault> {
    for program in programs {
        options.programs.push(ProgramOptions {
            name: program.name.clone(),
            exports: program.exports.clone(),
            goal: program.goal,
            known: known(program, options)?,
        });
    }
    for (index, program) in programs.iter().enumerate() {
        if let Some(goal) = program.goal {
            let possible = options.check(index, goal);
            possible.map_err(|refused| program.error("goal", refused.to_string()))?;
        }
    }
    Ok(())
}

/// Time of seeks of a disk's drive, if any is believed.
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

/// Goals of programs on disks that run.
#[derive(Debug)]
pub struct Kept {
    /// The goals.
    pub goals: Arc<Mutex<Goals>>,
    /// Disks that programs share.
    disks: Vec<Disk>,
}

impl Kept {
    /// Keeps goals by the notes of disks.
    pub fn new(options: GoalsOptions, running: &mut [Running]) -> Kept {
        let noted = running
            .iter_mut()
            .filter_map(|running| Some((running.notes.take()?, running.disk.clone())));
        let (notes, disks): (Vec<Notes>, Vec<Disk>) = noted.unzip();
        let goals = Arc::new(Mutex::new(Goals::new(options, notes)));
        Kept { goals, disks }
    }

    /// Plans windows and sends them to the disks, for ever.
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
                    let order = in_sectors(order, disk.sector_bytes());
                    let members = (0..disk.members() as u16).map(Member);
                    members.for_each(|member| disk.order_gate(member, order));
                }
            }
        }
    }
}

/// The order with a rate in sectors of a disk.
fn in_sectors(order: GateOrder, sector_bytes: u32) -> GateOrder {
    match order {
        GateOrder::Rate { lane, rate } => GateOrder::Rate {
            lane,
            rate: rate * u64::from(SECTOR_BYTES) / u64::from(sector_bytes),
        },
        other => other,
    }
}

/// The difference of programs in another reading of the configuration, in words.
pub fn fixed_difference(old: &[ProgramConfig], new: &[ProgramConfig]) -> Option<String> {
    (old != new).then(|| {
        "qos: program: another value takes a restart; `headtime control SOCKET qos goal` sets a goal".to_owned()
    })
}
