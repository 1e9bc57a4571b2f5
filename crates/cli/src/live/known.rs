//! What a disk's schedulers know of its drive.

use super::config::DiskConfig;
use crate::fault::Fault;
use headtime_disk::profile::Profile;
use headtime_engine::EngineSpec;
use headtime_sched::Spec;
use headtime_serve::disk::BuildScheduler;
use headtime_stack::{Known, StackError, Unknown, curve_file, drives};
use std::sync::Arc;

/// What the configuration of a disk says is believed, or else `drive`: the profile of an emulated
/// drive, without its noise.
///
/// # Errors
///
/// If a file cannot be read, or a curve is not of such a drive.
pub fn known(config: &DiskConfig, drive: Option<&Profile>) -> Result<Known, Fault> {
    let belief = match &config.stack.believed.belief {
        Some(name) => Some(drives::open(name).map_err(|error| error_at(config, "belief", error))?),
        None => drive.cloned(),
    };
    let curve = match &config.stack.believed.curve {
        Some(file) => {
            let read = curve_file(file, belief.as_ref());
            Some(read.map_err(|error| error_at(config, "curve", error))?.0)
        }
        None => None,
    };
    let known = Known::learning(belief);
    Ok(match curve {
        Some(curve) => known.with_curve(Arc::new(curve)),
        None => known,
    })
}

/// How a scheduler is made, on whatever thread.
///
/// # Errors
///
/// If it needs to know the drive and does not.
pub fn build(known: &Known, spec: &Spec, engine: &EngineSpec) -> Result<BuildScheduler, String> {
    // How many sectors a merged request may have is nothing that a scheduler is told.
    let config = engine.config(512);
    let knowledge = known.knowledge(spec, &config).map_err(|unknown| {
        let missing = match unknown {
            Unknown::Positions(_) => "belief = \"DRIVE or FILE\"",
            Unknown::Curve(_) => "belief = \"DRIVE or FILE\" or curve = \"FILE\"",
            Unknown::Belief(problem) => return problem,
        };
        format!("{spec}: has to know the drive, which no profile is given of; give {missing}")
    })?;
    // What can be wrong shows now, not on the disk's thread.
    spec.build(knowledge.clone())
        .map_err(|error| error.to_string())?;
    let spec = spec.clone();
    Ok(Box::new(move || {
        spec.build(knowledge)
            .expect("what was built once is built again")
    }))
}

/// A fault in a file that a key names: which key is said too.
pub(super) fn error_at(config: &DiskConfig, key: &'static str, error: StackError) -> Fault {
    match error {
        StackError::Input(text) => config.error(key, text),
        other => Fault::from(other).of(&format!("disk {}: {key}", config.name)),
    }
}
