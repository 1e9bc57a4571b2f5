//! A description of columns on the first line, and a CSV trace on the others.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::trace::check_csv);
