//! Tasks in the background of a scenario.

use super::names;
use headtime_config::{KeyError, OneOrList, whole};
use headtime_engine::{Demand, FreeblockOptions, OnWrite, TaskSpec, Work};
use headtime_sched::Class;
use headtime_sim::{TaskChange, TaskPlan};
use headtime_stack::{ScanError, ScanSpec, extent_of, sectors_of};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};

/// The most tasks of a scenario: each that is promoted or writes has an account of its own of the whole disk.
pub const TASKS_MAX: usize = 64;

/// What a task wants, and what happens to it when: one key for each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskKeys {
    /// What it is called in results.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "names::name"
    )]
    pub name: Option<String>,
    /// As [`TaskSpec::priority`].
    #[serde(deserialize_with = "whole::<_, _, 0, 255>")]
    pub priority: u8,
    /// As [`TaskSpec::work`].
    pub work: TaskWork,
    /// As [`TaskSpec::ranges`]; the whole disk without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<OneOrList<TaskRange>>,
    /// As [`TaskSpec::block`]; that of the scan without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// As [`TaskSpec::all`].
    pub wants: TaskWants,
    /// As [`TaskSpec::on_write`].
    pub on_write: TaskOnWrite,
    /// As [`TaskSpec::others_count`].
    pub others_count: bool,
    /// When it begins.
    pub from: Nanos,
    /// When it is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<Nanos>,
    /// When it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Nanos>,
    /// When it is promoted: served at the cost of clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promote: Option<Nanos>,
    /// When it is served beside them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demote: Option<Nanos>,
    /// As [`Demand::outstanding`], while it is promoted.
    #[serde(deserialize_with = "whole::<_, _, 1, 32>")]
    pub outstanding: u32,
    /// When it ends, done or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Nanos>,
}

impl Default for TaskKeys {
    /// Reads the whole disk from the beginning, in gaps.
    fn default() -> TaskKeys {
        TaskKeys {
            name: None,
            priority: 0,
            work: TaskWork::Read,
            range: None,
            block: None,
            wants: TaskWants::All,
            on_write: TaskOnWrite::Nothing,
            others_count: true,
            from: Nanos::ZERO,
            suspend: None,
            resume: None,
            promote: None,
            demote: None,
            outstanding: 1,
            until: None,
        }
    }
}

/// What lies between two places of a disk: `0B..10GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRange(pub Bytes, pub Bytes);

impl<'de> Deserialize<'de> for TaskRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TaskRange, D::Error> {
        let range = headtime_config::sizes::deserialize(from)?;
        let (from, to) = range.expect("what is read is a range");
        Ok(TaskRange(from, to))
    }
}

impl Serialize for TaskRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        headtime_config::sizes::serialize(&Some((self.0, self.1)), to)
    }
}

/// How people write [`Work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskWork {
    Read,
    Write,
}

/// Which blocks a task wants when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskWants {
    /// All of its ranges.
    All,
    /// None; later those that are written.
    Written,
}

/// How people write [`OnWrite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOnWrite {
    Nothing,
    Satisfied,
    Again,
}

impl TaskKeys {
    /// Its name, or that of the task with this number, counted from 0.
    pub fn called(&self, number: usize) -> String {
        let numbered = || format!("task {}", number + 1);
        self.name.clone().unwrap_or_else(numbered)
    }

