//! The options of an engine in configuration files: [`EngineSpec`].
//!
//! An option appears in four files: here, in [`Config`], in the engine's code that uses it, and in `docs/scenario.md`.
//! Scenarios, the server's configuration, logs and reports all read and write [`EngineSpec`] by its derived `serde`
//! implementations. Code that builds an [`EngineSpec`] names the options that matter, and `..` for the others.

use crate::config::{Config, Issue, Plug};
use crate::gate::GateSpec;
use headtime_units::{Bytes, Nanos, Sectors};

/// The options of an engine in configuration files: one key for each field.
///
/// Reports have the fields in this order. In lists of combinations the first field varies slowest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, remote = "Self")
)]
pub struct EngineSpec {
    /// See [`Config::depth`].
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "headtime_config::whole::<_, _, 1, 256>")
    )]
    pub depth: u32,
    /// The gate before the drive.
    pub gate: GateSpec,
    /// See [`Config::merge`].
    pub merge: bool,
    /// The largest merged request: a multiple of 512 bytes, up to [`EngineSpec::MERGE_MAX`].
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read::merge_max"))]
    pub merge_max: Bytes,
    /// See [`Config::commit_ahead`].
    pub commit_ahead: bool,
    /// See [`Config::issue`].
    pub issue: Issue,
    /// True if there is a [`Config::plug`].
    pub plug: bool,
    /// See [`Plug::requests`]; `None` without a plug.
    #[cfg_attr(
        feature = "serde",
        serde(
            skip_serializing_if = "Option::is_none",
            deserialize_with = "headtime_config::whole::<_, _, 1, 65_535>"
        )
    )]
    pub plug_requests: Option<u32>,
    /// See [`Plug::timeout`]; `None` without a plug.
    #[cfg_attr(
        feature = "serde",
        serde(
            skip_serializing_if = "Option::is_none",
            deserialize_with = "read::plug_timeout"
        )
    )]
    pub plug_timeout: Option<Nanos>,
    /// See [`Config::hide_origins`].
    pub hide_processes: bool,
}

/// Error of a key's value that conflicts with the values of other keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct KeyError {
    /// The key as in a configuration, such as `depth`.
    pub key: &'static str,
    /// The problem, and the allowed values.
    pub problem: String,
}

impl Default for EngineSpec {
    /// Depth 1, no further gate, merging up to 512 KiB, nothing committed ahead, no plug, origins visible.
    fn default() -> EngineSpec {
        EngineSpec {
            depth: 1,
            gate: GateSpec::default(),
            merge: true,
            merge_max: Bytes(512 << 10),
            commit_ahead: false,
            issue: Issue::AtOnce,
            plug: false,
            plug_requests: None,
            plug_timeout: None,
            hide_processes: false,
        }
    }
}

impl EngineSpec {
    /// The largest [`EngineSpec::merge_max`].
    pub const MERGE_MAX: Bytes = Bytes(1 << 30);

    /// Options of the block layer of Linux 2.6, which plugs and commits ahead.
    pub fn linux_2_6() -> EngineSpec {
        EngineSpec {
            commit_ahead: true,
            plug: true,
            ..EngineSpec::default()
        }
    }

    /// Fills in the default numbers of the plug if they were not given, and checks the options.
    ///
    /// # Errors
    ///
    /// If a number of the plug is given without a plug, or if the gate does not fit the depth.
    pub fn complete(mut self) -> Result<EngineSpec, KeyError> {
        if self.plug {
            self.plug_requests.get_or_insert(Plug::LINUX_2_6.requests);
            self.plug_timeout.get_or_insert(Plug::LINUX_2_6.timeout);
        }
        let given = [
            ("plug_requests", self.plug_requests.is_some()),
            ("plug_timeout", self.plug_timeout.is_some()),
        ];
        let refused = |key, problem| Err(KeyError { key, problem });
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given && !self.plug) {
            return refused(key, "is for plug = true".to_owned());
        }
        match self.gate.check(&self.config(512)) {
            Ok(()) => Ok(self),
            Err(problem) => refused("gate", problem.to_string()),
        }
    }

    /// Returns the configuration of an engine above a drive with sectors of `sector_bytes` bytes.
    pub fn config(&self, sector_bytes: u32) -> Config {
        let plug = Plug {
            requests: self.plug_requests.unwrap_or(Plug::LINUX_2_6.requests),
            timeout: self.plug_timeout.unwrap_or(Plug::LINUX_2_6.timeout),
        };
        Config {
            depth: self.depth,
            sector_bytes,
            merge: self.merge,
            merge_sectors_max: Sectors::new((self.merge_max.0 / u64::from(sector_bytes)).max(1)),
            commit_ahead: self.commit_ahead,
            issue: self.issue,
            plug: self.plug.then_some(plug),
            hide_origins: self.hide_processes,
        }
    }
}

