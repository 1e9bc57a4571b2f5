//! The line of a copy, see [`Moment`](super::super::image::Moment).

use super::super::image::{Line, Moment};
use super::Scrub;
use headtime_sched::Passing;
use headtime_units::Time;

impl<P: Passing> Scrub<P> {
    /// Moment of the image, if there is an image.
    pub(super) fn moment(&self) -> Option<&Moment> {
        self.taker.as_ref()?.moment.as_ref()
    }

    /// Returns true if the line is drawn.
    pub(super) fn is_drawn(&self) -> bool {
        self.moment().is_some_and(Moment::is_drawn)
    }

    /// Returns true if so few blocks of a copy are left that they are read at foreground priority.
    pub(super) fn is_closing(&self) -> bool {
        let wanted = self.reading.wanted();
        self.moment()
            .is_some_and(|moment| moment.is_closing(wanted))
    }

    /// Starts or ends the reads of the last blocks at foreground priority. While parts of blocks are still to be read, such reads would not
    /// make the line possible.
    pub(super) fn close_in(&mut self) {
        let closes = self.is_closing() && self.reading.bad.is_empty();
        let moment = self.taker.as_mut().and_then(|taker| taker.moment.as_mut());
        if let Some(demand) = moment.and_then(|moment| moment.close_in(closes)) {
            self.reading.scan.set_demand(demand);
        }
    }

    /// Returns true if blocks or parts are left that would be read at foreground priority.
    pub(super) fn can_close_in(&self) -> bool {
        if !self.is_closing() || self.reading.is_reading() {
            return false;
        }
        match self.reading.bad.is_empty() {
            true => self.reading.wanted() > 0,
            false => !self.reading.parts.is_empty(),
        }
    }

    /// Draws the line, if no block is wanted.
    pub(super) fn look_for_line(&mut self, now: Time) {
        let is_there = self.reading.wanted() == 0 && self.reading.bad.is_empty();
        if !is_there || !self.state.goes_on() || self.is_stopped() {
            return;
        }
        let moment = self.taker.as_mut().and_then(|taker| taker.moment.as_mut());
        let Some(moment) = moment.filter(|moment| !moment.is_drawn()) else {
            return;
        };
        moment.line = Line::Drawn;
        self.reading.scan.set_demand(None);
        let disk = self.disk.name();
        tracing::info!(disk, "the copy is to be the disk as it is now");
        self.publish(now);
    }

    /// Takes the line back after a failure. Blocks that were written since the line, or could not be read, have to be copied again.
    pub(super) fn call_off(&mut self) {
        if let Some(taker) = &mut self.taker {
            self.reading.rewritten.clear();
            if let Some(moment) = taker.moment.as_mut().filter(|moment| moment.is_drawn()) {
                moment.line = Line::Open;
            }
        }
        // Results of reads do not count for blocks that are wanted again.
        for number in self.reading.stale() {
            self.forget_read(number);
        }
    }

    /// Returns true if all blocks are done: for a copy, if the line is drawn and all reads from before the line are done.
    pub(super) fn is_all_done(&self) -> bool {
        let may_end = self.is_drawn() || !self.plan.is_copy();
        may_end && self.left() == 0
    }
}
