//! Drive that a disk's schedulers assume.

use super::config::DiskConfig;
use headtime_disk::profile::{Profile, by_name};
use headtime_engine::EngineSpec;
use headtime_lab::fault::Fault;
use headtime_sched::Spec;
use headtime_serve::disk::BuildScheduler;
use headtime_stack::{Builder, Known, StackError, Unbuilt};

/// Reads the assumed profile of a disk from its configuration. The default is `drive`: the profile of an emulated drive, without its noise.
///
/// # Errors
///
/// If a file cannot be read, or if a curve belongs to another kind of drive.
pub fn known(config: &DiskConfig, drive: Option<&Profile>) -> Result<Known, Fault> {
    let beliefs = config.stack.believed.read(drive, |source| source.open());
    let beliefs = beliefs.map_err(|(key, error)| error_at(config, key, error))?;
    Ok(beliefs.into())
}

/// Least size in bytes of a disk for which the curve of a recent drive is assumed.
const RECENT_BYTES_MIN: u64 = 1_000_000_000_000;

/// Drive whose curve is assumed for a disk of this size.
pub fn assumed(bytes: u64) -> Profile {
    let name = match bytes {
        RECENT_BYTES_MIN.. => "exos-x18",
        _ => "wd5000aaks",
    };
    by_name(name).expect("it is shipped").clone()
}

/// Builds the schedulers and the gate of a disk, on any thread.
///
/// # Errors
///
/// If the scheduler needs to know the drive and the drive is unknown, or if the gate does not fit the engine.
pub fn builder(known: &Known, spec: &Spec, engine: &EngineSpec) -> Result<Builder, String> {
    // The sector size has no effect here. Schedulers do not get the limit of a merged request, and a gate counts sectors of its drive.
    Builder::new(known, spec, engine, 512).map_err(|unbuilt| {
        let missing = match &unbuilt {
            Unbuilt::Positions(_) => "belief = \"DRIVE or FILE\"",
            Unbuilt::Curve(_) => "belief = \"DRIVE or FILE\" or curve = \"FILE\"",
            Unbuilt::Late => {
                return "issue = late has to know when the arm is free; give belief = \"DRIVE or FILE\"".to_owned();
            }
            _ => return unbuilt.to_string(),
        };
        format!("{spec}: has to know the drive, which no profile is given of; give {missing}")
    })
}

/// Returns a function that builds a scheduler. The thread that will use the scheduler calls this function.
pub fn build(known: &Known, spec: &Spec, engine: &EngineSpec) -> Result<BuildScheduler, String> {
    let builder = builder(known, spec, engine)?;
    Ok(Box::new(move || builder.scheduler()))
}

/// Creates a fault about a file that a key names. The fault names the key too.
pub(super) fn error_at(config: &DiskConfig, key: &'static str, error: StackError) -> Fault {
    match error {
        StackError::Input(text) => config.error(key, text),
        other => Fault::from(other).of(&format!("disk {}: {key}", config.name)),
    }
}
