use super::*;
use headtime_units::{Bytes, Nanos};

const CAPACITY: Sectors = Sectors::new(1_000_000);

/// Runs a source on a disk that takes `service` for each request. The disk serves one request at a
/// time, in order of arrival.
fn run(source: &mut Synthetic, service: Nanos, most: usize) -> Vec<NewRequest> {
    let (mut now, mut made, mut waiting) = (Time::ZERO, Vec::new(), 0);
    while made.len() < most {
        while let Some(request) = source.poll(now) {
            assert!(request.arrival <= now);
            made.push(request);
        }
        if waiting < made.len() {
            now += service;
            source.completed(now, made[waiting].cookie);
            waiting += 1;
        } else if let Some(next) = source.next_arrival() {
            assert!(next > now, "what is due is handed out");
            now = next;
        } else {
            assert!(source.done());
            break;
        }
    }
    made
}

fn source(spec: &SyntheticSpec) -> Synthetic {
    Synthetic::new(spec, CAPACITY, 512).unwrap()
}

fn one(process: ProcessSpec) -> SyntheticSpec {
    SyntheticSpec {
        seed: 7,
        count: None,
        processes: vec![process],
    }
}

/// The load of Lumb, Schindler and Ganger, "Freeblock Scheduling Outside of Disk Firmware" (FAST 2002).
/// Ten processes think for 30 ms. There are two reads to a write. Sizes have a mean of 8 KiB, and
/// addresses are uniform.
fn freeblock_oltp(seed: u64) -> SyntheticSpec {
    let process = ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::from_millis(30)),
            outstanding: 1,
        },
        read_share: 2.0 / 3.0,
        size: SizeDistribution::Exponential(Bytes(8192)),
        ..ProcessSpec::default()
    };
    SyntheticSpec::alike(seed, 10, &process)
}

const SERVICE: Nanos = Nanos::from_millis(5);

/// If this test fails, every simulated result changes: see `random::tests`.
#[test]
fn first_requests_are_pinned() {
    let made = run(&mut source(&freeblock_oltp(1)), SERVICE, 12);
    let text: Vec<String> = made[..12]
        .iter()
        .map(|request| {
            format!(
                "{} {} {:?} {}",
                request.arrival, request.origin.process, request.op, request.extent
            )
        })
        .collect();
    assert_eq!(
        text,
        [
            "30ms 1 Write 162192+16",
            "30ms 2 Read 58504+8",
            "30ms 3 Read 814856+8",
            "30ms 4 Write 749648+8",
            "30ms 5 Read 46536+8",
            "30ms 6 Read 657416+8",
            "30ms 7 Write 250552+16",
            "30ms 8 Read 678472+24",
            "30ms 9 Read 360400+8",
            "30ms 10 Read 96+16",
            "65ms 1 Read 791536+8",
            "70ms 2 Read 726376+16",
        ]
    );
}

#[test]
fn the_disk_does_not_change_what_is_asked() {
    let mut spec = freeblock_oltp(3);
    let of = |made: &[NewRequest], process: u32| -> Vec<(Op, Extent)> {
        made.iter()
            .filter(|request| request.origin.process == process)
            .map(|request| (request.op, request.extent))
            .take(50)
            .collect()
    };
    let slow = run(&mut source(&spec), Nanos::from_millis(40), 1000);
    let fast = run(&mut source(&spec), Nanos::from_micros(10), 1000);
    spec.processes.push(ProcessSpec {
        read_share: 0.1,
        ..ProcessSpec::default()
    });
    let more = run(&mut source(&spec), Nanos::from_millis(3), 3000);
    for process in 1..=10 {
        assert_eq!(of(&slow, process).len(), 50);
        assert_eq!(of(&slow, process), of(&fast, process));
        assert_eq!(of(&slow, process), of(&more, process));
    }
    assert_ne!(of(&slow, 1), of(&slow, 2));
}

