//! The text of schedulers.

#![no_main]

headtime_fuzz::target!("schedulers");
