//! Several hosts above one address space: the part of each, and cookies that name the host.

use crate::host::Host;
use headtime_sched::{Class, Foretold, Origin};
use headtime_units::{Extent, Lba, Time};
use headtime_workload::{NewRequest, Source};

/// Bits of a cookie below the host's number.
const HOST_BITS: u32 = 58;

/// The most hosts.
pub(crate) const HOSTS_MAX: u16 = 1 << (u64::BITS - HOST_BITS);

/// Hosts by number, [`HOSTS_MAX`] at most.
pub(crate) struct Hosts(pub Vec<Placed>);

/// A host with a part of the address space.
pub(crate) struct Placed {
    pub host: Host,
    /// First sector of the part.
    pub base: u64,
    pub asker: AskerOf,
}

/// Origin and class that the host's requests have outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskerOf {
    /// Process numbers are increased by this number. Processes keep their class.
    Processes(u32),
    /// All processes appear as this process, in the default class.
    Host(u32),
}

impl Placed {
    fn place(&self, extent: Extent) -> Extent {
        Extent::new(Lba::new(self.base + extent.start.get()), extent.len)
    }

    fn origin(&self, origin: Origin) -> Origin {
        let process = match self.asker {
            AskerOf::Processes(before) => before + origin.process,
            AskerOf::Host(process) => process,
        };
        Origin { process, ..origin }
    }
}

impl Hosts {
    /// Next host to poll, and its time. If several hosts have the same time, the first comes first.
    pub fn next(&self) -> Option<(usize, Time)> {
        let times = self.0.iter().map(|placed| placed.host.next_arrival());
        let due = times.enumerate();
        let due = due.filter_map(|(number, at)| Some((number, at?)));
        due.min_by_key(|(_, at)| *at)
    }

    /// Lets a host go on up to `until`. Returns a request, if the host makes one.
    pub fn poll(&mut self, number: usize, until: Time) -> Option<NewRequest> {
        let placed = &mut self.0[number];
        let request = placed.host.poll(until)?;
        debug_assert!(request.cookie >> HOST_BITS == 0, "{}", request.cookie);
        Some(NewRequest {
            cookie: request.cookie | (number as u64) << HOST_BITS,
            extent: placed.place(request.extent),
            origin: placed.origin(request.origin),
            class: match placed.asker {
                AskerOf::Processes(_) => request.class,
                AskerOf::Host(_) => Class::default(),
            },
            ..request
        })
    }

    /// As [`Source::unplug`].
    pub fn unplug(&mut self) -> Option<Lba> {
        let placed = self.0.iter_mut().find(|placed| placed.host.unplug)?;
        placed.host.unplug()?;
        Some(Lba::new(placed.base))
    }

    /// As [`Source::tell_ahead`].
    pub fn tell_ahead(&mut self, ahead: bool) {
        for placed in &mut self.0 {
            placed.host.tell_ahead(ahead);
        }
    }

    /// As [`Source::foretell`].
    pub fn foretell(&mut self) -> Option<Foretold> {
        self.0.iter_mut().find_map(|placed| {
            let foretold = placed.host.foretell()?;
            Some(Foretold {
                extent: placed.place(foretold.extent),
                origin: placed.origin(foretold.origin),
                ..foretold
            })
        })
    }

    /// As [`Source::completed`].
    pub fn completed(&mut self, now: Time, cookie: u64) {
        let host = &mut self.0[(cookie >> HOST_BITS) as usize].host;
        host.completed(now, cookie & ((1 << HOST_BITS) - 1));
    }

    /// As [`Source::done`].
    pub fn done(&self) -> bool {
        self.0.iter().all(|placed| placed.host.done())
    }
}
