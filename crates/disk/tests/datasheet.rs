//! Profiles from datasheets: valid, true to the sheet, and how near to profiles of the same drives that more is known of.

use headtime_disk::profile::{Order, Profile, Trust, by_name};
use headtime_disk::{Capacity, Command, Datasheet, Drive, Layout, Mechanics, SectorFormat};
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Lba, Nanos, Time};
use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

const MB: f64 = 1e6;

fn ms(millis: f64) -> Nanos {
    Nanos::from_millis_f64(millis)
}

fn mb(megabytes: f64) -> u64 {
    (megabytes * MB) as u64
}

/// Values of a product page: capacity, speed, average seek, outer rate, buffer.
fn short(gb: u64, rpm: f64, seek: f64, rate: f64, cache_mb: u64) -> Datasheet {
    Datasheet {
        name: "sheet".to_owned(),
        model: None,
        capacity: Capacity::Nominal(Bytes(gb * 1_000_000_000)),
        sector: None,
        rpm,
        seek: ms(seek),
        seek_write: None,
        track: None,
        track_write: None,
        maximum: None,
        maximum_write: None,
        rate: mb(rate),
        rate_inner: None,
        cache: Bytes(cache_mb << 20),
        heads: None,
        queue: None,
        interface: None,
    }
}

/// Pairs of numbers from 0 to 1 that fill the square evenly (Roberts' sequence of 2018).
fn pairs(count: u32) -> impl Iterator<Item = (f64, f64)> {
    const PLASTIC: f64 = 1.324_717_957_244_746;
    (1..=count).map(|index| {
        let index = f64::from(index);
        let part = |step: f64| (0.5 + index * step).fract();
        (part(1.0 / PLASTIC), part(1.0 / (PLASTIC * PLASTIC)))
    })
}

/// The mean seek between random sectors, ready to read or write, found by going to sectors.
fn mean_seek(layout: &Layout, mechanics: &Mechanics, op: Op) -> f64 {
    const PAIRS: u32 = 20_000;
    let sectors = layout.capacity().get() as f64;
    let track = |part: f64| layout.locate(Lba::new((part * sectors) as u64)).track;
    let sum: f64 = pairs(PAIRS)
        .map(|(from, to)| {
            let (from, mut to) = (track(from), track(to));
            // On one head: no switch.
            to.head = from.head;
            let way = mechanics.reposition(from, to, op);
            (way.seek + way.switch).as_millis_f64()
        })
        .sum();
    sum / f64::from(PAIRS)
}

/// The sustained rate from a zone's first sector on, bytes a second: over as many tracks as repeat.
fn sustained(profile: &Profile, layout: &Layout, mechanics: &Mechanics, start: Lba) -> f64 {
    let heads = u64::from(profile.geometry.heads);
    let tracks = match profile.layout.order {
        Order::SurfaceSerpentine { tracks } => u64::from(tracks) * heads,
        _ => heads,
    };
    let per_track = layout
        .sectors_per_track(layout.locate(start).track)
        .unwrap();
    let sectors = tracks * u64::from(per_track);
    // One more: when it begins, the tracks before are over.
    let extent = Extent::at(start.get(), sectors + 1);
    let home = layout.locate(start).track;
    let mut steps = mechanics.walk(layout, home, Time::ZERO, extent, Op::Read, false);
    let first = steps.next().unwrap().transfer_begin();
    let last = steps.last().unwrap().transfer_begin();
    let bytes = sectors * u64::from(profile.geometry.sector_bytes);
    bytes as f64 / (last - first).as_secs_f64()
}

fn near(what: &str, found: f64, wanted: f64) -> Result<(), TestCaseError> {
    prop_assert!(
        (found / wanted - 1.0).abs() < 0.01,
        "{what}: {found} instead of {wanted}"
    );
    Ok(())
}

/// The trust mark of a key, or of the section it is in.
fn trust(profile: &Profile, key: &str) -> Trust {
    let mark = |key: &str| {
        let found = profile.trust.iter().find(|(marked, _)| marked == key);
        found.map(|(_, trust)| *trust)
    };
    let section = key.split('.').next().unwrap();
    mark(key).or_else(|| mark(section)).unwrap()
}

