//! Durations, sizes and plain numbers.

#![no_main]

headtime_fuzz::target!("units");
