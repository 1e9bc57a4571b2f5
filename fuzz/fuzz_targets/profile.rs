//! The profile of a drive, and the layout and mechanics that follow from it.

#![no_main]

headtime_fuzz::target!("profile");
