//! Virtual machines above one disk, as Xen runs them.
//!
//! Each guest is a [`Host`](crate::Host) with page cache, read-ahead and flusher of its own, on an equal part of the
//! disk. The guest's own scheduler is Noop, so that requests leave the guest at once. The scheduler of the disk sees
//! one process per guest. This process has the guest's number, counted from 1. All requests are in the default class,
//! since one thread submits them for the guest. The path between guest and disk takes no time.

use crate::builder::{HostBuilder, HostError};
use crate::hosts::{AskerOf, HOSTS_MAX, Hosts, Placed};
use crate::outcome::ProgramOutcome;
use crate::spec::{DiskSize, PAGE};
use headtime_sched::Foretold;
use headtime_units::{Bytes, Lba, Sectors, Time};
use headtime_workload::{NewRequest, Returned, Source};

/// Guests on one disk: a [`Source`] of requests. See the [module](self) for the rules.
pub struct Guests {
    hosts: Hosts,
    /// By guest: number of processes of all guests before.
    processes: Vec<u32>,
}

impl Guests {
    /// The most guests.
    pub const MAX: u16 = HOSTS_MAX;

    /// The largest request of a guest unless set: 11 segments of one page (`BLKIF_MAX_SEGMENTS_PER_REQUEST`).
    pub const REQUEST_MAX: Bytes = Bytes(11 * PAGE);

    /// Size of each guest's part of a disk that `guests` guests share. Parts are whole pages, and whole chunks of
    /// [`HostSpec::chunk`](crate::HostSpec::chunk) if there are chunks.
    pub fn part(disk: DiskSize, guests: u16, chunk: Option<Bytes>) -> DiskSize {
        let unit = chunk.map_or(PAGE, |chunk| chunk.0.max(PAGE)) / u64::from(disk.sector_bytes);
        let units = disk.capacity.get() / u64::from(guests) / unit;
        DiskSize {
            capacity: Sectors::new(units * unit),
            ..disk
        }
    }

    /// Makes a guest of each builder. Parts of the disk follow one another in this order, each of the builder's size.
    /// Numbers of programs should differ between guests, since outcomes are listed by number.
    ///
    /// # Errors
    ///
    /// If there is no guest, or more than [`Guests::MAX`]. Also as [`HostBuilder::build`].
    pub fn new(builders: Vec<HostBuilder>, seed: u64) -> Result<Guests, HostError> {
        let count = builders.len();
        if !(1..=usize::from(Guests::MAX)).contains(&count) {
            return Err(HostError::Range {
                key: "guests",
                value: count.to_string(),
                allowed: "1 to 64",
            });
        }
        let (mut base, mut before) = (0, 0);
        let (mut hosts, mut processes) = (Vec::new(), Vec::new());
        for (guest, builder) in (1..).zip(builders) {
            let part = builder.disk().capacity.get();
            processes.push(before);
            before += builder.processes.len() as u32;
            hosts.push(Placed {
                host: builder.build(seed ^ u64::from(guest - 1))?,
                base,
                asker: AskerOf::Host(guest),
            });
            base += part;
        }
        let hosts = Hosts(hosts);
        Ok(Guests { hosts, processes })
    }

    /// Results of the programs so far, guest by guest. Numbers of processes count through all guests.
    pub fn outcome(&self) -> Vec<ProgramOutcome> {
        let guests = self.hosts.0.iter().zip(&self.processes);
        let programs = guests.flat_map(|(placed, before)| {
            let mut programs = placed.host.outcome();
            for process in programs.iter_mut().flat_map(|one| &mut one.processes) {
                process.process += before;
            }
            programs
        });
        programs.collect()
    }
}

impl Source for Guests {
    fn next_arrival(&self) -> Option<Time> {
        self.hosts.next().map(|(_, at)| at)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        for placed in &mut self.hosts.0 {
            placed.host.returned.clear();
        }
        loop {
            let (guest, _) = self.hosts.next().filter(|(_, at)| *at <= now)?;
            // The queue is unplugged for a guest that sleeps before another guest runs.
            let request = self.hosts.poll(guest, now);
            if request.is_some() || self.hosts.0[guest].host.unplug {
                return request;
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
        let mut guests = self.hosts.0.iter_mut();
        guests.find_map(|placed| placed.host.returned())
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.hosts.completed(now, cookie);
    }

    fn done(&self) -> bool {
        self.hosts.done()
    }
}
