//! Results of gap searches, compared with an exhaustive search.

use super::atlas;
use headtime_disk::profile::{self, Profile, WriteBack};
use headtime_disk::{Layout, Model};
use headtime_engine::Join;
use headtime_gaps::{Gap, Limits, Pick, Prefer, Search, Wanted};
use headtime_sched::{HeadAfter, Op, Pass, Passing, Positioning};
use headtime_units::{Cylinder, Extent, Lba, Nanos, Sectors, Time, Track};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A gap somewhere: the head behind one request, and another one.
fn gap(
    model: &Model,
    random: &mut Pcg64,
    around: u64,
    reach: u64,
) -> Gap<<Model as Positioning>::Place> {
    let mut lba = || around + random.next_u64() % reach;
    let (from, to) = (Extent::at(lba(), 8), Extent::at(lba(), 16));
    let free = Time::from_nanos(1_000_000_000 + random.next_u64() % 6_000_000);
    let source = HeadAfter {
        place: model.left_by(from, Op::Read),
        free,
    };
    Gap {
        source,
        sent: free - Nanos::from_millis(2),
        // One drive of three has one command at a time.
        then: (!random.next_u64().is_multiple_of(3)).then_some(free),
        op: if random.next_u64().is_multiple_of(3) {
            Op::Write
        } else {
            Op::Read
        },
        extent: to,
    }
}

/// A search from outside for reads, with 0.3 ms on each seek.
fn search<'a>(model: &'a Model, wanted: &'a Wanted) -> Search<'a, Model> {
    Search {
        model,
        wanted,
        op: Op::Read,
        conservatism: Nanos::from_micros(300),
        limits: Limits::Outside,
        prefer: Prefer::Blocks,
        rest: false,
        merged_max: Sectors::new(4_096),
        turn: model.turn().expect("it turns"),
    }
}

/// Possible commands within a pass, each with its number of wanted blocks. A read begins where the pass does and may
/// end at any wanted block. A write takes adjacent wanted blocks.
fn commands(wanted: &Wanted, of: Extent, op: Op) -> Vec<(u64, Extent)> {
    let (start, end) = (of.start.get(), of.end().get());
    let begins = match op.is_read() {
        true => vec![start],
        false => wanted.blocks_in(of).map(Lba::get).collect(),
    };
    let mut commands = Vec::new();
    for begin in begins {
        for len in 1..=end - begin {
            let part = Extent::at(begin, len);
            let Some((count, extent)) = wanted.within(part) else {
                continue;
            };
            if op.is_read() {
                commands.push((count, extent));
            } else if extent == part && count == len.div_ceil(wanted.block()) {
                commands.push((count, part));
            } else if len > (count + 1) * wanted.block() {
                break;
            }
        }
    }
    commands
}

/// The most wanted blocks that begin on any track and can be read (or written) and left in time: all tracks are looked at, all pieces, and all ends.
fn most(
    model: &Model,
    wanted: &Wanted,
    gap: &Gap<<Model as Positioning>::Place>,
    margin: Nanos,
    op: Op,
) -> u64 {
    let place = model.start(gap.extent);
    let (from, to) = (model.track(gap.source.place), model.track(place));
    let last = model.track(model.end(gap.extent));
    let own = model.predict_behind(&gap.source, gap.sent, place, gap.op);
    let begins = gap.source.free + own.positioning();
    let whole = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
    if !whole.on_medium {
        return 0;
    }
    let alone = whole.head.free;
    let turn = model.turn().expect("it turns");
    let mut most = 0;
    for cylinder in 0..model.cylinders() {
        if wanted.most_on(Cylinder(cylinder)) == 0 {
            continue;
        }
        for head in 0..model.heads() {
            let track = Track {
                cylinder: Cylinder(cylinder),
                head: headtime_units::Head(head),
            };
            if track == from || (track == last && track != to) {
                continue;
            }
            let arrives = model.arrives(&gap.source, gap.sent, track, op) + margin;
            let mut passes: Vec<Pass> = Vec::new();
            if arrives < begins {
                let span = (begins - arrives).min(turn);
                model.passing(track, arrives, span, &mut |pass| passes.push(pass));
            }
            for pass in passes {
                if track == to {
                    let touches = pass.extent.end() == gap.extent.start;
                    if gap.op.is_read() && op.is_read() && touches {
                        let here = wanted.within(pass.extent).map_or(0, |(count, _)| count);
                        most = most.max(here);
                    }
                    continue;
                }
                // A block may go on to the next track.
                let is_end = pass.extent.end() == model.addresses(track).end();
                let over = if is_end { wanted.block() } else { 0 };
                let len = pass.extent.len + Sectors::new(over);
                for (count, extent) in commands(wanted, Extent::new(pass.extent.start, len), op) {
                    let end = model.track(model.end(extent));
                    if end != track && [from, to, last].contains(&end) {
                        continue;
                    }
                    let first = model.follow(&gap.source, gap.sent, extent, op);
                    let sent = gap.then.unwrap_or(first.done);
                    let comes = model.arrives(&first.head, sent, to, gap.op) + margin;
                    let then = model.follow(&first.head, sent, gap.extent, gap.op);
                    if comes <= begins && then.head.free <= alone {
                        most = most.max(count);
                    }
                }
            }
        }
    }
    most
}

