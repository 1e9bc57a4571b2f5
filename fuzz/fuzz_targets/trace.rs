//! A trace in any format, perhaps compressed.

#![no_main]

use headtime_fuzz::trace::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check(bytes, None));
