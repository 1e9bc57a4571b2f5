//! Switches reading ahead and the write cache while the drive runs, as a host does with ATA's SET FEATURES
//! and SCSI's caching mode page.

use super::{Command, Drive};
use crate::profile::{CacheSpec, ReadAhead, WriteBack};
use headtime_sched::Op;
use headtime_units::{Extent, Time};

impl Drive {
    /// Returns true if the drive reads ahead. `None` if this drive never does and has no such switch.
    pub fn look_ahead(&self) -> Option<bool> {
        let can = self.profile.cache.read_ahead != ReadAhead::Off;
        can.then(|| self.cache.spec().read_ahead != ReadAhead::Off)
    }

    /// Returns true if writes complete in the buffer. `None` if this drive writes through and has no such switch.
    pub fn write_cache(&self) -> Option<bool> {
        let can = self.profile.cache.write_back != WriteBack::Off;
        can.then(|| self.cache.spec().write_back != WriteBack::Off)
    }

    /// Switches reading ahead on or off. A read-ahead in progress ends, and the data in the buffer stay.
    ///
    /// # Panics
    ///
    /// If commands are in the drive, time goes backwards, or the drive [has no such switch](Drive::look_ahead).
    pub fn set_look_ahead(&mut self, now: Time, on: bool) {
        assert_eq!(self.in_flight(), 0, "commands are in the drive");
        let is_on = self.look_ahead().expect("the drive never reads ahead");
        let now = self.clock.own(now);
        self.advance(now);
        if on == is_on {
            return;
        }
        let (shipped, mut spec) = (self.profile.cache, *self.cache.spec());
        spec.read_ahead = ReadAhead::Off;
        spec.read_ahead_on_idle_hit = false;
        if on {
            spec.read_ahead = shipped.read_ahead;
            spec.read_ahead_on_idle_hit = shipped.read_ahead_on_idle_hit;
        }
        // Segments that hold dirty data go on as they are.
        self.end_all_ahead(now);
        self.cache.change(&spec);
    }

    /// Switches the write cache on or off. Dirty data go to the medium first. Returns the time at which these are
    /// written and the switch is turned: `now` if there is nothing to write. `None` if the drive loses the command
    /// ([`Fault::LoseNext`](super::Fault::LoseNext)); the switch is then as it was.
    ///
    /// # Panics
    ///
    /// If commands are in the drive, time goes backwards, or the drive
    /// [has no such switch](Drive::write_cache).
    pub fn set_write_cache(&mut self, now: Time, on: bool) -> Option<Time> {
        assert_eq!(self.in_flight(), 0, "commands are in the drive");
        let is_on = self.write_cache().expect("the drive writes through");
        let own = self.clock.own(now);
        self.advance(own);
        if on == is_on {
            return Some(now);
        }
        let mut at = own;
        if !self.cache.is_clean() {
            at = self.write_back_all(own)?;
        }
        let write_back = match on {
            true => self.profile.cache.write_back,
            false => WriteBack::Off,
        };
        let spec = CacheSpec {
            write_back,
            ..*self.cache.spec()
        };
        self.end_all_ahead(at);
        self.cache.change(&spec);
        Some(self.clock.host(at))
    }

    /// Writes all dirty data, as for a flush. Returns the time at which they are written, or `None`
    /// if the drive loses the flush.
    fn write_back_all(&mut self, now: Time) -> Option<Time> {
        let flush = Command {
            tag: 0,
            op: Op::Flush,
            extent: Extent::at(0, 0),
            fua: false,
            high: false,
        };
        self.take(now, flush);
        loop {
            let Some(next) = self.next() else {
                self.give_up(self.now, flush.tag);
                return None;
            };
            if let Some(completion) = self.done(next) {
                return Some(completion.at);
            }
        }
    }

    fn end_all_ahead(&mut self, now: Time) {
        self.bring_ahead(now);
        if self.ahead.is_some() {
            self.replan_ahead(now);
        }
    }
}
