//! Types that are written as text in configuration files.

use crate::{
    ArrivalEvent, Fit, Format, Pacing, Places, ProcessSpec, SizeDistribution, Speed,
    TimeDistribution, TimeUnit,
};
use headtime_config::{KeyError, verbatim, whole};
use headtime_units::{Nanos, serde_as_text};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

serde_as_text!(
    TimeDistribution,
    "a duration or a distribution of durations, such as \"30ms\""
);
serde_as_text!(
    SizeDistribution,
    "a size or a distribution of sizes, such as \"4KiB\""
);
serde_as_text!(Places, "a distribution of addresses, such as \"zipf(1.1)\"");
serde_as_text!(Format, "a trace format");
serde_as_text!(TimeUnit, "a unit of time");
serde_as_text!(ArrivalEvent, "\"queue\" or \"issue\"");
serde_as_text!(Fit, "\"error\" or \"wrap\"");

/// Reads a speed from a number.
impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Speed, D::Error> {
        let speed = f64::deserialize(from)?;
        Speed::new(speed).map_err(|error| D::Error::custom(format_args!("{speed}: {error}")))
    }
}

impl Serialize for Speed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        verbatim(self, to)
    }
}

impl<'de> Deserialize<'de> for ProcessSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ProcessSpec, D::Error> {
        let spec = ProcessSpec::deserialize(from)?;
        if spec.sequential_share + spec.local_share > 1.0 {
            let problem = "allowed is at most 1 together with sequential_share";
            return Err(D::Error::custom(KeyError::new("local_share", problem)));
        }
        Ok(spec)
    }
}

impl Serialize for ProcessSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        ProcessSpec::serialize(self, to)
    }
}

/// Keys of a [`Pacing`].
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PacingKeys {
    think: Option<TimeDistribution>,
    #[serde(deserialize_with = "whole::<_, _, 1, 65535>")]
    outstanding: Option<u32>,
    gap: Option<TimeDistribution>,
}

impl TryFrom<PacingKeys> for Pacing {
    type Error = KeyError;

    fn try_from(keys: PacingKeys) -> Result<Pacing, KeyError> {
        match (keys.gap, keys.think, keys.outstanding) {
            (Some(_), Some(_), _) => {
                let problem =
                    "is for processes that wait; with gap they ask whatever the disk does";
                Err(KeyError::new("think", problem))
            }
            (Some(gap), None, outstanding) => Ok(Pacing::Open { gap, outstanding }),
            (None, think, outstanding) => Ok(Pacing::Closed {
                think: think.unwrap_or(TimeDistribution::Constant(Nanos::ZERO)),
                outstanding: outstanding.unwrap_or(1),
            }),
        }
    }
}

impl From<Pacing> for PacingKeys {
    fn from(pacing: Pacing) -> PacingKeys {
        match pacing {
            Pacing::Closed { think, outstanding } => PacingKeys {
                think: Some(think),
                outstanding: Some(outstanding),
                gap: None,
            },
            Pacing::Open { gap, outstanding } => PacingKeys {
                think: None,
                outstanding,
                gap: Some(gap),
            },
        }
    }
}

/// Reads a whole number that TOML can hold.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    whole::<_, _, 0, { i64::MAX as u64 }>(from)
}

/// Reads a whole number from 1 on that TOML can hold.
pub(crate) fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    whole::<_, _, 1, { i64::MAX as u64 }>(from)
}

/// Reads and writes the program of an origin. The process is not part of the configuration.
pub(crate) mod program {
    use super::*;
    use headtime_sched::Origin;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Origin, D::Error> {
        Ok(Origin {
            program: whole::<_, _, 0, 65_535>(from)?,
            ..Origin::default()
        })
    }

    pub(crate) fn serialize<S: Serializer>(origin: &Origin, to: S) -> Result<S::Ok, S::Error> {
        origin.program.serialize(to)
    }
}

/// Reads and writes flags by name. No flags are written as no key.
pub(crate) mod write_flags {
    use super::*;
    use headtime_config::Many;
    use headtime_sched::Flags;

    #[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Name {
        Fua,
        Preflush,
        Sync,
    }

    const ALL: [(Name, Flags); 3] = [
        (Name::Fua, Flags::FUA),
        (Name::Preflush, Flags::PREFLUSH),
        (Name::Sync, Flags::SYNC),
    ];

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Flags, D::Error> {
        let Many(names) = Many::<Name>::deserialize(from)?;
        let flags = names.into_iter().map(|name| ALL[name as usize].1);
        Ok(flags.fold(Flags::NONE, Flags::with))
    }

    pub(crate) fn serialize<S: Serializer>(flags: &Flags, to: S) -> Result<S::Ok, S::Error> {
        let names = ALL.into_iter().filter(|(_, flag)| flags.has(*flag));
        let names: Vec<Name> = names.map(|(name, _)| name).collect();
        (!names.is_empty()).then_some(Many(names)).serialize(to)
    }
}
