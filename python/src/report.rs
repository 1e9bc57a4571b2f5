//! Single runs, reports on a disk, figures, drives and traces.

use crate::disk::Disk;
use crate::error::Failure;
use crate::source::Source;
use crate::table::Table;
use crate::waiting::wait;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use headtime_config::{Node, Place, Value};
use headtime_disk::profile::{Profile, shipped};
use headtime_lab::advice::{DiskSetting, Mix, Question, advise, today};
use headtime_lab::execute::{Execution, Sample, execute, fits};
use headtime_lab::fault::Fault;
use headtime_lab::figure::run::FigureRuns;
use headtime_lab::figure::{Figure, RunOf, Scale, judge};
use headtime_lab::output::columnar::Origin;
use headtime_lab::output::{Terminal, json_text};
use headtime_lab::prepare::{prepare, read, reading_notes};
use headtime_lab::report::catalogue::columns;
use headtime_lab::report::field::Field;
use headtime_lab::report::row::Row;
use headtime_lab::report::{self as results, Run, text};
use headtime_lab::scenario::{Scenario, Workload};
use headtime_sched::Op;
use headtime_stack::drives::open;
use headtime_workload::TraceRequest;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The results of `run`: all runs of a scenario.
#[pyclass(frozen, module = "headtime")]
pub struct Report {
    report: results::Report,
    samples: Option<Vec<Vec<Sample>>>,
    notes: Vec<String>,
}

/// Makes all runs of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario=None, settings=None, seed=None, jobs=None, requests=false, show=None))]
pub fn run(
    py: Python<'_>,
    scenario: Option<&Bound<'_, PyAny>>,
    settings: Option<&Bound<'_, PyDict>>,
    seed: Option<u64>,
    jobs: Option<u16>,
    requests: bool,
    show: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let source = Source::new(scenario, settings, seed)?;
    let scenario = source.scenario()?;
    let Source {
        table, mut notes, ..
    } = source;
    Ok(wait(py, show, move |with| {
        let prepared = prepare(scenario, with.stock)?;
        fits(&prepared, &table)?;
        let how = Execution {
            jobs,
            record: requests,
            ..Execution::default()
        };
        let executed = execute(&prepared, how, with)?;
        notes.extend(prepared.notes);
        Ok(Report {
            report: results::Report {
                version: env!("CARGO_PKG_VERSION"),
                seed: prepared.scenario.seed,
                scenario_hash: prepared.hash,
                title: prepared.scenario.title,
                host: None,
                runs: executed.runs,
            },
            samples: requests.then_some(executed.samples),
            notes,
        })
    })?)
}

/// A row with the values of the columns.
fn measured(first: Vec<Field>, row: &Row<'_>) -> Vec<Field> {
    let measured = columns().iter().map(|column| column.of(row));
    first.into_iter().chain(measured).collect()
}

