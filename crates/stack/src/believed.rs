//! Profile of the drive that schedulers assume.

use crate::{StackError, Unbuilt, drives};
use headtime_disk::Model;
use headtime_disk::profile::{Profile, Reference};
use headtime_engine::Config;
use headtime_probe::extract::profile_of;
use headtime_probe::{Learned, curve_of};
use headtime_sched::{Knowledge, ServiceCurve, Spec};
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Seed of the probed unit of a drive, and of the samples for its curve. It is independent of the seed of a run.
const PROBE_SEED: u64 = 1;

/// Value of `belief` for the profile that probing a unit of the simulated drive yields.
const PROBED: &str = "probed";

/// As [`PROBED`], for a unit whose speed does not wander, since it was probed while the disk was at rest.
const PROBED_STEADY: &str = "probed-steady";

/// The drive and the curve that schedulers assume, if these differ from the real ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Believed {
    /// The assumed drive: a name or a file, or `probed` or `probed-steady`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belief: Option<String>,
    /// File of the service-time curve for schedulers that need a curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
}

/// Source of an assumed profile.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The name of a drive or of a file.
    Named(&'a str),
    /// The profile learned by probing a unit of this drive.
    Probed(&'a Profile),
}

impl Source<'_> {
    /// Returns the profile. Probing takes seconds.
    ///
    /// # Errors
    ///
    /// As for [`drives::open`], or if the drive cannot be probed.
    pub fn open(self) -> Result<Profile, StackError> {
        match self {
            Source::Named(name) => drives::open(name),
            Source::Probed(drive) => profile_of(drive, PROBE_SEED).map_err(StackError::input),
        }
    }
}

/// Profile and curve that [`Believed`] names.
#[derive(Clone, Debug)]
pub struct Beliefs {
    /// The assumed drive, if any is known.
    pub drive: Option<Profile>,
    /// The given curve, and its text for a hash.
    pub curve: Option<(Arc<ServiceCurve>, String)>,
}

impl Believed {
    /// Reads the named drive and curve, whether or not a scheduler needs them. Without `belief`, `drive` is assumed.
    /// The curve must be of the assumed drive. `open` opens a source, as [`Source::open`] does.
    ///
    /// # Errors
    ///
    /// If a named file cannot be read, or if there is no simulated drive to probe. Also if the curve is of a drive of
    /// another size. The error names the key.
    pub fn read<E: From<StackError>>(
        &self,
        drive: Option<&Profile>,
        open: impl FnOnce(Source<'_>) -> Result<Profile, E>,
    ) -> Result<Beliefs, (&'static str, E)> {
        let believed = |error| ("belief", error);
        let drive = match self.belief.as_deref() {
            Some(name @ (PROBED | PROBED_STEADY)) => {
                let drive = drive.ok_or_else(|| believed(nothing_to_probe(name).into()))?;
                let steady = match name {
                    PROBED_STEADY => Some(steady(drive).map_err(|error| believed(error.into()))?),
                    _ => None,
                };
                let probed = Source::Probed(steady.as_ref().unwrap_or(drive));
                Some(open(probed).map_err(believed)?)
            }
            Some(name) => Some(open(Source::Named(name)).map_err(believed)?),
            None => drive.cloned(),
        };
        let curve = match &self.curve {
            Some(file) => {
                let read = curve_file(file, drive.as_ref());
                let (curve, text) = read.map_err(|error| ("curve", error.into()))?;
                Some((Arc::new(curve), text))
            }
            None => None,
        };
        Ok(Beliefs { drive, curve })
    }
}

/// Returns the drive without wander of its speed.
fn steady(drive: &Profile) -> Result<Profile, StackError> {
    let still = drive.with(|spec| {
        spec.noise.wander_ppm = 0;
        spec.noise.wander_period = Nanos::ZERO;
    });
    still.map_err(StackError::input)
}

fn nothing_to_probe(belief: &str) -> StackError {
    StackError::Input(format!(
        "`{belief}` is for simulated drives; give the FILE that `headtime drive probe` has written of this one"
    ))
}

impl From<Beliefs> for Known {
    fn from(beliefs: Beliefs) -> Known {
        let known = Known::learning(beliefs.drive);
        match beliefs.curve {
            Some((curve, _)) => known.with_curve(curve),
            None => known,
        }
    }
}

/// Knowledge of schedulers about their drive: an assumed profile, never the drive itself. Model and curve are made when
/// a scheduler first needs them, and cached.
#[derive(Debug, Default)]
pub struct Known {
    belief: Option<Result<Profile, String>>,
    learns: bool,
    /// Drive whose curve is used if the drive is unknown.
    assumed: Option<Profile>,
    model: OnceLock<Arc<Model>>,
    curve: OnceLock<Arc<ServiceCurve>>,
}

impl Known {
    /// Assumes a drive, or none. The drive's curve is learned when it is needed.
    pub(crate) fn learning(belief: Option<Profile>) -> Known {
        Known {
            belief: belief.map(Ok),
            learns: true,
            ..Known::default()
        }
    }

