//! DiskSim parameter files.

#![no_main]

headtime_fuzz::target!("profile_disksim");
