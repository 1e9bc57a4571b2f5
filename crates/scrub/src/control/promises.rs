//! Promises of a scrub when it begins, and changes of promises while the scrub reads.

use super::super::ask::{ScrubAsk, ScrubError};
use super::super::progress::ScrubPlan;
use super::super::promises::may_be_kept;
use super::super::status::Gaps;
use super::{Now, Scrubs};

impl Scrubs {
    /// Continues an unfinished scrub, with other promises if the options name some.
    pub(super) fn go_on_as(&self, now: &mut Now, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let last = now.last.as_mut().ok_or(ScrubError::None)?;
        self.fits(&last.plan, ask)?;
        let promises = ask.promises(last.plan.promises);
        if promises != last.plan.promises {
            let left = last.face.status().left * last.plan.block.get();
            let plan = ScrubPlan {
                promises,
                ..last.plan.clone()
            };
            promises
                .may_be_made(plan.idle())
                .map_err(ScrubError::value)?;
            if promises.date != last.plan.promises.date {
                self.may_promise(&plan, left.min(plan.range.len.get()))?;
            }
            last.plan = plan;
            last.face.promise(promises);
        }
        self.go_on(now)
    }

    /// Checks that a drive of the assumed profile could keep the promises, with `left` sectors still to be read.
    pub(super) fn may_promise(&self, plan: &ScrubPlan, left: u64) -> Result<(), ScrubError> {
        match self.model().filter(|_| self.gaps() == Gaps::Used) {
            Some(model) => {
                may_be_kept(&plan.promises, model, plan.range, left).map_err(ScrubError::value)
            }
            // Without a profile nothing is known of the drive's speed.
            None => Ok(()),
        }
    }
}
