//! The columns of results, each described once.
//!
//! `sim run --format csv`, `sweep`, its pictures and the tables for people take name, unit and value of a column from
//! here. JSON has the fields of [`Run`] as they are. A new column is a line here, and a row in docs/sweep.md.

use super::metric::Metric;
use super::{
    Confidence, HeadTime, KindRun, NamedRun, OriginRun, ProgramRun, Run, Spread, key, round,
};
use crate::output::line;
use crate::scenario::{Header, WHOLE};
use headtime_config::Value as Written;
use headtime_disk::Part;
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field {
    /// The row has no such value.
    Nothing,
    /// A count.
    Count(u64),
    /// A measured number.
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

/// A row by its headings: an object in JSON, a line in CSV.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub Vec<(&'a str, Field)>);

impl Fields<'_> {
    /// Rows that have the same headings as CSV.
    pub fn csv(rows: &[Fields<'_>]) -> String {
        let first = rows.first().map(|row| row.0.iter());
        let heading = first.map(|fields| line(fields.map(|(name, _)| (*name).to_owned())));
        let lines = rows.iter().map(|row| {
            let fields = row.0.iter();
            line(fields.map(|(_, field)| field.to_string()))
        });
        heading.into_iter().chain(lines).collect()
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

macro_rules! into_field {
    ($($from:ty => |$value:ident| $field:expr;)+) => {$(
        impl From<$from> for Field {
            fn from($value: $from) -> Field {
                $field
            }
        }
    )+};
}

into_field! {
    u64 => |count| Field::Count(count);
    u32 => |count| Field::Count(count.into());
    f64 => |number| Field::Number(number);
    bool => |flag| Field::Flag(flag);
    &str => |text| Field::Text(text.to_owned());
    &String => |text| Field::Text(text.clone());
}

/// A value of a scenario as it stands in results.
impl From<&Written> for Field {
    fn from(value: &Written) -> Field {
        match value {
            Written::Integer(number) => match u64::try_from(*number) {
                Ok(count) => Field::Count(count),
                Err(_) => Field::Number(*number as f64),
            },
            Written::Float(number) => Field::Number(*number),
            Written::Flag(flag) => Field::Flag(*flag),
            Written::Text(_) | Written::List(_) | Written::Table(_) => Field::Text(value.text()),
        }
    }
}

impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Field {
        value.map_or(Field::Nothing, Into::into)
    }
}

/// A row of results: the figures of a run as a whole, or of one who took part in it.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// The run as a whole.
    Whole(&'a Run),
    /// One origin.
    Origin(&'a Run, &'a OriginRun),
    /// A workload or program by its name, and its own account if it is a program.
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

    /// The value of the column `origin`.
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

    fn whole(&self) -> Option<&'a Run> {
        match self {
            Row::Whole(run) => Some(run),
            Row::Origin(..) | Row::Named(..) => None,
        }
    }

    /// The requests of one kind; nothing for an origin, whose kinds are not told apart.
    fn kind(&self, kind: Kind) -> Option<&'a KindRun> {
        let (reads, writes) = match self {
            Row::Whole(run) => (&run.of_reads, &run.of_writes),
            Row::Named(_, named, _) => (&named.of_reads, &named.of_writes),
            Row::Origin(..) => return None,
        };
        match kind {
            Kind::Reads => reads.as_ref(),
            Kind::Writes => writes.as_ref(),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Reads,
    Writes,
}

/// A value that every row has, by the three forms of a row.
macro_rules! every {
    ($field:ident) => {
        |row| match row {
            Row::Whole(run) => run.$field,
            Row::Origin(_, origin) => origin.$field,
            Row::Named(_, named, _) => named.$field,
        }
    };
}

type FieldOf = Box<dyn Fn(&Row<'_>) -> Field + Send + Sync>;

/// A column of results.
pub struct Column {
    /// Its name: the heading in CSV, the key in a sweep's JSON.
    pub name: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    value: FieldOf,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

impl Column {
    fn new<T: Into<Field>>(
        name: &'static str,
        unit: &'static str,
        value: impl Fn(&Row<'_>) -> T + Send + Sync + 'static,
    ) -> Column {
        Column {
            name,
            unit,
            value: Box::new(move |row| value(row).into()),
        }
    }

    /// A column that says what was run; all rows of a run have its value.
    fn described<T: Into<Field> + 'static>(
        name: &'static str,
        unit: &'static str,
        value: fn(&Run) -> T,
    ) -> Column {
        Column::new(name, unit, move |row| value(row.run()))
    }

    /// A column that has a value for a run as a whole alone.
    fn whole<T: Into<Field> + 'static>(
        name: &'static str,
        unit: &'static str,
        value: impl Fn(&Run) -> T + Send + Sync + 'static,
    ) -> Column {
        Column::new(name, unit, move |row| row.whole().map(&value))
    }

    /// A column of what figures measure too.
    fn metric(name: &'static str) -> Column {
        let metric = Metric::by_name(name).expect("a column names a metric that there is");
        let value = |run: &Run| metric.of(run).map(|value| round(value, 6));
        Column::whole(name, metric.unit, value)
    }

    /// A column of bytes that programs moved, in MB; the run as a whole has the sum.
    fn moved(name: &'static str, value: fn(&ProgramRun) -> f64) -> Column {
        let sum = move |run: &Run| {
            let sum: f64 = run.programs.iter().map(value).sum();
            (!run.programs.is_empty()).then(|| round(sum, 9))
        };
        Column::whole(name, "MB", sum).of_programs(move |program| Some(value(program)))
    }

    /// The column, with a value of its own for programs.
    fn of_programs(
        self,
        own: impl Fn(&ProgramRun) -> Option<f64> + Send + Sync + 'static,
    ) -> Column {
        let Column { name, unit, value } = self;
        Column::new(name, unit, move |row| match row {
            Row::Named(_, _, Some(program)) => own(program).into(),
            row => value(row),
        })
    }

    /// The value in a row.
    pub fn of(&self, row: &Row<'_>) -> Field {
        (self.value)(row)
    }

    /// The column of half the width of this one's confidence interval, if there is one.
    pub fn ci95(&self) -> Option<&'static Column> {
        find(&format!("{}_ci95", self.name))
    }
}

/// They stay as long as the program runs, and so do their names.
static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let mut all = figures();
    all.extend(further());
    all
});

