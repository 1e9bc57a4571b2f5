//! How a scrub ends.

use super::super::progress::ProgressFile;
use super::super::status::ScrubState;
use super::syncs::Ending;
use super::{Resting, Scrub};
use headtime_engine::{Background, Member};
use headtime_linux::shown::PathShown as _;
use headtime_sched::Passing;
use headtime_units::Time;

impl<P: Passing> Scrub<P> {
    /// Ends if there is nothing more to do and nothing under way.
    pub(super) fn end_if_over(&mut self, now: Time) {
        let under_way = self.scan.in_flight() > 0 || self.part.is_some();
        let stopped = self.is_stopped();
        if self.over || under_way || !(stopped || self.is_all_done()) {
            return;
        }
        // What could not be written is not tried at each event, but when somebody resumes.
        if self.held.is_some() && !stopped {
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
        if let Some(sink) = self.sink.as_ref().filter(|_| self.plan.is_copy()) {
            // What is in the image from now on is nobody's business here.
            sink.watch().end();
        }
        self.lets_go();
        self.publish(now);
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

    /// Writes down that all is done, which may take a while. Returns true if it is written down, and durable where it has to be.
    fn is_written_down(&mut self, now: Time) -> bool {
        match self.ending {
            Ending::Syncs(_) | Ending::Says(_) => return false,
            Ending::Said => return true,
            Ending::NotYet => {
                self.keep();
                self.look_whether_gone();
                if self.held.is_some() || self.is_gone.is_some() {
                    return false;
                }
                if self.sink.is_some() {
                    self.ending = Ending::Syncs(self.sync());
                    return false;
                }
            }
            Ending::Synced => {}
        }
        let date = self.end_promises(now);
        let hashes = self.face.status().hashes.clone();
        let compared = hashes
            .as_ref()
            .map(|hashes| (self.compared, hashes.why_not.as_deref()));
        let told = self.progress.as_mut().map(|kept| kept.done(date, compared));
        self.kept(told);
        if self.held.is_some() {
            return false;
        }
        match &self.sink {
            Some(_) => {
                self.ending = Ending::Says(self.sync());
                false
            }
            None => true,
        }
    }

    /// Notices that its file is not where the next server looks for it.
    fn look_whether_gone(&mut self) {
        if let Some(progress) = &self.progress
            && let Err(error) = progress.is_in_place()
        {
            self.is_gone = Some(format!("{}: {error}", progress.path().shown()));
        }
    }

    /// Asks for all that was done to be durable. Returns the number by which that is told.
    fn sync(&mut self) -> u64 {
        self.asked_syncs += 1;
        if let Some(sink) = &self.sink {
            sink.sync(self.asked_syncs);
        }
        self.asked_syncs
    }

    /// It is over, or can only begin anew: whoever comes behind it finds nothing of it in use. Writes are still noticed.
    pub(super) fn lets_go(&mut self) {
        self.over = true;
        // The next one locks the file.
        (self.progress, self.syncs) = (None, None);
        let worker = self.sink.take().map(|sink| sink.thread());
        let worker = worker.unwrap_or_default();
        let watches = self.watches.iter().filter(|watch| !watch.is_lost());
        let watches: Vec<_> = watches.cloned().collect();
        // Whoever sees that it is over may begin another one, which is to come behind this.
        match watches.is_empty() {
            false => self.disk.run_in_background(
                Member(0),
                Box::new(move || Box::new(Resting::new(watches, worker)) as Box<dyn Background>),
            ),
            true => self.disk.end_background(Member(0)),
        }
    }
}