#[test]
fn the_freeblock_workload_is_what_the_paper_says() {
    let made = run(&mut source(&freeblock_oltp(11)), SERVICE, 60_000);
    let count = made.len() as f64;
    let reads = made.iter().filter(|request| request.op == Op::Read).count() as f64 / count;
    assert!(
        (reads - 2.0 / 3.0).abs() < 5.0 * 0.47 / count.sqrt(),
        "{reads}"
    );
    let mean = made
        .iter()
        .map(|request| request.extent.len.get() as f64)
        .sum::<f64>()
        / count;
    // Geometric over steps of 8 sectors with mean 2: standard deviation sqrt(2) steps.
    assert!(
        (mean - 16.0).abs() < 5.0 * 8.0 * 1.42 / count.sqrt(),
        "{mean}"
    );
    let middle = made
        .iter()
        .map(|request| request.extent.start.get() as f64)
        .sum::<f64>()
        / count;
    assert!(
        (middle - 500_000.0).abs() < 5.0 * 289_000.0 / count.sqrt(),
        "{middle}"
    );
    assert!(
        made.iter()
            .all(|request| request.extent.start.get() % 8 == 0
                && request.extent.len.get() % 8 == 0
                && request.extent.end().get() <= CAPACITY.get())
    );
}

#[test]
fn a_closed_process_thinks_and_keeps_its_number_outstanding() {
    let mut source = source(&one(ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::from_millis(10)),
            outstanding: 2,
        },
        ..ProcessSpec::default()
    }));
    let ms = |millis| Time::ZERO + Nanos::from_millis(millis);
    assert_eq!(source.next_arrival(), Some(ms(10)));
    assert_eq!(source.poll(ms(9)), None);
    let first = source.poll(ms(10)).unwrap();
    assert!(source.poll(ms(10)).is_some());
    assert_eq!((source.poll(ms(10)), source.next_arrival()), (None, None));
    source.completed(ms(15), first.cookie);
    assert_eq!(source.next_arrival(), Some(ms(25)));
    assert!(!source.done());
}

#[test]
fn lognormal_times_have_the_median_and_the_ninetieth_percentile_that_are_given() {
    let ms = |millis: u64| Nanos::from_millis(millis);
    for (median, most) in [(1, 6), (3, 3), (2, 2_000)] {
        let times = TimeDistribution::Lognormal(ms(median), ms(most));
        let mut stream = Random::keyed(7, median, most);
        let drawn: Vec<Nanos> = (0..20_000).map(|_| times.draw(&mut stream)).collect();
        let above = |limit| drawn.iter().filter(|time| **time > limit).count();
        if median == most {
            assert!(drawn.iter().all(|time| *time == ms(3)));
            continue;
        }
        // Five standard errors of a share of half and of a tenth among 20,000.
        assert!(above(ms(median)).abs_diff(10_000) < 354);
        assert!(above(ms(most)).abs_diff(2_000) < 212);
    }
    // Even a very wide distribution gives no time above the longest duration of a configuration file.
    let wide = TimeDistribution::Lognormal(Nanos::from_nanos(1), ms(315_360_000_000));
    let mut stream = Random::keyed(7, 0, 0);
    let longest = (0..20_000).map(|_| wide.draw(&mut stream)).max();
    assert_eq!(longest, Some(ms(315_360_000_000)));
}

#[test]
fn an_open_process_does_not_wait() {
    let mut source = source(&one(ProcessSpec {
        pacing: Pacing::Open {
            gap: TimeDistribution::Exponential(Nanos::from_millis(2)),
            outstanding: None,
        },
        count: Some(20_000),
        ..ProcessSpec::default()
    }));
    let mut now = Time::ZERO;
    let mut made = 0;
    while let Some(next) = source.next_arrival() {
        now = next;
        assert_eq!(source.poll(now).unwrap().arrival, now);
        made += 1;
    }
    assert_eq!(made, 20_000);
    let mean = now.as_secs_f64() * 1000.0 / 20_000.0;
    assert!((mean - 2.0).abs() < 5.0 * 2.0 / 20_000_f64.sqrt(), "{mean}");
    assert!(!source.done());
    for number in 0..made {
        source.completed(now, number);
    }
    assert!(source.done());
}

#[test]
fn limits_of_number_and_time() {
    let closed = ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 4,
        },
        ..ProcessSpec::default()
    };
    let counted = ProcessSpec {
        count: Some(7),
        ..closed.clone()
    };
    assert_eq!(
        run(&mut source(&one(counted.clone())), SERVICE, 99).len(),
        7
    );
    let timed = ProcessSpec {
        until: Some(Time::ZERO + Nanos::from_millis(20)),
        ..closed.clone()
    };
    // Four at the start, one more after 5, 10 and 15 ms.
    assert_eq!(run(&mut source(&one(timed)), SERVICE, 99).len(), 7);
    let both = SyntheticSpec {
        seed: 1,
        count: Some(10),
        processes: vec![closed, counted],
    };
    assert_eq!(run(&mut source(&both), SERVICE, 99).len(), 10);
}

