//! A validation trace.

#![no_main]

headtime_fuzz::target!("validation");
