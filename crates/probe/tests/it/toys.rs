//! Drives that were made up for tests, and are soon learned. The drives of the command's tests are tried there, too.

use headtime_disk::profile::Profile;

/// A drive of 43 MB with a queue of four and a write cache.
pub fn little() -> Profile {
    parsed(include_str!("../../../cli/tests/data/little.toml"))
}

/// A drive of 18 GB with a queue of eight and a buffer that holds 512 places.
pub fn roomy() -> Profile {
    parsed(include_str!("../../../cli/tests/data/roomy.toml"))
}

fn parsed(text: &str) -> Profile {
    Profile::from_toml("toy.toml", text).unwrap()
}