    /// Restores the knowledge that a log has recorded: a reference to a drive, and a curve. No curve is learned, since
    /// the logged schedulers knew only these.
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

    /// Sets a known curve.
    #[must_use]
    fn with_curve(self, curve: Arc<ServiceCurve>) -> Known {
        Known {
            curve: curve.into(),
            ..self
        }
    }

    /// Assumes the curve of another drive for schedulers that need a curve, if neither a drive nor a curve is known.
    /// Positions stay unknown.
    #[must_use]
    pub fn assuming(self, drive: Profile) -> Known {
        Known {
            assumed: Some(drive),
            ..self
        }
    }

    /// Returns the drive whose curve is [assumed](Known::assuming).
    pub fn assumed(&self) -> Option<&Profile> {
        self.assumed.as_ref()
    }

    /// Returns the assumed drive.
    pub fn belief(&self) -> Option<&Profile> {
        self.belief.as_ref()?.as_ref().ok()
    }

    /// Returns the curve for schedulers. Learns the curve first if necessary.
    pub fn curve(&self) -> Option<Arc<ServiceCurve>> {
        match self.belief().or(self.assumed.as_ref()) {
            Some(drive) if self.learns => {
                let learn = || Arc::new(curve_of(drive, PROBE_SEED));
                Some(Arc::clone(self.curve.get_or_init(learn)))
            }
            _ => self.curve.get().cloned(),
        }
    }

    /// Returns the model of the assumed drive; `None` if there is no assumed drive.
    ///
    /// # Errors
    ///
    /// If the drive that a log names does not exist.
    pub fn model(&self) -> Result<Option<Arc<Model>>, Unbuilt> {
        let Some(belief) = &self.belief else {
            return Ok(None);
        };
        let belief = belief
            .as_ref()
            .map_err(|why| Unbuilt::Belief(why.clone()))?;
        let model = self.model.get_or_init(|| Arc::new(Model::new(belief)));
        Ok(Some(Arc::clone(model)))
    }

    /// Returns the knowledge that a scheduler needs. Learning a curve takes some tenths of a second, once.
    ///
    /// # Errors
    ///
    /// If the knowledge is missing.
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
            let model = self.model()?;
            let model = model.ok_or_else(|| Unbuilt::Positions(spec.clone()))?;
            knowledge.positioning = Some(model);
        }
        if needs.curve {
            let curve = self.curve();
            knowledge.curve = Some(curve.ok_or_else(|| Unbuilt::Curve(spec.clone()))?);
        }
        Ok(knowledge)
    }
}

