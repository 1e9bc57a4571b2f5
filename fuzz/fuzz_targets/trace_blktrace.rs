//! A trace in one format.

#![no_main]

use headtime_fuzz::trace::check;
use headtime_workload::Format;

headtime_fuzz::target!(|bytes| check(bytes, Some(Format::Blktrace)));
