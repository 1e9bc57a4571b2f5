//! An event log and its replay.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::log::check);