#[test]
fn sequential_local_and_ranged_processes_stay_where_they_may_go() {
    let base = ProcessSpec {
        range: Some((Bytes(512 * 1000), Bytes(512 * 5000))),
        size: SizeDistribution::Uniform(Bytes(4096), Bytes(16384)),
        count: Some(5_000),
        ..ProcessSpec::default()
    };
    let inside = |made: &[NewRequest]| {
        made.iter()
            .all(|request| request.extent.start.get() >= 1000 && request.extent.end().get() <= 5000)
    };
    let sequential = ProcessSpec {
        sequential_share: 1.0,
        first: First::Beginning,
        ..base.clone()
    };
    let made = run(&mut source(&one(sequential)), SERVICE, 5_000);
    assert!(inside(&made) && made[0].extent.start.get() == 1000);
    for pair in made.windows(2) {
        let wrapped = pair[1].extent.start.get() == 1000;
        assert!(wrapped || pair[0].extent.is_followed_by(pair[1].extent));
    }

    let local = ProcessSpec {
        local_share: 1.0,
        local_distance: SizeDistribution::Uniform(Bytes(0), Bytes(64 * 4096)),
        ..base.clone()
    };
    let made = run(&mut source(&one(local)), SERVICE, 5_000);
    assert!(inside(&made));
    assert!(
        made.windows(2)
            .all(|pair| { pair[0].extent.start.distance(pair[1].extent.start).get() <= 65 * 8 })
    );

    let mixed = ProcessSpec {
        sequential_share: 0.5,
        local_share: 0.25,
        local_distance: SizeDistribution::Exponential(Bytes(1 << 16)),
        ..base
    };
    let made = run(&mut source(&one(mixed)), SERVICE, 5_000);
    assert!(inside(&made));
    let followed = made
        .windows(2)
        .filter(|pair| pair[0].extent.is_followed_by(pair[1].extent))
        .count() as f64
        / 5_000.0;
    // Half of the requests. Wraps at the end of the range lower the share, and chance hits raise it.
    assert!((followed - 0.5).abs() < 0.04, "{followed}");
}