/// All columns: `sim run --format csv` writes them behind `origin`, `sweep` beside the swept keys.
pub fn all() -> &'static [Column] {
    &COLUMNS
}

/// The column of this name.
pub fn find(name: &str) -> Option<&'static Column> {
    all().iter().find(|column| column.name == name)
}

/// What was run, and what every run has.
fn figures() -> Vec<Column> {
    let mut all = vec![
        Column::described("scheduler", "", |run| Field::from(&run.scheduler)),
        Column::described("drive", "", |run| Field::from(&run.drive)),
    ];
    let of_header = |name| {
        let value = move |row: &Row<'_>| Field::from(row.run().header.get(name));
        Column::new(name, "", value)
    };
    all.extend(Header::names().into_iter().map(of_header));
    all.extend([
        Column::described("repeats", "", |run| run.repeats),
        Column::described("warm_up_s", "s", |run| run.warm_up_s),
        Column::new("requests", "", every!(requests)),
        Column::new("reads", "", |row| match row {
            Row::Whole(run) => Some(run.reads),
            Row::Named(..) => Some(row.kind(Kind::Reads).map_or(0, |reads| reads.requests)),
            Row::Origin(..) => None,
        }),
        Column::whole("failed", "", |run| run.failed),
        Column::new("unfinished", "", every!(unfinished)),
        Column::new("oldest_unfinished_ms", "ms", every!(oldest_unfinished_ms)),
        Column::whole("simulated_s", "s", |run| run.simulated_s),
        Column::new("throughput_mb_s", "MB/s", every!(throughput_mb_s)),
        Column::new("iops", "1/s", |row| match row {
            Row::Whole(run) => Some(run.iops),
            Row::Named(_, named, _) => Some(named.iops),
            Row::Origin(..) => None,
        }),
        Column::whole("fairness", "", |run| run.fairness),
        Column::whole("bound_share", "%", |run| run.bound.map(|bound| bound.share)),
        Column::whole("bound_by", "", |run| run.bound.map(|bound| bound.by)),
        Column::whole("bound_s", "s", |run| run.bound.map(|bound| bound.time_s)),
    ]);
    all.extend(spread("response", |row| {
        Some(match row {
            Row::Whole(run) => run.response_ms,
            Row::Origin(_, origin) => origin.response_ms,
            Row::Named(_, named, _) => named.response_ms,
        })
    }));
    all.extend(of_kind("read", Kind::Reads));
    all.extend(of_kind("write", Kind::Writes));
    all.extend(spread("queue", |row| Some(row.whole()?.queue_ms)));
    all.extend(spread("device", |row| Some(row.whole()?.device_ms)));
    all.extend(head("s", "s", HeadTime::get));
    all.extend([
        Column::whole("issued", "", |run| run.engine.issued),
        Column::whole("merged", "", |run| run.engine.merged),
        Column::whole("held", "", |run| run.engine.held),
        Column::whole("idled", "", |run| run.engine.idled),
        Column::whole("queued_max", "", |run| run.engine.queued_max),
        Column::whole("chosen", "", |run| run.engine.chosen),
        Column::whole("overtaken", "", |run| run.engine.overtaken),
        Column::whole("streams_established", "", |run| {
            run.waits.streams_established
        }),
        Column::whole("streams", "", |run| run.waits.streams),
        Column::whole("waits", "", |run| run.waits.waits),
        Column::whole("waits_won", "", |run| run.waits.waits_won),
        Column::whole("waits_lost", "", |run| run.waits.waits_lost),
    ]);
    all
}