/// Reads a curve from a file, with its text for a hash. With a profile, the curve must be of such a drive.
///
/// # Errors
///
/// If the file cannot be read, contains no curve, or a curve of a drive of another size.
fn curve_file(file: &str, profile: Option<&Profile>) -> Result<(ServiceCurve, String), StackError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;
    use headtime_probe::{CurveOptions, Modelled, learn};

    fn drive(name: &str) -> Profile {
        by_name(name).expect("shipped").clone()
    }

    /// Reads beliefs for an atlas10k. With `curve_of`, a file has the curve of this drive.
    fn read(
        belief: Option<&str>,
        curve_of: Option<&str>,
    ) -> Result<Beliefs, (&'static str, String)> {
        let folder = headtime_testkit::Folder::new();
        let file = folder.join("curve.toml");
        if let Some(name) = curve_of {
            let options = CurveOptions {
                samples: 200,
                ..CurveOptions::default()
            };
            let learned = learn(&mut Modelled::new(&drive(name), 1), &options);
            fs::write(&file, learned.expect("a curve").to_toml()).expect("writable");
        }
        let believed = Believed {
            belief: belief.map(str::to_owned),
            curve: curve_of.map(|_| file.to_string_lossy().into_owned()),
        };
        let beliefs = believed.read(Some(&drive("atlas10k")), |source| source.open());
        beliefs.map_err(|(key, error): (_, StackError)| (key, error.to_string()))
    }

    #[test]
    fn a_curve_is_of_the_drive_that_is_believed_and_not_of_another() {
        let believed =
            |beliefs: Beliefs| (beliefs.drive.unwrap().name.clone(), beliefs.curve.is_some());
        let other = "wd5000aaks";
        assert_eq!(
            believed(read(None, None).unwrap()),
            ("atlas10k".into(), false)
        );
        assert_eq!(
            believed(read(None, Some("atlas10k")).unwrap()),
            ("atlas10k".into(), true)
        );
        assert_eq!(
            believed(read(Some(other), Some(other)).unwrap()),
            (other.into(), true)
        );
        for (belief, curve) in [(None, other), (Some(other), "atlas10k")] {
            let (key, problem) = read(belief, Some(curve)).unwrap_err();
            assert_eq!(key, "curve");
            assert!(
                problem.contains(&format!("learned from {curve}")),
                "{problem}"
            );
        }
        let (key, problem) = read(Some("atlas10"), None).unwrap_err();
        assert_eq!(key, "belief");
        assert!(problem.contains("did you mean `atlas10k`"), "{problem}");
    }

    #[test]
    fn a_steady_unit_is_probed_whose_speed_does_not_wander() {
        let believed = |belief: &str, drive: &Profile| {
            let believed = Believed {
                belief: Some(belief.to_owned()),
                curve: None,
            };
            let beliefs = believed.read(Some(drive), |source| source.open());
            beliefs.unwrap().drive
        };
        let still = drive("atlas10k");
        let wanders = still.with(|spec| {
            spec.noise.wander_ppm = 100;
            spec.noise.wander_period = Nanos::from_secs(120);
        });
        let wanders = wanders.unwrap();
        let learned = believed("probed", &still);
        assert_eq!(believed("probed-steady", &wanders), learned);
        assert_ne!(believed("probed", &wanders), learned);
    }

    /// A probed profile is not the drive's own profile, since its angles count from the start of the probe.
    #[test]
    fn what_is_probed_is_learned_of_the_drive_that_is_there_and_of_no_other() {
        let probed = |drive: Option<&Profile>| {
            let believed = Believed {
                belief: Some("probed".to_owned()),
                curve: None,
            };
            let beliefs = believed.read(drive, |source| source.open());
            beliefs.map(|beliefs| beliefs.drive.expect("one is believed"))
        };
        let truth = drive("atlas10k");
        let learned = probed(Some(&truth)).unwrap();
        assert_eq!(probed(Some(&truth)).unwrap(), learned);
        assert_eq!(learned.geometry.capacity, truth.geometry.capacity);
        assert_ne!(learned.seek, truth.seek);
        let faster = truth.with(|spec| spec.rotation.rpm = 12_000.0).unwrap();
        let rpm = probed(Some(&faster)).unwrap().rotation.rpm;
        assert!((rpm - 12_000.0).abs() < 1.0, "{rpm}");
        let (key, refused) = probed(None).unwrap_err();
        assert_eq!(key, "belief");
        let refused = refused.to_string();
        assert!(refused.contains("`headtime drive probe`"), "{refused}");
    }
}
