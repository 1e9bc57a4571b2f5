use super::*;
use crate::metrics::Metrics;
use headtime_disk::Drive;
use headtime_engine::Gating;
use headtime_sched::{Class, WaitStats};
use headtime_units::{Sectors, Time};

fn labelled(disk: &str, exports: &[&str], drive: bool, members: &[&str]) -> Labelled {
    let mut metrics = Metrics::new(exports.len());
    for (number, export) in metrics.exports.iter_mut().enumerate() {
        export.requests = [10 + number as u64, 2, 1, 0];
        export.failed = [0, 1, 0, 0];
        export.sectors = [80, 8];
        for time in [40, 80, 3_000, 60_000_000] {
            export.total.record(Nanos::from_micros(time));
        }
    }
    for lateness in [1, 2, 700] {
        metrics.delivered(Nanos::from_micros(lateness));
    }
    for count in [0, 0, 7, 93, 5_000] {
        metrics.overtaken(Class::IDLE, count);
    }
    let now = Time::from_nanos(2_000_000_000);
    let profile = headtime_disk::profile::by_name("wd5000aaks").unwrap();
    let head_time = drive.then(|| Drive::new(&profile, 1).head_time(now));
    let state = MemberSnapshot {
        scheduler: "stream(deadline)".to_owned(),
        gate: "rsd".to_owned(),
        gating: Gating {
            plugged: Nanos::from_millis(250),
            refused: [0, 12, 3],
            starved: [1, 2, 4],
            starved_for: [0, 1500, 2].map(Nanos::from_millis),
        },
        waits: WaitStats {
            streams_established: 9,
            streams: 4,
            waits: 100,
            waits_won: 70,
            waits_lost: 29,
        },
        in_flight: 3,
        waiting: 4,
        head_time,
        head_time_estimated: (disk == "real")
            .then(|| crate::estimate::HeadTimeEstimate::new(&profile, 512).account(now)),
        predictions: (disk == "real").then_some(headtime_engine::PredictionCounts {
            commands: 100,
            within: [90, 92, 93],
            turns_late: 4,
            destaging: 2,
            turns_early: 1,
            hits: 1,
            elsewhere: 1,
            after_surprise: 6,
        }),
        ..MemberSnapshot::default()
    };

    Labelled {
        members: members
            .iter()
            .map(|name| ((*name).to_owned(), format!("drive of {name}")))
            .collect(),
        disk: disk.to_owned(),
        backend: "a \"drive\"".to_owned(),
        sector_bytes: 512,
        exports: exports
            .iter()
            .map(|name| ((*name).to_owned(), Addresses::whole(1 << 30, 512)))
            .collect(),
        scrub: None,
        snapshot: Box::new(Snapshot {
            now,
            members: vec![state.clone(); members.len()],
            whole: state,
            conducted: None,
            metrics,
            failure: None,
            in_model_time: drive,
            capacity: Sectors::new(2048),
        }),
    }
}

/// Reads the text as a reader of the format does. Returns the values by name and labels. Panics if the text breaks the
/// rules of the format.
fn read(text: &str) -> std::collections::BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("ends as it must");
    let mut values = std::collections::BTreeMap::new();
    let mut kinds = std::collections::BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(
                kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{name} twice"
            );
            current = name.to_owned();
        } else if !line.starts_with('#') {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let name = key.split('{').next().unwrap();
            let suffix = name.strip_prefix(&current).expect("belongs to its type");
            let allowed: &[&str] = match kinds[&current].as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                "histogram" => &["_sum", "_count", "_bucket"],
                other => panic!("{other}"),
            };
            assert!(allowed.contains(&suffix), "{line}");
            let before = values.insert(key.to_owned(), value.parse().unwrap());
            assert!(before.is_none(), "{key} twice");
        }
    }
    values
}