/// Compares searches with the exhaustive search on a drive. The wanted blocks are random pieces of limited length
/// within `reach` sectors. Returns the number of searches with a result, and the number with fewer blocks than
/// possible.
fn against_all(
    profile: &Profile,
    op: Op,
    block: u64,
    (pieces, longest): (u32, u64),
    reach: u64,
    rounds: u64,
) -> (u32, u32) {
    let model = Model::new(profile);
    let capacity = profile.geometry.capacity;
    let mut random = Pcg64::seed_from_u64(11);
    let (mut found, mut less) = (0, 0);
    for round in 0..rounds {
        let around = random.next_u64() % (capacity.get() - 2 * reach);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(block));
        for _ in 0..pieces {
            let start = around + random.next_u64() % reach;
            wanted.add(&model, Extent::at(start, random.next_u64() % longest));
        }
        // Some wanted blocks have been read since.
        for _ in 0..pieces / 4 {
            let start = around + random.next_u64() % reach;
            wanted.take(&model, Extent::at(start, random.next_u64() % longest));
        }
        let gap = gap(&model, &mut random, around, reach);
        let margin = Nanos::from_micros(100 * (round % 4));
        let search = Search {
            op,
            conservatism: margin,
            ..search(&model, &wanted)
        };
        let (pick, steps) = search.find(&gap, u64::MAX);
        let got = pick.map_or(0, |pick| pick.blocks);
        if let Some(pick) = pick.filter(|_| !op.is_read()) {
            let (count, extent) = wanted.longest_run(pick.extent).expect("it is wanted");
            assert_eq!((count, extent), (pick.blocks, pick.extent), "{pick:?}");
        }
        let most = most(&model, &wanted, &gap, margin, op);
        assert!(got <= most, "{got} of {most}: {pick:?}");
        // A piece that does not fit is cut at its end until it does, which may be a sector too much.
        assert!(got + 2 >= most, "{got} of {most} after {steps}: {gap:?}");
        less += u32::from(got < most);
        found += u32::from(got > 0);
        // A search without steps returns only reads directly at the request.
        assert!(
            search
                .find(&gap, 0)
                .0
                .is_none_or(|pick| pick.join == Join::With)
        );
    }
    (found, less)
}

#[test]
fn a_search_without_limits_finds_the_most_there_is() {
    // Scattered pieces not far from each other, here and there a whole track.
    let (found, less) = against_all(&atlas(2), Op::Read, 1, (12, 300), 300_000, 60);
    assert!(found > 25 && less < 10, "{found}, {less} with less");
}

#[test]
fn a_search_of_what_a_scan_has_left_finds_the_most_there_is() {
    let (found, less) = against_all(&atlas(2), Op::Read, 1, (400, 6), 2_000_000, 40);
    assert!(found > 25 && less < 4, "{found}, {less} with less");
}

#[test]
fn a_search_for_blocks_finds_the_most_there_is_on_other_drives() {
    let by_name = |name| profile::by_name(name).expect("there is such a one");
    let (found, less) = against_all(&atlas(2), Op::Read, 16, (100, 100), 1_000_000, 40);
    assert!(found > 20 && less < 6, "{found}, {less} with less");
    for name in ["hp-c2247a", "plausible-3", "plausible-8"] {
        let (found, less) = against_all(&by_name(name), Op::Read, 4, (60, 60), 200_000, 20);
        assert!(found > 8 && less < 5, "{name}: {found}, {less} with less");
    }
    let (found, less) = against_all(
        &by_name("exos-x18"),
        Op::Read,
        128,
        (200, 1_000),
        20_000_000,
        14,
    );
    assert!(found > 4 && less < 3, "{found}, {less} with less");
}

