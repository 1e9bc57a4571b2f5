//! Tests of the catalogue of measured values.

use super::*;
use crate::report::PERCENTS;
use crate::report::Run;
use crate::report::field::Field;
use crate::report::row::Row;
use crate::report::{HeadTime, KindRun, NamedRun, OriginRun, ProcessRun, ProgramRun, key};
use headtime_disk::Part;

#[test]
fn names_are_unique_and_all_of_a_run_have_a_value() {
    let run = Run {
        bound: Some(Default::default()),
        ..Run::default()
    };
    let names: Vec<&str> = all().iter().map(|measure| measure.name).collect();
    for (number, name) in names.iter().enumerate() {
        assert!(!names[..number].contains(name), "{name}");
    }
    for column in columns::columns()
        .into_iter()
        .take_while(|column| column.name != "throughput_mb_s_ci95")
    {
        // Kinds of requests that do not occur have no values.
        if column.name.starts_with("read_") || column.name.starts_with("write_") {
            continue;
        }
        assert_ne!(
            column.of(&Row::Whole(&run)),
            Field::Nothing,
            "{}",
            column.name
        );
    }
    // Every part of the head time, under its name.
    for part in Part::ALL {
        let name = key(part);
        for unit in ["s", "pct"] {
            assert!(
                names.contains(&format!("head_{name}_{unit}").as_str()),
                "{name}"
            );
        }
    }
}

fn value(name: &str, row: &Row<'_>) -> Field {
    column(name)
        .unwrap_or_else(|| panic!("no column {name}"))
        .of(row)
}

#[test]
fn shares_are_of_the_whole_time() {
    let run = Run {
        head_time: HeadTime::of(|part| match part {
            Part::Seek => 1.0,
            Part::Idle => 3.0,
            _ => 0.0,
        }),
        ..Run::default()
    };
    let row = Row::Whole(&run);
    assert_eq!(value("head_seek_pct", &row), Field::Number(25.0));
    assert_eq!(value("head_seek_s", &row), Field::Number(1.0));
    assert_eq!(value("head_idle_pct", &row), Field::Number(75.0));
    // Nothing was simulated, and nothing is divided by it.
    let empty = Run::default();
    assert_eq!(
        value("head_seek_pct", &Row::Whole(&empty)),
        Field::Number(0.0)
    );
}

fn origin(process: u32, program: u16) -> OriginRun {
    OriginRun {
        process,
        program,
        alone: process == 1 || process == 4,
        device: None,
        requests: 10 * u64::from(process),
        unfinished: 0,
        oldest_unfinished_ms: 0.0,
        throughput_mb_s: f64::from(process),
        response_ms: Default::default(),
    }
}

fn program(number: u32, processes: &[u32]) -> ProgramRun {
    let process = |process: &u32| ProcessRun {
        process: *process,
        started_s: 0.0,
        ended_s: None,
        read_mb: 0.0,
        written_mb: 0.0,
    };
    ProgramRun {
        name: format!("grep {number}"),
        benchmark: "grep",
        entry: 0,
        program: number,
        started_s: 1.0,
        ended_s: (number == 1).then_some(3.5),
        read_mb: 5.0,
        written_mb: 0.5,
        throughput_mb_s: 2.2,
        calls: 0.0,
        io_s: None,
        goal_s: None,
        late_percent: None,
        left_profile_s: None,
        hopeless_s: None,
        seeks_longer_percent: None,
        shared_percent: None,
        bound_errors: None,
        processes: processes.iter().map(process).collect(),
    }
}

fn named(name: &str, program: u32) -> NamedRun {
    NamedRun {
        name: name.to_owned(),
        program,
        requests: 10,
        throughput_mb_s: 1.5,
        of_writes: (program == 2).then(|| KindRun {
            iops: 7.0,
            ..KindRun::default()
        }),
        ..NamedRun::default()
    }
}