#[test]
fn what_cannot_be_is_named() {
    let base = ProcessSpec::default();
    for (process, message) in [
        (
            ProcessSpec {
                read_share: 1.5,
                ..base.clone()
            },
            "process 1: read_share is 1.5; allowed is a share from 0 to 1",
        ),
        (
            ProcessSpec {
                read_share: f64::NAN,
                ..base.clone()
            },
            "process 1: read_share is NaN; allowed is a share from 0 to 1",
        ),
        (
            ProcessSpec {
                sequential_share: 0.75,
                local_share: 0.5,
                ..base.clone()
            },
            "process 1: local_share is 0.5; allowed is at most 1 together with sequential_share",
        ),
        (
            ProcessSpec {
                size: SizeDistribution::Constant(Bytes(1000)),
                ..base.clone()
            },
            "process 1: size is 1kB; allowed is a multiple of the drive's sectors of 512 bytes",
        ),
        (
            ProcessSpec {
                size: SizeDistribution::Constant(Bytes(2048)),
                ..base.clone()
            },
            "process 1: size is 2KiB; allowed is multiples of 4KiB, from 4KiB on",
        ),
        (
            ProcessSpec {
                size: SizeDistribution::Exponential(Bytes(2048)),
                ..base.clone()
            },
            "process 1: size is exponential(2KiB); allowed is a mean of at least one step of 4KiB",
        ),
        (
            ProcessSpec {
                range: Some((Bytes(0), Bytes(1 << 40))),
                ..base.clone()
            },
            "process 1: range is 0B..1TiB; allowed is a range that is not empty and ends at 512MB or before",
        ),
        (
            ProcessSpec {
                range: Some((Bytes(0), Bytes(2048))),
                ..base.clone()
            },
            "process 1: size is 4KiB; allowed is at most 2KiB, the size of the range",
        ),
        (
            ProcessSpec {
                pacing: Pacing::Open {
                    gap: TimeDistribution::Constant(Nanos::ZERO),
                    outstanding: None,
                },
                ..base.clone()
            },
            "process 1: gap is 0ns; allowed is more than no time at all",
        ),
        (
            ProcessSpec {
                pacing: Pacing::Closed {
                    think: TimeDistribution::Constant(SERVICE),
                    outstanding: 0,
                },
                ..base.clone()
            },
            "process 1: outstanding is 0; allowed is 1 to 65535",
        ),
        (
            ProcessSpec {
                align: Bytes(0),
                ..base
            },
            "process 1: align is 0B; allowed is at least one sector",
        ),
    ] {
        let error = Synthetic::new(&one(process), CAPACITY, 512).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_load_with_a_cycle_comes_and_goes_and_is_the_same_in_the_mean() {
    let process = ProcessSpec {
        pacing: Pacing::Open {
            gap: TimeDistribution::Exponential(Nanos::from_millis(10)),
            outstanding: None,
        },
        cycle: Some(Cycle {
            period: Nanos::from_secs(1_000),
            swing: 0.8,
        }),
        until: Some(Time::ZERO + Nanos::from_secs(2_000)),
        ..ProcessSpec::default()
    };
    let made = run(&mut source(&one(process)), Nanos::ZERO, usize::MAX);
    // Counts by the tenth of a cycle. The run has two cycles.
    let mut tenths = [0_u32; 10];
    for request in &made {
        tenths[(request.arrival.as_secs_f64() / 100.0) as usize % 10] += 1;
    }
    let near = |count: u32, rate: f64| (f64::from(count) / (20_000.0 * rate) - 1.0).abs() < 0.05;
    assert!(
        (made.len() as f64 / 200_000.0 - 1.0).abs() < 0.01,
        "{}",
        made.len()
    );
    // The mean of 1 - 0.8 cos over the first and the sixth tenth of a turn.
    assert!(near(tenths[0], 0.252), "{tenths:?}");
    assert!(near(tenths[5], 1.748), "{tenths:?}");
}

#[test]
fn a_cycle_has_a_period_and_never_stops() {
    let with = |period, swing| {
        let cycle = Some(Cycle { period, swing });
        let process = ProcessSpec {
            cycle,
            ..ProcessSpec::default()
        };
        Synthetic::new(&one(process), CAPACITY, 512).map(|_| ())
    };
    let key = |result: Result<(), SpecError>| result.unwrap_err().key;
    assert_eq!(key(with(Nanos::ZERO, 0.5)), "cycle.period");
    assert_eq!(key(with(Nanos::from_secs(1), 1.0)), "cycle.swing");
    assert!(with(Nanos::from_secs(1), 0.99).is_ok());
}

/// Counts of all distinct values, the largest count first.
fn counts<T: Ord>(values: impl Iterator<Item = T>) -> Vec<usize> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    let mut counts: Vec<usize> = values.chunk_by(T::eq).map(<[T]>::len).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[test]
fn sizes_of_a_table_come_as_often_as_their_weights_say_and_writes_can_have_others() {
    let process = ProcessSpec {
        read_share: 0.5,
        size: "512B/10:1KiB/5:2KiB/5:4KiB/60:8KiB/2:16KiB/4:32KiB/4:64KiB/10"
            .parse()
            .unwrap(),
        write_size: Some(SizeDistribution::Constant(Bytes(12_288))),
        align: Bytes(512),
        ..ProcessSpec::default()
    };
    let made = run(&mut source(&one(process)), Nanos::ZERO, 40_000);
    let (reads, writes): (Vec<NewRequest>, Vec<NewRequest>) =
        made.into_iter().partition(|request| request.op == Op::Read);
    assert!(writes.iter().all(|write| write.extent.len.get() == 24));
    let count = reads.len() as f64;
    for (sectors, percent) in [(1, 10.0), (2, 5.0), (8, 60.0), (16, 2.0), (128, 10.0)] {
        let found = reads
            .iter()
            .filter(|read| read.extent.len.get() == sectors)
            .count() as f64;
        let (share, is) = (percent / 100.0, found / count);
        // Five standard errors.
        let allowed = 5.0 * (share * (1.0 - share) / count).sqrt();
        assert!((is - share).abs() < allowed, "{sectors}: {is}");
    }
    // On a drive with sectors of 4 KiB, a size of 512 bytes is refused, with the key.
    let process = ProcessSpec {
        size: "512B/1:4KiB/1".parse().unwrap(),
        ..ProcessSpec::default()
    };
    let error = Synthetic::new(&one(process), CAPACITY, 4096).unwrap_err();
    assert_eq!(
        error.to_string(),
        "process 1: size is 512B; allowed is a multiple of the drive's sectors of 4096 bytes"
    );
}

/// A hundred places for requests of 4 KiB.
fn hundred(places: &str) -> ProcessSpec {
    ProcessSpec {
        range: Some((Bytes(1 << 20), Bytes((1 << 20) + 100 * 4096))),
        places: places.parse().unwrap(),
        ..ProcessSpec::default()
    }
}

#[test]
fn zipf_draws_places_by_rank() {
    // With a million places, a hash hardly gives two of the first ranks one place.
    let process = ProcessSpec {
        range: None,
        align: Bytes(512),
        places: Places::Zipf(1.2),
        ..ProcessSpec::default()
    };
    let made = run(&mut source(&one(process)), Nanos::ZERO, 40_000);
    let starts = || made.iter().map(|request| request.extent.start);
    let counts = counts(starts());
    // Measured with fio 3.33: 102,400 reads of 4 KiB of a file of 4 GiB, random_distribution=zipf:1.2.
    for (first, share) in [(1, 0.1895), (10, 0.4864), (100, 0.6959), (1000, 0.8308)] {
        let found = counts[..first].iter().sum::<usize>() as f64 / 40_000.0;
        assert!((found / share - 1.0).abs() < 0.03, "{first}: {found}");
    }
    // Places are scattered: the most frequent places are far apart.
    let mut near: Vec<u64> = starts().map(|start| start.get() / 100_000).collect();
    near.sort_unstable();
    near.dedup();
    assert_eq!(near.len(), 10);
}

#[test]
fn pareto_goes_with_most_requests_to_a_share_of_the_places() {
    let process = ProcessSpec {
        range: None,
        align: Bytes(512),
        ..hundred("pareto(0.2)")
    };
    let made = run(&mut source(&one(process)), Nanos::ZERO, 40_000);
    let counts = counts(made.iter().map(|request| request.extent.start));
    // A thousandth of the places has 0.001^(ln 0.8 / ln 0.2), 38.4 %, of the requests. fio 3.33
    // measured 38.5 %.
    let share = counts[..1000].iter().sum::<usize>() as f64 / 40_000.0;
    assert!((share / 0.384 - 1.0).abs() < 0.05, "{share}");
}

#[test]
fn zones_have_their_shares_and_every_request_stays_in_the_range() {
    let process = ProcessSpec {
        size: "4KiB/9:64KiB/1".parse().unwrap(),
        ..hundred("zoned(60/10:30/20:0/60:10/10)")
    };
    let made = run(&mut source(&one(process)), Nanos::ZERO, 20_000);
    let mut zones = [0_u32; 10];
    for request in &made {
        let place = (request.extent.start.get() - 2048) / 8;
        assert!(request.extent.end().get() <= 2048 + 800, "{request:?}");
        zones[place as usize / 10] += 1;
    }
    let shares = zones.map(|count| f64::from(count) / 20_000.0);
    assert!((shares[0] - 0.6).abs() < 0.02, "{shares:?}");
    assert!((shares[1] + shares[2] - 0.3).abs() < 0.02, "{shares:?}");
    // A request too long for the end of the range moves to an earlier place.
    assert!(shares[3..8].iter().all(|share| *share == 0.0), "{shares:?}");
    assert!((shares[8] + shares[9] - 0.1).abs() < 0.02, "{shares:?}");
}

#[test]
fn places_are_read_from_text_and_written_back_and_wrong_ones_are_named() {
    for text in ["uniform", "zipf(1.1)", "pareto(0.2)", "zoned(60/10:40/90)"] {
        assert_eq!(text.parse::<Places>().unwrap().to_string(), text);
    }
    for (text, problem) in [
        ("zipf(1)", "it needs a number above 0, up to 10, but not 1"),
        (
            "zipf(NaN)",
            "it needs a number above 0, up to 10, but not 1",
        ),
        ("pareto(1)", "it needs a number above 0 and below 1"),
        ("zoned(0/10)", "it needs a part to which requests go"),
        ("zoned(1/0)", "the weight `0` is no whole number from 1 on"),
        ("zipf", "it is none of these"),
    ] {
        assert_eq!(text.parse::<Places>().unwrap_err().problem, problem);
    }
    // A range with a single place works for all distributions.
    for places in ["zipf(0.9)", "zipf(3)", "pareto(0.01)", "zoned(1/1:1/9)"] {
        let process = ProcessSpec {
            range: Some((Bytes(0), Bytes(4096))),
            ..hundred(places)
        };
        let made = run(&mut source(&one(process)), Nanos::ZERO, 100);
        assert!(made.iter().all(|request| request.extent.start.get() == 0));
    }
}

/// Operations with their arrivals in ms.
fn ops(made: &[NewRequest]) -> Vec<(u64, Op)> {
    let of = |request: &NewRequest| (request.arrival.as_nanos() / 1_000_000, request.op);
    made.iter().map(of).collect()
}

#[test]
fn after_so_many_writes_comes_a_flush_for_which_all_else_waits() {
    use Op::{Flush, Write};
    let writer = ProcessSpec {
        read_share: 0.0,
        fsync: Some(2),
        count: Some(5),
        ..ProcessSpec::default()
    };
    let made = run(&mut source(&one(writer.clone())), SERVICE, 99);
    let expected = [
        (0, Write),
        (5, Write),
        (10, Flush),
        (15, Write),
        (20, Write),
        (25, Flush),
        (30, Write),
    ];
    assert_eq!(ops(&made), expected);
    // With three outstanding, the flush goes at once. Both free slots wait for the flush.
    let deep = ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 3,
        },
        ..writer.clone()
    };
    let made = run(&mut source(&one(deep)), SERVICE, 99);
    let expected = [
        (0, Write),
        (0, Write),
        (0, Flush),
        (15, Write),
        (15, Write),
        (15, Flush),
        (30, Write),
    ];
    assert_eq!(ops(&made), expected);
    // With fixed times, a request that is due during the flush comes after the flush. No request is
    // lost.
    let timed = ProcessSpec {
        pacing: Pacing::Open {
            gap: TimeDistribution::Constant(Nanos::from_millis(2)),
            outstanding: None,
        },
        ..writer
    };
    let made = run(&mut source(&one(timed)), SERVICE, 99);
    assert_eq!(made.iter().filter(|one| one.op == Write).count(), 5);
    assert_eq!(made.iter().filter(|one| one.op == Flush).count(), 2);
}

