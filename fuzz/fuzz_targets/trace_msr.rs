//! A trace in one format.

#![no_main]

use headtime_fuzz::trace::check;
use headtime_workload::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check(bytes, Some(Format::Msr)));
