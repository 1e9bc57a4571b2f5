//! A trace in any format, perhaps compressed.

#![no_main]

headtime_fuzz::target!("trace");
