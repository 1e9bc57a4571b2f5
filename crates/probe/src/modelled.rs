//! A simulated drive that can be read and timed.

use crate::{Answer, Probe, ProbeError, Switch};
use headtime_disk::{Command, Drive, Fault, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};

/// A simulated drive with a clock of its own.
#[derive(Debug)]
pub struct Modelled {
    drive: Drive,
    now: Time,
    /// Latest time that the drive was notified of. An earlier answer may still be in the drive.
    told: Time,
    /// Time at which the command of each tag was sent.
    sent: Vec<Time>,
    in_drive: usize,
}

impl Modelled {
    /// An idle drive of this profile at time zero. Variations between units and commands are drawn from `seed`.
    pub fn new(profile: &Profile, seed: u64) -> Modelled {
        Modelled {
            drive: Drive::new(profile, seed),
            now: Time::ZERO,
            told: Time::ZERO,
            sent: vec![Time::ZERO; profile.queue.depth.max(1) as usize],
            in_drive: 0,
        }
    }

    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Makes sectors unreadable from now on. Each read of any of these sectors fails after `retries` additional turns.
    ///
    /// # Panics
    ///
    /// If the drive does not have these sectors.
    pub fn spoil(&mut self, extent: Extent, retries: u32) {
        self.told = self.told.max(self.now);
        let fault = Fault::Unreadable { extent, retries };
        self.drive.inject(self.told, fault);
    }
}

#[cfg(test)]
impl Modelled {
    /// Moves the time at which a command was sent back by `span`.
    pub(crate) fn backdate(&mut self, tag: u16, span: Nanos) {
        let sent = &mut self.sent[usize::from(tag)];
        *sent = Time::from_nanos(sent.as_nanos() - span.as_nanos());
    }

    pub(crate) fn record_written(&mut self) {
        self.drive.record_written(self.now, true);
    }

    pub(crate) fn take_written(&mut self) -> Vec<Extent> {
        let now = self.now;
        self.drive
            .take_written(now)
            .map(|(_, extent)| extent)
            .collect()
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

    fn physical_bytes(&self) -> u32 {
        self.drive.profile().geometry.physical_sector_bytes
    }

    fn depth(&self) -> u16 {
        self.sent.len() as u16
    }

    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.sent[usize::from(tag)] = self.now;
        self.in_drive += 1;
        let command = Command {
            tag: u32::from(tag),
            op,
            extent,
            fua: false,
            high: false,
        };
        self.told = self.told.max(self.now);
        self.drive.submit(self.told, command);
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        assert!(self.in_drive > 0, "no command is in the drive");
        let completion = loop {
            let next = self.drive.next_event();
            let next = next.expect("a drive without faults completes every command");
            self.told = self.told.max(next);
            if let Some(completion) = self.drive.poll(self.told) {
                break completion;
            }
        };
        self.in_drive -= 1;
        // Commands continue during a pause.
        self.now = self.now.max(completion.at);
        Ok(Answer {
            tag: completion.tag as u16,
            sent: self.sent[completion.tag as usize],
            at: completion.at,
            failure: completion.result.err().map(Into::into),
        })
    }

    fn pause(&mut self, span: Nanos) {
        self.now = self.now.saturating_add(span);
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        match which {
            Switch::LookAhead => self.drive.look_ahead(),
            Switch::WriteCache => self.drive.write_cache(),
        }
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        if self.switch(which).is_none() {
            return Err(ProbeError::NoSwitch(which));
        }
        self.told = self.told.max(self.now);
        match which {
            Switch::LookAhead => self.drive.set_look_ahead(self.now, on),
            Switch::WriteCache => {
                let done = self.drive.set_write_cache(self.now, on);
                self.now = done.expect("a drive without faults completes every command");
                self.told = self.now;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    #[test]
    fn what_is_answered_during_a_pause_comes_behind_a_command_sent_after_it() {
        let mut probe = Modelled::new(&by_name("wd5000aaks").unwrap(), 3);
        probe.send(0, Op::Read, Extent::at(500_000_000, 8)).unwrap();
        probe.pause(Nanos::from_secs(1));
        probe.send(1, Op::Read, Extent::at(0, 8)).unwrap();
        let (first, second) = (probe.answer().unwrap(), probe.answer().unwrap());
        assert_eq!((first.tag, second.tag), (0, 1));
        assert!(first.at < second.sent, "{} {}", first.at, second.sent);
        assert_eq!(probe.now(), second.at);
    }

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
