//! Times are the model's.

use crate::host::{Folder, Host, emulate, profile, store_in};
use headtime_disk::{Command, Drive, Fault};
use headtime_sched::{Flags, Op, Request};
use headtime_serve::device::{Control, Device};
use headtime_serve::emulated::{EmulateError, EmulatedOptions, StoreSpec, open};
use headtime_serve::request::{Failure, Kind};
use headtime_units::{Extent, Lba, Nanos, Time};
use headtime_workload::Random;

const SECTORS: u64 = 1 << 24;

/// Commands at some depth, on the emulated drive and on the model alone.
fn compare(name: &str, depth: usize, store: StoreSpec) {
    let profile = profile(name);
    let mut host = Host::new(emulate(&profile, store, SECTORS));
    let mut drive = Drive::new(&profile, 1);
    let mut random = Random::new(7, 0, 0);
    for round in 0..600 {
        while host.in_flight.len() < depth {
            let op = match random.below(3) {
                0 => Op::Write,
                _ => Op::Read,
            };
            let extent = Extent::at(random.below(SECTORS / 8 - 16) * 8, 8 + random.below(120));
            if !host.may_go(op, extent) {
                continue;
            }
            let tag = match op {
                Op::Write => host.write(extent.start.get(), extent.len.get(), 1, Flags::NONE),
                _ => host.read(extent.start.get(), extent.len.get()),
            };
            let command = Command {
                tag: tag.0,
                op,
                extent,
                fua: false,
                high: false,
            };
            drive.submit(host.now, command);
        }
        let done = host.next();
        assert_eq!(done.result, Ok(()));
        let model = drive.poll(host.now).expect("it is done there too");
        assert_eq!(
            (model.tag, model.at),
            (done.tag.0, done.at),
            "round {round}"
        );
        if random.chance(0.1) {
            assert_eq!(
                host.device.head_time(host.now),
                Some(drive.head_time(host.now))
            );
        }
    }
}

#[test]
fn completions_have_the_time_of_the_model_to_the_nanosecond() {
    for (name, depth) in [("wd5000aaks", 1), ("wd5000aaks", 31), ("atlas10k", 1)] {
        compare(name, depth, StoreSpec::Memory);
        compare(name, depth, store_in(&Folder::new()));
    }
}

#[test]
fn a_late_poll_does_not_delay_what_comes_after() {
    let profile = profile("wd5000aaks");
    let submit = |host: &mut Host, lba: u64| {
        host.read(lba, 8);
    };
    let times = |late: Nanos| {
        let mut host = Host::new(emulate(&profile, StoreSpec::Memory, SECTORS));
        submit(&mut host, 1000);
        let mut times = Vec::new();
        for step in 1..50u64 {
            // As the disk's thread does: it takes the time of the event for the time.
            let due = host.device.next_event().expect("a read is under way");
            let real = due + late;
            host.now = host.device.next_event().map_or(real, |at| at.min(real));
            let Some(done) = host.poll() else { continue };
            times.push(done.at);
            submit(&mut host, step * 300_000 % SECTORS);
        }
        times
    };
    assert_eq!(times(Nanos::ZERO), times(Nanos::from_millis(3)));
}

#[test]
fn a_call_that_comes_late_does_not_turn_time_back() {
    let mut host = Host::new(emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS));
    let head_time = host.device.head_time(Time::from_nanos(1_000_000));
    assert!(head_time.is_some());
    host.read(0, 8);
    assert!(host.next().at > Time::from_nanos(1_000_000));
}

#[test]
fn a_flush_waits_for_the_arm() {
    let mut host = Host::new(emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS));
    host.write(SECTORS / 2, 8, 1, Flags::NONE);
    let written = host.next();
    assert!(host.device.undo_bytes() > 0);
    host.flush();
    let flushed = host.next();
    assert!(flushed.at > written.at + Nanos::from_millis(1));
    assert_eq!(host.device.undo_bytes(), 0);
    host.write(SECTORS / 4, 8, 1, Flags::FUA);
    let through = host.next();
    assert!(through.at > flushed.at + Nanos::from_millis(1));
    assert_eq!(host.device.undo_bytes(), 0);
}