/// Names of columns: some, then the measured values.
fn headings<const N: usize>(first: [&'static str; N]) -> Vec<&'static str> {
    let measured = columns().iter().map(|column| column.name);
    first.into_iter().chain(measured).collect()
}

impl Report {
    fn origin(&self) -> Origin {
        Origin {
            seed: Some(self.report.seed),
            scenario_hash: self.report.scenario_hash.clone(),
        }
    }

    /// Runs with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (Field, &Run)> {
        let runs = self.report.runs.iter().enumerate();
        runs.map(|(number, run)| (Field::Count(number as u64), run))
    }
}

#[pymethods]
impl Report {
    /// A row for each run, in the order of the scenario.
    #[getter]
    fn runs(&self) -> Table {
        let rows = self
            .numbered()
            .map(|(number, run)| measured(vec![number, Field::from(&run.label)], &Row::Whole(run)));
        let rows: Vec<Vec<Field>> = rows.collect();
        Table::of_rows(&headings(["run", "label"]), &rows, &self.origin())
    }

    /// A row for each workload, program or device of each run.
    #[getter]
    fn groups(&self) -> Table {
        let rows = self.numbered().flat_map(|(number, run)| {
            Row::named(run).into_iter().map(move |row| {
                let name = Field::Text(row.name());
                measured(vec![number.clone(), name], &row)
            })
        });
        let rows: Vec<Vec<Field>> = rows.collect();
        Table::of_rows(&headings(["run", "group"]), &rows, &self.origin())
    }

    /// A row for each process of each run.
    #[getter]
    fn processes(&self) -> Table {
        let rows = self.numbered().flat_map(|(number, run)| {
            run.per_origin.iter().map(move |of| {
                let numbers = [u64::from(of.process), u64::from(of.program)];
                let [process, program] = numbers.map(Field::Count);
                let first = vec![number.clone(), process, program];
                measured(first, &Row::Origin(run, of))
            })
        });
        let rows: Vec<Vec<Field>> = rows.collect();
        let names = headings(["run", "process", "program"]);
        Table::of_rows(&names, &rows, &self.origin())
    }

    /// A row for each request of each run's first repeat, in the order of completion. `None` without `requests=True`.
    #[getter]
    fn requests(&self) -> Option<Table> {
        let samples = self.samples.as_ref()?;
        let all = || {
            let runs = samples.iter().enumerate();
            runs.flat_map(|(run, of)| of.iter().map(move |sample| (run, sample)))
        };
        let counts = |of: fn(usize, &Sample) -> u64| -> ArrayRef {
            let counts = all().map(|(run, sample)| of(run, sample));
            Arc::new(UInt64Array::from_iter_values(counts))
        };
        let seconds = |of: fn(&Sample) -> f64| -> ArrayRef {
            let times = all().map(|(_, sample)| of(sample));
            Arc::new(Float64Array::from_iter_values(times))
        };
        let ops = all().map(|(_, sample)| op(sample.op));
        let ops = StringArray::from_iter_values(ops);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("run", counts(|run, _| run as u64)),
            ("process", counts(|_, one| one.origin.process.into())),
            ("program", counts(|_, one| one.origin.program.into())),
            ("op", Arc::new(ops)),
            ("lba", counts(|_, one| one.extent.start.get())),
            ("sectors", counts(|_, one| one.extent.len.get())),
            ("arrived_s", seconds(|one| one.arrived)),
            ("issued_s", seconds(|one| one.issued)),
            ("completed_s", seconds(|one| one.done)),
        ];
        Some(Table::new(columns, &self.origin()))
    }

    /// The results as JSON, as `headtime sim run --format json --reproducible` prints them.
    fn json(&self) -> String {
        json_text(&self.report)
    }

    /// The results as CSV, as `headtime sim run --format csv` prints them.
    fn csv(&self) -> String {
        text::csv(&self.report, None)
    }

    /// The table that `headtime sim run` prints.
    fn __str__(&self) -> String {
        text::text(&self.report, Terminal::default())
    }

    fn __repr__(&self) -> String {
        let runs = self.report.runs.len();
        format!(
            "<headtime.Report of {runs} runs, scenario {}, seed {}>",
            self.report.scenario_hash, self.report.seed
        )
    }

    /// The title of the scenario, if there is one.
    #[getter]
    fn title(&self) -> Option<&str> {
        self.report.title.as_deref()
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.report.seed
    }

    /// Identifies the scenario apart from its seed.
    #[getter]
    fn scenario_hash(&self) -> &str {
        &self.report.scenario_hash
    }

    /// Assumptions and changes during preparation.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn op(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
    }
}

/// The setting to use for a disk, as JSON.
#[pyfunction]
#[pyo3(signature = (load, like, drive, now, seeds, seed, settings, jobs, show))]
#[expect(clippy::too_many_arguments, reason = "the package calls it by name")]
pub fn report(
    py: Python<'_>,
    load: Option<&Bound<'_, PyAny>>,
    like: Option<&str>,
    drive: Option<String>,
    now: &str,
    seeds: u32,
    seed: Option<u64>,
    settings: Option<&Bound<'_, PyDict>>,
    jobs: Option<u16>,
    show: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let mut source = Source::new(load, None, seed)?;
    if let Some(like) = like {
        let mix = Mix::find(like).ok_or_else(|| Failure::from(no_mix(like)))?;
        (source.table, source.place) = mix.table();
    }
    let node = |value: String| Node {
        value: Value::Text(value),
        place: Place::Option("report".into()),
    };
    let table = &mut source.table;
    let own = [
        ("drive.profile", drive),
        ("schedulers", Some("noop".into())),
    ];
    for (key, value) in own {
        if let Some(value) = value {
            table.set_value(key, node(value)).map_err(Failure::from)?;
        }
    }
    if let Some(settings) = settings {
        let put = &mut |key: &str, node| Scenario::put(table, key, node);
        crate::source::each(settings, "", &Place::Option("settings".into()), put)?;
    }
    if table.at("drive.profile").is_none() {
        let problem =
            "no drive is given; give drive=NAME, or its size and speed, as in drive=\"18TB-7200\"";
        return Err(Failure::from(Fault::Usage(problem.to_owned())).into());
    }
    let load = source.scenario()?;
    let today = DiskSetting {
        read_ahead: DiskSetting::read_ahead_of(&load),
        ..today(now).map_err(Failure::from)?
    };
    if !(1..=100).contains(&seeds) {
        let problem = format!("seeds: {seeds} is out of range; allowed is 1 to 100");
        return Err(Failure::from(Fault::Usage(problem)).into());
    }
    let question = Question {
        load,
        today,
        seeds,
        jobs,
    };
    let advice = wait(py, show, |with| advise(&question, with))?;
    source.notes.extend(advice.notes.clone());
    Ok((json_text(&advice), source.notes))
}

