//! The rate of the drive, and if it queues.

use super::*;
use crate::bfq::drive::BfqDrive;

/// Notes `count` requests of 256 sectors, one each `micros`. Every `seek`th is far from the one before.
fn observe(drive: &mut BfqDrive, count: u64, micros: u64, seek: u64) -> u64 {
    let mut lba = 0;
    for number in 0..count {
        let now = Time::ZERO + Nanos::from_micros(number * micros);
        lba += if number % seek == seek - 1 {
            1_000_000
        } else {
            0
        };
        drive.hand_out(now, Extent::at(lba, 256), 1);
        lba += 256;
        drive.complete(now + Nanos::from_micros(micros), 1, 0, None);
    }
    drive.sectors_in(Nanos::from_secs(1))
}

const START: u64 = 142_415;

#[test]
fn a_sequential_second_moves_the_rate_almost_to_what_was_seen() {
    // 256 sectors per 1.6 ms are 160000 a second. Of 626 requests, 625 were sequential: 9 x 0.998 is 8.
    let rate = observe(&mut BfqDrive::new(), 626, 1_600, u64::MAX);
    assert_eq!(rate, START / 2 + 160_256 / 2);
}

#[test]
fn less_than_a_second_tells_nothing_unless_a_pause_ends_it() {
    assert_eq!(observe(&mut BfqDrive::new(), 625, 1_600, u64::MAX), START);
    let paused = |count| {
        let mut drive = BfqDrive::new();
        observe(&mut drive, count, 1_600, u64::MAX);
        let now = Time::ZERO + Nanos::from_micros(1_600 * count) + Nanos::from_millis(100);
        drive.hand_out(now, Extent::at(0, 8), 1);
        drive.sectors_in(Nanos::from_secs(1))
    };
    assert_eq!(paused(187), START, "shorter than 300 ms");
    assert!(paused(400) > START);
}

#[test]
fn a_rate_below_the_estimate_counts_only_if_three_quarters_were_sequential() {
    let slow = |seek| observe(&mut BfqDrive::new(), 340, 3_000, seek);
    assert_eq!(slow(3), START);
    assert!(slow(5) < START);
    // A higher rate counts in any case.
    assert!(observe(&mut BfqDrive::new(), 1_100, 1_000, 3) > START);
}

#[test]
fn raising_lasts_as_long_as_the_drive_is_slow() {
    let seconds = |drive: BfqDrive| drive.raising().as_nanos() / 1_000_000;
    assert_eq!(seconds(BfqDrive::new()), 10_500);
    let mut slow = BfqDrive::new();
    for _ in 0..30 {
        observe(&mut slow, 400, 25_000, u64::MAX);
    }
    assert_eq!(seconds(slow), 25_000);
}

#[test]
fn a_drive_that_never_holds_four_does_not_queue_after_33_samples() {
    let mut drive = BfqDrive::new();
    let mut sample = |held: u64, queued| {
        for number in 0..held {
            drive.hand_out(at(number), Extent::at(0, 8), 1);
        }
        for number in (0..held).rev() {
            drive.complete(at(100), 1, queued + number, None);
        }
        drive.queues()
    };
    for _ in 0..40 {
        assert!(sample(1, 2), "three requests are no sample");
    }
    for _ in 0..32 {
        assert!(sample(1, 3));
    }
    assert!(!sample(1, 3));
    // Four at once change that for good.
    for _ in 0..20 {
        sample(4, 0);
    }
    assert!(sample(1, 3));
    for _ in 0..99 {
        assert!(sample(1, 3));
    }
}

#[test]
fn samples_do_not_count_while_a_brief_thinker_keeps_the_drive_short() {
    let mut drive = BfqDrive::new();
    for _ in 0..99 {
        drive.hand_out(at(0), Extent::at(0, 8), 1);
        drive.complete(at(0), 1, 5, Some(2));
    }
    assert!(drive.queues());
}

#[test]
fn an_observation_goes_to_the_last_completion() {
    let rate = |late: u64| {
        let mut drive = BfqDrive::new();
        observe(&mut drive, 400, 1_600, u64::MAX);
        // One more request, which comes back late and ends the observation after a pause.
        drive.hand_out(at(640), Extent::at(400 * 256, 256), 1);
        drive.complete(at(640 + late), 1, 0, None);
        drive.hand_out(at(1_900), Extent::at(0, 8), 1);
        drive.sectors_in(Nanos::from_secs(1))
    };
    assert!(rate(1) > START && rate(600) < START);
}
