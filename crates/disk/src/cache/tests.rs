use super::*;
use crate::profile::{WriteBack, by_name};

/// Four segments of 100 sectors on a disk of 10,000 sectors. Two segments may hold writes.
fn cache(change: impl FnOnce(&mut CacheSpec)) -> Cache {
    let mut spec = by_name("wd5000aaks").unwrap().cache;
    spec.read_ahead_min = 0;
    spec.segments = 4;
    spec.segment_sectors = 100;
    spec.write_segments = 2;
    spec.read_ahead = ReadAhead::SegmentFull;
    spec.read_ahead_max = 80;
    spec.requested_data = RequestedData::Replaceable;
    spec.write_back = WriteBack::Full;
    change(&mut spec);
    Cache::new(&spec, 10_000, 1)
}

fn no_track(_: Lba) -> (u64, u64, u64) {
    panic!("the track makes no difference")
}

/// Reads sectors into the segment that the buffer offers.
fn read(cache: &mut Cache, start: u64, end: u64) -> SegmentId {
    let ReadLookup::Miss(Some(id)) = cache.find_read(Extent::at(start, 1)) else {
        panic!("no miss at {start}")
    };
    cache.begin_read(id, start);
    cache.touch(id, false);
    cache.read_to(id, end, 0);
    cache.end_read(id);
    id
}

fn write(cache: &mut Cache, start: u64, len: u64) -> SegmentId {
    let extent = Extent::at(start, len);
    let WriteLookup::Fresh(id) = cache.find_write(extent) else {
        panic!("no room for {extent}")
    };
    cache.begin_write(id, extent);
    cache.touch(id, true);
    cache.overwrite(extent, Some(id));
    id
}

#[test]
fn hits_are_whole_or_from_the_front() {
    let mut cache = cache(|_| ());
    let id = read(&mut cache, 100, 150);
    let find = |start, len| cache.find_read(Extent::at(start, len));
    assert_eq!(find(100, 50), ReadLookup::Whole(id));
    assert_eq!(find(149, 1), ReadLookup::Whole(id));
    assert_eq!(find(140, 20), ReadLookup::Partial(id));
    assert!(
        matches!(find(90, 20), ReadLookup::Miss(Some(_))),
        "not from the back"
    );
    assert!(matches!(find(150, 1), ReadLookup::Miss(Some(_))));
}

#[test]
fn the_longest_unused_segment_is_taken() {
    let mut cache = cache(|_| ());
    let first: Vec<SegmentId> = (0..4)
        .map(|n| read(&mut cache, n * 1000, n * 1000 + 10))
        .collect();
    let mut distinct: Vec<u32> = first.iter().map(|id| id.0).collect();
    distinct.sort_unstable();
    assert_eq!(distinct, [0, 1, 2, 3], "empty ones first");
    cache.touch(first[0], false);
    assert_eq!(read(&mut cache, 5000, 5010), first[1]);
    cache.get_mut(first[2]).users = 1;
    assert_eq!(read(&mut cache, 6000, 6010), first[3], "not one in use");
}

#[test]
fn a_full_segment_loses_its_front() {
    let mut cache = cache(|_| ());
    let id = read(&mut cache, 100, 230);
    assert_eq!((cache.get(id).start, cache.get(id).end), (130, 230));
    cache.read_before(id, 0);
    assert_eq!(cache.get(id).start, 130, "no room in front");
    let id = read(&mut cache, 500, 520);
    cache.read_before(id, 450);
    assert_eq!(cache.get(id).start, 450);
}