#[test]
fn a_search_for_what_to_write_finds_the_most_there_is_and_touches_nothing_else() {
    let by_name = |name| profile::by_name(name).expect("there is such a one");
    let (found, less) = against_all(&atlas(2), Op::Write, 1, (12, 300), 300_000, 60);
    assert!(found > 20 && less < 10, "{found}, {less} with less");
    let (found, less) = against_all(&atlas(2), Op::Write, 1, (400, 6), 2_000_000, 40);
    assert!(found > 20 && less < 4, "{found}, {less} with less");
    let (found, less) = against_all(&atlas(2), Op::Write, 16, (100, 100), 1_000_000, 40);
    assert!(found > 15 && less < 6, "{found}, {less} with less");
    for name in ["hp-c2247a", "plausible-3", "plausible-8"] {
        let uncached = by_name(name).with(|spec| spec.cache.write_back = WriteBack::Off);
        let uncached = uncached.expect("it can be");
        let (found, less) = against_all(&uncached, Op::Write, 4, (60, 60), 200_000, 20);
        assert!(found > 4 && less < 5, "{name}: {found}, {less} with less");
    }
}

/// A search may end at any step and returns its best result so far. More steps find no fewer blocks, and every result
/// is in time.
#[test]
fn a_search_that_is_cut_short_has_the_best_so_far() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(16);
    let (mut better, mut ended) = (0, 0);
    for _ in 0..60 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        for _ in 0..200 {
            let start = around + random.next_u64() % 300_000;
            wanted.add(&model, Extent::at(start, random.next_u64() % 60));
        }
        let gap = gap(&model, &mut random, around, 300_000);
        let search = search(&model, &wanted);
        let all = search.find(&gap, u64::MAX);
        let mut last = 0;
        for most in (0..8).map(|power| 1 << power) {
            let (pick, steps) = search.find(&gap, most);
            let blocks = pick.map_or(0, |pick| pick.blocks);
            assert!(blocks >= last, "{most}: {blocks} after {last}");
            // The tracks of the last cylinder are looked at to the end.
            assert!(
                steps <= most + u64::from(model.heads()) + 1,
                "{steps} of {most}"
            );
            better += u32::from(blocks > last);
            last = blocks;
            if steps == all.1 {
                assert_eq!(pick, all.0);
                ended += 1;
            }
        }
        assert!(last <= all.0.map_or(0, |pick| pick.blocks));
    }
    assert!(better > 60 && ended > 60, "{better} {ended}");
}

#[test]
fn a_search_finds_blocks_that_lie_on_two_tracks() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(15);
    let (mut found, mut less, mut ends) = (0, 0, 0);
    for round in 0..100 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let gap = gap(&model, &mut random, around, 300_000);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(16));
        let mut at = around;
        while at < around + 300_000 {
            let end = model.layout().track_extent_of(Lba::new(at)).end().get();
            if !end.is_multiple_of(16) {
                wanted.add(&model, Extent::at(end / 16 * 16, 16));
            }
            at = end;
        }
        let margin = Nanos::from_micros(100 * (round % 4));
        let search = Search {
            conservatism: margin,
            ..search(&model, &wanted)
        };
        let track = |lba| model.track(model.start(Extent::new(lba, Sectors::new(1))));
        let pick = search.find(&gap, u64::MAX).0;
        if let Some(pick) = &pick {
            let [start, end] = [pick.extent.start, pick.extent.end() - Sectors::new(1)].map(track);
            assert_ne!(start, end, "{pick:?}");
            let own = [model.track(gap.source.place), track(gap.extent.start)];
            assert!(!own.contains(&end) && !own.contains(&start), "{pick:?}");
        }
        let most = most(&model, &wanted, &gap, margin, Op::Read);
        let got = pick.map_or(0, |pick| pick.blocks);
        assert!(got <= most, "{got} of {most}");
        found += u32::from(got > 0);
        less += u32::from(got < most);
        ends += most;
    }
    assert!(
        found > 30 && less < 6,
        "{found}, {less} with less, {ends} at most"
    );
}

