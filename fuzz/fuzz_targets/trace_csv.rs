//! A description of columns on the first line, and a CSV trace on the others.

#![no_main]

use headtime_fuzz::trace::check_csv;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_csv(bytes));
