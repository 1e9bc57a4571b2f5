//! Results of the scan's reads.

use super::Scrub;
use headtime_engine::{Background, Finished, Outcome};
use headtime_sched::Passing;
use headtime_units::{Lba, Time};

impl<P: Passing + Clone + 'static> Scrub<P> {
    /// Handles a finished read of the scan.
    pub(super) fn is_read(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let asked = self.scan.asked(done.id).to_vec();
        self.scan.finished(now, done, data);
        let is_done = done.outcome == Outcome::Done;
        // The results do not count for the stale blocks: clients have written them since.
        let (blocks, stale): (Vec<Lba>, Vec<Lba>) = asked
            .iter()
            .partition(|block| self.open.get(&self.number(**block)) == Some(&done.id));
        if !is_done {
            for block in &stale {
                self.scan.want(self.scan.wanted().block_at(*block));
            }
        }
        let is_alone = self.alone.take_if(|id| *id == done.id).is_some();
        let is_outright = self.outright.remove(&done.id);
        if is_outright && self.plan.promises.date.is_none() {
            self.part_took(now, now.saturating_since(done.issued));
        }
        if is_done {
            *match (is_alone, is_outright) {
                (true, _) => &mut self.in_idle_time,
                (false, true) => &mut self.read_outright,
                (false, false) => &mut self.in_gaps,
            } += asked.len() as u64;
        } else if self.has_line && !blocks.is_empty() {
            self.call_off();
        }
        let sinks = is_done && self.hand_over((done.request.extent, done.id), data, &blocks);
        for block in blocks.iter().filter(|_| !sinks) {
            let number = self.number(*block);
            if is_done {
                self.close(number);
            } else if self.scan.is_unreadable(*block) {
                self.look_into(*block, done.id);
            } else {
                self.open.remove(&number);
                self.rewritten.remove(&number);
            }
        }
        match (done.outcome, asked.as_slice()) {
            (Outcome::Done, _) => self.rests.succeeded(),
            (Outcome::MediumError, _) => {}
            (Outcome::TimedOut, [block]) => {
                self.failed(now);
                if !blocks.is_empty() {
                    self.timed_out(*block, done.id);
                }
            }
            _ => self.failed(now),
        }
    }
}
