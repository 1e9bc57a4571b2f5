//! The cluster as a source of requests.

use super::state::{Cluster, Event};
use headtime_sched::Foretold;
use headtime_units::{Lba, Time};
use headtime_workload::{NewRequest, Returned, Source};
use std::cmp::Reverse;

impl Cluster {
    fn next_event(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets the host of a server go on up to `until`. Returns a request, if the host makes one.
    fn poll_server(&mut self, number: usize, until: Time) -> Option<NewRequest> {
        let request = self.hosts.poll(number, until);
        while let Some((thread, at)) = self.hosts.0[number].host.handed_back() {
            self.set(at, Event::Back(number as u16, thread));
        }
        request
    }
}

impl Source for Cluster {
    fn next_arrival(&self) -> Option<Time> {
        let server = self.hosts.next().map(|(_, at)| at);
        [server, self.next_event()].into_iter().flatten().min()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        self.returned.clear();
        loop {
            let own = self.next_event().unwrap_or(Time::NEVER);
            if let Some((number, at)) = self.hosts.next()
                && at <= own.min(now)
            {
                if let Some(request) = self.poll_server(number, own.min(now)) {
                    return Some(request);
                }
                // A thread that sleeps unplugs its server's queue before anything else happens.
                if self.hosts.0[number].host.unplug {
                    return None;
                }
                continue;
            }
            if own > now {
                return None;
            }
            let Reverse((at, _, event)) = self.due.pop()?;
            self.now = self.now.max(at);
            match event {
                Event::Run(client) => self.run(client, at),
                Event::Hop(piece) => self.hop(piece, at),
                Event::Arrived(piece) => self.arrived(piece, at),
                Event::Start(piece) => self.start(piece, at),
                Event::Back(server, thread) => self.back(server, thread, at),
            }
        }
    }

    fn unplug(&mut self) -> Option<Lba> {
        self.hosts.unplug()
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.hosts.tell_ahead(ahead);
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.hosts.foretell()
    }

    fn returned(&mut self) -> Option<Returned> {
        self.returned.pop()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.now = self.now.max(now);
        self.hosts.completed(now, cookie);
    }

    fn done(&self) -> bool {
        self.alive == 0 && self.hosts.done()
    }
}
