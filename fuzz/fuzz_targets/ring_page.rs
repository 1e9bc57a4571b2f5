//! A page of the kernel's trace buffer.

#![no_main]

headtime_fuzz::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headtime_fuzz::ring::page(bytes));
