//! A scenario that is run.

#![no_main]

headtime_fuzz::target!("run");