impl EngineSpec {
    /// Returns the options for which [`EngineSpec::config`] returns this configuration, above a drive with sectors of
    /// `sector_bytes` bytes.
    pub fn of(config: &Config, gate: GateSpec, sector_bytes: u32) -> EngineSpec {
        EngineSpec {
            depth: config.depth,
            gate,
            merge: config.merge,
            merge_max: Bytes(config.merge_sectors_max.bytes(sector_bytes)),
            commit_ahead: config.commit_ahead,
            issue: config.issue,
            plug: config.plug.is_some(),
            plug_requests: config.plug.map(|plug| plug.requests),
            plug_timeout: config.plug.map(|plug| plug.timeout),
            hide_processes: config.hide_origins,
        }
    }
}

/// Reading with checks of ranges and of combinations.
#[cfg(feature = "serde")]
mod read {
    use super::{Bytes, EngineSpec, Nanos};
    use headtime_config::KeyError;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    /// Reads the options and [completes](EngineSpec::complete) them.
    impl<'de> Deserialize<'de> for EngineSpec {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<EngineSpec, D::Error> {
            let complete = EngineSpec::deserialize(from)?.complete();
            complete.map_err(|error| D::Error::custom(KeyError::new(error.key, error.problem)))
        }
    }

    impl Serialize for EngineSpec {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            EngineSpec::serialize(self, to)
        }
    }

    pub(super) fn plug_timeout<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Nanos>, D::Error> {
        match Nanos::deserialize(from)? {
            Nanos::ZERO => Err(D::Error::custom("allowed is more than 0s")),
            timeout => Ok(Some(timeout)),
        }
    }

    pub(super) fn merge_max<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let size = Bytes::deserialize(from)?;
        match size.0 > 0 && size.0.is_multiple_of(512) && size <= EngineSpec::MERGE_MAX {
            true => Ok(size),
            false => Err(D::Error::custom(
                "allowed is a multiple of 512B, up to 1GiB",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_plug_without_one_are_refused() {
        let given = |requests, timeout| EngineSpec {
            plug_requests: requests,
            plug_timeout: timeout,
            ..EngineSpec::default()
        };
        let refused = |spec: EngineSpec| spec.complete().unwrap_err().to_string();
        let timeout = Some(Nanos::from_millis(1));
        assert_eq!(
            refused(given(Some(4), timeout)),
            "plug_requests: is for plug = true"
        );
        assert_eq!(
            refused(given(None, timeout)),
            "plug_timeout: is for plug = true"
        );
        let spec = EngineSpec::linux_2_6().complete().unwrap();
        assert_eq!((spec.plug_requests, spec.config(512).plug), {
            let plug = Plug::LINUX_2_6;
            (Some(plug.requests), Some(plug))
        });
        let spec = EngineSpec {
            plug: true,
            ..given(None, timeout)
        };
        let plug = spec.complete().unwrap().config(512).plug;
        assert_eq!(plug.map(|plug| Some(plug.timeout)), Some(timeout));
    }

    /// Sectors may be larger than the limit of a merged request.
    #[test]
    fn a_merged_request_has_at_least_a_sector() {
        let with = |bytes| EngineSpec {
            merge_max: Bytes(bytes),
            ..EngineSpec::default()
        };
        let most = |bytes, sector_bytes| with(bytes).config(sector_bytes).merge_sectors_max.get();
        assert_eq!(most(512 << 10, 512), 1024);
        assert_eq!((most(6144, 4096), most(512, 4096)), (1, 1));
    }

    #[test]
    fn options_made_of_a_configuration_make_it_again() {
        let config = Config {
            depth: 31,
            sector_bytes: 4096,
            merge: false,
            merge_sectors_max: Sectors::new(77),
            commit_ahead: true,
            issue: Issue::Late,
            plug: Some(Plug::LINUX_2_6),
            hide_origins: true,
        };
        let plain = Config {
            sector_bytes: 4096,
            ..Config::default()
        };
        for config in [config, plain] {
            let spec = EngineSpec::of(&config, GateSpec::default(), 4096);
            assert_eq!(spec.complete().unwrap().config(4096), config);
        }
    }

    #[test]
    fn an_engine_of_which_nothing_is_said_is_the_plain_one() {
        assert_eq!(EngineSpec::default().config(512), Config::default());
    }
}