#[test]
fn reading_ahead_ends_where_the_parameters_say() {
    let limit = |change: fn(&mut CacheSpec), start, len| {
        let mut cache = cache(change);
        let id = read(&mut cache, start, start);
        cache.extend_ahead(id, Extent::at(start, len), |_| (150, 250, 100));
        cache.get(id).ahead_max
    };
    assert_eq!(limit(|_| (), 100, 30), 210);
    assert_eq!(
        limit(|s| s.requested_data = RequestedData::Kept, 100, 30),
        200
    );
    assert_eq!(limit(|s| s.read_ahead_max = 0, 100, 30), 230);
    let kept = |s: &mut CacheSpec| {
        s.read_ahead_max = 0;
        s.requested_data = RequestedData::Kept;
    };
    assert_eq!(limit(kept, 100, 30), 200);
    assert_eq!(limit(|s| s.read_ahead = ReadAhead::Off, 100, 30), 130);
    // The track of the next sector is 150 to 250. A segment that starts on this track is filled to
    // the track's end, any other segment one track further.
    assert_eq!(limit(|s| s.read_ahead = ReadAhead::NextTrack, 160, 30), 250);
    assert_eq!(limit(|s| s.read_ahead = ReadAhead::NextTrack, 140, 30), 350);
    assert_eq!(limit(|_| (), 9_990, 10), 10_000, "the end of the disk");
}

#[test]
fn writes_join_what_is_dirty() {
    let mut cache = cache(|_| ());
    let id = write(&mut cache, 100, 10);
    let find = |cache: &Cache, start, len| cache.find_write(Extent::at(start, len));
    assert_eq!(find(&cache, 110, 10), WriteLookup::Join(id), "behind");
    assert_eq!(find(&cache, 90, 10), WriteLookup::Join(id), "in front");
    assert_eq!(find(&cache, 102, 4), WriteLookup::Join(id), "over");
    assert_eq!(find(&cache, 105, 10), WriteLookup::Blocked(id), "half over");
    assert!(matches!(find(&cache, 300, 4), WriteLookup::Fresh(_)));
    cache.join_write(id, Extent::at(110, 10));
    assert_eq!(cache.get(id).dirty(), Extent::at(100, 20));
    cache.begin_destage(id);
    assert_eq!(find(&cache, 120, 10), WriteLookup::Join(id), "still behind");
    assert_eq!(
        find(&cache, 90, 10),
        WriteLookup::Fresh(SegmentId(1)),
        "too late in front"
    );
    cache.join_write(id, Extent::at(120, 10));
    cache.end_destage(id, 120);
    assert_eq!(cache.get(id).dirty(), Extent::at(120, 10));
    assert_eq!((cache.dirty(), cache.get(id).state), (1, State::Dirty));
    cache.begin_destage(id);
    cache.end_destage(id, 130);
    assert_eq!((cache.dirty(), cache.get(id).state), (0, State::Clean));
}

#[test]
fn only_so_many_segments_are_dirty() {
    let mut cache = cache(|_| ());
    let first = write(&mut cache, 100, 10);
    write(&mut cache, 300, 10);
    assert_eq!(cache.find_write(Extent::at(500, 10)), WriteLookup::Full);
    assert_eq!(cache.oldest_dirty(), Some(first));
}

#[test]
fn dirty_data_serve_reads_or_stand_in_their_way() {
    let mut with = cache(|_| ());
    let id = write(&mut with, 100, 10);
    assert_eq!(with.find_read(Extent::at(102, 4)), ReadLookup::Whole(id));
    assert_eq!(with.find_read(Extent::at(105, 10)), ReadLookup::Blocked(id));
    assert_eq!(with.find_read(Extent::at(95, 10)), ReadLookup::Blocked(id));
    let mut without = cache(|spec| spec.read_hits_on_write_data = false);
    let id = write(&mut without, 100, 10);
    assert_eq!(
        without.find_read(Extent::at(102, 4)),
        ReadLookup::Blocked(id)
    );
    without.begin_destage(id);
    without.end_destage(id, 110);
    assert!(matches!(
        without.find_read(Extent::at(102, 4)),
        ReadLookup::Miss(_)
    ));
}