#[test]
fn a_scrape_has_every_metric_of_disks_and_of_members_of_an_array() {
    let disks = vec![
        labelled("disk0", &["vm", "ba\\ck\"up"], true, &[]),
        labelled("null", &["null"], false, &[]),
        labelled("real", &["real"], false, &[]),
        labelled("data", &["data"], true, &["one", "two"]),
    ];
    let values = read(&render(Page {
        disks,
        silent: vec!["stuck".to_owned()],
        nbd: None,
        programs: None,
        messages_dropped: 7,
        uptime: Nanos::from_millis(1500),
        version: "1.2.3".to_owned(),
    }));
    for (key, value) in [
        ("headtime_scheduler_streams{disk=\"disk0\"}", 4.0),
        ("headtime_disk_size_bytes{disk=\"data\"}", 1_048_576.0),
        (
            "headtime_commands_in_flight{disk=\"data\",member=\"two\"}",
            3.0,
        ),
        (
            "headtime_head_time_seconds_total{disk=\"data\",member=\"one\",part=\"idle\"}",
            2.0,
        ),
        (
            "headtime_disk_info{disk=\"data\",member=\"one\",backend=\"drive of one\",scheduler=\"stream(deadline)\",gate=\"rsd\"}",
            1.0,
        ),
        ("headtime_scheduler_waits_total{disk=\"disk0\"}", 100.0),
        (
            "headtime_scheduler_waits_ended_total{disk=\"disk0\",how=\"won\"}",
            70.0,
        ),
        (
            "headtime_commands_surprising_total{disk=\"real\",how=\"destaging\"}",
            2.0,
        ),
        ("headtime_build_info{version=\"1.2.3\"}", 1.0),
        ("headtime_uptime_seconds", 1.5),
        ("headtime_log_messages_dropped_total", 7.0),
        ("headtime_disk_up{disk=\"disk0\"}", 1.0),
        ("headtime_disk_up{disk=\"stuck\"}", 0.0),
        (
            "headtime_requests_total{disk=\"disk0\",export=\"vm\",op=\"read\"}",
            10.0,
        ),
        (
            "headtime_requests_total{disk=\"disk0\",export=\"ba\\\\ck\\\"up\",op=\"read\"}",
            11.0,
        ),
        (
            "headtime_request_errors_total{disk=\"disk0\",export=\"vm\",op=\"write\"}",
            1.0,
        ),
        (
            "headtime_data_bytes_total{disk=\"null\",export=\"null\",op=\"read\"}",
            40_960.0,
        ),
        (
            "headtime_request_seconds_count{disk=\"null\",export=\"null\"}",
            4.0,
        ),
        (
            "headtime_request_seconds_bucket{le=\"0.00005\",disk=\"null\",export=\"null\"}",
            1.0,
        ),
        (
            "headtime_request_seconds_bucket{le=\"0.0001\",disk=\"null\",export=\"null\"}",
            2.0,
        ),
        (
            "headtime_request_seconds_bucket{le=\"30.0\",disk=\"null\",export=\"null\"}",
            3.0,
        ),
        (
            "headtime_request_seconds_bucket{le=\"+Inf\",disk=\"null\",export=\"null\"}",
            4.0,
        ),
        (
            "headtime_disk_info{disk=\"null\",backend=\"a \\\"drive\\\"\",scheduler=\"stream(deadline)\",gate=\"rsd\"}",
            1.0,
        ),
        ("headtime_gate_plugged_seconds_total{disk=\"disk0\"}", 0.25),
        (
            "headtime_gate_refusals_total{disk=\"disk0\",class=\"best-effort\"}",
            12.0,
        ),
        (
            "headtime_commands_starved_total{disk=\"disk0\",class=\"idle\"}",
            4.0,
        ),
        (
            "headtime_class_starved_seconds_total{disk=\"disk0\",class=\"best-effort\"}",
            1.5,
        ),
        (
            "headtime_command_overtaken_bucket{le=\"0.0\",disk=\"disk0\",class=\"idle\"}",
            2.0,
        ),
        (
            "headtime_command_overtaken_bucket{le=\"90.0\",disk=\"disk0\",class=\"idle\"}",
            3.0,
        ),
        (
            "headtime_command_overtaken_bucket{le=\"120.0\",disk=\"disk0\",class=\"idle\"}",
            4.0,
        ),
        (
            "headtime_command_overtaken_bucket{le=\"+Inf\",disk=\"disk0\",class=\"idle\"}",
            5.0,
        ),
        (
            "headtime_command_overtaken_sum{disk=\"disk0\",class=\"idle\"}",
            5100.0,
        ),
        (
            "headtime_command_overtaken_count{disk=\"disk0\",class=\"real-time\"}",
            0.0,
        ),
        ("headtime_disk_size_bytes{disk=\"disk0\"}", 1_048_576.0),
        (
            "headtime_head_time_seconds_total{disk=\"disk0\",part=\"idle\"}",
            2.0,
        ),
        (
            "headtime_disk_head_time_estimated_seconds_total{disk=\"real\",part=\"idle\"}",
            2.0,
        ),
        (
            "headtime_lateness_seconds_bucket{le=\"0.0005\",disk=\"disk0\"}",
            2.0,
        ),
        (
            "headtime_lateness_quantile_seconds{disk=\"disk0\",quantile=\"1\"}",
            0.0007,
        ),
        ("headtime_late_ratio{disk=\"disk0\"}", 1.0 / 3.0),
    ] {
        let found = values.get(key);
        assert!(
            found.is_some_and(|found| (found - value).abs() < 1e-9),
            "{key}: {found:?} of {:#?}",
            values
                .keys()
                .filter(|other| other[..14] == key[..14])
                .collect::<Vec<_>>()
        );
    }
    // An array has no sum beside its members.
    assert!(!values.contains_key("headtime_commands_in_flight{disk=\"data\"}"));
    // A device that does not live in model time has neither arm nor lateness.
    let of_null = |key: &&String| key.contains("disk=\"null\"");
    assert!(
        !values
            .keys()
            .filter(of_null)
            .any(|key| key.contains("late") || key.contains("head_time"))
    );
}

