//! What schedulers believe of the drive.

use crate::{StackError, Unbuilt};
use headtime_disk::Model;
use headtime_disk::profile::{Profile, Reference};
use headtime_engine::Config;
use headtime_probe::{Learned, curve_of};
use headtime_sched::{Knowledge, ServiceCurve, Spec};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Where a believed drive is probed for its curve: what is learned of it has nothing to do with what
/// is run.
pub const PROBE_SEED: u64 = 1;

/// What schedulers are to believe of the drive, where they are not to believe what is so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Believed {
    /// The drive that they believe to have, by name or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belief: Option<String>,
    /// The file of the service-time curve that they are given if they need one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
}

/// What schedulers know of the drive that they order requests for: a belief of their own, never the
/// drive itself. A model or a curve is made when a scheduler first needs it, and kept.
#[derive(Debug, Default)]
pub struct Known {
    belief: Option<Result<Profile, String>>,
    learns: bool,
    model: OnceLock<Arc<Model>>,
    curve: OnceLock<Arc<ServiceCurve>>,
}

impl Known {
    /// A drive is believed, or none, and a curve of it is learned when it is needed.
    pub fn learning(belief: Option<Profile>) -> Known {
        Known {
            belief: belief.map(Ok),
            learns: true,
            ..Known::default()
        }
    }

    /// What a log has recorded: a reference to a drive, and a curve. Nothing is learned, as the
    /// schedulers of the log knew only this.
    pub fn recorded(belief: Option<&str>, curve: Option<ServiceCurve>) -> Known {
        let profile = |text: &str| {
            let reference: Result<Reference, _> = text.parse();
            let profile = reference.and_then(|reference| reference.profile());
            profile.map_err(|error| format!("the setting `belief`: {error}"))
        };
        let known = Known {
            belief: belief.map(profile),
            ..Known::default()
        };
        match curve {
            Some(curve) => known.with_curve(Arc::new(curve)),
            None => known,
        }
    }

    /// With a curve that is there.
    #[must_use]
    pub fn with_curve(self, curve: Arc<ServiceCurve>) -> Known {
        Known {
            curve: curve.into(),
            ..self
        }
    }

    /// With a model of the believed drive that is there.
    #[must_use]
    pub fn with_model(self, model: Arc<Model>) -> Known {
        Known {
            model: model.into(),
            ..self
        }
    }

    /// The drive that is believed.
    pub fn belief(&self) -> Option<&Profile> {
        self.belief.as_ref()?.as_ref().ok()
    }

    /// The curve that schedulers are given, learned if that is still to do.
    pub fn curve(&self) -> Option<Arc<ServiceCurve>> {
        match self.belief() {
            Some(belief) if self.learns => {
                let learn = || Arc::new(curve_of(belief, PROBE_SEED));
                Some(Arc::clone(self.curve.get_or_init(learn)))
            }
            _ => self.curve.get().cloned(),
        }
    }

    /// What a scheduler is told that it needs. Learning a curve takes some tenths of a second, once.
    ///
    /// # Errors
    ///
    /// If that is not known.
    pub(crate) fn knowledge(
        &self,
        spec: &Spec,
        config: &Config,
    ) -> Result<Knowledge<Arc<Model>>, Unbuilt> {
        let needs = spec.needs();
        let mut knowledge = Knowledge {
            positioning: None,
            curve: None,
            handed_out_max: Some(config.handed_out_max()),
        };
        if needs.positioning {
            let belief = match &self.belief {
                None => return Err(Unbuilt::Positions(spec.clone())),
                Some(belief) => belief
                    .as_ref()
                    .map_err(|why| Unbuilt::Belief(why.clone()))?,
            };
            let model = self.model.get_or_init(|| Arc::new(Model::new(belief)));
            knowledge.positioning = Some(Arc::clone(model));
        }
        if needs.curve {
            let curve = self.curve();
            knowledge.curve = Some(curve.ok_or_else(|| Unbuilt::Curve(spec.clone()))?);
        }
        Ok(knowledge)
    }
}

/// A curve from a file, and its text for a hash. With a profile, it must be of such a drive.
///
/// # Errors
///
/// If the file cannot be read, holds no curve, or one of a drive of another size.
pub fn curve_file(
    file: &str,
    profile: Option<&Profile>,
) -> Result<(ServiceCurve, String), StackError> {
    let path = Path::new(file);
    let text = fs::read_to_string(path).map_err(|error| StackError::reading(path, &error))?;
    let learned = Learned::from_toml(file, &text).map_err(StackError::input)?;
    if let Some(profile) = profile {
        let (origin, geometry) = (learned.origin(), &profile.geometry);
        let name = &profile.name;
        let (of, here) = (origin.sector_bytes, geometry.sector_bytes);
        if of != here {
            return Err(StackError::Input(format!(
                "{file}: distances are in sectors of {of} bytes; those of {name} have {here}"
            )));
        }
        let (of, here) = (origin.capacity, geometry.capacity);
        if of != here {
            let drive = &origin.drive;
            return Err(StackError::Input(format!(
                "{file}: learned from {drive}, which has {of} sectors; {name} has {here}"
            )));
        }
    }
    Ok((learned.curve(), learned.to_toml()))
}
