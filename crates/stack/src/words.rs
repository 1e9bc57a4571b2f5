//! Drives in a few words, such as `18TB-7200`: capacity and speed, with typical values for the rest.

use headtime_disk::profile::{Profile, Spec, Trust};
use headtime_disk::{Capacity, Datasheet};
use headtime_units::{Bytes, Nanos};

/// Typical drives: from a capacity in GB on, the sustained rate at the outer edge in MB/s and the buffer in MiB.
type Typical = [(u64, u64, u64); 5];

/// Typical drives at 7200 turns a minute. Round values between those of datasheets of 2006 to 2024.
const NEARLINE: Typical = [
    (0, 80, 16),
    (500, 110, 32),
    (1_000, 180, 64),
    (4_000, 220, 128),
    (10_000, 265, 256),
];
/// Turns a minute, each with the rate over the rate at 7200 turns, and the mean seek of reads.
const RATES: [(f64, f64, Nanos); 4] = [
    (5_400.0, 0.8, Nanos::from_micros(11_000)),
    (7_200.0, 1.0, Nanos::from_micros(8_500)),
    (10_000.0, 1.4, Nanos::from_micros(4_500)),
    (15_000.0, 1.5, Nanos::from_micros(3_500)),
];

/// Reads `SIZE-RPM`, such as `18TB-7200`. `None` if the text is something else.
///
/// # Errors
///
/// If no drive has this size and speed.
pub fn profile(text: &str) -> Option<Result<Profile, String>> {
    let (size, rpm) = text.split_once('-')?;
    let size: Bytes = size.parse().ok()?;
    let rpm: f64 = rpm.parse().ok()?;
    let speed = RATES.iter().find(|(speed, ..)| *speed == rpm);
    let Some((_, rate_factor, seek)) = speed else {
        let allowed = RATES.map(|(speed, ..)| speed.to_string()).join(", ");
        return Some(Err(format!(
            "{rpm} turns a minute is not allowed; allowed are {allowed}"
        )));
    };
    let gb = size.0 / 1_000_000_000;
    let typical = NEARLINE.iter().rev().find(|(from, ..)| gb >= *from);
    let (_, rate, cache) = typical.expect("the first begins at 0");
    let sheet = Datasheet {
        name: text.to_ascii_lowercase(),
        model: None,
        capacity: Capacity::Nominal(size),
        sector: None,
        rpm,
        seek: *seek,
        seek_write: None,
        track: None,
        track_write: None,
        maximum: None,
        maximum_write: None,
        rate: (*rate as f64 * rate_factor) as u64 * 1_000_000,
        rate_inner: None,
        cache: Bytes(cache << 20),
        heads: None,
        queue: None,
        interface: None,
    };
    let profile = sheet.profile().map_err(|error| error.to_string());
    Some(profile.and_then(|profile| assumed(&profile)))
}

/// The profile with all marks as assumed, but those of the given values.
fn assumed(profile: &Profile) -> Result<Profile, String> {
    let assumed = |spec: &mut Spec| {
        let given = ["geometry", "rotation"];
        let others = spec
            .trust
            .iter_mut()
            .filter(|(key, _)| !given.contains(&key.as_str()));
        others.for_each(|(_, trust)| *trust = Trust::Assumed);
        spec.provenance = format!(
            "Typical values of drives of this size and speed; only these two are given.\n\n{}",
            spec.provenance
        );
    };
    profile.with(assumed).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_speed_give_a_drive_whose_other_values_are_assumed() {
        for (text, tb) in [
            ("18TB-7200", 18.0),
            ("500GB-7200", 0.5),
            ("2TB-5400", 2.0),
            ("600GB-15000", 0.6),
            ("1.2TB-10000", 1.2),
        ] {
            let profile = profile(text).unwrap().unwrap();
            let bytes =
                profile.geometry.capacity.get() as f64 * f64::from(profile.geometry.sector_bytes);
            assert!((bytes / 1e12 / tb - 1.0).abs() < 0.01, "{text}: {bytes}");
            assert_eq!(profile.name, text.to_ascii_lowercase());
            let trust = |key: &str| {
                profile
                    .trust
                    .iter()
                    .find(|(of, _)| of == key)
                    .map(|(_, trust)| *trust)
            };
            assert_eq!(trust("rotation"), Some(Trust::Published));
            assert_eq!(trust("seek"), Some(Trust::Assumed));
            assert_eq!(
                Profile::from_toml("t", &profile.to_toml()).unwrap(),
                profile
            );
        }
    }

    #[test]
    fn other_names_are_no_such_words_and_odd_speeds_are_errors() {
        for text in [
            "exos-x18",
            "wd5000aaks",
            "18TB",
            "barracuda-7200.10-160",
            "plausible-7",
            "",
        ] {
            assert!(profile(text).is_none(), "{text}");
        }
        let error = profile("18TB-7000").unwrap().unwrap_err();
        assert_eq!(
            error,
            "7000 turns a minute is not allowed; allowed are 5400, 7200, 10000, 15000"
        );
        // No drive of 18 GB has the rate of a later one.
        assert!(profile("18GB-7200").unwrap().is_err());
        assert!(profile("900PB-7200").is_none_or(|profile| profile.is_err()));
    }
}
