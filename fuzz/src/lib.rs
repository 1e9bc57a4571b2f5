//! What the fuzz targets check, beyond that nothing panics.

pub mod around;
pub mod configs;
pub mod disksim;
pub mod drive;
pub mod fio;
pub mod http;
pub mod log;
pub mod mutate;
pub mod nbd;
pub mod parts;
pub mod profile;
pub mod qos;
pub mod ring;
pub mod run;
pub mod scenario;
pub mod schedulers;
pub mod trace;
pub mod units;
pub mod validation;

use headtime_workload::Format;

#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys;

/// Check of an input: panics if the code under test breaks a promise.
pub type Check = fn(&[u8]);

/// Checks by the name of their target. `fuzz_targets/NAME.rs` runs one check under libFuzzer; `tests/seeds.rs` runs all checks on the seeds.
pub const TARGETS: &[(&str, Check)] = &[
    ("configs", configs::check),
    ("drive", drive::check),
    ("event_log", log::check),
    ("fio", fio::check),
    ("http_control", http::control),
    ("http_metrics", http::metrics),
    ("nbd_handshake", nbd::handshake),
    ("nbd_messages", nbd::messages),
    ("profile", profile::check),
    ("profile_disksim", disksim::check),
    ("qos", qos::check),
    ("ring_format", ring::format),
    ("ring_page", ring::page),
    ("run", run::check),
    ("scenario", scenario::check),
    ("schedulers", schedulers::check),
    ("trace", |bytes| trace::check(bytes, None)),
    ("trace_blkparse", |bytes| {
        trace::check(bytes, Some(Format::Blkparse))
    }),
    ("trace_blktrace", |bytes| {
        trace::check(bytes, Some(Format::Blktrace))
    }),
    ("trace_csv", trace::check_csv),
    ("trace_disksim", |bytes| {
        trace::check(bytes, Some(Format::DiskSim))
    }),
    ("trace_ftrace", |bytes| {
        trace::check(bytes, Some(Format::Ftrace))
    }),
    ("trace_iolog", |bytes| {
        trace::check(bytes, Some(Format::Iolog))
    }),
    ("trace_msr", |bytes| trace::check(bytes, Some(Format::Msr))),
    ("trace_perf", |bytes| {
        trace::check(bytes, Some(Format::Perf))
    }),
    ("units", units::check),
    ("validation", validation::check),
];

/// The check of a target.
///
/// # Panics
///
/// If no target has this name.
pub fn check_of(name: &str) -> Check {
    let target = TARGETS.iter().find(|(target, _)| *target == name);
    target
        .unwrap_or_else(|| panic!("no target is called {name}"))
        .1
}

/// The body of a fuzz target: inputs go to the check of this name, and change as texts do.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::check_of($name)(bytes));
        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max_size: usize,
                                              seed: u32| {
            let otherwise = $crate::libfuzzer_sys::fuzzer_mutate;
            $crate::mutate::mutate(data, size, max_size, seed, otherwise)
        });
    };
}
