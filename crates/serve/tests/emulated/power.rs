//! Effects of a power cut on single commands with a certain outcome.

use crate::host::{Folder, Host, emulate, profile, store_in};
use headtime_disk::profile::{BusSpec, NoiseSpec, OverheadSpec};
use headtime_sched::{Flags, Op};
use headtime_serve::device::{Control, Device};
use headtime_serve::emulated::StoreSpec;
use headtime_serve::request::{Data, Kind};
use headtime_units::{Extent, Nanos, Time};

const SECTORS: u64 = 1 << 20;

/// On memory and on a file.
fn both(test: impl Fn(Host)) {
    let profile = profile("wd5000aaks");
    test(Host::new(emulate(&profile, StoreSpec::Memory, SECTORS)));
    let folder = Folder::new();
    test(Host::new(emulate(&profile, store_in(&folder), SECTORS)));
}

fn cut(host: &mut Host) {
    host.control(Control::PowerCut);
    host.control(Control::PowerOn);
}

fn first_byte(host: &mut Host, lba: u64) -> u8 {
    let bytes = host.contents(lba, 1);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    bytes[0]
}

#[test]
fn what_is_only_acknowledged_is_lost() {
    both(|mut host| {
        host.write(100, 8, 1, Flags::NONE);
        host.next();
        host.flush();
        host.next();
        host.write(100, 8, 2, Flags::NONE);
        host.next();
        assert_eq!(first_byte(&mut host, 100), 2);
        cut(&mut host);
        assert_eq!(first_byte(&mut host, 100), 1);
    });
}

/// Commands and the bus take no time in this drive. A write therefore completes at the very time at which the arm has
/// written the earlier data.
#[test]
fn what_the_arm_writes_when_a_write_over_it_completes_is_the_earlier_data() {
    let profile = profile("wd5000aaks")
        .with(|spec| {
            spec.overhead = OverheadSpec::default();
            spec.bus = BusSpec::default();
            spec.noise = NoiseSpec::default();
            spec.cache.destage_delay = Nanos::ZERO;
        })
        .expect("it fits");
    let mut host = Host::new(emulate(&profile, StoreSpec::Memory, SECTORS));
    host.write(100_000, 8, 1, Flags::NONE);
    assert_eq!(host.next().at, Time::ZERO, "it is in the buffer");
    host.pass(Nanos::from_micros(100));
    host.write(100_000, 8, 2, Flags::NONE);
    let second = host.next().at;
    assert!(
        second > Time::from_nanos(200_000),
        "it had to wait for the arm"
    );
    cut(&mut host);
    assert_eq!(first_byte(&mut host, 100_000), 1);
}

#[test]
fn what_the_drive_has_destaged_by_itself_is_there() {
    both(|mut host| {
        host.write(100, 8, 1, Flags::NONE);
        host.next();
        host.pass(Nanos::from_secs(1));
        cut(&mut host);
        assert_eq!(first_byte(&mut host, 100), 1);
    });
}

#[test]
fn forced_unit_access_is_there() {
    both(|mut host| {
        host.write(100, 8, 1, Flags::NONE);
        host.next();
        host.write(100, 8, 2, Flags::FUA);
        host.next();
        cut(&mut host);
        assert_eq!(first_byte(&mut host, 100), 2);
    });
}

#[test]
fn without_power_nothing_works_and_then_it_does() {
    both(|mut host| {
        host.read(0, 8);
        host.write(100, 8, 1, Flags::NONE);
        host.control(Control::PowerCut);
        let (later, now) = (host.now, host.drain());
        assert_eq!(now.len(), 2);
        for done in now {
            assert_eq!(done.result.expect_err("no power").kind, Kind::Offline);
            assert_eq!(done.at, later);
        }
        host.flush();
        assert_eq!(
            host.next().result.expect_err("no power").kind,
            Kind::Offline
        );
        host.control(Control::PowerOn);
        assert_eq!(first_byte(&mut host, 100), 0);
        host.write(100, 8, 3, Flags::NONE);
        assert_eq!(host.next().result, Ok(()));
        assert_eq!(first_byte(&mut host, 100), 3);
    });
}

#[test]
fn a_large_write_is_torn_between_sectors_only() {
    // Larger than the buffer, so it goes to the medium while it is in the drive.
    both(|mut host| {
        host.write(0, 20_000, 7, Flags::NONE);
        host.pass(Nanos::from_millis(60));
        assert!(host.poll().is_none(), "it takes longer");
        cut(&mut host);
        for done in host.drain() {
            assert!(done.result.is_err());
        }
        let bytes = host.contents(0, 20_000);
        let written: Vec<u8> = bytes
            .chunks(512)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]));
                sector[0]
            })
            .collect();
        let there = written.iter().filter(|byte| **byte == 7).count();
        assert!((1000..19_000).contains(&there), "{there}");
    });
}

#[test]
fn discards_and_zeroes_happen_when_they_complete() {
    both(|mut host| {
        host.write(0, 64, 1, Flags::FUA);
        host.next();
        // The space is given back or kept.
        let ways = [
            (Op::Discard, Data::None),
            (Op::Write, Data::Zeroes { may_punch: true }),
            (Op::Write, Data::Zeroes { may_punch: false }),
        ];
        for (index, (op, data)) in ways.into_iter().enumerate() {
            let extent = Extent::at(index as u64 * 16 + 3, 9);
            let part = host.part(extent, data);
            host.submit(op, extent, Flags::NONE, vec![part]);
            cut(&mut host);
            let mut undone = host.drain();
            assert!(undone[0].result.is_err());
            assert_eq!(first_byte(&mut host, extent.start.get()), 1);
            let parts = std::mem::take(&mut undone[0].parts);
            host.submit(op, extent, Flags::NONE, parts);
            assert_eq!(host.next().result, Ok(()));
            cut(&mut host);
            let bytes = host.contents(index as u64 * 16, 16);
            let sectors: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
            assert_eq!(sectors, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        }
        assert_eq!(host.device.undo_bytes(), 0);
    });
}

#[test]
fn memory_for_undoing_is_bounded_by_the_drive() {
    let profile = profile("wd5000aaks");
    let mut host = Host::new(emulate(&profile, StoreSpec::Memory, SECTORS));
    let depth = host.device.geometry().depth as usize;
    let cache = profile.cache.segment_sectors as usize * profile.cache.segments as usize * 512;
    let mut most = 0;
    for start in 0..4000u64 {
        while host.in_flight.len() == depth {
            host.next();
        }
        host.write(start * 253 % (SECTORS - 64), 64, 1, Flags::NONE);
        most = most.max(host.device.undo_bytes());
    }
    // Data in the buffer and data that wait for room in it. An unaligned write also has its neighbours in the same
    // blocks.
    let bound = cache + depth * (64 + 14) * 512;
    assert!(most <= bound, "{most} of {bound}");
    assert!(most > 100 << 10, "{most}: nothing was held");
    host.drain();
    host.flush();
    host.next();
    assert_eq!(host.device.undo_bytes(), 0);
    // Discards and zeroes of any size need no memory.
    for (op, data) in [
        (Op::Discard, Data::None),
        (Op::Write, Data::Zeroes { may_punch: true }),
    ] {
        let all = Extent::at(0, SECTORS);
        let part = host.part(all, data);
        host.submit(op, all, Flags::NONE, vec![part]);
        assert_eq!(host.device.undo_bytes(), 0);
        host.next();
    }
}
