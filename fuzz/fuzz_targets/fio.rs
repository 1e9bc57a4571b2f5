//! A job file of fio.

#![no_main]

headtime_fuzz::target!("fio");
