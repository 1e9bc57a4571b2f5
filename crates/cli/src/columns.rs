//! The columns of results, each described once: what `sim run --format csv` writes, what `sweep`
//! writes, and what its pictures can show.
//!
//! A new one is a line here, and a row in docs/sweep.md.

use crate::figure::metric::Metric;
use crate::report::{HeadTime, KindRun, NamedRun, OriginRun, ProgramRun, Run, key, round};
use crate::scenario::WHOLE;
use headtime_disk::Part;
use serde::Serialize;
use std::fmt;
use std::sync::LazyLock;

/// What stands in a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field {
    /// Nothing: it has no such thing.
    Nothing,
    /// How many.
    Count(u64),
    /// A measured value.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Words.
    Text(String),
}

impl Field {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Field::Count(count) => Some(*count as f64),
            Field::Number(number) => Some(*number),
            Field::Nothing | Field::Flag(_) | Field::Text(_) => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Nothing => Ok(()),
            Field::Count(count) => write!(f, "{count}"),
            Field::Number(number) => write!(f, "{number}"),
            Field::Flag(flag) => write!(f, "{flag}"),
            Field::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Field {
    fn from(count: u64) -> Field {
        Field::Count(count)
    }
}

impl From<u32> for Field {
    fn from(count: u32) -> Field {
        Field::Count(count.into())
    }
}

impl From<f64> for Field {
    fn from(number: f64) -> Field {
        Field::Number(number)
    }
}

impl From<Option<f64>> for Field {
    fn from(number: Option<f64>) -> Field {
        number.map_or(Field::Nothing, Field::Number)
    }
}

impl From<bool> for Field {
    fn from(flag: bool) -> Field {
        Field::Flag(flag)
    }
}

impl From<Option<&str>> for Field {
    fn from(text: Option<&str>) -> Field {
        text.map_or(Field::Nothing, |text| Field::Text(text.to_owned()))
    }
}

impl From<&String> for Field {
    fn from(text: &String) -> Field {
        Field::Text(text.clone())
    }
}

/// Whose figures a row has.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// Those of a run as a whole.
    Whole(&'a Run),
    /// Those of one origin.
    Origin(&'a Run, &'a OriginRun),
    /// Those of what has a name, and its own account if it is a program.
    Named(&'a Run, &'a NamedRun, Option<&'a ProgramRun>),
}

impl<'a> Row<'a> {
    /// The rows of a run: the whole, then the names and the origins where there are several. An
    /// origin that is alone of its name has no row beside the name's.
    pub fn all(run: &'a Run) -> Vec<Row<'a>> {
        let mut rows = vec![Row::Whole(run)];
        let named = run.by_name.iter().filter(|_| run.by_name.len() > 1);
        let of_program = |named: &NamedRun| {
            let mut programs = run.programs.iter();
            programs.find(|program| program.program == named.program && named.program > 0)
        };
        rows.extend(named.map(|named| Row::Named(run, named, of_program(named))));
        if run.per_origin.len() > 1 {
            let rest = run.per_origin.iter().filter(|of| !of.alone);
            rows.extend(rest.map(|of| Row::Origin(run, of)));
        }
        rows
    }

    /// What the column `origin` says.
    pub fn name(&self) -> String {
        match self {
            Row::Whole(_) => WHOLE.to_owned(),
            Row::Origin(_, origin) => origin.name(),
            Row::Named(_, named, _) => named.name.clone(),
        }
    }

    fn run(&self) -> &'a Run {
        match self {
            Row::Whole(run) | Row::Origin(run, _) | Row::Named(run, ..) => run,
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    whole: Whole,
    origin: Option<fn(&OriginRun) -> Field>,
    named: Option<fn(&NamedRun) -> Field>,
    program: Option<fn(&ProgramRun) -> Field>,
    describes: bool,
}

/// What a run as a whole has there.
#[derive(Clone, Copy, Debug)]
enum Whole {
    Value(fn(&Run) -> Field),
    /// Something of one part of the head time.
    Head(fn(&HeadTime, Part) -> f64, Part),
}

impl Whole {
    fn of(self, run: &Run) -> Field {
        match self {
            Whole::Value(value) => value(run),
            Whole::Head(value, part) => value(&run.head_time, part).into(),
        }
    }
}

/// A column of which runs as a whole have a value.
const fn column(name: &'static str, unit: &'static str, whole: fn(&Run) -> Field) -> Column {
    column_of(name, unit, Whole::Value(whole))
}

const fn column_of(name: &'static str, unit: &'static str, whole: Whole) -> Column {
    Column {
        name,
        unit,
        whole,
        origin: None,
        named: None,
        program: None,
        describes: false,
    }
}

impl Column {
    /// It says what was run, and so the same in all rows of a run.
    const fn describes(self) -> Column {
        Column {
            describes: true,
            ..self
        }
    }

    /// Each origin has a value too.
    const fn origin(self, of: fn(&OriginRun) -> Field) -> Column {
        Column {
            origin: Some(of),
            ..self
        }
    }

    /// What has a name has a value too.
    const fn named(self, of: fn(&NamedRun) -> Field) -> Column {
        Column {
            named: Some(of),
            ..self
        }
    }

    /// Each program has a value too.
    const fn program(self, of: fn(&ProgramRun) -> Field) -> Column {
        Column {
            program: Some(of),
            ..self
        }
    }

    /// What stands in a row.
    pub fn of(&self, row: &Row<'_>) -> Field {
        if self.describes {
            return self.whole.of(row.run());
        }
        let found = match row {
            Row::Whole(run) => Some(self.whole.of(run)),
            Row::Origin(_, origin) => self.origin.map(|of| of(origin)),
            Row::Named(_, named, program) => {
                let own = self.program.and_then(|of| Some(of((*program)?)));
                own.or_else(|| Some(self.named?(named)))
            }
        };
        found.unwrap_or(Field::Nothing)
    }
}

/// What `sim run --format csv` writes beside whose figures a line has.
pub fn of_run() -> impl Iterator<Item = &'static Column> {
    let before = BEFORE_HEAD.iter().copied().flatten();
    before.chain(HEAD.iter()).chain(&ENGINE)
}

/// What `sweep` writes beside the swept keys.
pub fn of_sweep() -> impl Iterator<Item = &'static Column> {
    of_run().chain(&MORE).chain(SHARES.iter())
}

const BEFORE_HEAD: [&[Column]; 8] = [
    &DESCRIBED, &TOTALS, &BOUND, &RESPONSE, &READS, &WRITES, &QUEUE, &DEVICE,
];

const DESCRIBED: [Column; 10] = [
    column("scheduler", "", |run| (&run.scheduler).into()).describes(),
    column("drive", "", |run| (&run.drive).into()).describes(),
    column("depth", "", |run| run.depth.into()).describes(),
    column("firmware", "", |run| (&run.firmware).into()).describes(),
    column("merge", "", |run| run.merge.into()).describes(),
    column("commit_ahead", "", |run| run.commit_ahead.into()).describes(),
    column("plug", "", |run| run.plug.into()).describes(),
    column("hide_processes", "", |run| run.hide_processes.into()).describes(),
    column("repeats", "", |run| run.repeats.into()).describes(),
    column("warm_up_s", "s", |run| run.warm_up_s.into()).describes(),
];

const TOTALS: [Column; 9] = [
    column("requests", "", |run| run.requests.into())
        .origin(|origin| origin.requests.into())
        .named(|named| named.requests.into()),
    column("reads", "", |run| run.reads.into()).named(|named| {
        named
            .of_reads
            .as_ref()
            .map_or(0, |reads| reads.requests)
            .into()
    }),
    column("failed", "", |run| run.failed.into()),
    column("unfinished", "", |run| run.unfinished.into())
        .origin(|origin| origin.unfinished.into())
        .named(|named| named.unfinished.into()),
    column("oldest_unfinished_ms", "ms", |run| {
        run.oldest_unfinished_ms.into()
    })
    .origin(|origin| origin.oldest_unfinished_ms.into())
    .named(|named| named.oldest_unfinished_ms.into()),
    column("simulated_s", "s", |run| run.simulated_s.into()),
    column("throughput_mb_s", "MB/s", |run| run.throughput_mb_s.into())
        .origin(|origin| origin.throughput_mb_s.into())
        .named(|named| named.throughput_mb_s.into()),
    column("iops", "1/s", |run| run.iops.into()).named(|named| named.iops.into()),
    column("fairness", "", |run| run.fairness.into()),
];

/// Nothing where there is no bound.
const BOUND: [Column; 3] = [
    column("bound_share", "%", |run| {
        run.bound.map(|bound| bound.share).into()
    }),
    column("bound_by", "", |run| run.bound.map(|bound| bound.by).into()),
    column("bound_s", "s", |run| {
        run.bound.map(|bound| bound.time_s).into()
    }),
];

/// The columns of a distribution, of origins too if they have it.
macro_rules! spread {
    (@one $name:literal, $kind:ident, $field:ident $(, $origin:ident)?) => {
        column(concat!($name, "_", stringify!($kind), "_ms"), "ms", |run| run.$field.$kind.into())
            $(.$origin(|of| of.$field.$kind.into()).named(|of| of.$field.$kind.into()))?
    };
    ($name:literal, $field:ident $(, $origin:ident)?) => {
        [
            spread!(@one $name, mean, $field $(, $origin)?),
            spread!(@one $name, p50, $field $(, $origin)?),
            spread!(@one $name, p90, $field $(, $origin)?),
            spread!(@one $name, p95, $field $(, $origin)?),
            spread!(@one $name, p99, $field $(, $origin)?),
            spread!(@one $name, p999, $field $(, $origin)?),
            spread!(@one $name, max, $field $(, $origin)?),
        ]
    };
}

const RESPONSE: [Column; 7] = spread!("response", response_ms, origin);

/// The columns of one kind of request, apart from the others.
macro_rules! of_kind {
    ($name:literal, $field:ident; $($kind:ident),+) => {
        [
            of_kind!(@ concat!($name, "_iops"), "1/s", $field, |of| of.iops),
            of_kind!(@ concat!($name, "_mb_s"), "MB/s", $field, |of| of.throughput_mb_s),
            $(of_kind!(@ concat!($name, "_response_", stringify!($kind), "_ms"), "ms", $field,
                |of| of.response_ms.$kind)),+
        ]
    };
    (@ $name:expr, $unit:literal, $field:ident, $value:expr) => {
        column($name, $unit, |run| of_requests(run.$field.as_ref(), $value))
            .named(|named| of_requests(named.$field.as_ref(), $value))
    };
}

const READS: [Column; 6] = of_kind!("read", of_reads; mean, p50, p99, max);
const WRITES: [Column; 6] = of_kind!("write", of_writes; mean, p50, p99, max);

/// A value of requests of a kind, if there are such.
fn of_requests(kind: Option<&KindRun>, value: fn(&KindRun) -> f64) -> Field {
    kind.map(value).into()
}

const QUEUE: [Column; 7] = spread!("queue", queue_ms);
const DEVICE: [Column; 7] = spread!("device", device_ms);

static HEAD: LazyLock<Vec<Column>> = LazyLock::new(|| head("s", "s", HeadTime::get));
static SHARES: LazyLock<Vec<Column>> =
    LazyLock::new(|| head("pct", "%", |time, part| round(time.share(part), 3)));

/// A column for each part of the head time.
fn head(ending: &str, unit: &'static str, value: fn(&HeadTime, Part) -> f64) -> Vec<Column> {
    let column = |part| {
        // It stays as long as the program runs, as the names of all other columns do.
        let name = format!("head_{}_{ending}", key(part)).leak();
        column_of(name, unit, Whole::Head(value, part))
    };
    Part::ALL.map(column).to_vec()
}

const ENGINE: [Column; 12] = [
    column("issued", "", |run| run.engine.issued.into()),
    column("merged", "", |run| run.engine.merged.into()),
    column("held", "", |run| run.engine.held.into()),
    column("idled", "", |run| run.engine.idled.into()),
    column("queued_max", "", |run| run.engine.queued_max.into()),
    column("chosen", "", |run| run.engine.chosen.into()),
    column("overtaken", "", |run| run.engine.overtaken.into()),
    column("streams_established", "", |run| {
        run.waits.streams_established.into()
    }),
    column("streams", "", |run| run.waits.streams.into()),
    column("waits", "", |run| run.waits.waits.into()),
    column("waits_won", "", |run| run.waits.waits_won.into()),
    column("waits_lost", "", |run| run.waits.waits_lost.into()),
];

const MORE: [Column; 11] = [
    column("throughput_mb_s_ci95", "MB/s", |run| {
        run.ci95.map(|half| half.throughput_mb_s).into()
    }),
    column("iops_ci95", "1/s", |run| {
        run.ci95.map(|half| half.iops).into()
    }),
    column("response_mean_ms_ci95", "ms", |run| {
        run.ci95.map(|half| half.response_mean_ms).into()
    }),
    column("response_p99_ms_ci95", "ms", |run| {
        run.ci95.map(|half| half.response_p99_ms).into()
    }),
    column("quiet_mean_ms", "ms", |run| metric(run, "quiet_mean_ms")),
    column("quiet_p90_ms", "ms", |run| metric(run, "quiet_p90_ms")),
    column("rotation_share", "%", |run| metric(run, "rotation_share")),
    column("time_s", "s", |run| metric(run, "time_s")).program(|program| {
        let end = program.ended_s;
        end.map(|end| round(end - program.started_s, 9)).into()
    }),
    column("programs_mb_s", "MB/s", |run| metric(run, "programs_mb_s"))
        .program(|program| program.throughput_mb_s.into()),
    column("read_mb", "MB", |run| {
        of_programs(run, |program| program.read_mb)
    })
    .program(|program| program.read_mb.into()),
    column("written_mb", "MB", |run| {
        of_programs(run, |program| program.written_mb)
    })
    .program(|program| program.written_mb.into()),
];

/// What figures measure too.
fn metric(run: &Run, name: &str) -> Field {
    let metric = Metric::by_name(name).expect("a column names a metric that there is");
    metric.of(run).map(|value| round(value, 6)).into()
}

/// The sum over the programs, if there are any.
fn of_programs(run: &Run, value: fn(&ProgramRun) -> f64) -> Field {
    if run.programs.is_empty() {
        return Field::Nothing;
    }
    let sum: f64 = run.programs.iter().map(value).sum();
    round(sum, 9).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ProcessRun;

    #[test]
    fn names_are_unique_and_all_of_a_run_have_a_value() {
        let run = Run {
            bound: Some(Default::default()),
            ..Run::default()
        };
        let names: Vec<&str> = of_sweep().map(|column| column.name).collect();
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{name}");
        }
        for column in of_run() {
            // Of a kind of request that does not occur nothing is measured.
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
        let column = of_sweep().find(|column| column.name == name);
        column.unwrap_or_else(|| panic!("no column {name}")).of(row)
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
        // It was running at the end.
        assert_eq!(value("time_s", &rows[2]), Field::Nothing);
        assert_eq!(value("read_mb", &rows[0]), Field::Number(10.0));
        assert_eq!(value("read_mb", &rows[1]), Field::Number(5.0));
        assert_eq!(value("read_mb", &rows[3]), Field::Nothing);
        assert_eq!(value("depth", &rows[4]), Field::Count(0));
    }
}
