//! A drive made from any profile, at work.

#![no_main]

headtime_fuzz::target!("drive");
