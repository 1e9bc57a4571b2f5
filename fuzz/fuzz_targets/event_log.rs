//! An event log and its replay.

#![no_main]

headtime_fuzz::target!("event_log");