#[test]
fn a_sector_that_cannot_be_read() {
    let mut host = Host::new(emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS));
    let extent = Extent::at(1003, 2);
    host.control(Control::Fault(Fault::Unreadable { extent, retries: 3 }));
    host.read(1000, 8);
    let failure = Failure {
        at: Some(Lba::new(1003)),
        ..Failure::new(Kind::Medium)
    };
    assert_eq!(host.next().result, Err(failure));
    host.read(1005, 8);
    assert_eq!(host.next().result, Ok(()));
    host.write(1003, 2, 5, Flags::NONE);
    host.next();
    assert_eq!(host.contents(1002, 4)[512..1536], [5; 1024]);
    let outside = Fault::Unreadable {
        extent: Extent::at(SECTORS - 1, 2),
        retries: 0,
    };
    let refused = host.device.control(host.now, &Control::Fault(outside));
    assert_eq!(
        refused.expect_err("it is not there").to_string(),
        "sectors 16777215+2 are not on a disk of 16777216"
    );
    let wraps = Fault::Unreadable {
        extent: Extent::at(u64::MAX, 2),
        retries: 0,
    };
    assert!(
        host.device
            .control(host.now, &Control::Fault(wraps))
            .is_err()
    );
}

#[test]
fn commands_that_stall_or_are_lost_can_be_given_up() {
    let mut host = Host::new(emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS));
    host.write(0, 8, 1, Flags::NONE);
    host.next();
    host.flush();
    host.next();
    host.control(Control::Fault(Fault::LoseNext));
    host.write(0, 8, 2, Flags::NONE);
    assert_eq!(host.device.next_event(), None);
    host.pass(Nanos::from_secs(30));
    assert!(host.poll().is_none());
    let parts = host.abort(0).expect("it has not happened");
    assert_eq!(parts.len(), 1);
    assert_eq!(host.contents(0, 8), [1; 4096]);
    host.control(Control::Fault(Fault::Stall(Nanos::from_secs(60))));
    let from = host.now;
    host.read(SECTORS / 2, 8);
    host.read(SECTORS / 4, 8);
    let given_up = (0..2).filter(|_| host.abort(host.in_flight.len() - 1).is_some());
    let given_up = given_up.count();
    for done in host.drain() {
        assert!(done.at > from + Nanos::from_secs(60));
    }
    assert!(given_up > 0);
}

#[test]
fn a_stall_without_end_can_still_be_given_up() {
    let mut host = Host::new(emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS));
    host.control(Control::Fault(Fault::Stall(Nanos::MAX)));
    host.control(Control::Fault(Fault::Stall(Nanos::MAX)));
    host.write(0, 8, 1, Flags::NONE);
    host.read(SECTORS / 2, 8);
    host.control(Control::PowerCut);
    assert_eq!(host.drain().len(), 2);
    // The power cut ends the firmware's stall.
    host.control(Control::PowerOn);
    let from = host.now;
    host.read(SECTORS / 2, 8);
    assert!(host.next().at < from + Nanos::from_secs(1));
}

#[test]
fn a_tag_that_nothing_has_cannot_be_given_up() {
    use headtime_serve::device::Aborted;
    let mut device = emulate(&profile("wd5000aaks"), StoreSpec::Memory, SECTORS);
    let request = Request::new(
        headtime_engine::DriveTag(9),
        Op::Read,
        Extent::at(0, 1),
        Time::ZERO,
    );
    assert!(matches!(device.abort(Time::ZERO, request.tag), Aborted::No));
}

#[test]
fn sizes_that_do_not_fit_the_drive() {
    let refused = |size| {
        let error: EmulateError = open(EmulatedOptions {
            size: Some(size),
            ..EmulatedOptions::new(profile("atlas10k"), StoreSpec::Memory)
        })
        .expect_err("refused");
        error.to_string()
    };
    assert_eq!(
        refused(1000),
        "a size of 1000 bytes is not a whole number of sectors of 512 bytes"
    );
    assert_eq!(
        refused(0),
        "a size of 0 bytes is not a whole number of sectors of 512 bytes"
    );
    let capacity = profile("atlas10k").geometry.capacity.bytes(512);
    assert_eq!(
        refused(capacity + 512),
        format!(
            "a size of {} bytes is more than the {capacity} bytes of drive atlas10k",
            capacity + 512
        )
    );
}