#[test]
fn dirty_data_that_a_read_has_asked_for_are_not_dropped_before_they_are_on_the_medium() {
    let mut cache = cache(|spec| spec.requested_data = RequestedData::Dropped);
    let id = write(&mut cache, 100, 20);
    assert_eq!(cache.find_read(Extent::at(104, 4)), ReadLookup::Whole(id));
    cache.completed_read(id, Extent::at(104, 4));
    assert_eq!(cache.find_read(Extent::at(100, 20)), ReadLookup::Whole(id));
    let front = Extent::at(101, 2);
    assert_eq!(cache.find_write(front), WriteLookup::Join(id));
    cache.begin_destage(id);
    assert_eq!(cache.find_write(front), WriteLookup::Blocked(id));
    cache.join_write(id, Extent::at(120, 5));
    cache.end_destage(id, 120);
    cache.completed_read(id, Extent::at(104, 4));
    assert_eq!((cache.get(id).start, cache.get(id).end), (108, 125));
    cache.completed_read(id, Extent::at(110, 15));
    assert_eq!((cache.get(id).start, cache.get(id).end), (120, 125));
    assert_eq!(cache.get(id).dirty(), Extent::at(120, 5));
}

#[test]
fn a_write_changes_copies_or_makes_them_stale() {
    let mut shared = cache(|_| ());
    let id = read(&mut shared, 100, 150);
    write(&mut shared, 120, 4);
    assert_eq!(shared.find_read(Extent::at(100, 50)), ReadLookup::Whole(id));
    for change in [
        (|spec| spec.read_hits_on_write_data = false) as fn(&mut CacheSpec),
        |spec| spec.dedicated_write_segment = true,
    ] {
        let mut apart = cache(change);
        read(&mut apart, 100, 150);
        let id = write(&mut apart, 120, 4);
        apart.begin_destage(id);
        apart.end_destage(id, 124);
        assert!(matches!(
            apart.find_read(Extent::at(100, 10)),
            ReadLookup::Miss(_)
        ));
    }
}

#[test]
fn a_dedicated_segment_takes_all_writes_and_no_reads() {
    let mut cache = cache(|spec| {
        spec.dedicated_write_segment = true;
        spec.write_segments = 1;
    });
    let id = write(&mut cache, 100, 10);
    assert_eq!(id, SegmentId(0));
    assert_eq!(cache.find_read(Extent::at(100, 4)), ReadLookup::Blocked(id));
    assert_eq!(cache.find_write(Extent::at(500, 4)), WriteLookup::Full);
    for place in 1..10 {
        assert_ne!(read(&mut cache, place * 1000, place * 1000 + 1), id);
    }
}

#[test]
fn what_is_just_being_read_is_a_hit_if_the_drive_says_so() {
    for almost in [false, true] {
        let mut cache = cache(|spec| spec.almost_read_hits = almost);
        let id = read(&mut cache, 100, 100);
        cache.begin_read(id, 100);
        cache.extend_ahead(id, Extent::at(100, 10), no_track);
        cache.read_to(id, 130, 0);
        let hit = cache.find_read(Extent::at(130, 4)) == ReadLookup::Partial(id);
        assert_eq!(hit, almost);
    }
}

