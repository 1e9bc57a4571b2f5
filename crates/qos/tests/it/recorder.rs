//! Profiles of runs.

use headtime_qos::{Profile, ProfileError, Recorder, Service, Setting};
use headtime_sched::Op;
use headtime_units::{Extent, Millionths, Nanos, Time};
use headtime_workload::Random;

pub fn setting(servers: u16, service: Service) -> Setting {
    Setting {
        site: "site".to_owned(),
        program: "program".to_owned(),
        share: Millionths::ONE,
        epoch: Setting::EPOCH,
        service,
        servers,
    }
}

pub fn recorder(servers: u16, service: Service) -> Recorder {
    Recorder::new(setting(servers, service), 512, Time::ZERO).unwrap()
}

/// A time in microseconds.
pub fn at(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

fn blocks(nth: u64) -> Extent {
    Extent::at(nth * 8, 8)
}

#[test]
fn of_a_program_with_one_request_outstanding_service_is_the_sum_of_its_response_times() {
    let mut random = Random::new(1, 0, 0);
    let mut recorder = recorder(2, Service::Program);
    let (mut now, mut expected) = (0, std::collections::BTreeMap::new());
    for nth in 0..1_000 {
        now += random.below(2) * random.below(150_000);
        let took = 100 + random.below(250_000) * random.below(2);
        recorder.request(at(now), (nth % 2) as u16, Op::Read, blocks(nth));
        recorder.busy(at(now), at(now + took));
        *expected.entry(now / 100_000).or_insert(0) += took;
        now += took;
    }
    let profile = recorder.finish(at(now)).unwrap();
    for row in &profile.rows {
        assert_eq!(
            row.busy,
            Nanos::from_micros(expected[&row.epoch]),
            "epoch {}",
            row.epoch
        );
    }
    assert_eq!(profile.io, Nanos::from_micros(expected.values().sum()));
}

#[test]
fn io_time_before_the_first_request_and_in_epochs_without_requests_is_not_lost() {
    let mut recorder = recorder(1, Service::Program);
    recorder.busy(at(0), at(10));
    recorder.request(at(50), 0, Op::Read, blocks(0));
    recorder.request(at(350_000), 0, Op::Read, blocks(1));
    recorder.busy(at(40), at(400_000));
    let profile = recorder.finish(at(500_000)).unwrap();
    let rows: Vec<_> = profile
        .rows
        .iter()
        .map(|row| (row.epoch, row.busy.as_nanos()))
        .collect();
    assert_eq!(rows, [(0, 349_970_000), (3, 50_000_000)]);
    assert_eq!(profile.io.as_nanos(), 399_970_000);
}

#[test]
fn with_service_disk_a_server_has_the_times_of_its_own_requests() {
    let mut recorder = recorder(2, Service::Disk);
    for nth in 0..4 {
        recorder.request(at(nth * 1_000), (nth % 2) as u16, Op::Write, blocks(nth));
    }
    recorder.busy(at(0), at(90_000));
    // Told after the epoch has ended, and in another order.
    for nth in [3, 1, 0, 2] {
        recorder.served(
            at(nth * 1_000),
            (nth % 2) as u16,
            Nanos::from_micros(100 * (nth + 1)),
        );
    }
    // A flush has no row.
    recorder.served(at(200_000), 0, Nanos::from_micros(7));
    let profile = recorder.finish(at(300_000)).unwrap();
    let busy: Vec<_> = profile
        .rows
        .iter()
        .map(|row| row.busy.as_nanos() / 1_000)
        .collect();
    assert_eq!(busy, [400, 600]);
    assert_eq!(
        (profile.io, profile.compute()),
        (Nanos::from_millis(90), Nanos::from_millis(210))
    );
}

#[test]
fn a_run_without_reads_and_writes_has_no_profile() {
    let mut recorder = recorder(1, Service::Program);
    recorder.request(at(1), 0, Op::Flush, Extent::at(0, 0));
    recorder.request(at(1), 0, Op::Read, Extent::at(0, 0));
    let error = recorder.finish(at(2)).unwrap_err();
    assert!(
        matches!(&error, ProfileError::Empty { program } if program == "program"),
        "{error}"
    );
}

#[test]
fn a_setting_that_is_not_allowed_is_named_by_program_and_key() {
    type Change = fn(&mut Setting);
    let cases: [(Change, &str); 5] = [
        (|s| s.epoch = Nanos::ZERO, "epoch is `0ns`"),
        (|s| s.share = Millionths(1_000_001), "share is `1.000001`"),
        (|s| s.share = Millionths::ZERO, "share is `0`"),
        (|s| s.servers = 0, "servers is `0`"),
        (|s| s.site = " a".to_owned(), "site is ` a`"),
    ];
    for (change, expected) in cases {
        let mut setting = setting(1, Service::Program);
        change(&mut setting);
        let error = Recorder::new(setting, 512, Time::ZERO)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("program `program`") && error.contains(expected),
            "{error}"
        );
    }
}

