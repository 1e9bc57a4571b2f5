//! Times and rates at the ends of their ranges. Each run ends with a report or an error.

use headtime_disk::Part;
use headtime_disk::drive::Drive;
use headtime_disk::profile::{self, OverheadSpec, Profile};
use headtime_engine::{Config, Plug};
use headtime_sched::{Class, Flags, Noop, Op, Origin, WorkConserving};
use headtime_sim::{Report, RunError, Setup, Station, run};
use headtime_testkit::Striped;
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};
use headtime_workload::{
    NewRequest, Pacing, ProcessSpec, Source, Synthetic, SyntheticSpec, TimeDistribution,
};

fn drive() -> Profile {
    profile::by_name("wd5000aaks").expect("shipped")
}

fn simulate(
    profile: &Profile,
    source: &mut dyn Source,
    change: impl FnOnce(&mut Setup),
) -> Result<Report, RunError> {
    let scheduler = Box::new(WorkConserving::new(Noop::new()));
    let mut setup = Setup::new(Drive::new(profile, 1), Config::default(), scheduler, source);
    change(&mut setup);
    run(setup)
}

/// Reads that arrive at these times.
struct At(Vec<Time>, u64, u64);

impl At {
    fn times(times: &[Time]) -> At {
        At(times.to_vec(), 0, 8)
    }
}

impl Source for At {
    fn next_arrival(&self) -> Option<Time> {
        self.0.first().copied()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let arrival = self.next_arrival().filter(|at| *at <= now)?;
        self.0.remove(0);
        self.1 += 1;
        Some(NewRequest {
            cookie: self.1,
            arrival,
            op: Op::Read,
            extent: Extent::at(1_000 * self.1, self.2),
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
        })
    }

    fn completed(&mut self, _: Time, _: u64) {}

    fn done(&self) -> bool {
        self.0.is_empty()
    }
}

const DAY: Time = Time::from_nanos(86_400_000_000_000);

#[test]
fn a_plug_and_a_timeout_that_end_after_all_time_never_end() {
    let plug = |timeout| {
        Some(Plug {
            requests: 4,
            timeout,
        })
    };
    for (timeout, after) in [(Nanos::LONGEST, Nanos::LONGEST), (Nanos::MAX, Nanos::ZERO)] {
        let report = simulate(&drive(), &mut At::times(&[DAY]), |setup| {
            setup.stations[0].engine.plug = plug(timeout);
            setup.timeout = Some(timeout);
            // By this time a request with a finite timeout has ended, and one without has not.
            setup.limit = Some(after + Nanos::from_secs(2 * 86_400));
        });
        let report = report.expect("a limit ends it");
        let finished = u64::from(timeout < Nanos::MAX);
        assert_eq!(report.measured.requests, finished);
        assert_eq!(report.measured.unfinished, 1 - finished);
    }
    let stuck = simulate(&drive(), &mut At::times(&[DAY]), |setup| {
        setup.stations[0].engine.plug = plug(Nanos::MAX);
    });
    assert_eq!(
        stuck.err(),
        Some(RunError::Stuck {
            at: DAY,
            unfinished: 1
        })
    );
}

#[test]
fn a_run_goes_no_farther_than_the_latest_time() {
    let just = simulate(&drive(), &mut At::times(&[Time::LATEST]), |_| {});
    // It arrives and is not served.
    assert_eq!(
        just.err(),
        Some(RunError::TooLate {
            at: Time::LATEST,
            drives: 1
        })
    );
    for late in [
        Time::LATEST.saturating_add(Nanos::from_nanos(1)),
        Time::NEVER,
    ] {
        let error = simulate(&drive(), &mut At::times(&[DAY, late]), |_| {}).err();
        let Some(RunError::TooLate { at, .. }) = error else {
            panic!("{error:?}")
        };
        assert!(at > DAY && at < DAY + Nanos::from_secs(1));
        // A limit comes before.
        let limit = Some(Nanos::LONGEST);
        let report = simulate(&drive(), &mut At::times(&[DAY, late]), |setup| {
            setup.limit = limit
        });
        assert_eq!(report.expect("limited").measured.requests, 1);
    }
}

