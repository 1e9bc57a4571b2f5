//! What a disk's schedulers know of its drive.

use super::config::DiskConfig;
use crate::drives;
use crate::fault::Fault;
use headtime_disk::Model;
use headtime_disk::profile::Profile;
use headtime_engine::Config;
use headtime_probe::{Learned, curve_of};
use headtime_sched::{Knowledge, ServiceCurve, Spec};
use headtime_serve::disk::BuildScheduler;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Fixes where a believed drive is probed for its curve.
const SEED: u64 = 1;

/// What is believed of a drive: nothing, or a profile of the schedulers' own; never the drive itself.
/// Models and curves are made when a scheduler first needs them, and kept.
#[derive(Debug)]
pub struct Known {
    belief: Option<Profile>,
    model: OnceLock<Arc<Model>>,
    curve: OnceLock<Arc<ServiceCurve>>,
    /// As many as the device takes at a time.
    handed_out_max: u64,
}

impl Known {
    /// What the configuration of a disk says is believed, or else `drive`: the profile of an emulated
    /// drive, without its noise. `depth` is what the device takes at a time.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a curve is not of such a drive.
    pub fn new(config: &DiskConfig, drive: Option<&Profile>, depth: u32) -> Result<Known, Fault> {
        let belief = match &config.belief {
            Some(name) => {
                Some(drives::open(name).map_err(|fault| fault_at(config, "belief", fault))?)
            }
            None => drive.cloned(),
        };
        let curve = OnceLock::new();
        if let Some(file) = &config.curve {
            let learned = curve_file(config, file, belief.as_ref())?;
            curve.get_or_init(|| Arc::new(learned));
        }
        let engine = Config {
            depth,
            ..Config::default()
        };
        Ok(Known {
            belief,
            model: OnceLock::new(),
            curve,
            handed_out_max: engine.handed_out_max(),
        })
    }

    /// The profile that is believed.
    pub fn belief(&self) -> Option<&Profile> {
        self.belief.as_ref()
    }

    /// The curve that schedulers are given, learned if that is still to do; none if nothing is known
    /// of the drive.
    pub fn curve(&self) -> Option<Arc<ServiceCurve>> {
        match &self.belief {
            Some(belief) => Some(Arc::clone(
                self.curve.get_or_init(|| Arc::new(curve_of(belief, SEED))),
            )),
            None => self.curve.get().cloned(),
        }
    }

    /// How a scheduler is made. Learning a curve takes some tenths of a second, once.
    ///
    /// # Errors
    ///
    /// If it needs to know the drive and does not.
    pub fn build(&self, spec: &Spec) -> Result<BuildScheduler, String> {
        let positioning = match &self.belief {
            Some(belief) if spec.needs().positioning => Some(Arc::clone(
                self.model.get_or_init(|| Arc::new(Model::new(belief))),
            )),
            _ => None,
        };
        let curve = spec.needs().curve.then(|| self.curve()).flatten();
        let missing = match (spec.needs().positioning, spec.needs().curve) {
            (true, _) if positioning.is_none() => Some("belief = \"DRIVE or FILE\""),
            (_, true) if curve.is_none() => Some("belief = \"DRIVE or FILE\" or curve = \"FILE\""),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(format!(
                "{spec}: has to know the drive, which no profile is given of; give {missing}"
            ));
        }
        let knowledge = Knowledge {
            positioning,
            curve,
            handed_out_max: Some(self.handed_out_max),
        };
        // What can be wrong shows now, not on the disk's thread.
        spec.build(knowledge.clone())
            .map_err(|error| error.to_string())?;
        let spec = spec.clone();
        Ok(Box::new(move || {
            spec.build(knowledge)
                .expect("what was built once is built again")
        }))
    }
}

/// A fault in a file that a key names: which key is said too.
pub(super) fn fault_at(config: &DiskConfig, key: &'static str, fault: Fault) -> Fault {
    match fault {
        Fault::Input(text) => config.error(key, text),
        other => other.of(&format!("disk {}: {key}", config.name)),
    }
}

fn curve_file(
    config: &DiskConfig,
    file: &str,
    belief: Option<&Profile>,
) -> Result<ServiceCurve, Fault> {
    let path = Path::new(file);
    let text = fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
    let learned = Learned::from_toml(file, &text).map_err(Fault::input)?;
    if let Some(belief) = belief {
        let (of, here) = (learned.origin(), &belief.geometry);
        if (of.sector_bytes, of.capacity) != (here.sector_bytes, here.capacity) {
            let problem = format!(
                "{file}: learned from {}, which has {} sectors of {} bytes; {} has {} of {}",
                of.drive,
                of.capacity,
                of.sector_bytes,
                belief.name,
                here.capacity,
                here.sector_bytes
            );
            return Err(config.error("curve", problem));
        }
    }
    Ok(learned.curve())
}
