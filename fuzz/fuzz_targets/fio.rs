//! A job file of fio.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::fio::check);