/// What runs with repeats, programs or commands under way have further, and shares of the head time.
fn further() -> Vec<Column> {
    type Half = fn(Confidence) -> f64;
    let halves: [(&str, &'static str, Half); 4] = [
        ("throughput_mb_s", "MB/s", |half| half.throughput_mb_s),
        ("iops", "1/s", |half| half.iops),
        ("response_mean_ms", "ms", |half| half.response_mean_ms),
        ("response_p99_ms", "ms", |half| half.response_p99_ms),
    ];
    let halves = halves.map(|(of, unit, half)| {
        Column::whole(format!("{of}_ci95").leak(), unit, move |run| {
            run.ci95.map(half)
        })
    });
    let mut all = Vec::from(halves);
    all.extend([
        Column::metric("quiet_mean_ms"),
        Column::metric("quiet_p90_ms"),
        Column::metric("rotation_share"),
        Column::metric("response_max_mean_ms"),
        Column::metric("tx_per_s"),
        Column::metric("commands_per_tx"),
        Column::metric("tx_response_mean_ms"),
        Column::metric("tx_response_p50_ms"),
        Column::metric("tx_response_p99_ms"),
        Column::metric("tx_response_max_ms"),
        Column::metric("tx_response_max_mean_ms"),
        Column::metric("commands_per_s"),
        Column::metric("page_share"),
        Column::metric("large_share"),
        Column::metric("sequentiality_p50"),
        Column::metric("delay_p50"),
        Column::metric("delay_p99"),
        Column::metric("delay_max"),
        Column::metric("interval_mean_ms"),
        Column::metric("interrupts"),
        Column::metric("tags_in_use"),
        Column::metric("full_share"),
        Column::metric("predicted_50us"),
        Column::metric("time_s").of_programs(|program| {
            let end = program.ended_s;
            end.map(|end| round(end - program.started_s, 9))
        }),
        Column::metric("programs_mb_s").of_programs(|program| Some(program.throughput_mb_s)),
        Column::moved("read_mb", |program| program.read_mb),
        Column::moved("written_mb", |program| program.written_mb),
    ]);
    all.extend(head("pct", "%", |time, part| round(time.share(part), 3)));
    all
}

/// The columns of a distribution.
fn spread(name: &str, of: fn(&Row<'_>) -> Option<Spread>) -> impl Iterator<Item = Column> {
    Spread::VALUES.into_iter().map(move |(kind, value)| {
        let name = format!("{name}_{kind}_ms").leak();
        Column::new(name, "ms", move |row| of(row).map(|spread| value(&spread)))
    })
}

/// The columns of one kind of request.
fn of_kind(name: &str, kind: Kind) -> Vec<Column> {
    let value = move |ending: &str, unit, value: fn(&KindRun) -> f64| {
        Column::new(format!("{name}_{ending}").leak(), unit, move |row| {
            row.kind(kind).map(value)
        })
    };
    vec![
        value("iops", "1/s", |of| of.iops),
        value("mb_s", "MB/s", |of| of.throughput_mb_s),
        value("response_mean_ms", "ms", |of| of.response_ms.mean),
        value("response_p50_ms", "ms", |of| of.response_ms.p50),
        value("response_p99_ms", "ms", |of| of.response_ms.p99),
        value("response_max_ms", "ms", |of| of.response_ms.max),
    ]
}

/// A column for each part of the head time.
fn head(
    ending: &str,
    unit: &'static str,
    value: fn(&HeadTime, Part) -> f64,
) -> [Column; Part::ALL.len()] {
    Part::ALL.map(|part| {
        let name = format!("head_{}_{ending}", key(part)).leak();
        Column::whole(name, unit, move |run| value(&run.head_time, part))
    })
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
        let names: Vec<&str> = all().iter().map(|column| column.name).collect();
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{name}");
        }
        for column in figures() {
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
        find(name)
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
        assert_eq!(value("depth", &rows[4]), Field::Count(1));
    }
}
