//! What the kernel says of its trace buffer and of the events in it.

#![no_main]

headtime_fuzz::target!("ring_format");
