//! A simulated drive that can be read and timed.

use crate::{Probe, ProbeError};
use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};

/// A simulated drive with a clock of its own, one command at a time.
#[derive(Debug)]
pub struct Modelled {
    drive: Drive,
    now: Time,
}

impl Modelled {
    /// A drive of this profile at rest, at time zero. What varies between units and commands is drawn
    /// from `seed`.
    pub fn new(profile: &Profile, seed: u64) -> Modelled {
        Modelled {
            drive: Drive::new(profile, seed),
            now: Time::ZERO,
        }
    }

    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// What its clock shows.
    pub fn now(&self) -> Time {
        self.now
    }
}

impl Probe for Modelled {
    fn name(&self) -> String {
        self.drive.profile().name.clone()
    }

    fn capacity(&self) -> Sectors {
        self.drive.capacity()
    }

    fn sector_bytes(&self) -> u32 {
        self.drive.profile().geometry.sector_bytes
    }

    fn read(&mut self, extent: Extent) -> Result<Nanos, ProbeError> {
        let begin = self.now;
        let command = Command {
            tag: 0,
            op: Op::Read,
            extent,
            fua: false,
            high: false,
        };
        self.drive.submit(begin, command);
        let completion = loop {
            let next = self.drive.next_event();
            let next = next.expect("a drive without faults completes every command");
            if let Some(completion) = self.drive.poll(next) {
                break completion;
            }
        };
        self.now = completion.at;
        match completion.result {
            Ok(()) => Ok(completion.at - begin),
            Err(error) => Err(ProbeError {
                extent,
                source: Box::new(error),
            }),
        }
    }

    fn pause(&mut self, span: Nanos) {
        self.now = self.now.saturating_add(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    #[test]
    fn its_clock_is_the_sum_of_what_it_says() {
        let mut probe = Modelled::new(&by_name("wd5000aaks").unwrap(), 3);
        let mut sum = Nanos::ZERO;
        for place in [0, 900_000_000, 8, 5] {
            sum += probe.read(Extent::at(place, 8)).unwrap();
            probe.pause(Nanos::from_millis(2));
            sum += Nanos::from_millis(2);
        }
        assert_eq!(probe.now(), Time::ZERO + sum);
        assert_eq!(probe.name(), "wd5000aaks");
        assert_eq!(probe.sector_bytes(), 512);
        assert_eq!(probe.capacity(), probe.drive().capacity());
    }
}
