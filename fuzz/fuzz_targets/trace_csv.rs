//! A description of columns on the first line, and a CSV trace on the others.

#![no_main]

headtime_fuzz::target!("trace_csv");
