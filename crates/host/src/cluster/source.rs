//! The cluster as a source of requests.

use super::state::{Cluster, Event, Server};
use crate::host::Host;
use headtime_sched::{Foretold, Origin};
use headtime_units::{Extent, Lba, Time};
use headtime_workload::{NewRequest, Returned, Source};
use std::cmp::Reverse;

/// Bits of a cookie below the server's number.
const HOST_BITS: u32 = 58;

impl Server {
    fn place(&self, extent: Extent) -> Extent {
        Extent::new(Lba::new(self.base + extent.start.get()), extent.len)
    }

    fn origin(&self, origin: Origin) -> Origin {
        Origin {
            process: self.process + origin.process,
            ..origin
        }
    }
}

impl Cluster {
    /// The server whose host is next to be polled, and when.
    fn next_server(&self) -> Option<(usize, Time)> {
        let times = self.servers.iter().map(|server| server.host.next_arrival());
        let times = times.enumerate();
        let due = times.filter_map(|(number, at)| Some((number, at?)));
        due.min_by_key(|(_, at)| *at)
    }

    fn next_event(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets the host of a server go on up to `until`. Returns a request, if the host makes one.
    fn poll_server(&mut self, number: usize, until: Time) -> Option<NewRequest> {
        let request = self.servers[number].host.poll(until);
        while let Some((thread, at)) = self.servers[number].host.handed_back() {
            self.set(at, Event::Back(number as u16, thread));
        }
        let server = &self.servers[number];
        let request = request?;
        debug_assert!(request.cookie >> HOST_BITS == 0, "{}", request.cookie);
        Some(NewRequest {
            cookie: request.cookie | (number as u64) << HOST_BITS,
            extent: server.place(request.extent),
            origin: server.origin(request.origin),
            ..request
        })
    }
}

impl Source for Cluster {
    fn next_arrival(&self) -> Option<Time> {
        let server = self.next_server().map(|(_, at)| at);
        [server, self.next_event()].into_iter().flatten().min()
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        self.returned.clear();
        loop {
            let own = self.next_event().unwrap_or(Time::NEVER);
            if let Some((number, at)) = self.next_server()
                && at <= own.min(now)
            {
                if let Some(request) = self.poll_server(number, own.min(now)) {
                    return Some(request);
                }
                // A thread that sleeps unplugs its server's queue before anything else happens.
                if self.servers[number].host.unplug {
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
        let mut servers = self.servers.iter_mut();
        let server = servers.find(|server| server.host.unplug)?;
        server.host.unplug()?;
        Some(Lba::new(server.base))
    }

    fn tell_ahead(&mut self, ahead: bool) {
        for server in &mut self.servers {
            server.host.tell_ahead(ahead);
        }
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.servers.iter_mut().find_map(|server| {
            let foretold = server.host.foretell()?;
            Some(Foretold {
                extent: server.place(foretold.extent),
                origin: server.origin(foretold.origin),
                ..foretold
            })
        })
    }

    fn returned(&mut self) -> Option<Returned> {
        self.returned.pop()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.now = self.now.max(now);
        let host: &mut Host = &mut self.servers[(cookie >> HOST_BITS) as usize].host;
        host.completed(now, cookie & ((1 << HOST_BITS) - 1));
    }

    fn done(&self) -> bool {
        self.alive == 0 && self.servers.iter().all(|server| server.host.done())
    }
}
