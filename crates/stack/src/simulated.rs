//! A simulated drive: a profile with changes by a description.

use crate::StackError;
use headtime_config::{Node, Place, Table, Value};
use headtime_disk::profile::{FirmwarePolicy, NoiseSpec, Profile, Spec};
use headtime_units::{Nanos, nearest};
use serde::{Deserialize, Serialize};

/// Changes to the profile of a simulated drive. These keys are not allowed for a real device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Simulated {
    /// Order in which the drive serves the commands in its queue.
    pub firmware: Firmware,
    /// True if the noise of the profile is on.
    pub noise: bool,
    /// Keys of the profile that are replaced.
    #[serde(rename = "override", skip_serializing_if = "Table::is_empty")]
    pub overrides: Table,
}

impl Default for Simulated {
    /// The unchanged profile.
    fn default() -> Simulated {
        Simulated {
            firmware: Firmware::Profile,
            noise: true,
            overrides: Table::default(),
        }
    }
}

/// Order in which the drive serves the commands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firmware {
    /// The order of the profile.
    Profile,
    /// First come, first served.
    Fifo,
    /// Shortest positioning time first, with the profile's margin and cap on age, if any.
    Sptf,
}

impl Firmware {
    /// Names of all orders.
    pub const NAMES: [&'static str; 3] = ["profile", "fifo", "sptf"];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        Firmware::NAMES[self as usize]
    }

    /// Returns the order of a profile.
    pub fn of(profile: &Profile) -> Firmware {
        match profile.queue.policy {
            FirmwarePolicy::Fifo => Firmware::Fifo,
            FirmwarePolicy::Sptf { .. } => Firmware::Sptf,
        }
    }
}

impl std::str::FromStr for Firmware {
    type Err = String;

    fn from_str(text: &str) -> Result<Firmware, String> {
        [Firmware::Profile, Firmware::Fifo, Firmware::Sptf]
            .into_iter()
            .find(|firmware| firmware.name() == text)
            .ok_or_else(|| {
                let guess = nearest(text, Firmware::NAMES)
                    .map(|guess| format!("; did you mean `{guess}`?"))
                    .unwrap_or_default();
                format!("no firmware order is called `{text}`{guess} (profile, fifo, sptf)")
            })
    }
}

/// Returns a profile with another order of the firmware.
///
/// # Errors
///
/// If the profile does not allow the order.
pub fn with_firmware(profile: &Profile, firmware: Firmware) -> Result<Profile, StackError> {
    let policy = match (firmware, profile.queue.policy) {
        (Firmware::Profile, _) => return Ok(profile.clone()),
        (Firmware::Fifo, _) => FirmwarePolicy::Fifo,
        (Firmware::Sptf, given @ FirmwarePolicy::Sptf { .. }) => given,
        (Firmware::Sptf, FirmwarePolicy::Fifo) => FirmwarePolicy::Sptf {
            margin: Nanos::ZERO,
            age_cap: None,
        },
    };
    profile
        .with(|spec| spec.queue.policy = policy)
        .map_err(StackError::input)
}

/// Returns the profile with new values for some keys, and without noise if `noise` is false.
///
/// # Errors
///
/// If there is no such key, or the result is no valid profile.
pub fn changed(
    profile: &Profile,
    overrides: &Table,
    noise: bool,
    name: &str,
) -> Result<Profile, StackError> {
    let mut profile = profile.clone();
    if !overrides.is_empty() {
        let file = format!("{name} with drive.override");
        let own = Table::parse(&file, &profile.to_toml());
        let mut table = own.map_err(StackError::input)?;
        table.overlay(overrides);
        without_what_is_off(&mut table, overrides);
        profile = Profile::from_table(&table, &Place::NoText).map_err(|mut error| {
            // The line would refer to a text that the user cannot see.
            error.place = Place::Option(file.as_str().into());
            StackError::input(error)
        })?;
    }
    if !noise {
        profile = profile
            .with(|spec: &mut Spec| spec.noise = NoiseSpec::default())
            .map_err(StackError::input)?;
    }
    Ok(profile)
}

/// Switches off the keys that depend on the buffer or on read-ahead, if these are switched off. Overridden keys stay,
/// so that a conflict is reported as an error.
fn without_what_is_off(profile: &mut Table, over: &Table) {
    let value = |key: &str| over.at(key).map(|node| &node.value);
    let off = || Value::Text("off".to_owned());
    let disabled = value("cache.enabled") == Some(&Value::Flag(false));
    let no_read_ahead = disabled || value("cache.read_ahead") == Some(&off());
    for (applies, key, of_off) in [
        (disabled, "cache.read_ahead", off()),
        (disabled, "cache.write_back", off()),
        (disabled, "cache.read_free_sectors", Value::Flag(false)),
        (no_read_ahead, "cache.read_ahead_min", Value::Integer(0)),
        (no_read_ahead, "cache.read_ahead_max", Value::Integer(0)),
        (
            no_read_ahead,
            "cache.second_read_ahead_min",
            Value::Integer(0),
        ),
    ] {
        if applies && value(key).is_none() {
            let set = profile.set_value(key, Node::built_in(of_off));
            set.expect("a profile has a buffer");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;

    #[test]
    fn a_buffer_switched_off_takes_what_needs_it_along() {
        let changed = |over: &str| {
            let drive = drives::open("wd5000aaks").unwrap();
            changed(
                &drive,
                &Table::parse("s", over).unwrap(),
                true,
                "wd5000aaks",
            )
        };
        let plain = changed("").unwrap().cache;
        assert!(plain.enabled && plain.read_ahead_max > 0);
        let off = changed("cache.enabled = false").unwrap().cache;
        assert!(!off.enabled && !off.read_free_sectors);
        assert_eq!((off.read_ahead_min, off.read_ahead_max), (0, 0));
        let no_ahead = changed("cache.read_ahead = \"off\"").unwrap();
        assert!(no_ahead.cache.enabled);
        assert_eq!(no_ahead.cache.read_ahead_max, 0);
        // An overridden key is not dropped silently.
        let fault = changed("cache = { enabled = false, write_back = \"full\" }").unwrap_err();
        assert!(
            fault
                .to_string()
                .contains("cache.write_back: needs cache.enabled = true"),
            "{fault}"
        );
    }
}