fn no_mix(name: &str) -> Fault {
    let names = headtime_lab::advice::MIXES.iter().map(|mix| mix.name);
    let names: Vec<&str> = names.collect();
    Fault::Usage(format!(
        "like: no load is called `{name}`; allowed are {}",
        names.join(", ")
    ))
}

/// A figure of a paper, as JSON and as the table that `headtime reproduce` prints.
#[pyfunction]
pub fn reproduce(
    py: Python<'_>,
    id: &str,
    quick: bool,
    jobs: Option<u16>,
    show: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let scale = match quick {
        true => Scale::Quick,
        false => Scale::Full,
    };
    let figure = Figure::open(id, scale).map_err(Failure::from)?;
    let measured = wait(py, show, |with| {
        let runs = FigureRuns::make(std::slice::from_ref(&figure), jobs, with)?;
        let run = |of: &RunOf, seed| runs.get(&figure, of, seed);
        judge::measure(&figure, scale, run, &[]).map_err(Fault::Input)
    })?;
    let text = headtime_lab::figure::output::text(&measured, Terminal::default());
    Ok((json_text(&measured), text))
}

/// A drive by its name or file.
#[pyclass(frozen, module = "headtime._headtime")]
pub struct Drive(Profile);

/// The names of the drives that come with the package.
#[pyfunction]
pub fn drives() -> Vec<&'static str> {
    shipped().iter().map(|drive| drive.name).collect()
}

#[pymethods]
impl Drive {
    #[new]
    fn new(name: &str) -> PyResult<Drive> {
        let opened = open(name).map_err(|error| Failure::from(Fault::from(error)));
        Ok(Drive(opened?))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn model(&self) -> &str {
        &self.0.model
    }

    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.0.geometry.sector_bytes
    }

    #[getter]
    fn sectors(&self) -> u64 {
        self.0.geometry.capacity.get()
    }

    fn toml(&self) -> String {
        self.0.to_toml()
    }

    /// A disk of this kind, at rest.
    fn disk(&self, seed: u64) -> Disk {
        Disk::new(headtime_disk::Drive::new(&self.0, seed))
    }
}

/// A recorded trace.
#[pyclass(frozen, module = "headtime._headtime")]
pub struct Trace {
    trace: Arc<headtime_workload::Trace>,
    hash: String,
}

#[pymethods]
impl Trace {
    /// Reads the trace of a scenario.
    #[new]
    fn new(py: Python<'_>, scenario: &Bound<'_, PyAny>) -> PyResult<Trace> {
        let scenario = Source::new(Some(scenario), None, None)?.scenario()?;
        let Workload::Replay(replay) = scenario.workload else {
            let problem = "trace: missing; give its file";
            return Err(Failure::from(Fault::Usage(problem.to_owned())).into());
        };
        let (trace, hash) = wait(py, None, |with| with.stock.trace(&replay, || read(&replay, with.stock)))?;
        Ok(Trace { trace, hash })
    }

    fn __len__(&self) -> usize {
        self.trace.count() as usize
    }

    /// True if each request has a process and a completion.
    #[getter]
    fn is_closed(&self) -> bool {
        let mut requests = self.trace.iter();
        requests.all(|one| one.completion.is_some() && one.process.is_some())
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        reading_notes(&self.trace)
    }

    /// The requests, in the order of arrival.
    #[getter]
    fn requests(&self) -> Table {
        let all = || self.trace.iter();
        let seconds = |of: fn(TraceRequest) -> Option<f64>| -> ArrayRef {
            Arc::new(all().map(of).collect::<Float64Array>())
        };
        let counts = |of: fn(TraceRequest) -> Option<u64>| -> ArrayRef {
            Arc::new(all().map(of).collect::<UInt64Array>())
        };
        let ops = StringArray::from_iter_values(all().map(|one| op(one.op)));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("device", counts(|one| Some(one.device.into()))),
            ("process", counts(|one| one.process.map(u64::from))),
            ("op", Arc::new(ops)),
            ("lba", counts(|one| Some(one.extent.start.get()))),
            ("sectors", counts(|one| Some(one.extent.len.get()))),
            ("arrived_s", seconds(|one| Some(one.arrival?.as_secs_f64()))),
            (
                "completed_s",
                seconds(|one| Some(one.completion?.as_secs_f64())),
            ),
        ];
        let origin = Origin {
            seed: None,
            scenario_hash: self.hash.clone(),
        };
        Table::new(columns, &origin)
    }
}
