//! A scenario, and settings from the command line.

#![no_main]

headtime_fuzz::target!("scenario");
