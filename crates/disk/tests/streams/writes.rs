//! Writes that complete on the medium: what a queue in the drive must not make slower.

use crate::harness::{Client, run};
use crate::{DEPTHS, QUEUED};
use headtime_disk::profile::{WriteBack, by_name};
use headtime_sched::Op;
use headtime_units::Nanos;

#[test]
fn writes_through_one_behind_the_other_at_any_depth_are_as_fast_as_at_the_better_of_depth_1_and_2()
{
    for name in QUEUED {
        let forced = by_name(name).unwrap();
        let off = forced
            .with(|spec| spec.cache.write_back = WriteBack::Off)
            .unwrap();
        for (profile, fua) in [(&forced, true), (&off, false)] {
            for kib in [4, 16, 128, 1024] {
                let rates = DEPTHS.map(|depth| {
                    let client = Client {
                        op: Op::Write,
                        fua,
                        ..Client::reader(kib * 2, depth)
                    };
                    run(profile, depth, &[client], Nanos::from_millis(1_000)).rate()
                });
                let least = 0.95 * rates[0].max(rates[1]);
                let slow = rates[1..].iter().any(|rate| *rate < least);
                assert!(!slow, "{name}, {kib} KiB, {fua}: {rates:.1?} MB/s");
            }
        }
    }
}