    /// What happens to it after its beginning, in the order of time.
    fn changes(&self) -> [(&'static str, Option<Nanos>); 5] {
        let mut all = [
            ("suspend", self.suspend),
            ("resume", self.resume),
            ("promote", self.promote),
            ("demote", self.demote),
            ("until", self.until),
        ];
        all.sort_by_key(|(_, at)| *at);
        all
    }

    /// Checks what fits together, whatever the disk.
    ///
    /// # Errors
    ///
    /// If something does not: the key, and what is allowed.
    pub fn check(&self) -> Result<(), ScanError> {
        let error = |key, problem: &str| {
            Err(ScanError {
                key,
                problem: problem.to_owned(),
            })
        };
        for (key, at) in self.changes() {
            if at.is_some_and(|at| at <= self.from) {
                return error(key, "allowed is a time after that of from");
            }
            if at.is_some_and(|at| self.until.is_some_and(|until| at > until)) {
                return error(key, "allowed is a time up to that of until");
            }
        }
        let behind = |later: Option<Nanos>, first: Option<Nanos>| {
            later.is_none_or(|later| first.is_some_and(|first| first < later))
        };
        if !behind(self.resume, self.suspend) {
            return error("resume", "allowed is a time after that of suspend");
        }
        if !behind(self.demote, self.promote) {
            return error("demote", "allowed is a time after that of promote");
        }
        if self.range.as_ref().is_some_and(|ranges| ranges.is_empty()) {
            return error("range", "is an empty list; give at least one");
        }
        if self.promote.is_none() && self.outstanding != TaskKeys::default().outstanding {
            return error("outstanding", "is for tasks with promote");
        }
        let again = self.on_write == TaskOnWrite::Again;
        if self.wants == TaskWants::Written && !again {
            return error("wants", "written needs on_write = \"again\"");
        }
        if self.work == TaskWork::Write && again {
            // What it writes itself would be wanted again, without end.
            return error("on_write", "again is for tasks that read");
        }
        Ok(())
    }

    /// Adds to a plan what it wants of a disk of so many sectors, when it begins, and what happens to it later.
    ///
    /// # Errors
    ///
    /// If a key does not fit the disk.
    pub fn add_to(
        &self,
        plan: &mut TaskPlan,
        scan: &ScanSpec,
        options: &FreeblockOptions,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<(), ScanError> {
        self.check()?;
        let part =
            |at: Lba| at != Lba::ZERO + capacity && !at.get().is_multiple_of(options.block.get());
        let ranges: Result<Vec<Extent>, ScanError> = match &self.range {
            None => Ok(vec![Extent::new(Lba::ZERO, capacity)]),
            Some(OneOrList(ranges)) => ranges
                .iter()
                .map(|TaskRange(from, to)| {
                    let extent = extent_of("range", (*from, *to), capacity, sector_bytes)?;
                    if part(extent.start) || part(extent.end()) {
                        let block = Bytes(options.block.bytes(sector_bytes));
                        let problem = format!("{from}..{to} is not of whole blocks of {block}");
                        return Err(ScanError {
                            key: "range",
                            problem,
                        });
                    }
                    Ok(extent)
                })
                .collect(),
        };
        let block = match self.block {
            None => options.block,
            Some(size) => {
                let block = sectors_of("block", size, sector_bytes)?;
                let base = options.block.get();
                if block == Sectors::ZERO || !block.get().is_multiple_of(base) {
                    let base = Bytes(options.block.bytes(sector_bytes));
                    let problem = format!(
                        "is {size}; allowed is a multiple of {base}, the block of the scan"
                    );
                    return Err(ScanError {
                        key: "block",
                        problem,
                    });
                }
                block
            }
        };
        let spec = TaskSpec {
            priority: self.priority,
            work: match self.work {
                TaskWork::Read => Work::Read,
                TaskWork::Write => Work::Write,
            },
            ranges: ranges?,
            block,
            all: self.wants == TaskWants::All,
            on_write: match self.on_write {
                TaskOnWrite::Nothing => OnWrite::Nothing,
                TaskOnWrite::Satisfied => OnWrite::Satisfied,
                TaskOnWrite::Again => OnWrite::Again,
            },
            others_count: self.others_count,
        };
        let demand = Demand {
            class: Class::BEST_EFFORT,
            outstanding: self.outstanding,
            piece: scan.piece(sector_bytes)?,
        };
        let changes = self.changes().into_iter().filter_map(|(key, at)| {
            let change = match key {
                "suspend" => TaskChange::Suspend,
                "resume" => TaskChange::Resume,
                "promote" => TaskChange::Promote(Some(demand)),
                "demote" => TaskChange::Promote(None),
                _ => TaskChange::Close,
            };
            Some((Time::ZERO + at?, change))
        });
        plan.add(spec, Time::ZERO + self.from, changes);
        Ok(())
    }
}

/// Checks the tasks of a scenario, and what it says of the scan that serves them.
///
/// # Errors
///
/// If there are too many, one does not fit together, two have one name, or the scan has what is a task's.
pub(super) fn check(tasks: &[TaskKeys], scan: Option<&ScanSpec>) -> Result<(), KeyError> {
    if tasks.len() > TASKS_MAX {
        let problem = format!("more than {TASKS_MAX} tasks");
        return Err(KeyError::new("task", problem));
    }
    for (number, task) in tasks.iter().enumerate() {
        if let Err(ScanError { key, problem }) = task.check() {
            return Err(KeyError::new(format!("task[{number}].{key}"), problem));
        }
        let name = task.called(number);
        let others = tasks[..number].iter().enumerate();
        if others
            .into_iter()
            .any(|(number, other)| other.called(number) == name)
        {
            let problem = format!("{name:?} is the name of another already; allowed is any other");
            return Err(KeyError::new(format!("task[{number}].name"), problem));
        }
    }
    let Some(scan) = scan.filter(|_| !tasks.is_empty()) else {
        return Ok(());
    };
    let usual = ScanSpec::default();
    let own = [
        ("work", scan.work != usual.work),
        ("range", scan.range.is_some()),
        ("left", scan.left != usual.left),
        ("finish_within", scan.finish_within.is_some()),
        ("p99", scan.p99.is_some()),
        ("cycle", scan.cycle.is_some()),
    ];
    match own.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            let problem = "is for a scan without [[task]], each of which says what it wants";
            Err(KeyError::new(format!("freeblock.{key}"), problem))
        }
        None => Ok(()),
    }
}
