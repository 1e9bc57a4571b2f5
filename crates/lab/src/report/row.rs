//! Rows of results: a run, each of its workloads, programs and origins, and each disk of an array.

use super::{HeadTime, KindRun, MemberRun, NamedRun, OriginRun, ProgramRun, Run};
use crate::scenario::WHOLE;

/// A row of results: the figures of a whole run, of one of its workloads, programs or origins, or of a disk.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// The run as a whole.
    Whole(&'a Run),
    /// One origin.
    Origin(&'a Run, &'a OriginRun),
    /// A workload or program by its name, and its own account if it is a program.
    Named(&'a Run, &'a NamedRun, Option<&'a ProgramRun>),
    /// A disk of an array by its place in the array, from 0.
    Member(&'a Run, usize, &'a MemberRun),
}

/// Kind of rows in a file of results. All rows of a kind can be summed and grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Whole runs.
    Run,
    /// Workloads, programs or roles, by name. A run with one name has a row of this name.
    Group,
    /// Processes.
    Process,
    /// Disks of an array.
    Disk,
}

impl<'a> Row<'a> {
    /// The rows of one level of a run.
    pub fn of_level(run: &'a Run, level: Level) -> Vec<Row<'a>> {
        match level {
            Level::Run => vec![Row::Whole(run)],
            Level::Group => Row::named(run),
            Level::Process => run
                .per_origin
                .iter()
                .map(|of| Row::Origin(run, of))
                .collect(),
            Level::Disk => Row::members(run),
        }
    }

    /// The rows of a run: the whole, then the names and the origins if there are several, then the disks of an array. An origin that is
    /// alone with its name has no row beside the name's row.
    pub fn all(run: &'a Run) -> Vec<Row<'a>> {
        let mut rows = vec![Row::Whole(run)];
        if run.by_name.len() > 1 {
            rows.extend(Row::named(run));
        }
        if run.per_origin.len() > 1 {
            let rest = run.per_origin.iter().filter(|of| !of.alone);
            rows.extend(rest.map(|of| Row::Origin(run, of)));
        }
        rows.extend(Row::members(run));
        rows
    }

    /// A row for each workload, program or device of a run.
    pub fn named(run: &'a Run) -> Vec<Row<'a>> {
        let of_program = |named: &NamedRun| {
            let mut programs = run.programs.iter();
            programs.find(|program| program.program == named.program && named.program > 0)
        };
        let named = run.by_name.iter();
        named
            .map(|named| Row::Named(run, named, of_program(named)))
            .collect()
    }

    fn members(run: &'a Run) -> Vec<Row<'a>> {
        let members = run.members.iter().enumerate();
        members
            .map(|(disk, of)| Row::Member(run, disk, of))
            .collect()
    }

    /// The value of the column `origin`.
    pub fn name(&self) -> String {
        match self {
            Row::Whole(_) => WHOLE.to_owned(),
            Row::Origin(_, origin) => origin.name(),
            Row::Named(_, named, _) => named.name.clone(),
            Row::Member(_, disk, _) => format!("disk {disk}"),
        }
    }

    /// The run that the row is of.
    pub fn run(&self) -> &'a Run {
        match self {
            Row::Whole(run) | Row::Origin(run, _) | Row::Named(run, ..) | Row::Member(run, ..) => {
                run
            }
        }
    }

    /// The run, if the row is about the whole run.
    pub fn whole(&self) -> Option<&'a Run> {
        match self {
            Row::Whole(run) => Some(run),
            Row::Origin(..) | Row::Named(..) | Row::Member(..) => None,
        }
    }

    /// The head time of a run or a disk.
    pub(super) fn head_time(&self) -> Option<&'a HeadTime> {
        match self {
            Row::Whole(run) => Some(&run.head_time),
            Row::Member(_, _, member) => Some(&member.head_time),
            Row::Origin(..) | Row::Named(..) => None,
        }
    }

    /// The requests of one kind; `None` for an origin or a disk, whose kinds are not counted.
    pub(super) fn kind(&self, kind: Kind) -> Option<&'a KindRun> {
        let (reads, writes) = match self {
            Row::Whole(run) => (&run.of_reads, &run.of_writes),
            Row::Named(_, named, _) => (&named.of_reads, &named.of_writes),
            Row::Origin(..) | Row::Member(..) => return None,
        };
        match kind {
            Kind::Reads => reads.as_ref(),
            Kind::Writes => writes.as_ref(),
        }
    }
}

/// A kind of request.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Reads,
    Writes,
}
