//! Goals, profiles of programs, and trees.

#![no_main]

headtime_fuzz::target!("qos");
