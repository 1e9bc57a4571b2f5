//! A process and its progress through its steps.

use crate::outcome::ProcessOutcome;
use crate::spec::{Behaviour, PAGE, ProcessSpec, Step};
use headtime_sched::{Class, Origin};
use headtime_units::{Extent, Time};
use std::collections::VecDeque;

/// Origin and class of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub origin: Origin,
    pub class: Class,
}

/// A process and its progress through its steps.
///
/// Invariant: `ended` is set if and only if the phase is `Ended`.
pub(crate) struct Process {
    pub origin: Origin,
    pub class: Class,
    pub behaviour: Box<dyn Behaviour>,
    /// True for a background process, which ends when no other processes are left.
    pub background: bool,
    /// True for a thread of a server. The thread carries out handed steps in place of its behaviour.
    pub handed: bool,
    pub pool: Option<u32>,
    /// Worker that carries out the process's call.
    pub worker: Option<u32>,
    pub step: Step,
    pub phase: Phase,
    /// Steps fetched from the behaviour in advance.
    pub ahead: VecDeque<Step>,
    pub look: Look,
    /// Request of the process that was last foretold.
    pub told: Option<(Time, Extent)>,
    /// Range of the present call: next page, end of its pages, end of the pages asked for, end in
    /// bytes, and length in bytes. Ends are exclusive.
    pub page: u32,
    pub last: u32,
    pub asked: u32,
    pub end: u64,
    pub bytes: u64,
    /// Number of direct or flush requests that the process waits for.
    pub pending: u32,
    /// Number of the event that the process waits for.
    pub event: u64,
    /// Steps since time last passed.
    pub steps: u32,
    /// Pages dirtied since the last check of the dirty limits, and pages written for the present
    /// check.
    pub dirtied: u32,
    pub written: u32,
    /// Start of the present call.
    pub called: Time,
    pub started: Time,
    pub ended: Option<Time>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub calls: u64,
}

/// State of the look-ahead of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No look-ahead: the process sleeps, or its next request has been foretold.
    No,
    /// The process is to be followed from this time on.
    From(Time),
    /// The process was followed, and would sleep on a page that is being read. When a request
    /// completes, the process is followed again from this time on.
    Stalled(Time),
}

/// Phase of a process within a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The next step is to be fetched.
    Fetch,
    /// The step has not begun.
    Begin,
    /// The step works through its pages.
    Work,
    /// The process dirtied memory and may have to write some pages.
    Balance,
    /// A sync has submitted its pages, and waits for pages that are being written.
    Wait,
    /// The step is over.
    Finish,
    /// A thread of a server waits to be handed a step.
    Idle,
    /// The process has ended.
    Ended,
}

impl Process {
    pub fn new(number: u32, spec: ProcessSpec, class: Class, background: bool) -> Process {
        Process {
            origin: Origin {
                process: number,
                program: spec.program as u16,
                export: 0,
            },
            class,
            behaviour: spec.behaviour,
            background,
            handed: false,
            pool: spec.served_by.map(|pool| pool.0),
            worker: None,
            step: Step::Exit,
            phase: Phase::Fetch,
            ahead: VecDeque::new(),
            look: Look::No,
            told: None,
            page: 0,
            last: 0,
            asked: 0,
            end: 0,
            bytes: 0,
            pending: 0,
            event: 0,
            steps: 0,
            dirtied: 0,
            written: 0,
            called: spec.start,
            started: spec.start,
            ended: None,
            bytes_read: 0,
            bytes_written: 0,
            calls: 0,
        }
    }

    pub fn outcome(&self) -> ProcessOutcome {
        ProcessOutcome {
            process: self.origin.process,
            started: self.started,
            ended: self.ended,
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            calls: self.calls,
        }
    }

    /// Returns a coming step without taking it; index 0 is the next step.
    ///
    /// # Panics
    ///
    /// If the program has ended before that step.
    pub fn peek(&mut self, index: usize) -> Step {
        while self.ahead.len() <= index {
            assert!(
                self.ahead.back() != Some(&Step::Exit),
                "nothing comes after the end"
            );
            self.ahead.push_back(self.behaviour.next());
        }
        self.ahead[index]
    }

    /// Returns true if a server carries out the process's calls.
    pub fn is_served(&self) -> bool {
        self.pool.is_some()
    }

    /// Continues a write after the check of the dirty limits.
    pub fn balanced(&mut self) {
        self.dirtied = 0;
        self.written = 0;
        self.phase = match self.page < self.last {
            true => Phase::Work,
            false => Phase::Finish,
        };
    }

    /// Sets the range of a call of `len` bytes. The range is cut at `room`, the end of the file or
    /// of its extents.
    pub fn set_range(&mut self, offset: u64, len: u64, room: u64) {
        let asked = offset.saturating_add(len);
        self.end = asked.min(room).max(offset);
        self.bytes = self.end - offset;
        self.page = (offset / PAGE) as u32;
        self.last = match self.bytes {
            0 => self.page,
            _ => self.end.div_ceil(PAGE) as u32,
        };
        self.asked = u32::try_from(asked.div_ceil(PAGE)).unwrap_or(u32::MAX);
    }
}
