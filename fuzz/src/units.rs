//! Checks on durations, sizes and numbers as text.

use headtime_units::{Bytes, Millionths, Nanos};
use headtime_workload::{Places, SizeDistribution, Speed, TimeDistribution};
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Reads `bytes` as everything that has a unit or is a plain number.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    same_when_written::<Nanos>(text);
    same_when_written::<Bytes>(text);
    same_when_written::<Millionths>(text);
    same_when_written::<TimeDistribution>(text);
    same_when_written::<SizeDistribution>(text);
    same_when_written::<Places>(text);
    same_when_written::<Speed>(text);
}

fn same_when_written<T: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => match value.to_string().parse::<T>() {
            Ok(again) => assert_eq!(again, value),
            Err(error) => panic!("{value}: {error}"),
        },
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
