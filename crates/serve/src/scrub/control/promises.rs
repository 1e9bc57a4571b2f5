//! What is promised of a scrub when it begins, and while it reads.

use super::super::ask::{ScrubAsk, ScrubError};
use super::super::progress::Plan;
use super::super::promises::may_be_kept;
use super::super::status::Gaps;
use super::{Now, Scrubs};

impl Scrubs {
    /// Goes on with an unfinished one, with other promises if it is asked for these.
    pub(super) fn go_on_as(&self, now: &mut Now, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let last = now.last.as_mut().ok_or(ScrubError::None)?;
        self.fits(&last.plan, ask)?;
        let promises = ask.promises(last.plan.promises);
        if promises != last.plan.promises {
            let left = last.face.status().left * last.plan.block.get();
            let plan = Plan {
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

    /// Whether a drive as the one that is believed in could keep what is promised, of so many sectors that are left.
    pub(super) fn may_promise(&self, plan: &Plan, left: u64) -> Result<(), ScrubError> {
        match self.model().filter(|_| self.gaps() == Gaps::Used) {
            Some(model) => {
                may_be_kept(&plan.promises, model, plan.range, left).map_err(ScrubError::value)
            }
            // Nobody knows anything of the drive.
            None => Ok(()),
        }
    }
}
