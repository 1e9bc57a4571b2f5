//! A process, and how far it is in what it does.

use crate::outcome::ProcessOutcome;
use crate::spec::{Behaviour, PAGE, ProcessSpec, Step};
use headtime_sched::{Class, Origin};
use headtime_units::{Extent, Time};
use std::collections::VecDeque;

/// Who asks, and with what rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub origin: Origin,
    pub class: Class,
}

/// A process, and how far it is in what it does.
pub(crate) struct Process {
    pub origin: Origin,
    pub class: Class,
    pub behaviour: Box<dyn Behaviour>,
    /// True if the process ends when only such processes are left.
    pub background: bool,
    /// True for a thread of a server. The thread carries out handed steps in place of its behaviour.
    pub handed: bool,
    pub pool: Option<u32>,
    /// The worker that carries out its call.
    pub worker: Option<u32>,
    pub step: Step,
    pub phase: Phase,
    /// Steps asked for ahead of their time.
    pub ahead: VecDeque<Step>,
    pub look: Look,
    /// The request of its that was last told ahead.
    pub told: Option<(Time, Extent)>,
    /// Of a call: the page that is next, the page behind the last, that behind the last one asked
    /// for, the end in bytes, and the bytes in all.
    pub page: u32,
    pub last: u32,
    pub asked: u32,
    pub end: u64,
    pub bytes: u64,
    /// Its own requests that it waits for.
    pub pending: u32,
    /// The number of the event that it waits for.
    pub event: u64,
    /// Steps since time last passed.
    pub steps: u32,
    /// Pages dirtied since its share of writing was last looked at, and pages written for that.
    pub dirtied: u32,
    pub written: u32,
    /// When the present call began.
    pub called: Time,
    pub started: Time,
    pub ended: Option<Time>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub calls: u64,
}

/// Whether a process is to be looked ahead of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No: it sleeps, or its next request has been told.
    No,
    /// Yes, from this time on.
    From(Time),
    /// It was, and would sleep on what is being read.
    Stalled(Time),
}

/// Where a process is in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The step is to be asked for.
    Fetch,
    /// It has not begun.
    Begin,
    /// Its pages are being gone through.
    Work,
    /// It dirtied memory and may have to write some.
    Balance,
    /// Its pages were written; those under way are waited for.
    Wait,
    /// It is over.
    Finish,
    /// A thread of a server waits to be handed a step.
    Idle,
    /// There is none any more.
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

    /// The step that comes so many after the present one.
    ///
    /// # Panics
    ///
    /// If it comes after the end.
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

    /// Returns true if a server carries out its calls.
    pub fn is_served(&self) -> bool {
        self.pool.is_some()
    }

    /// Goes on with the pages of a write after its share of writing.
    pub fn balanced(&mut self) {
        self.dirtied = 0;
        self.written = 0;
        self.phase = match self.page < self.last {
            true => Phase::Work,
            false => Phase::Finish,
        };
    }

    /// Sets out on a call over so many bytes, of which those before `room` are there.
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
