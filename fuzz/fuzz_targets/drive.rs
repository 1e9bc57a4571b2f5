//! A drive made from any profile, at work.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::drive::check);