#[test]
fn a_scrape_without_disks_is_valid() {
    let empty = |nbd| Page {
        disks: Vec::new(),
        silent: Vec::new(),
        nbd,
        programs: None,
        messages_dropped: 0,
        uptime: Nanos::ZERO,
        version: String::new(),
    };
    assert_eq!(read(&render(empty(None))).len(), 3);
    let counts = Arc::new(Counts::default());
    let with_clients = render(empty(Some(counts)));
    assert_eq!(read(&with_clients).len(), 7);
}

#[test]
fn programs_have_states_and_bounds() {
    let program = |name: &str, state, planned| ProgramStatus {
        name: name.to_owned(),
        exports: Vec::new(),
        goal: None,
        state,
        why: None,
        left_s: (state == "late").then_some(-1.5),
        planned,
        recording: false,
    };
    let planned = headtime_qos::State {
        number: 1,
        lane: 1,
        bound: headtime_units::Rate(1000),
        served: headtime_units::Rate(2000),
        required: headtime_units::Rate(3000),
        window: Nanos::from_millis(250),
        lost: Nanos::from_millis(500),
        rest: Nanos::ZERO,
        drift: Some(headtime_qos::Drift::Slower(250)),
        grouped: headtime_qos::Grouped::default(),
    };
    let programs = vec![
        program("mail", "late", Some(planned)),
        program("web", "none", None),
    ];
    let values = read(&render(Page {
        disks: Vec::new(),
        silent: Vec::new(),
        nbd: None,
        programs: Some((programs, 3)),
        messages_dropped: 0,
        uptime: Nanos::ZERO,
        version: String::new(),
    }));
    for (key, value) in [
        ("state{program=\"mail\",state=\"late\"}", 1.0),
        ("state{program=\"mail\",state=\"none\"}", 0.0),
        ("state{program=\"web\",state=\"none\"}", 1.0),
        ("left_seconds{program=\"mail\"}", -1.5),
        ("bound_bytes_per_second{program=\"mail\"}", 1000.0),
        ("served_bytes_per_second{program=\"mail\"}", 2000.0),
        ("required_bytes_per_second{program=\"mail\"}", 3000.0),
        ("window_seconds{program=\"mail\"}", 0.25),
        ("lost_seconds{program=\"mail\"}", 0.5),
        ("left_profile{program=\"mail\"}", 1.0),
        ("requests_unseen_total", 3.0),
    ] {
        let key = format!("headtime_program_{key}");
        assert_eq!(values.get(&key), Some(&value), "{key}");
    }
    assert!(!values.contains_key("headtime_program_left_seconds{program=\"web\"}"));
}
