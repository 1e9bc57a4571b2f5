//! A validation trace.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::validation::check);