#[test]
fn a_search_finds_the_most_there_is_where_the_arm_waits_for_the_bus() {
    // The arm stays until all has been sent, five times as long as the sectors take to pass.
    let atlas = profile::by_name("atlas10k").expect("shipped");
    let (found, less) = against_all(&atlas, Op::Read, 1, (12, 300), 300_000, 30);
    assert!(found > 12 && less < 15, "{found}, {less} with less");
    let (found, less) = against_all(&atlas, Op::Read, 1, (400, 6), 2_000_000, 45);
    assert!(found > 15 && less < 6, "{found}, {less} with less");
}

#[test]
fn no_pick_is_alone_on_a_track_of_a_request_that_goes_over_the_end_of_one() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(13);
    let mut elsewhere = 0;
    for _ in 0..300 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let mut gap = gap(&model, &mut random, around, 300_000);
        let start = model.layout().track_extent_of(gap.extent.start).end();
        gap.extent = Extent::new(start - Sectors::new(8), Sectors::new(16));
        let last = model.track(model.end(gap.extent));
        // Nothing is wanted on its first track, all on its second one, and a little elsewhere.
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        wanted.add(&model, model.addresses(last));
        wanted.add(&model, Extent::at(around + random.next_u64() % 300_000, 40));
        let search = Search {
            conservatism: Nanos::from_micros(100),
            ..search(&model, &wanted)
        };
        if let (Some(pick), _) = search.find(&gap, u64::MAX) {
            assert_ne!(model.track(model.start(pick.extent)), last, "{pick:?}");
            elsewhere += 1;
        }
    }
    assert!(elsewhere > 20, "{elsewhere}");
}

#[test]
fn there_is_no_gap_before_a_write_that_ends_in_the_drives_buffer() {
    let cached = atlas(2).with(|spec| spec.cache.write_back = WriteBack::Full);
    let (on_medium, cached) = (atlas(2), cached.expect("it can be"));
    let mut found = [0, 0];
    for (profile, found) in [&on_medium, &cached].into_iter().zip(&mut found) {
        let model = Model::new(profile);
        let capacity = profile.geometry.capacity;
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        wanted.add(&model, Extent::new(Lba::ZERO, capacity));
        let mut random = Pcg64::seed_from_u64(14);
        for _ in 0..50 {
            let mut gap = gap(&model, &mut random, 0, capacity.get() - 16);
            gap.op = Op::Write;
            let search = search(&model, &wanted);
            *found += u32::from(search.find(&gap, u64::MAX).0.is_some());
        }
    }
    assert!(found[0] > 20 && found[1] == 0, "{found:?}");
}

/// A gap read's share of its track, in thousandths. A gap read that takes the last wanted blocks of the track gets 20
/// more.
fn share(model: &Model, wanted: &Wanted, pick: Pick) -> u64 {
    let track = model.track(model.start(pick.extent));
    let whole = model.addresses(track).len.get();
    pick.blocks * 1_000 / whole
        + if pick.blocks == wanted.on_track(track) {
            20
        } else {
            0
        }
}

#[test]
fn who_prefers_tracks_gets_more_of_a_track_and_who_prefers_blocks_more_blocks() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(12);
    let (mut others, mut finished) = (0, 0);
    for _ in 0..400 {
        // Rests of tracks.
        let around = random.next_u64() % (capacity.get() - 400_000);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        for _ in 0..600 {
            let start = around + random.next_u64() % 300_000;
            wanted.add(&model, Extent::at(start, random.next_u64() % 12));
        }
        let gap = gap(&model, &mut random, around, 300_000);
        let find = |prefer| {
            let search = Search {
                prefer,
                ..search(&model, &wanted)
            };
            search.find(&gap, u64::MAX).0
        };
        let (blocks, tracks) = (find(Prefer::Blocks), find(Prefer::Tracks));
        let (Some(blocks), Some(tracks)) = (blocks, tracks) else {
            assert_eq!(blocks, tracks);
            continue;
        };
        // A piece that is cut may come out shorter than another: see `against_all`.
        assert!(blocks.blocks + 2 >= tracks.blocks, "{blocks:?} {tracks:?}");
        let (less, more) = (
            share(&model, &wanted, blocks),
            share(&model, &wanted, tracks),
        );
        // Rounding.
        assert!(more + 1 >= less, "{blocks:?} {tracks:?}");
        let track = model.track(model.start(tracks.extent));
        finished += u64::from(tracks.blocks == wanted.on_track(track));
        others += u64::from(blocks.extent != tracks.extent);
    }
    assert!(others > 20 && finished > 50, "{others} {finished}");
}