/// Everything of a sheet that has to come out of its profile.
fn check(sheet: &Datasheet) -> Result<Profile, TestCaseError> {
    let profile = sheet.profile();
    let profile = profile.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let again = Profile::from_toml("sheet.toml", &profile.to_toml());
    prop_assert_eq!(again.as_ref(), Ok(&profile));
    let geometry = &profile.geometry;
    let layout = Layout::new(&profile);
    let sectors = sheet.capacity.sectors(geometry.sector_bytes);
    prop_assert_eq!(geometry.capacity.get(), sectors);
    prop_assert_eq!(layout.capacity().get(), sectors);
    prop_assert!(sheet.heads.is_none_or(|heads| heads == geometry.heads));
    prop_assert_eq!(profile.rotation.rpm, sheet.rpm);
    // The buffer is as large as on the sheet, less at most a sector of the medium in each segment.
    let cache = u64::from(profile.cache.segments) * u64::from(profile.cache.segment_sectors);
    let cache = cache * u64::from(geometry.sector_bytes);
    let lost = u64::from(profile.cache.segments) * u64::from(geometry.physical_sector_bytes);
    prop_assert!(
        cache <= sheet.cache.0 && sheet.cache.0 < cache + lost,
        "{cache}"
    );
    // Sectors on the medium lie on their borders throughout.
    for zone in layout.zones() {
        let per_physical = u64::from(geometry.sectors_per_physical());
        prop_assert_eq!(zone.extent.start.get() % per_physical, 0);
    }

    let mechanics = Mechanics::new(&profile);
    let zones: Vec<Lba> = layout.zones().map(|zone| zone.extent.start).collect();
    let inner = sheet.rate_inner.unwrap_or(sheet.rate / 2) as f64;
    for (what, start, rate) in [
        ("outer rate", zones[0], sheet.rate as f64),
        ("inner rate", zones[zones.len() - 1], inner),
    ] {
        near(what, sustained(&profile, &layout, &mechanics, start), rate)?;
    }
    let mean = mean_seek(&layout, &mechanics, Op::Read);
    near("average seek", mean, sheet.seek.as_millis_f64())?;
    let write = sheet.seek_write.unwrap_or(sheet.seek + ms(0.5));
    let mean = mean_seek(&layout, &mechanics, Op::Write);
    near("average write seek", mean, write.as_millis_f64())?;
    let settled = |distance: u32, op: Op| match op {
        Op::Write => mechanics.write_settle().after(mechanics.seek(distance, op)),
        _ => mechanics.seek(distance, op),
    };
    let far = geometry.cylinders - 1;
    for (what, distance, op, given) in [
        ("track to track", 1, Op::Read, sheet.track),
        ("track to track, writing", 1, Op::Write, sheet.track_write),
        ("maximum", far, Op::Read, sheet.maximum),
        ("maximum, writing", far, Op::Write, sheet.maximum_write),
    ] {
        if let Some(given) = given {
            near(
                what,
                settled(distance, op).as_millis_f64(),
                given.as_millis_f64(),
            )?;
        }
    }
    let mut last = Nanos::ZERO;
    for distance in (0..64).map(|step| 1 + (u64::from(far - 1) * step / 63) as u32) {
        let time = mechanics.seek(distance, Op::Read);
        prop_assert!(
            time >= last,
            "{time} for {distance} cylinders is less than {last}"
        );
        last = time;
    }
    Ok(profile)
}

