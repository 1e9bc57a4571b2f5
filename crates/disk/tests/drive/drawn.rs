//! Random drives serve random commands.

use crate::common::{command, wait};
use headtime_disk::Drive;
use headtime_disk::profile::plausible;
use headtime_sched::Op;
use headtime_units::{Nanos, Time};
use std::collections::BTreeSet;

/// Numbers from a linear congruential generator (Knuth's constants).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % end
    }
}

/// Reads, writes and flushes, far apart and near each other, as many at a time as the drive takes: each completes
/// once, none sooner than it came.
#[test]
fn every_command_of_a_drawn_drive_completes_once() {
    for seed in 0..400 {
        let profile = plausible(seed);
        let mut drive = Drive::new(&profile, seed);
        let mut numbers = Numbers(seed);
        let capacity = drive.capacity().get();
        let (mut now, mut last) = (Time::ZERO, 0);
        let (mut waiting, mut sent) = (BTreeSet::new(), Vec::new());
        for tag in 0..120 {
            let len = 1 + numbers.below(64);
            let start = match numbers.below(3) {
                0 => numbers.below(capacity - len),
                1 => last % (capacity - len),
                _ => (last + numbers.below(2_000)) % (capacity - len),
            };
            last = start + len;
            let op = match numbers.below(12) {
                0 => Op::Flush,
                1..=4 => Op::Write,
                _ => Op::Read,
            };
            if waiting.len() == drive.depth() as usize {
                let completion = wait(&mut drive);
                assert!(waiting.remove(&completion.tag), "{seed}");
                assert!(completion.at >= sent[completion.tag as usize], "{seed}");
                now = now.max(completion.at);
            }
            now += Nanos::from_micros(numbers.below(3_000));
            // Completions up to this time are taken in their order.
            while let Some(completion) = drive.poll(now) {
                assert!(waiting.remove(&completion.tag), "{seed}");
            }
            drive.submit(now, command(tag, op, start, len));
            assert!(waiting.insert(tag));
            sent.push(now);
        }
        while !waiting.is_empty() {
            let completion = wait(&mut drive);
            assert!(waiting.remove(&completion.tag), "{seed}");
        }
    }
}