#[test]
fn the_firmware_reads_on_both_sides_of_the_end_of_a_track_and_the_request_is_not_late() {
    let profile = atlas(2).with(|spec| {
        spec.access.on_track_at_once = true;
        spec.cache = Default::default();
        spec.bus = Default::default();
    });
    let model = Model::new(&profile.expect("it can be"));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(12);
    let mut gained = 0;
    for round in 0..100 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let gap = gap(&model, &mut random, around, 300_000);
        let alone = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
        let picked = |commands: u32| {
            let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
            wanted.add(&model, Extent::at(around, 400_000));
            let (mut gap, mut sum) = (gap, 0);
            for command in 0..commands {
                let search = Search {
                    conservatism: Nanos::ZERO,
                    limits: Limits::Firmware,
                    rest: command > 0,
                    ..search(&model, &wanted)
                };
                let Some(pick) = search.find(&gap, u64::MAX).0 else {
                    break;
                };
                sum += pick.blocks;
                wanted.take(&model, pick.extent);
                if pick.join == Join::With {
                    let merged = pick.extent.len + gap.extent.len;
                    gap.extent = Extent::new(pick.extent.start, merged);
                } else {
                    let behind = model.follow(&gap.source, gap.sent, pick.extent, Op::Read);
                    gap.source = behind.head;
                    gap.then = Some(gap.source.free);
                }
                if !pick.more {
                    break;
                }
            }
            let behind = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
            assert!(behind.head.free <= alone.head.free, "{round}: {gap:?}");
            sum
        };
        gained += u32::from(picked(2) > picked(1));
    }
    // A gap is a part of a turn, and a track's end is somewhere.
    assert!(gained > 15, "{gained}");
}

/// A Cheetah 18LP with one sector on a spare place elsewhere.
fn worn(sector: Lba) -> Profile {
    let shipped = profile::by_name("cheetah18lp").expect("shipped");
    let layout = Layout::new(&shipped);
    let (zone, from) = layout.home_of(sector).expect("at home");
    let is_spare = Layout::zone_spares(&shipped, &shipped.layout.zones[zone]);
    let to = (from + 1..layout.places_in_zone(zone)).find(|place| is_spare(*place));
    let to = to.expect("the zone has spares");
    let changed = shipped.with(|spec| spec.layout.zones[zone].remaps = vec![(from, to)]);
    changed.expect("the place is free")
}

/// A run of blocks that begins at a remapped block counts as a run that begins earlier.
#[test]
fn a_remapped_block_counts_alike_however_it_is_added_and_taken() {
    let sector = Lba::new(100_000);
    let profile = worn(sector);
    let model = Model::new(&profile);
    let track = |lba: Lba| model.track(model.start(Extent::new(lba, Sectors::new(1))));
    let home = track(sector - Sectors::new(1));
    assert_ne!(track(sector), home, "it is elsewhere");
    let before = Extent::at(sector.get() - 20, 20);
    let alone = Extent::new(sector, Sectors::new(1));
    let from = Extent::at(sector.get(), 20);
    let all = Extent::at(sector.get() - 20, 40);
    let addresses = model.addresses(home);
    let mut wanted = Wanted::none(&model, profile.geometry.capacity, Sectors::new(1));
    for (adds, takes) in [
        (&[all][..], &[from, before][..]),
        (&[from, before], &[all]),
        (&[all], &[alone, all]),
        (&[alone], &[all]),
        (&[all], &[before, alone, from]),
    ] {
        let steps = adds.iter().map(|add| (add, true));
        for (extent, on) in steps.chain(takes.iter().map(|take| (take, false))) {
            match on {
                true => wanted.add(&model, *extent),
                false => wanted.take(&model, *extent),
            };
            let here = wanted.blocks_in(addresses).count() as u64;
            assert_eq!(wanted.on_track(home), here, "{extent} {on}");
        }
        assert_eq!(wanted.left(), 0);
    }
}