/// A profile with some rows.
pub fn profile(seed: u64) -> Profile {
    let mut random = Random::new(seed, 9, 0);
    let mut recorder = recorder(2, Service::Program);
    for nth in 0..300 {
        let start = if nth % 60 < 30 {
            nth * 64
        } else {
            random.below(1 << 31)
        };
        let took = if nth % 60 < 30 {
            1_000
        } else {
            9_000 + random.below(1_000)
        };
        let begin = nth * 20_000;
        recorder.request(at(begin), (nth % 2) as u16, Op::Read, Extent::at(start, 64));
        recorder.busy(at(begin), at(begin + took));
    }
    recorder.finish(at(6_000_000)).unwrap()
}

#[test]
fn a_profile_is_read_as_it_was_written() {
    let profile = profile(1);
    assert_eq!(Profile::from_text(&profile.to_text()), Ok(profile));
}

#[test]
fn each_changed_byte_and_each_missing_end_of_a_profile_is_an_error() {
    let mut profile = profile(1);
    profile.rows.truncate(5);
    let text = profile.to_text();
    for nth in 0..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[nth] ^= 1;
        let changed = String::from_utf8(bytes).unwrap();
        assert!(Profile::from_text(&changed).is_err(), "byte {nth}");
        assert!(
            Profile::from_text(&text[..nth]).is_err(),
            "cut off at {nth}"
        );
    }
}

#[test]
fn errors_of_a_profile_name_line_key_and_remedy() {
    let text = profile(1).to_text();
    let error = |from: &str, to: &str| {
        assert!(text.contains(from));
        Profile::from_text(&text.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("share = 1", "share = 1.5"),
        "line 4: share is `1.5`; allowed: numbers above 0, up to 1"
    );
    assert_eq!(
        error("epoch = 100ms", "epoch = 0s"),
        "line 5: epoch is `0s`; allowed: times above 0, such as 100ms"
    );
    assert!(error("io = ", "io = 99").starts_with("line 9: io is `99"));
    let row = text.lines().nth(10).unwrap();
    let empty = "0 0 0 0 0 0 0 0 0 0 0 5";
    assert_eq!(
        error(row, empty),
        "line 11: epoch 0 of server 0 is empty; allowed are 1 or more requests with data"
    );
    assert!(
        error(row, &row.replacen("0 0", "0 2", 1))
            .contains("line 11: server is 2; allowed are 0 to 1")
    );
    // Fewer pieces than requests; more reads than pieces; more steps than pieces; more sequential steps than steps; a larger
    // distance with sign than without.
    for damaged in [
        "0 0 3 2 1 0 0 0 0 0 0 5",
        "0 0 1 1 1 2 0 0 0 0 0 5",
        "0 0 1 1 1 1 2 0 0 0 0 5",
        "0 0 1 1 1 1 0 1 0 0 0 5",
        "0 0 1 1 1 1 1 0 3 -4 0 5",
    ] {
        let error = error(row, damaged);
        assert!(
            error.starts_with("line 11: the counts contradict each other"),
            "{damaged}: {error}"
        );
    }
    assert!(
        error(row, &format!("{row}\n{row}")).starts_with("line 12: not behind the row before it")
    );
    assert!(error(row, "0 0 x").contains("line 11: requests is `x`; allowed are whole numbers"));
    assert!(error(row, "0 0").contains("line 11: no column requests"));
    let no_rows: String = text
        .lines()
        .take(10)
        .map(|line| format!("{line}\n"))
        .collect();
    let error = Profile::from_text(&(no_rows + "end 10 0\n"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("line 11: the profile of program `program` is empty"),
        "{error}"
    );
}

#[test]
fn a_segment_has_whole_epochs_and_enough_requests_but_not_many_more() {
    let profile = profile(1);
    for seed in 0..50 {
        let rows = profile.segment(40, seed);
        let requests: u64 = rows.iter().map(|row| row.sums.requests).sum();
        assert!((40..50).contains(&requests), "{requests}");
        let place = profile.rows.iter().position(|row| row == &rows[0]).unwrap();
        assert_eq!(profile.rows[place..place + rows.len()], *rows);
        assert!(place == 0 || profile.rows[place - 1].epoch < rows[0].epoch);
    }
    let begins = |seed| profile.segment(40, seed)[0].epoch;
    assert!((0..50).any(|seed| begins(seed) < 10) && (0..50).any(|seed| begins(seed) > 40));
    assert_eq!(profile.segment(1_000_000, 1), profile.rows);
    assert_eq!(profile.segment(300, 1), profile.rows);
}