prop_compose! {
    /// Sheets of drives that could be: 1993 to the largest that are announced.
    fn sheets()(
        rpm in prop::sample::select(vec![5400.0, 5900.0, 7200.0, 10_025.0, 15_000.0]),
        format in prop::sample::select(vec![
            None,
            Some(SectorFormat::Native512),
            Some(SectorFormat::Emulated512),
            Some(SectorFormat::Native4K),
        ]),
        // Bytes on the outermost track, from where rounding a track to sectors is below 1 % on the inner one.
        outer in 0.0..1.0_f64,
        inner in prop::option::of(0.4..=1.0_f64),
        tracks in 0.6..2.0_f64,
        surfaces in 1_u16..=22,
        say_heads in any::<bool>(),
        seek in 0.0..1.0_f64,
        write in prop::option::of(1.0..1.4_f64),
        track in prop::option::of(0.02..0.25_f64),
        track_write in prop::option::of(1.0..1.6_f64),
        maximum in prop::option::of(1.6..2.6_f64),
        maximum_write in prop::option::of(1.0..1.1_f64),
        cache in 128_u64..1_000_000,
        queue in prop::option::of(1_u32..=256),
        interface in prop::option::of(1.0..20.0_f64),
    ) -> Datasheet {
        let bytes = SectorFormat::Emulated512;
        let physical = f64::from(format.unwrap_or(bytes).physical_bytes());
        // 170 sectors of the medium to 3.6 MB, along the logarithm.
        let least = 170.0 * physical;
        let on_track = least * (3.6e6 / least).powf(outer);
        // Tracks on a surface go with the sectors on them.
        let per_surface = (8_000.0 * (on_track / 512.0 / 254.0).powf(1.45) * tracks).clamp(12_000.0, 1_400_000.0);
        let mean = on_track * f64::midpoint(1.0, inner.unwrap_or(0.5));
        let capacity = f64::from(surfaces) * per_surface * mean;
        let logical = format.unwrap_or(SectorFormat::Native512).bytes();
        // Fast drives have short arms: up to 18 ms at 5400 rpm, 6.7 at 15,000.
        let seek = ms(2.5 + seek * (100_000.0 / rpm - 2.5));
        let times = |time: Nanos, factor: f64| ms(time.as_millis_f64() * factor);
        let track = track.map(|part| times(seek, part));
        let track_write = track_write.and_then(|factor| Some(times(track?, factor)));
        // From one track to the next a drive switches heads, in about a seventh of a turn, or the arm steps.
        let step = track_write.or(track).unwrap_or(Nanos::ZERO);
        let between = f64::max(step.as_secs_f64() * rpm / 60.0, 0.14);
        let rate = on_track * rpm / 60.0 / (1.0 + between);
        let maximum = maximum.map(|factor| times(seek, factor));
        let seek_write = write.map(|factor| times(seek, factor));
        Datasheet {
            capacity: Capacity::Sectors((capacity / f64::from(logical)) as u64),
            sector: format,
            rpm,
            seek,
            seek_write,
            track,
            track_write,
            maximum,
            maximum_write: maximum_write.and_then(|factor| {
                let least = times(seek_write.unwrap_or(seek + ms(0.5)), 1.5);
                Some(times(maximum?.max(least), factor))
            }),
            rate: rate as u64,
            rate_inner: inner.map(|part| (rate * part) as u64),
            cache: Bytes(cache << 10),
            heads: say_heads.then_some(surfaces),
            queue,
            interface: interface.map(|factor| (rate * factor) as u64 + 1),
            ..short(1, rpm, 1.0, 1.0, 1)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_plausible_sheet_gives_a_valid_profile_that_says_what_it_says(sheet in sheets()) {
        let profile = check(&sheet)?;
        prop_assert_eq!(trust(&profile, "geometry.capacity_sectors"), Trust::Published);
        for (key, given, otherwise) in [
            ("geometry.heads", sheet.heads.is_some(), Trust::Assumed),
            ("geometry.physical_sector", sheet.sector.is_some(), Trust::Assumed),
            ("queue.depth", sheet.queue.is_some(), Trust::Assumed),
            ("bus.interface_sector", sheet.interface.is_some(), Trust::Assumed),
        ] {
            let wanted = if given { Trust::Published } else { otherwise };
            prop_assert_eq!(trust(&profile, key), wanted, "{}", key);
        }
    }
}

#[test]
fn a_nominal_capacity_is_what_drives_report_of_it() {
    for (bytes, sectors) in [
        (500_000_000_000, 976_773_168),
        (160_000_000_000, 312_581_808),
        (4_000_000_000_000, 7_814_037_168),
        (14_000_000_000_000, 27_344_764_928),
        (18_000_000_000_000, 35_156_656_128),
        // Literally: too small for the agreement, and not whole.
        (9_100_000_000, 17_773_437),
        (500_107_862_016, 976_773_168),
    ] {
        assert_eq!(Capacity::Nominal(Bytes(bytes)).sectors(512), sectors);
        assert_eq!(Capacity::Nominal(Bytes(bytes)).sectors(4096), sectors / 8);
    }
}

#[test]
fn a_sheet_that_no_drive_has_is_an_error_with_item_value_and_what_is_allowed() {
    let sheet = || short(500, 7200.0, 8.9, 95.0, 16);
    let is = |change: fn(&mut Datasheet), said: &str| {
        let mut sheet = sheet();
        change(&mut sheet);
        assert_eq!(sheet.profile().unwrap_err().to_string(), said);
    };
    assert!(sheet().profile().is_ok());
    is(
        |sheet| sheet.rate_inner = Some(mb(96.0)),
        "rate-inner: 96MB/s is not allowed; allowed is 31.666667MB/s to 95MB/s, a third to all of the outer rate",
    );
    is(
        |sheet| sheet.maximum = Some(ms(8.0)),
        "seek-maximum: 8ms is not allowed; allowed is 11.57ms to 35.6ms, 1.3 to 4 times the average seek of 8.9ms",
    );
    is(
        |sheet| sheet.track = Some(ms(9.0)),
        "seek-track: 9ms is not allowed; allowed is 89us to 3.56ms, 0.01 to 0.4 times the average seek of 8.9ms",
    );
    is(
        |sheet| sheet.seek_write = Some(ms(8.0)),
        "seek-write: 8ms is not allowed; allowed is 8.9ms to 17.8ms, 1 to 2 times the average seek of 8.9ms",
    );
    is(
        |sheet| sheet.capacity = Capacity::Nominal(Bytes(900_000_000_000_000)),
        "capacity: 900TB is not allowed; allowed is 32422MB to 16593GB, which at these rates 1 to 32 surfaces of 47400 \
         to 758100 tracks hold",
    );
    is(
        |sheet| sheet.capacity = Capacity::Sectors(u64::MAX),
        "sectors: 18446744073709551615 is not allowed; allowed is 63323435 to 32408773703, which at these rates 1 to 32 \
         surfaces of 47400 to 758100 tracks hold",
    );
    is(
        |sheet| sheet.heads = Some(20),
        "heads: 20 is not allowed; allowed is 1 to 15, since at these rates a surface has 47300 to 756900 tracks",
    );
    is(
        |sheet| (sheet.capacity, sheet.rate) = (Capacity::Nominal(Bytes(3_000_000_000)), mb(3.5)),
        "rate: 3.5MB/s is not allowed; allowed is 6.41MB/s and more, at which a track has 60 sectors",
    );
    is(
        |sheet| {
            sheet.capacity = Capacity::Nominal(Bytes(3_000_000_000));
            (sheet.rate, sheet.rate_inner) = (mb(6.0), Some(mb(3.0)));
        },
        "rate-inner: 3MB/s is not allowed; allowed is 3.21MB/s and more, at which a track has 60 sectors",
    );
    is(
        |sheet| sheet.rate = mb(9000.0),
        "rate: 9000MB/s is not allowed; allowed is 1MB/s to 420MB/s; more comes of two actuators, which are not \
         modelled: describe one of them, with half of the capacity, of the heads and of the rate, and the seeks as they \
         are",
    );
    is(
        |sheet| sheet.rpm = f64::NAN,
        "rpm: NaN is not allowed; allowed is 3000 to 20000",
    );
    is(
        |sheet| sheet.cache = Bytes(1),
        "cache: 1B is not allowed; allowed is 64KiB to 16GiB",
    );
    is(
        |sheet| sheet.queue = Some(0),
        "queue: 0 is not allowed; allowed is 1 to 256",
    );
    is(
        |sheet| sheet.interface = Some(1),
        "interface: 0.000001MB/s is not allowed; allowed is the outer rate of 95MB/s to 100000MB/s",
    );
    is(
        |sheet| sheet.name = "A b".to_owned(),
        "name: `A b` is not allowed; allowed is lower-case letters, digits, hyphens and points",
    );
    // The value that the message permits is permitted.
    let mut least = short(3, 7200.0, 8.9, 6.41, 16);
    assert!(least.profile().is_ok());
    least.rate = mb(6.3);
    assert!(least.profile().is_err());
}

/// Rates of a drive: random reads of 4 KiB a second at depth 1 and 32, and MB/s of sequential 128 KiB reads at both
/// ends. Each rate is the mean of five seeds.
fn measures(profile: &Profile) -> [f64; 4] {
    let per = |bytes: u64| bytes / u64::from(profile.geometry.sector_bytes);
    let capacity = profile.geometry.capacity.get();
    let random = |depth: u32| {
        let places = capacity / per(4096);
        let time: f64 = (1..=5)
            .map(|seed| {
                let mut random = Pcg64::seed_from_u64(seed);
                let starts = (0..5_000).map(|_| random.next_u64() % places * per(4096));
                seconds(profile, depth, &starts.collect::<Vec<_>>(), per(4096), seed)
            })
            .sum();
        25_000.0 / time
    };
    let in_sequence = |from: u64| {
        let len = per(128 << 10);
        let starts: Vec<u64> = (0..1_600).map(|index| from + index * len).collect();
        let bytes = starts.len() as f64 * f64::from(128 << 10);
        bytes / seconds(profile, 1, &starts, len, 1) / MB
    };
    let inner = capacity - capacity / 500;
    [
        random(1),
        random(32),
        in_sequence(0),
        in_sequence(inner / 8 * 8),
    ]
}

/// Duration of the reads with `depth` of them in the drive.
fn seconds(profile: &Profile, depth: u32, starts: &[u64], len: u64, seed: u64) -> f64 {
    let mut drive = Drive::new(profile, seed);
    let mut now = Time::ZERO;
    let mut left = starts.iter().enumerate();
    loop {
        while drive.in_flight() < depth.min(profile.queue.depth) as usize
            && let Some((tag, &start)) = left.next()
        {
            let command = Command {
                tag: tag as u32,
                op: Op::Read,
                extent: Extent::at(start, len),
                fua: false,
                high: false,
            };
            drive.submit(now, command);
        }
        if drive.in_flight() == 0 {
            return (now - Time::ZERO).as_secs_f64();
        }
        let next = drive.next_event().expect("something is under way");
        if let Some(completion) = drive.poll(next) {
            now = completion.at;
        }
    }
}

type WithLimits = (Datasheet, [f64; 4]);

/// The shipped profile of a drive with two sheets: values of a product page, and values of a manual. Each sheet has
/// limits in percent on the difference between its profile and the shipped one, for each of [`measures`].
fn drives() -> [(Profile, [WithLimits; 2]); 3] {
    let shipped = |name: &str| by_name(name).unwrap();
    let wd = short(500, 7200.0, 8.9, 94.5, 16);
    let barracuda = short(160, 7200.0, 8.5, 78.0, 8);
    let exos = short(18_000, 7200.0, 7.5, 270.0, 256);
    // A maximum as vendors of the time gave it, for the worst unit, makes the seeks below it shorter.
    let wd_manual = Datasheet {
        seek_write: Some(ms(10.9)),
        track: Some(ms(2.0)),
        maximum: Some(ms(21.0)),
        heads: Some(4),
        queue: Some(32),
        interface: Some(mb(300.0)),
        ..wd.clone()
    };
    let barracuda_manual = Datasheet {
        track: Some(ms(0.8)),
        maximum: Some(ms(16.5)),
        rate_inner: Some(mb(43.0)),
        heads: Some(2),
        queue: Some(32),
        interface: Some(mb(300.0)),
        ..barracuda.clone()
    };
    let exos_manual = Datasheet {
        seek_write: Some(ms(8.5)),
        track: Some(ms(0.23)),
        track_write: Some(ms(0.44)),
        maximum: Some(ms(17.1)),
        maximum_write: Some(ms(18.1)),
        heads: Some(18),
        queue: Some(32),
        interface: Some(mb(600.0)),
        ..exos.clone()
    };
    [
        (
            shipped("wd5000aaks"),
            [
                (wd, [1.0, 4.0, 2.5, 2.5]),
                (wd_manual, [1.0, 8.0, 2.5, 2.5]),
            ],
        ),
        (
            shipped("barracuda-7200.10-160"),
            // The page has no inner rate, and half of the outer one is less than this drive's.
            [
                (barracuda, [3.5, 2.0, 1.5, 9.0]),
                (barracuda_manual, [3.5, 2.0, 1.5, 1.5]),
            ],
        ),
        (
            shipped("exos-x18"),
            [
                (exos, [1.0, 2.0, 1.0, 3.5]),
                (exos_manual, [1.0, 6.0, 1.0, 3.5]),
            ],
        ),
    ]
}

/// docs/my-disk.md has this as a table.
#[test]
fn a_derived_profile_does_about_what_the_shipped_one_of_the_same_drive_does() {
    let mut wrong = Vec::new();
    for (shipped, sheets) in drives() {
        let known = measures(&shipped);
        println!("{} {known:.1?}", shipped.name);
        for (sheet, most) in sheets {
            let found = measures(&check(&sheet).unwrap());
            let off: Vec<f64> = found
                .iter()
                .zip(known)
                .map(|(found, known)| (found / known - 1.0) * 100.0)
                .collect();
            println!("  {found:.1?}, off by {off:+.1?} %");
            if off.iter().zip(most).any(|(off, most)| off.abs() > most) {
                wrong.push(format!("{} {off:+.1?}, allowed {most:?}", shipped.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
