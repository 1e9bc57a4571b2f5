//! Tests of a store whose syncs do not end, which cannot be arranged from outside.

use super::*;
use crate::buffer::Pool;
use crate::device::Part;
use crate::request::Data;
use headtime_disk::profile::by_name;
use headtime_engine::RequestId;
use headtime_sched::Request;
use headtime_units::Extent;

const SECTORS: u64 = 1 << 11;

/// A drive over a store in memory that is synced like files.
fn emulate() -> Emulated {
    let profile = by_name("wd5000aaks").expect("it is shipped");
    let mut device = open(EmulatedOptions {
        size: Some(SECTORS * 512),
        ..EmulatedOptions::new(profile, StoreSpec::Memory)
    })
    .expect("opens");
    let syncer = Syncer::start(Arc::clone(&device.store));
    device.syncer = Some(syncer.expect("starts"));
    device
}

fn write(device: &mut Emulated, tag: u32, flags: Flags) {
    let extent = Extent::at(u64::from(tag) * 8, 8);
    let mut buffer = Pool::new().take(4096);
    buffer.fill(7);
    let part = Part {
        id: RequestId::Client(0),
        extent,
        data: Data::Buffer(buffer),
    };
    let mut request = Request::new(DriveTag(tag), Op::Write, extent, device.now);
    request.flags = flags;
    device.submit(device.now, &request, vec![part]);
}

fn flush(device: &mut Emulated, tag: u32) {
    let part = Part {
        id: RequestId::Client(0),
        extent: Extent::at(0, 0),
        data: Data::None,
    };
    let request = Request::new(DriveTag(tag), Op::Flush, part.extent, device.now);
    device.submit(device.now, &request, vec![part]);
}

/// Advances the model until it has no more events. Returns the completed commands.
fn come_to_rest(device: &mut Emulated) -> Vec<Done> {
    let mut all = Vec::new();
    while let Some(at) = device.next_event() {
        all.extend(device.poll(at));
    }
    all
}

/// Waits until all requested syncs are over.
fn settle(device: &mut Emulated) -> Vec<Done> {
    let mut all = Vec::new();
    while device.unsynced() > 0 {
        all.extend(come_to_rest(device));
        std::thread::yield_now();
    }
    all
}

#[test]
fn a_sync_that_does_not_end_is_given_up_on() {
    let mut device = emulate();
    let store = Arc::clone(&device.store);
    let held = store.held.lock().expect("whole");
    write(&mut device, 0, Flags::NONE);
    assert_eq!(come_to_rest(&mut device).len(), 1);
    write(&mut device, 1, Flags::FUA);
    flush(&mut device, 2);
    assert!(come_to_rest(&mut device).is_empty());
    assert_eq!((device.unsynced(), device.abandoned()), (2, 0));
    let now = device.now;
    assert!(matches!(device.abort(now, DriveTag(2)), Aborted::Abandoned));
    assert!(
        matches!(device.abort(now, DriveTag(2)), Aborted::No),
        "once"
    );
    assert_eq!(device.abandoned(), 1);
    // The tag can be used again. The device still waits for the sync of another command.
    flush(&mut device, 2);
    come_to_rest(&mut device);
    drop(held);
    let mut done = settle(&mut device);
    done.sort_unstable_by_key(|done| done.tag.0);
    let tags: Vec<u32> = done.iter().map(|done| done.tag.0).collect();
    assert_eq!(tags, [1, 2]);
    assert!(done.iter().all(|done| done.result == Ok(())));
    assert_eq!(device.abandoned(), 0);
}

#[test]
fn a_sync_that_is_over_is_not_given_up_on() {
    let mut device = emulate();
    let store = Arc::clone(&device.store);
    let held = store.held.lock().expect("whole");
    flush(&mut device, 0);
    assert!(come_to_rest(&mut device).is_empty());
    drop(held);
    let syncer = device.syncer.as_ref().expect("is there");
    let ticket = device.syncing[0].ticket;
    while !syncer.is_done(ticket) {
        std::thread::yield_now();
    }
    let now = device.now;
    assert!(matches!(device.abort(now, DriveTag(0)), Aborted::No));
    assert_eq!(come_to_rest(&mut device).len(), 1);
}

#[test]
fn a_power_cut_leaves_to_the_kernel_what_was_given_up_on() {
    let mut device = emulate();
    let store = Arc::clone(&device.store);
    let held = store.held.lock().expect("whole");
    flush(&mut device, 0);
    come_to_rest(&mut device);
    let now = device.now;
    assert!(matches!(device.abort(now, DriveTag(0)), Aborted::Abandoned));
    write(&mut device, 1, Flags::FUA);
    come_to_rest(&mut device);
    drop(held);
    // The cut syncs the restored data after the sync that hung.
    let lost = device.control(now, &Control::PowerCut);
    assert_eq!(lost, Ok(Sectors::ZERO));
    let now = device.now;
    let done = device.poll(now).expect("the write fails");
    assert_eq!(done.tag, DriveTag(1));
    assert_eq!(done.result.expect_err("fails").kind, Kind::Offline);
    assert!(settle(&mut device).is_empty());
    assert_eq!(device.abandoned(), 0);
}
