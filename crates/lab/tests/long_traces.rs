//! A long trace, whose requests are in a scratch file, has the results of a trace in memory.

use headtime_config::{Place, Table};
use headtime_lab::execute::{Execution, With, execute};
use headtime_lab::prepare::prepare;
use headtime_lab::progress::Progress;
use headtime_lab::scenario::{Scenario, Workload};
use headtime_lab::stock::Stock;
use headtime_workload::{ReadOptions, Scratch, Trace};
use std::fmt::Write as _;
use std::fs::File;

fn scratch_file() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("headtime-long-{}", std::process::id()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    std::fs::remove_file(path)?;
    file
}

#[test]
fn a_long_trace_has_the_results_of_a_trace_in_memory() {
    let folder = headtime_testkit::Folder::new();
    let file = folder.join("trace.csv");
    let mut rows = String::new();
    for number in 0..3_000_u64 {
        let time = 128_166_372_000_000_000 + 70_000 * number - 300_000 * u64::from(number % 5 == 4);
        let (op, offset) = (
            ["Read", "Write"][number as usize % 2],
            4096 * (number * 7919 % 90_000),
        );
        writeln!(
            rows,
            "{time},host,{},{op},{},5120,9",
            number % 3,
            offset + 512
        )
        .expect("text");
    }
    std::fs::write(&file, rows).expect("a file");
    for settings in [
        &[][..],
        &[
            ("trace.fit", "wrap"),
            ("trace.speed", "4"),
            ("run.duration", "15s"),
        ],
        &[
            ("trace.replay", "closed"),
            ("trace.outstanding", "4"),
            ("trace.devices", "2"),
        ],
        &[
            ("trace.from", "3s"),
            ("trace.for", "10s"),
            ("trace.first", "900"),
        ],
    ] {
        let mut table = Table::default();
        let trace = file.to_str().expect("a path");
        let first = [
            ("trace.file", trace),
            ("drive.profile", "atlas10k,exos-x18"),
            ("schedulers", "noop,sstf"),
            ("trace.fit", "wrap"),
        ];
        for (key, value) in first.iter().chain(settings) {
            table.set("--set", key, value).expect("a setting");
        }
        let scenario = Scenario::from_table(&table, Place::BuiltIn).expect("a scenario");
        let Workload::Replay(replay) = &scenario.workload else {
            panic!("a replay");
        };
        let options: ReadOptions = replay.reading.options().expect("options");
        let results = |scratch: Option<Scratch>| {
            let stock = Stock::default();
            let read = || Ok(Trace::open_long(&replay.file, &options, scratch).expect("a trace"));
            let (trace, _) = stock.trace(replay, read).expect("a trace");
            assert_eq!(trace.requests.is_empty(), scratch.is_some());
            let prepared = prepare(scenario.clone(), &stock).expect("all is there");
            let with = With {
                stock: &stock,
                progress: &Progress::default(),
                stop: None,
            };
            let executed = execute(&prepared, Execution::default(), with).expect("runs");
            let names = (&prepared.hash, &prepared.sources, &prepared.notes);
            format!("{names:?} {:?}", executed.runs)
        };
        let file = scratch_file;
        let scratch = Scratch { file, from: 64 };
        assert_eq!(results(Some(scratch)), results(None), "{settings:?}");
    }
}
