//! A binary trace of blktrace.

#![no_main]

headtime_fuzz::target!("trace_blktrace");
