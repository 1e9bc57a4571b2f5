//! Durations, sizes and plain numbers.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::units::check);
