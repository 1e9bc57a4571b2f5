//! Checks on drive profiles, and on what is built from one.

use crate::parts::Draw;
use headtime_disk::layout::Slot;
use headtime_disk::{Layout, Mechanics, Model, Profile};
use headtime_sched::{Op, Positioning};
use headtime_units::{Angle, Cylinder, Extent, Head, Lba, Nanos, Sectors, Time, Track};

/// Longer than anything a profile allows for one movement: seek, head switch and settling.
const MOVEMENT_MAX: Nanos = Nanos::from_secs(12);

/// Reads `bytes` as a profile; if it is one, it must round-trip and its model must hold together.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Profile::from_toml("FILE", text) {
        Ok(profile) => {
            same_when_written(&profile);
            explore(&profile, &mut Draw::new(bytes));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("FILE:"), "{text}");
            if let Some(line) = error.line() {
                assert!((1..=text_lines(bytes)).contains(&line), "{text}");
            }
        }
    }
}

/// Lines of a text, counting one that is empty behind the last line feed.
fn text_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// What is written is what was read.
pub fn same_when_written(profile: &Profile) {
    let text = profile.to_toml();
    match Profile::from_toml("AGAIN", &text) {
        Ok(again) => assert_eq!(again, *profile, "{text}"),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Looks at the layout and the mechanics in some places: the laws of the model hold there.
pub fn explore(profile: &Profile, draw: &mut Draw) {
    let layout = Layout::new(profile);
    let capacity = profile.geometry.capacity;
    assert_eq!(layout.capacity(), capacity);
    let mut addresses = vec![0, capacity.get() - 1];
    let mut end = Lba::ZERO;
    for zone in layout.zones() {
        assert_eq!(zone.extent.start, end);
        end = zone.extent.end();
    }
    assert_eq!(end, Lba::ZERO + capacity);
    // Ends of a few of the zones, and anything.
    let zones = layout.zones().len() as u64;
    for _ in 0..4 {
        let zone = layout.zones().nth(draw.below(zones) as usize);
        let extent = zone.expect("one of them").extent;
        if !extent.is_empty() {
            addresses.extend([extent.start.get(), extent.end().get() - 1]);
        }
        addresses.push(draw.below(capacity.get()));
    }
    for &address in &addresses {
        sector(profile, &layout, Lba::new(address));
    }
    for _ in 0..4 {
        slot(profile, &layout, draw);
    }
    movement(profile, &layout, draw);
}

/// An address and its place belong to each other, by every way that leads from one to the other.
fn sector(profile: &Profile, layout: &Layout, lba: Lba) {
    let place = layout.locate(lba);
    let (track, slot) = (place.track, place.slot);
    assert!(track.cylinder.0 < profile.geometry.cylinders);
    assert!(track.head.0 < profile.geometry.heads);
    let per_track = layout.sectors_per_track(track);
    assert!(per_track.is_some_and(|slots| slot < slots));
    assert_eq!(layout.slot(track, slot), Some(Slot::Data(lba)));
    assert_eq!(layout.slot_angle(track, slot), Some(place.angle));
    let zone = layout.zone_of(lba);
    assert!(zone.extent.contains(lba));
    // In a table of tracks, what is moved may be anywhere, and a cylinder may have several strips.
    let mapped = profile.layout.map.is_some();
    let cylinders = zone.first_cylinder..=zone.last_cylinder;
    let moved = mapped && layout.has_remaps();
    assert!(moved || cylinders.contains(&track.cylinder));
    let extent = layout.track_extent_of(lba);
    assert!(extent.contains(lba));
    let end = layout.cylinder_end(lba);
    assert!(end >= extent.end() && (mapped || end <= zone.extent.end()));
    assert!(end <= Lba::ZERO + layout.capacity());

    // A run says the same of all its addresses, and ends where something else begins.
    let run = layout.run(lba);
    assert_eq!((run.start, run.track, run.slot), (lba, track, slot));
    assert_eq!(run.angle(0), place.angle);
    assert!(run.len >= 1 && run.slot + run.len <= run.sectors_per_track);
    for ahead in [1, run.len / 2, run.len - 1] {
        let ahead = ahead.min(run.len - 1);
        let other = layout.locate(lba + Sectors::new(u64::from(ahead)));
        assert_eq!((other.track, other.slot), (track, slot + ahead));
        assert_eq!(other.angle, run.angle(ahead));
    }
    if run.end() < zone.extent.end() && !moved {
        let next = layout.locate(run.end());
        assert!(next.track != track || next.slot != slot + run.len);
    }
}

/// A slot anywhere on the disk, and what is said to be in it.
fn slot(profile: &Profile, layout: &Layout, draw: &mut Draw) {
    let track = Track {
        cylinder: Cylinder(draw.below(u64::from(profile.geometry.cylinders)) as u32),
        head: Head(draw.below(u64::from(profile.geometry.heads)) as u16),
    };
    let Some(slots) = layout.sectors_per_track(track) else {
        assert_eq!(layout.slot(track, 0), None);
        assert_eq!(layout.track_extent(track), None);
        return;
    };
    let slot = draw.below(u64::from(slots)) as u32;
    match layout.slot(track, slot).expect("there is such a slot") {
        Slot::Data(lba) => {
            let place = layout.locate(lba);
            assert_eq!((place.track, place.slot), (track, slot));
        }
        Slot::Bad | Slot::Spare | Slot::Reserved => {}
    }
    assert_eq!(layout.slot(track, slots), None);
    let extent = layout.track_extent(track).expect("a track of a zone");
    if !extent.is_empty() {
        assert_eq!(layout.track_extent_of(extent.start), extent);
    }
}

/// Seeks, predictions and a few accesses.
fn movement(profile: &Profile, layout: &Layout, draw: &mut Draw) {
    let mechanics = Mechanics::new(profile);
    let turn = mechanics.turn();
    assert!(!turn.is_zero());
    let farthest = profile.geometry.cylinders - 1;
    for op in [Op::Read, Op::Write] {
        assert_eq!(mechanics.seek(0, op), Nanos::ZERO);
        for _ in 0..4 {
            let distance = draw.below(u64::from(farthest) + 1) as u32;
            let beyond = distance + draw.below(u64::from(farthest - distance) + 1) as u32;
            let seek = mechanics.seek(beyond, op);
            let settled = match op {
                Op::Write => mechanics.write_settle().after(seek),
                _ => seek,
            };
            assert!(mechanics.seek_at_least(distance) <= seek.min(settled));
            assert!(mechanics.seek(beyond, op) <= MOVEMENT_MAX);
        }
    }
    let model = Model::new(profile);
    let capacity = layout.capacity().get();
    let rotation = |now, angle| mechanics.wait(mechanics.phase_at(now), mechanics.phase(angle));
    let mut track = layout.home();
    let mut now = Time::from_nanos(draw.below(1 << 50));
    for round in 0..4 {
        let op = [Op::Read, Op::Write][round % 2];
        let start = draw.below(capacity);
        let len = 1 + draw.below((capacity - start).min(3000));
        let extent = Extent::at(start, len);
        let place = layout.locate(extent.start);
        let way = mechanics.reposition(track, place.track, op).total();
        assert!(way <= MOVEMENT_MAX && rotation(now + way, place.angle) < turn);
        let zero_latency = mechanics.zero_latency(op);
        let access = mechanics.access(layout, track, now, extent, op, zero_latency);
        let mut sectors = 0;
        let mut at = now;
        for step in mechanics.walk(layout, track, now, extent, op, zero_latency) {
            assert_eq!(step.begin, at);
            assert!(extent.covers(step.extent()));
            assert!(!step.transfer.is_zero() && step.transfer <= turn);
            assert_eq!(step.sectors_end(step.run.len), step.end());
            sectors += u64::from(step.run.len);
            at = step.end();
        }
        assert_eq!(sectors, len);
        assert_eq!(at, now + access.total());
        if !zero_latency {
            assert_eq!(
                access.seek + access.switch + access.rotation,
                access.total() - access.transfer
            );
        }
        track = access.track;
        now = at;
        let (from, to) = (model.end(extent), model.start(Extent::at(u64::MAX - 1, 1)));
        let seek = model.seek(from, to, op);
        assert!(seek <= MOVEMENT_MAX);
        assert_eq!(model.predict(now, from, to, op).seek, seek);
        assert!(model.seek_at_least(from, to, Lba::new(capacity - 1)) <= seek);
    }
    assert!(rotation(now, Angle::ZERO) < turn);
}