/// After any history, the segments near a read give the same result as all segments.
#[test]
fn a_read_finds_among_segments_near_it_what_it_finds_among_all() {
    type Change = fn(&mut CacheSpec);
    let changes: [Change; 5] = [
        |_| (),
        |spec| spec.read_hits_on_write_data = false,
        |spec| spec.almost_read_hits = true,
        |spec| spec.requested_data = RequestedData::Dropped,
        |spec| spec.enabled = false,
    ];
    let mut kinds = [0_u32; 3];
    for (seed, change) in (1_u64..).zip(changes) {
        let mut cache = cache(change);
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let extent = Extent::at(draw(400), 1 + draw(60));
            let id = SegmentId(draw(4) as u32);
            let segment = *cache.get(id);
            let clean = !segment.is_dirty() && segment.state != State::Lent;
            match draw(12) {
                0..3 if clean => {
                    cache.begin_read(id, extent.start.get());
                    cache.touch(id, false);
                }
                3 if segment.state == State::Reading => {
                    cache.read_to(id, segment.end + extent.len.get(), 0);
                }
                4 if segment.state == State::Reading => cache.read_before(id, extent.start.get()),
                5 => cache.end_read(id),
                7 if segment.users < 2 => cache.add_user(id),
                8 if segment.users > 0 => {
                    cache.drop_user(id);
                    cache.completed_read(id, extent);
                }
                9 if draw(8) == 0 => cache.invalidate(extent, None),
                10 if clean && draw(8) == 0 => cache.drop_all(id),
                11 if draw(20) == 0 => {
                    if let WriteLookup::Fresh(id) = cache.find_write(extent) {
                        cache.begin_write(id, extent);
                        cache.touch(id, true);
                        cache.overwrite(extent, Some(id));
                    }
                }
                11 => {
                    if let Some(id) = cache.oldest_dirty() {
                        cache.begin_destage(id);
                        cache.end_destage(id, cache.get(id).dirty_end);
                    }
                }
                _ => {}
            }
            let empty = cache.segments.iter().filter(|s| s.state == State::Empty);
            assert_eq!(cache.empty as usize, empty.count());
            let stamps = cache.order.iter().map(|id| cache.get(id).used);
            assert!(stamps.is_sorted());
            let asked = Extent::at(draw(420), 1 + draw(30));
            let all = cache.find_read_in_all(asked);
            assert_eq!(cache.find_read(asked), all);
            if cache.dirty() == 0 {
                let kind = match all {
                    ReadLookup::Miss(_) => 0,
                    ReadLookup::Partial(_) => 1,
                    _ => 2,
                };
                kinds[kind] += 1;
                assert!(kind == 0 || cache.may_serve(asked));
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 500), "{kinds:?}");
}

/// The number of segments with data follows from the room: many short segments, or few long ones.
#[test]
fn the_number_of_segments_follows_what_they_hold() {
    let shared = |spec: &mut CacheSpec| {
        spec.segments = 20;
        spec.write_segments = 2;
        spec.room_sectors = 400;
    };
    let held = |cache: &Cache, len: u64| -> Vec<u64> {
        let whole = |at: &u64| {
            matches!(
                cache.find_read(Extent::at(at * 200, len)),
                ReadLookup::Whole(_)
            )
        };
        (0..30).filter(whole).collect()
    };
    for (len, kept) in [(20, 20), (25, 16), (50, 8), (100, 4)] {
        let mut cache = cache(shared);
        for at in 0..30 {
            read(&mut cache, at * 200, at * 200 + len);
        }
        assert_eq!(
            held(&cache, len),
            (30 - kept..30).collect::<Vec<_>>(),
            "{len}"
        );
    }
    // With room for all segments, all are full.
    let mut cache = cache(|spec| spec.segments = 20);
    for at in 0..30 {
        read(&mut cache, at * 200, at * 200 + 100);
    }
    assert_eq!(held(&cache, 100).len(), 20);
}

#[test]
fn what_is_dirty_or_needed_stays_when_others_are_given_up() {
    let mut cache = cache(|spec| {
        spec.segments = 20;
        spec.room_sectors = 300;
    });
    write(&mut cache, 9_000, 50);
    let needed = read(&mut cache, 8_000, 8_100);
    cache.add_user(needed);
    for at in 0..20 {
        read(&mut cache, at * 200, at * 200 + 100);
    }
    let whole = |at| matches!(cache.find_read(Extent::at(at, 50)), ReadLookup::Whole(_));
    assert!(whole(9_000) && whole(8_000) && whole(3_800));
    assert!(
        !whole(3_600),
        "150 sectors are left for the others, less than two full segments"
    );
    let mut done = cache.clone();
    done.drop_user(needed);
    for at in 0..20 {
        read(&mut done, at * 200, at * 200 + 100);
    }
    assert!(!matches!(
        done.find_read(Extent::at(8_000, 50)),
        ReadLookup::Whole(_)
    ));
}
