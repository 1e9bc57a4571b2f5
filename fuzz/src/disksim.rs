//! Checks on the reader of DiskSim parameter files.

use crate::parts::{Draw, split};
use crate::profile;
use headtime_disksim::{import_text, parse_str};

/// The first part of an input is the file to import, the others are files that it may name.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (run, others) = split(text);
    let formed = parse_str("FILE", run);
    let beside = |name: &str| {
        let found = others.iter().find(|(other, _)| *other == name);
        match found {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    };
    match import_text("FILE", run, &Default::default(), beside) {
        Ok(import) => {
            formed.expect("what can be imported has the form");
            profile::same_when_written(&import.profile);
            profile::explore(&import.profile, &mut Draw::new(bytes));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
