//! A host as a source of requests, watched: what its programs achieved, and how long they left the
//! disk alone.

use headtime_host::{Host, ProgramOutcome};
use headtime_sched::Foretold;
use headtime_units::{Nanos, Time};
use headtime_workload::{NewRequest, Source};
use std::collections::BTreeMap;

/// A host whose requests are looked at on their way.
pub struct Watched {
    host: Host,
    /// Who asked, by cookie, of the requests under way.
    under_way: BTreeMap<u64, u32>,
    processes: Vec<Process>,
}

/// How a process left the disk alone.
#[derive(Clone, Copy, Default)]
struct Process {
    outstanding: u32,
    /// When its last outstanding request was done.
    done: Option<Time>,
    quiet: Nanos,
    periods: u64,
}

impl Watched {
    /// Watches a host that has not begun.
    pub fn new(host: Host) -> Watched {
        Watched {
            host,
            under_way: BTreeMap::new(),
            processes: Vec::new(),
        }
    }

    /// What the programs have achieved.
    pub fn programs(&self) -> Vec<ProgramOutcome> {
        self.host.outcome()
    }

    /// The mean quiet period of all processes whose requests reached the disk, and how many there
    /// were: from the completion of a process's last outstanding request to its next request.
    pub fn quiet(&self) -> Option<(f64, u64)> {
        let periods: u64 = self.processes.iter().map(|process| process.periods).sum();
        let spans = self
            .processes
            .iter()
            .map(|process| process.quiet.as_nanos());
        let sum: u128 = spans.map(u128::from).sum();
        (periods > 0).then(|| (sum as f64 / periods as f64 / 1e6, periods))
    }

    fn process(&mut self, number: u32) -> &mut Process {
        let index = number as usize;
        if index >= self.processes.len() {
            self.processes.resize(index + 1, Process::default());
        }
        &mut self.processes[index]
    }
}

impl Source for Watched {
    fn next_arrival(&self) -> Option<Time> {
        self.host.next_arrival()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let request = self.host.poll(now)?;
        let number = request.origin.process;
        let process = self.process(number);
        if process.outstanding == 0
            && let Some(done) = process.done
        {
            process.quiet += now - done;
            process.periods += 1;
        }
        process.outstanding += 1;
        self.under_way.insert(request.cookie, number);
        Some(request)
    }

    fn unplug(&mut self) -> bool {
        self.host.unplug()
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.host.tell_ahead(ahead);
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.host.foretell()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        if let Some(number) = self.under_way.remove(&cookie) {
            let process = self.process(number);
            process.outstanding -= 1;
            process.done = Some(now);
        }
        self.host.completed(now, cookie);
    }

    fn done(&self) -> bool {
        self.host.done()
    }
}