/// The times of all drives are added, so each drive may use its share of the time range only.
#[test]
fn a_volume_comes_to_the_end_of_time_before_the_sum_over_its_drives_does() {
    const MEMBERS: u64 = 3;
    let share = Time::ZERO + (Time::LATEST - Time::ZERO) / MEMBERS;
    for (last, goes) in [(DAY, true), (share + Nanos::from_secs(1), false)] {
        let result = simulate(&drive(), &mut At::times(&[DAY, last]), |setup| {
            let station = |seed| {
                let scheduler = Box::new(WorkConserving::new(Noop::new()));
                Station::new(Drive::new(&drive(), seed), Config::default(), scheduler)
            };
            setup.stations = (0..MEMBERS).map(station).collect();
            let striped = Striped {
                members: MEMBERS as u16,
                stripe: 64,
                stripes: 1_000,
                parity: false,
            };
            setup.map = Some(Box::new(striped.map()));
        });
        match result {
            Ok(_) => assert!(goes),
            Err(error) => {
                assert!(!goes);
                assert!(
                    matches!(
                        error,
                        RunError::TooLate {
                            drives: MEMBERS,
                            ..
                        }
                    ),
                    "{error:?}"
                );
            }
        }
    }
}

#[test]
fn thinking_for_years_comes_to_the_end_of_time_and_not_beyond() {
    let think = TimeDistribution::Exponential(Nanos::LONGEST);
    let process = ProcessSpec {
        pacing: Pacing::Closed {
            think,
            outstanding: 3,
        },
        ..ProcessSpec::default()
    };
    let spec = SyntheticSpec::alike(1, 5, &process);
    let capacity = drive().geometry.capacity;
    let mut source = Synthetic::new(&spec, capacity, 512).expect("in range");
    let error = simulate(&drive(), &mut source, |_| {}).err();
    assert!(matches!(error, Some(RunError::TooLate { .. })), "{error:?}");
}

/// A drive that takes no time to answer from its buffer, and a reader who takes none to ask again.
#[test]
fn a_loop_in_which_no_time_passes_ends() {
    let free = drive().with(|spec| {
        spec.overhead = OverheadSpec::default();
        spec.bus = Default::default();
        spec.noise = Default::default();
    });
    let process = ProcessSpec {
        range: Some((Bytes(0), Bytes(4096))),
        ..ProcessSpec::default()
    };
    let spec = SyntheticSpec::alike(1, 1, &process);
    let profile = free.expect("in range");
    let mut source = Synthetic::new(&spec, profile.geometry.capacity, 512).expect("in range");
    let limit = Some(Nanos::from_secs(60));
    let error = simulate(&profile, &mut source, |setup| setup.limit = limit).err();
    assert!(
        matches!(error, Some(RunError::Standstill { .. })),
        "{error:?}"
    );
}

/// The first arrival comes after the limit.
#[test]
fn a_run_in_which_nothing_happens_accounts_for_its_time() {
    for warm_up in [0, 60] {
        let report = simulate(&drive(), &mut At::times(&[DAY]), |setup| {
            setup.warm_up = Nanos::from_secs(warm_up);
            setup.limit = Some(Nanos::from_secs(3600));
        });
        let report = report.expect("limited");
        let measured = report.simulated - Nanos::from_secs(warm_up);
        assert_eq!(report.head_time.total(), measured);
        assert_eq!(report.head_time.get(Part::Idle), measured);
    }
}

/// Ten times as many reads as the drive serves.
#[test]
fn a_queue_that_only_grows_ends_the_run() {
    let gap = TimeDistribution::Constant(Nanos::from_millis(1));
    let process = ProcessSpec {
        pacing: Pacing::Open {
            gap,
            outstanding: None,
        },
        ..ProcessSpec::default()
    };
    let spec = SyntheticSpec::alike(1, 1, &process);
    let capacity = drive().geometry.capacity;
    let mut source = Synthetic::new(&spec, capacity, 512).expect("in range");
    let error = simulate(&drive(), &mut source, |setup| {
        setup.limit = Some(Nanos::from_secs(3600));
        setup.unfinished_max = 1_000;
    });
    let Some(RunError::Overload {
        at,
        unfinished: 1_000,
    }) = error.err()
    else {
        panic!("it cannot keep up")
    };
    assert!(at < Time::ZERO + Nanos::from_secs(2), "{at}");
}

#[test]
fn a_request_that_no_drive_takes_is_named() {
    let most = Sectors::REQUEST_MAX.get();
    let mut source = At(vec![Time::ZERO, DAY], 0, most);
    let report = simulate(&drive(), &mut source, |_| {}).expect("as long as may be");
    assert_eq!(report.measured.requests, 2);
    let mut source = At(vec![Time::ZERO], 0, most + 1);
    let error = simulate(&drive(), &mut source, |_| {}).expect_err("too long");
    assert_eq!(
        error.to_string(),
        "request 1 asks for 8388609 sectors at once; allowed are 8388608"
    );
}
