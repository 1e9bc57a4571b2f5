//! What the fuzz targets check, beyond that nothing panics.

pub mod around;
pub mod configs;
pub mod disksim;
pub mod drive;
pub mod fio;
pub mod log;
pub mod mutate;
pub mod nbd;
pub mod parts;
pub mod profile;
pub mod ring;
pub mod run;
pub mod scenario;
pub mod schedulers;
pub mod trace;
pub mod units;
pub mod validation;

pub use libfuzzer_sys;

/// The body of a fuzz target: inputs go to `$check`, and change as texts do.
#[macro_export]
macro_rules! target {
    ($check:expr) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $check(bytes));
        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max_size: usize,
                                              seed: u32| {
            let otherwise = $crate::libfuzzer_sys::fuzzer_mutate;
            $crate::mutate::mutate(data, size, max_size, seed, otherwise)
        });
    };
}
