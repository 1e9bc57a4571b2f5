//! The end of a scrub: done, stopped, or lost.

use super::super::progress::ProgressFile;
use super::super::status::ScrubState;
use super::state::{Ending, State};
use super::{Resting, Scrub};
use headtime_engine::Background;
use headtime_linux::shown::PathShown as _;
use headtime_sched::Passing;
use headtime_units::Time;

impl<P: Passing> Scrub<P> {
    /// Ends the scrub if all blocks are done or the scrub is stopped, and no read is under way.
    pub(super) fn end_if_over(&mut self, now: Time) {
        let stopped = self.is_stopped();
        let is_over = self.state == State::Over || self.reading.is_reading();
        if is_over || !(stopped || self.is_all_done()) {
            return;
        }
        // A failed write is tried again on `resume`, not at each event.
        if self.state.problem().is_some() && !stopped {
            return;
        }
        if stopped {
            let told = self.progress.as_ref().map(ProgressFile::remove);
            self.kept(told);
        } else if !self.is_written_down(now) {
            self.look_at_watches(now);
            self.publish(now);
            return;
        }
        if let Some(taker) = self.taker.as_ref().filter(|_| self.plan.is_copy()) {
            // Later changes of the image do not concern the scrub.
            taker.sink.watch().end();
        }
        self.publish(now);
        self.lets_go();
        self.face.status().state = match stopped {
            true => ScrubState::Stopped,
            false => ScrubState::Done,
        };
        let unreadable = self.face.status().unreadable.sectors();
        self.face.has_let_go();
        match stopped {
            true => tracing::info!(disk = self.disk.name(), "the scrub was stopped"),
            false => {
                tracing::info!(disk = self.disk.name(), unreadable, "the scrub is done");
            }
        }
    }

    /// Records that the scrub is done, in steps that may take a while. Returns true once the record is written, and durable if there is a
    /// sink.
    fn is_written_down(&mut self, now: Time) -> bool {
        match self.state.ending() {
            Ending::Syncs(_) | Ending::Says(_) => return false,
            Ending::Said => return true,
            Ending::NotYet => {
                self.keep();
                self.look_whether_gone();
                if self.state.problem().is_some() || self.is_gone.is_some() {
                    return false;
                }
                if let Some(taker) = &mut self.taker {
                    self.state.ends(Ending::Syncs(taker.sync()));
                    return false;
                }
            }
            Ending::Synced => {}
        }
        let date = self.end_promises(now);
        let hashes = self.face.status().hashes.clone();
        let compared = self.taker.as_ref().map_or(0, |taker| taker.compared);
        let compared = hashes
            .as_ref()
            .map(|hashes| (compared, hashes.why_not.as_deref()));
        let told = self.progress.as_mut().map(|kept| kept.done(date, compared));
        self.kept(told);
        if self.state.problem().is_some() {
            return false;
        }
        match &mut self.taker {
            Some(taker) => {
                self.state.ends(Ending::Says(taker.sync()));
                false
            }
            None => true,
        }
    }

    /// Checks that the progress file is where the next server looks for it.
    fn look_whether_gone(&mut self) {
        if let Some(progress) = &self.progress
            && let Err(error) = progress.is_in_place()
        {
            self.is_gone = Some(format!("{}: {error}", progress.path().shown()));
        }
    }

    /// Releases files and threads of a scrub that is over or can only begin anew. The next scrub can then use them. Writes are still
    /// noticed.
    pub(super) fn lets_go(&mut self) {
        self.state = State::Over;
        // The next scrub locks the file.
        (self.progress, self.syncs) = (None, None);
        let worker = self.taker.take().map(|taker| taker.sink.thread());
        let worker = worker.unwrap_or_default();
        let watches = self.watches.iter().filter(|watch| !watch.is_lost());
        let watches: Vec<_> = watches.cloned().collect();
        // A caller that sees the scrub end may begin another one. This call has to come before that scrub's.
        match watches.is_empty() {
            false => self.disk.run_job(Box::new(move || {
                Box::new(Resting::new(watches, worker)) as Box<dyn Background>
            })),
            true => self.disk.end_job(),
        }
    }
}
