//! Virtual machines above one disk.

use crate::disk::{DISK, file, process, sequential};
use headtime_host::guests::Guests;
use headtime_host::{DiskSize, HostBuilder, HostError, HostSpec, Step};
use headtime_sched::{Class, Op, Origin};
use headtime_units::{Bytes, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use std::collections::{BTreeSet, VecDeque};

const SERVICE: Nanos = Nanos::from_millis(5);

/// A builder for a guest among a number of guests.
fn builder(guests: u16) -> HostBuilder {
    let spec = HostSpec {
        request_max: Guests::REQUEST_MAX,
        copy_per_page: Nanos::ZERO,
        ..HostSpec::default()
    };
    HostBuilder::new(spec, Guests::part(DISK, guests, None)).unwrap()
}

/// A guest with a reader of a file. The file has `pages` pages, and the reader's program is `program`.
fn reader(guests: u16, program: u32, pages: u64) -> HostBuilder {
    let mut builder = builder(guests);
    let file = file(&mut builder, 800, pages);
    let mut reader = process(sequential(file, pages, 4, Nanos::from_micros(50)));
    reader.program = program;
    builder.set_class(Class::IDLE);
    builder.add_process(reader);
    builder
}

fn guests(builders: Vec<HostBuilder>) -> Guests {
    Guests::new(builders, 1).unwrap()
}

/// Runs a source on a disk with one request at a time. Returns the requests with the times of their ends, and the
/// places of unplugs.
fn run(source: &mut dyn Source) -> (Vec<(Time, NewRequest)>, Vec<u64>) {
    let (mut now, mut served, mut places) = (Time::ZERO, Vec::new(), Vec::new());
    let mut queue: VecDeque<NewRequest> = VecDeque::new();
    let mut busy: Option<Time> = None;
    while !source.done() {
        if let Some(request) = source.poll(now) {
            assert!(request.arrival <= now);
            queue.push_back(request);
            busy = busy.or(Some(now + SERVICE));
            continue;
        }
        places.extend(source.unplug().map(|place| place.get()));
        let arrival = source.next_arrival();
        if source.done() || arrival.is_some_and(|at| at <= now) {
            continue;
        }
        now = [arrival, busy]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_else(|| panic!("{now}: nothing happens any more"));
        if busy == Some(now) {
            let request = queue.pop_front().expect("the disk is busy");
            busy = (!queue.is_empty()).then_some(now + SERVICE);
            source.completed(now, request.cookie);
            served.push((now, request));
        }
    }
    (served, places)
}

#[test]
fn one_guest_asks_as_one_host_does_but_as_one_process_of_the_usual_class() {
    let (alone, places) = run(&mut reader(1, 1, 200).build(1).unwrap());
    let (guest, guest_places) = run(&mut guests(vec![reader(1, 1, 200)]));
    assert!(alone.len() > 10);
    assert_eq!(alone[0].1.class, Class::IDLE);
    let as_guest = |(at, request): (Time, NewRequest)| {
        let class = Class::default();
        (at, NewRequest { class, ..request })
    };
    let alone: Vec<_> = alone.into_iter().map(as_guest).collect();
    assert_eq!(guest, alone);
    assert_eq!(guest_places, places);
}

#[test]
fn no_request_of_a_guest_is_longer_than_eleven_pages() {
    let (served, _) = run(&mut guests(vec![reader(1, 1, 200)]));
    let pages = |request: &NewRequest| request.extent.len.get() / 8;
    let longest = served.iter().map(|(_, request)| pages(request)).max();
    assert_eq!(longest, Some(11));
    // Windows of 32 pages become requests of 11, 11 and 10.
    let all: Vec<u64> = served.iter().map(|(_, request)| pages(request)).collect();
    assert!(all.windows(3).any(|three| three == [11, 11, 10]), "{all:?}");
}

#[test]
fn each_guest_has_a_part_of_the_disk_and_asks_as_one_process() {
    let mut several = builder(3);
    for program in 1..=3 {
        let file = file(&mut several, u64::from(program) * 8000, 100);
        let mut reader = process(sequential(file, 100, 4, Nanos::ZERO));
        reader.program = program;
        several.add_process(reader);
    }
    let builders = vec![several, reader(3, 4, 100), reader(3, 5, 100)];
    let mut guests = guests(builders);
    let (served, places) = run(&mut guests);
    let part = DISK.capacity.get() / 3 / 8 * 8;
    for (_, NewRequest { origin, extent, .. }) in &served {
        let guest = extent.start.get() / part;
        assert_eq!(u64::from(origin.process), guest + 1, "{origin:?} {extent}");
        let end = extent.start.get() + extent.len.get();
        assert!(end <= (guest + 1) * part, "{extent}");
    }
    let origins: BTreeSet<(u32, u16)> = served
        .iter()
        .map(|(_, request)| (request.origin.process, request.origin.program))
        .collect();
    let expected = [(1, 1), (1, 2), (1, 3), (2, 4), (3, 5)];
    assert_eq!(origins, BTreeSet::from(expected));
    assert_eq!(BTreeSet::from_iter(places), [0, part, 2 * part].into());
    // Results are by program and guest, with processes numbered through all guests.
    let outcome = guests.outcome();
    let processes: Vec<(u32, u32, u64)> = outcome
        .iter()
        .flat_map(|one| one.processes.iter().map(|it| (one.program, it)))
        .map(|(program, it)| (program, it.process, it.bytes_read))
        .collect();
    let bytes = 100 * 4096;
    let expected: Vec<_> = (1..=5).map(|number| (number, number, bytes)).collect();
    assert_eq!(processes, expected);
}

#[test]
fn a_guest_does_not_find_pages_in_the_memory_of_another() {
    let one = run(&mut guests(vec![reader(2, 1, 100)])).0.len();
    let both = run(&mut guests(vec![reader(2, 1, 100), reader(2, 2, 100)]));
    assert_eq!(both.0.len(), 2 * one);
}

#[test]
fn cookies_name_the_guest() {
    let all = (1..=64).map(|guest| reader(64, guest, 20)).collect();
    let (served, _) = run(&mut guests(all));
    let cookies: BTreeSet<u64> = served.iter().map(|(_, request)| request.cookie).collect();
    assert_eq!(cookies.len(), served.len());
    let of = |guest: u32| {
        let of = served.iter().filter(move |it| it.1.origin.process == guest);
        of.count()
    };
    assert!(of(1) > 1);
    assert!((1..=64).all(|guest| of(guest) == of(1)));
}

/// Requests of write-back have the number of their guest. One guest's end does not end the other.
#[test]
fn a_guest_that_ends_does_not_end_the_others() {
    let mut writer = builder(2);
    let file = file(&mut writer, 0, 8);
    let (offset, len) = (0, 32_768);
    let write = Step::Write { file, offset, len };
    writer.add_process(process([write, Step::Think(Nanos::from_secs(60))]));
    let mut guests = guests(vec![reader(2, 1, 20), writer]);
    let (served, _) = run(&mut guests);
    let ends = guests
        .outcome()
        .iter()
        .map(|one| one.ended.unwrap())
        .collect::<Vec<_>>();
    assert!(ends[0] < Time::ZERO + Nanos::from_secs(1), "{ends:?}");
    assert_eq!(ends[1].as_secs_f64() as u64, 60);
    let written = served
        .iter()
        .filter(|(_, request)| request.op == Op::Write)
        .map(|(_, request)| request.origin);
    let flusher = Origin {
        process: 2,
        ..Origin::default()
    };
    assert_eq!(BTreeSet::from_iter(written), [flusher].into());
}

/// A request comes at the place and from the process that were foretold.
#[test]
fn what_is_foretold_of_a_guest_comes() {
    let mut guests = guests(vec![reader(2, 1, 64), reader(2, 2, 64)]);
    guests.tell_ahead(true);
    let (mut now, mut told, mut came) = (Time::ZERO, Vec::new(), Vec::new());
    while !guests.done() {
        let mut all = Vec::new();
        while let Some(request) = guests.poll(now) {
            all.push(request);
        }
        told.extend(std::iter::from_fn(|| guests.foretell()));
        guests.unplug();
        for request in all {
            came.push((request.arrival, request.extent, request.origin));
            now += SERVICE;
            guests.completed(now, request.cookie);
            told.extend(std::iter::from_fn(|| guests.foretell()));
        }
        now = guests.next_arrival().map_or(now, |at| at.max(now));
    }
    assert!(told.len() > 4, "{told:?}");
    let is_true = |at: &Time, extent, origin| came.contains(&(*at, extent, origin));
    let wrong = told
        .iter()
        .filter(|it| !is_true(&it.at, it.extent, it.origin));
    // A call that found its pages late is told of again.
    assert!(wrong.count() * 4 < told.len());
    let guests: BTreeSet<u32> = told.iter().map(|it| it.origin.process).collect();
    assert_eq!(guests, [1, 2].into());
}

/// A call is counted once, in whichever guest it returned.
#[test]
fn calls_that_return_are_those_of_all_guests() {
    let mut guests = guests(vec![reader(2, 1, 40), reader(2, 2, 80)]);
    let (mut now, mut calls) = (Time::ZERO, 0);
    while !guests.done() {
        let request = guests.poll(now);
        calls += std::iter::from_fn(|| guests.returned())
            .map(|it| it.calls)
            .sum::<u32>();
        match request {
            Some(request) => {
                now += SERVICE;
                guests.completed(now, request.cookie);
            }
            None => {
                guests.unplug();
                now = guests.next_arrival().map_or(now, |at| at.max(now));
            }
        }
    }
    assert_eq!(calls, 10 + 20);
}

#[test]
fn parts_are_equal_and_of_whole_pages_and_chunks() {
    let disk = |sectors, sector_bytes| DiskSize {
        capacity: Sectors::new(sectors),
        sector_bytes,
    };
    let part = |disk, guests, chunk| Guests::part(disk, guests, chunk).capacity.get();
    assert_eq!(part(disk(1000, 512), 1, None), 1000);
    assert_eq!(part(disk(1000, 512), 3, None), 328);
    assert_eq!(part(disk(1000, 4096), 3, None), 333);
    assert_eq!(part(disk(1000, 512), 3, Some(Bytes(0))), 328);
    assert_eq!(part(disk(1000, 512), 3, Some(Bytes(65_536))), 256);
    assert_eq!(part(disk(7, 512), 1, None), 0);
}

#[test]
fn no_guest_and_too_many_guests_are_refused() {
    for (count, found) in [(0, "0"), (65, "65")] {
        let builders = (0..count).map(|_| reader(65, 1, 1)).collect();
        let error = Guests::new(builders, 1).err();
        let expected = HostError::Range {
            key: "guests",
            value: found.to_owned(),
            allowed: "1 to 64",
        };
        assert_eq!(error, Some(expected));
    }
    let empty = Guests::new(vec![reader(2, 1, 1), builder(2)], 1).err();
    assert_eq!(empty, Some(HostError::NoProcess));
}
