//! A trace in any format, perhaps compressed.

#![no_main]

headtime_fuzz::target!(|bytes| headtime_fuzz::trace::check(bytes, None));
