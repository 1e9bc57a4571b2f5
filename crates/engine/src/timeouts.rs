//! Deadlines of the commands in a device.
//!
//! The deadlines are a ring in order of time. A completed command stays in the ring until all earlier entries have
//! left, or until most of the ring is complete. So each command costs constant time, independent of the number of
//! commands in the device.

use crate::DriveTag;
use headtime_units::Time;
use std::collections::VecDeque;

/// Deadline of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Time,
    /// The command's tag.
    pub tag: DriveTag,
    /// Number of times that the device has answered that it is about to complete the command.
    pub promises: u32,
    /// Serial number of the command, since tags are reused.
    serial: u64,
}

/// The deadlines of the commands in a device, in order of time.
#[derive(Debug, Default)]
pub struct Timeouts {
    /// The deadlines in order. The first one belongs to a command in the device.
    ring: VecDeque<Deadline>,
    /// By tag: the serial of the command in the device, or 0.
    serials: Vec<u64>,
    issued: u64,
}

impl Timeouts {
    /// Returns the first deadline.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.ring.front().map(|first| first.at)
    }

    /// Notes a command that went to the device, with its deadline if it has one.
    ///
    /// # Panics
    ///
    /// If an earlier command has a later deadline.
    #[inline]
    pub fn issued(&mut self, tag: DriveTag, deadline: Option<Time>) {
        let index = tag.index();
        if self.serials.len() <= index {
            self.serials.resize(index + 1, 0);
        }
        self.issued += 1;
        self.serials[index] = self.issued;
        if let Some(at) = deadline {
            self.push(Deadline {
                at,
                tag,
                promises: 0,
                serial: self.issued,
            });
        }
    }

    /// Notes that the device no longer has a command. A command that the device never had changes nothing.
    #[inline]
    pub fn done(&mut self, tag: DriveTag) {
        if let Some(serial) = self.serials.get_mut(tag.index()) {
            *serial = 0;
        }
        self.drop_done();
    }

    /// Takes the first deadline if it has come by `now`. The deadline's command is in the device.
    pub fn take(&mut self, now: Time) -> Option<Deadline> {
        let first = *self.ring.front().filter(|first| first.at <= now)?;
        self.ring.pop_front();
        self.drop_done();
        Some(first)
    }

    /// Puts back a taken deadline with a new time, since the device is about to complete the command.
    pub fn again(&mut self, deadline: Deadline, at: Time) {
        self.push(Deadline { at, ..deadline });
    }

    /// Makes `latest` the deadline of every command in the device with a later deadline or none. With `None` all
    /// deadlines stay.
    pub fn shorten(&mut self, latest: Option<Time>) {
        let Some(latest) = latest else { return };
        for deadline in &mut self.ring {
            deadline.at = deadline.at.min(latest);
        }
        for index in 0..self.serials.len() {
            let serial = self.serials[index];
            if serial > 0 && !self.ring.iter().any(|timed| timed.serial == serial) {
                self.push(Deadline {
                    at: latest,
                    tag: DriveTag(index as u32),
                    promises: 0,
                    serial,
                });
            }
        }
    }

    fn push(&mut self, deadline: Deadline) {
        assert!(
            self.ring.back().is_none_or(|last| last.at <= deadline.at),
            "deadlines come in order of time"
        );
        // Completed commands would pile up behind a command that hangs.
        if self.ring.len() > 2 * self.serials.len() + 32 {
            let serials = &self.serials;
            self.ring
                .retain(|timed| serials[timed.tag.index()] == timed.serial);
        }
        self.ring.push_back(deadline);
    }

    #[inline]
    fn drop_done(&mut self) {
        while let Some(first) = self.ring.front()
            && self.serials[first.tag.index()] != first.serial
        {
            self.ring.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::Nanos;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn issue(timeouts: &mut Timeouts, tag: u32, deadline: u64) {
        timeouts.issued(DriveTag(tag), Some(at(deadline)));
    }

    #[test]
    fn deadlines_of_commands_that_are_done_are_never_next() {
        let mut timeouts = Timeouts::default();
        for tag in 0..3 {
            issue(&mut timeouts, tag, 10 + u64::from(tag));
        }
        timeouts.done(DriveTag(1));
        assert_eq!(timeouts.next(), Some(at(10)));
        timeouts.done(DriveTag(0));
        assert_eq!(timeouts.next(), Some(at(12)));
        timeouts.done(DriveTag(2));
        assert_eq!(timeouts.next(), None);
    }

    #[test]
    fn the_next_command_of_a_tag_has_a_deadline_of_its_own() {
        let mut timeouts = Timeouts::default();
        issue(&mut timeouts, 1, 5);
        issue(&mut timeouts, 0, 10);
        timeouts.done(DriveTag(0));
        issue(&mut timeouts, 0, 20);
        assert_eq!(timeouts.take(at(4)), None);
        assert_eq!(
            timeouts.take(at(30)).map(|first| first.tag),
            Some(DriveTag(1))
        );
        assert_eq!(timeouts.next(), Some(at(20)));
    }

    #[test]
    fn a_deadline_that_was_taken_leaves_one_of_a_command_in_the_device_first() {
        let mut timeouts = Timeouts::default();
        for tag in 0..3 {
            issue(&mut timeouts, tag, 10 + u64::from(tag));
        }
        timeouts.done(DriveTag(1));
        let taken = timeouts.take(at(10)).unwrap();
        assert_eq!(timeouts.next(), Some(at(12)));
        timeouts.again(taken, at(30));
        timeouts.done(DriveTag(2));
        assert_eq!(timeouts.next(), Some(at(30)));
        timeouts.done(DriveTag(0));
        assert_eq!(timeouts.next(), None);
    }

    #[test]
    fn a_shorter_timeout_holds_for_commands_in_the_device_and_a_longer_one_does_not() {
        let mut timeouts = Timeouts::default();
        timeouts.issued(DriveTag(0), None);
        issue(&mut timeouts, 1, 10);
        timeouts.issued(DriveTag(2), None);
        timeouts.done(DriveTag(2));
        timeouts.shorten(None);
        assert_eq!(timeouts.next(), Some(at(10)));
        timeouts.shorten(Some(at(20)));
        assert_eq!(timeouts.next(), Some(at(10)));
        timeouts.shorten(Some(at(5)));
        assert_eq!(timeouts.next(), Some(at(5)));
        timeouts.done(DriveTag(1));
        assert_eq!(timeouts.next(), Some(at(5)), "tag 0 had none");
        timeouts.done(DriveTag(0));
        assert_eq!(timeouts.next(), None);
    }

    /// A command that hangs stays first, while a large number of commands pass it.
    #[test]
    fn a_command_that_hangs_does_not_make_the_ring_grow() {
        let mut timeouts = Timeouts::default();
        let year = Nanos::from_secs(365 * 86_400);
        timeouts.issued(DriveTag(0), Some(at(0) + year));
        for turn in 0..100_000 {
            let tag = DriveTag(1 + turn % 31);
            timeouts.issued(tag, Some(at(u64::from(turn)) + year));
            timeouts.done(tag);
        }
        assert!(timeouts.ring.capacity() < 500, "{}", timeouts.ring.len());
        assert_eq!(timeouts.next(), Some(at(0) + year));
    }
}
