//! DiskSim parameter files.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::disksim::check);