#[test]
fn who_is_alone_has_no_row_beside_the_whole() {
    let names = |run: &Run| -> Vec<String> { Row::all(run).iter().map(Row::name).collect() };
    let mut run = Run::default();
    assert_eq!(names(&run), ["all"]);
    run.per_origin = vec![origin(1, 0)];
    run.by_name = vec![named("web", 0)];
    assert_eq!(names(&run), ["all"]);
    run.per_origin = vec![origin(2, 0), origin(3, 0)];
    assert_eq!(names(&run), ["all", "process 2", "process 3"]);
    // A program of one process is that process; the flusher belongs to none.
    run.per_origin = vec![origin(1, 1), origin(2, 2), origin(3, 2), origin(4, 0)];
    run.programs = vec![program(1, &[1]), program(2, &[2, 3])];
    run.by_name = vec![
        named("grep 1", 1),
        named("grep 2", 2),
        named("write-back", 0),
    ];
    assert_eq!(
        names(&run),
        [
            "all",
            "grep 1",
            "grep 2",
            "write-back",
            "process 2",
            "process 3"
        ]
    );
    let rows = Row::all(&run);
    assert_eq!(value("requests", &rows[1]), Field::Count(10));
    assert_eq!(value("throughput_mb_s", &rows[2]), Field::Number(1.5));
    assert_eq!(value("write_iops", &rows[1]), Field::Nothing);
    assert_eq!(value("write_iops", &rows[2]), Field::Number(7.0));
    assert_eq!(value("requests", &rows[4]), Field::Count(20));
    assert_eq!(value("time_s", &rows[1]), Field::Number(2.5));
    // The program was running at the end.
    assert_eq!(value("time_s", &rows[2]), Field::Nothing);
    assert_eq!(value("read_mb", &rows[0]), Field::Number(10.0));
    assert_eq!(value("read_mb", &rows[1]), Field::Number(5.0));
    assert_eq!(value("read_mb", &rows[3]), Field::Nothing);
    assert_eq!(value("depth", &rows[4]), Field::Count(1));
}

#[test]
fn rates_and_makespans_are_shares_of_the_bound_and_nothing_else_is() {
    let mut run = Run {
        bound: Some(crate::report::Bound {
            share: 80.0,
            programs_kb_s: Some(500.0),
            ..Default::default()
        }),
        ..Run::default()
    };
    run.programs.push(crate::report::ProgramRun {
        name: "grep".to_owned(),
        benchmark: "grep",
        entry: 0,
        program: 1,
        started_s: 0.0,
        ended_s: Some(10.0),
        read_mb: 2.0,
        written_mb: 0.0,
        throughput_mb_s: 0.2,
        calls: 0.0,
        io_s: None,
        goal_s: None,
        late_percent: None,
        left_profile_s: None,
        hopeless_s: None,
        seeks_longer_percent: None,
        shared_percent: None,
        bound_errors: None,
        processes: Vec::new(),
    });
    let share = |name, run: &Run| judged_by_name(name).unwrap().share_of_bound(run);
    for name in ["throughput_mb_s", "iops", "time_s", "programs_mb_s"] {
        assert_eq!(share(name, &run), Some(80.0), "{name}");
    }
    // The programs' own rates have a bound of their own: 200 of 500 KB/s.
    assert_eq!(share("programs_kb_s", &run), Some(40.0));
    assert_eq!(share("response_mean_ms", &run), None);
    run.bound = None;
    assert!(
        all()
            .iter()
            .all(|metric| metric.share_of_bound(&run).is_none())
    );
}

#[test]
fn transactions_are_calls_over_the_time_of_all_programs() {
    let program = |started_s, ended_s, calls| crate::report::ProgramRun {
        name: String::new(),
        benchmark: "transactions",
        entry: 0,
        program: 1,
        started_s,
        ended_s,
        read_mb: 0.0,
        written_mb: 0.0,
        throughput_mb_s: 0.0,
        calls,
        io_s: None,
        goal_s: None,
        late_percent: None,
        left_profile_s: None,
        hopeless_s: None,
        seeks_longer_percent: None,
        shared_percent: None,
        bound_errors: None,
        processes: Vec::new(),
    };
    let mut run = Run {
        repeats: 2,
        ..Run::default()
    };
    run.commands.completed = 120;
    let rate = judged_by_name("tx_per_s").unwrap();
    let each = judged_by_name("commands_per_tx").unwrap();
    assert_eq!(
        (rate.of_run(&run), each.of_run(&run)),
        (None, None),
        "no programs"
    );
    run.programs.push(program(1.0, Some(4.0), 20.0));
    run.programs.push(program(2.0, Some(6.0), 10.0));
    // 30 calls from second 1 to second 6; 120 commands of two repeats.
    assert_eq!(
        (rate.of_run(&run), each.of_run(&run)),
        (Some(6.0), Some(2.0))
    );
    run.programs.push(program(2.0, None, 0.0));
    assert_eq!(rate.of_run(&run), None, "one has not ended");
}

