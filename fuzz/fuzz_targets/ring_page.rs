//! A page of the kernel's trace buffer.

#![no_main]

headtime_fuzz::target!("ring_page");
