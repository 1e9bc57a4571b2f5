//! A trace in one format.

#![no_main]

headtime_fuzz::target!("trace_blkparse");