#[test]
fn a_program_has_values_by_its_place() {
    let mut run = Run::default();
    let of = |name: &str, run: &Run| judged_by_name(name).unwrap().of_run(run);
    assert_eq!(of("program1_run_s", &run), None, "no programs");
    let mut late = program(2, &[2]);
    late.ended_s = Some(12.0);
    late.goal_s = Some(10.0);
    late.late_percent = Some(10.0);
    run.programs = vec![program(1, &[1]), late];
    assert_eq!(of("program1_run_s", &run), Some(2.5));
    assert_eq!(of("program1_late", &run), None, "best effort");
    assert_eq!(of("program2_run_s", &run), Some(11.0));
    assert_eq!(of("program2_goal_s", &run), Some(10.0));
    assert_eq!(of("program2_late", &run), Some(10.0));
    assert_eq!(of("program2_mb_s", &run), Some(2.2));
    assert_eq!(of("program3_run_s", &run), None, "two programs");
    run.programs[1].ended_s = None;
    assert_eq!(of("program2_run_s", &run), None, "running at the end");
}

#[test]
fn the_gain_of_high_priority_is_of_the_service_of_the_others() {
    let mut run = Run::default();
    let gain = judged_by_name("service_gain").unwrap();
    run.commands.service_ms[1].mean = 200.0;
    assert_eq!(
        gain.of_run(&run),
        None,
        "nobody asked in the real-time class"
    );
    run.commands.service_ms[0].mean = 150.0;
    assert_eq!(gain.of_run(&run), Some(25.0));
    run.commands.service_ms[0].mean = 250.0;
    assert_eq!(gain.of_run(&run), Some(-25.0));
}

#[test]
fn percentiles_are_means_over_the_repeats_from_1_to_99_9() {
    let fast = PERCENTS;
    let slow = PERCENTS.map(|percent| 3.0 * percent);
    let mut run = Run::default();
    run.percentiles.device = crate::report::mean_of_repeats(&[fast, slow], |values| *values);
    let of = |name: &str, run: &Run| judged_by_name(name).unwrap().of_run(run);
    for (name, percent) in [("1", 1.0), ("10", 10.0), ("50", 50.0), ("999", 99.9)] {
        let name = format!("service_p{name}_ms");
        assert_eq!(of(&name, &run), Some(2.0 * percent), "{name}");
    }
    assert_eq!(of("delay_p999", &run), Some(0.0));
    assert_eq!(of("tx_response_p99_ms", &run), None, "there are no calls");
    run.transactions = Some(Default::default());
    run.percentiles.calls[12] = 7.0;
    assert_eq!(of("tx_response_p99_ms", &run), Some(7.0));
}

#[test]
fn the_share_of_waiting_is_of_the_whole_run() {
    let mut run = Run::default();
    let metric = judged_by_name("waiting_share").unwrap();
    assert_eq!(metric.of_run(&run), None, "nothing ran");
    let of = |waiting: f64| {
        HeadTime::of(|part| match part {
            Part::Seek => 1.0,
            Part::Idle | Part::Held => 2.0,
            Part::Waiting => waiting,
            _ => 0.0,
        })
    };
    run.head_time = of(0.0);
    assert_eq!(metric.of_run(&run), Some(0.0));
    run.head_time = of(5.0);
    assert_eq!(metric.of_run(&run), Some(50.0));
}

#[test]
fn shares_are_off_the_mean_by_the_one_that_is_farthest_from_it() {
    let mut run = Run::default();
    let metric = judged_by_name("share_off_max").unwrap();
    assert_eq!(metric.of_run(&run), None, "nobody");
    let mut add = |rate: f64| {
        run.per_origin.push(crate::report::OriginRun {
            throughput_mb_s: rate,
            ..Default::default()
        });
        metric.of_run(&run)
    };
    assert_eq!(add(8.0), None, "alone");
    assert_eq!(add(12.0), Some(20.0));
    assert_eq!(add(4.0), Some(50.0));
    let nothing = Run {
        per_origin: vec![crate::report::OriginRun::default(); 2],
        ..Run::default()
    };
    assert_eq!(metric.of_run(&nothing), None, "nobody got anything");
}

#[test]
fn names_are_unique_and_guessed() {
    for measure in all().iter().filter(|measure| measure.is_judged()) {
        assert_eq!(judged_by_name(measure.name).unwrap(), measure);
    }
    judged_by_name("scheduler").expect_err("words are not judged");
    let error = judged_by_name("throughput_mbs").unwrap_err();
    assert!(error.contains("did you mean `throughput_mb_s`?"), "{error}");
}