#[test]
fn an_open_process_with_a_limit_falls_behind_and_catches_up() {
    let process = ProcessSpec {
        pacing: Pacing::Open {
            gap: TimeDistribution::Constant(Nanos::from_millis(10)),
            outstanding: Some(2),
        },
        until: Some(Time::ZERO + Nanos::from_millis(100)),
        ..ProcessSpec::default()
    };
    let ms = |millis| Time::ZERO + Nanos::from_millis(millis);
    let mut source = source(&one(process));
    let mut first = source.poll(ms(10)).unwrap();
    let second = source.poll(ms(20)).unwrap();
    // Two more requests are due until 40 ms, and wait.
    assert_eq!(source.poll(ms(40)), None);
    assert_eq!(source.next_arrival(), Some(ms(50)));
    source.completed(ms(45), first.cookie);
    first = source.poll(ms(45)).unwrap();
    assert_eq!((first.arrival, source.poll(ms(45))), (ms(45), None));
    source.completed(ms(46), first.cookie);
    source.completed(ms(46), second.cookie);
    assert_eq!(source.poll(ms(46)).unwrap().arrival, ms(46));
    assert_eq!(source.poll(ms(46)), None);
    // The fifth request is on time again.
    let fifth = source.poll(ms(50)).unwrap();
    assert_eq!(fifth.arrival, ms(50));
    // Requests that still wait at the end of the process are dropped.
    assert_eq!(source.poll(ms(99)), None);
    source.completed(ms(120), fifth.cookie);
    assert_eq!((source.poll(ms(120)), source.done()), (None, false));
}

#[test]
fn writes_apart_go_on_from_the_last_write() {
    let process = ProcessSpec {
        read_share: 0.5,
        sequential_share: 1.0,
        first: First::Beginning,
        writes_apart: true,
        ..ProcessSpec::default()
    };
    let made = run(&mut source(&one(process)), SERVICE, 200);
    for op in [Op::Read, Op::Write] {
        let starts = made.iter().filter(|request| request.op == op);
        let starts: Vec<u64> = starts.map(|request| request.extent.start.get()).collect();
        assert!(starts.len() > 50);
        assert!(
            starts
                .iter()
                .zip(0..)
                .all(|(start, number)| *start == 8 * number)
        );
    }
}
