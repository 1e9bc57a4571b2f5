//! The scrub job, which runs on the thread of its disk.
//!
//! The job connects background reading ([`Reading`]) with the taker of the data ([`Taker`]) and the progress file.

mod ending;
mod face;
mod line;
mod promise_date;
mod promises;
mod reads;
mod resting;
mod results;
mod state;
mod syncs;

use super::files::DurableFile;
use super::image::Line;
use super::progress::{ProgressFile, Restored, ScrubPlan};
use super::reading::{PARTS_FROM, Reading, Urgency};
use super::served::Served;
use super::sink::{Sink, Task};
use super::status::{Gaps, ScrubState};
use super::taker::{Taker, Takes};
use super::watch::Watch;
use headtime_engine::{Approach, Arrival, Background, Engine, Finished, Join, Lane};
use headtime_gaps::{FailurePause, Freeblock, Verdict};
use headtime_linux::clock::Wall;
use headtime_linux::shown::PathShown as _;
use headtime_sched::{Passing, Track};
use headtime_units::{Nanos, Sectors, Time};
use promise_date::{OnFile, PromiseDate};
use state::{Ending, State};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syncs::Syncs;

pub(crate) use face::Face;
pub(crate) use resting::Resting;

/// Longest time between two writes of the progress to its file. A machine that goes down may lose the progress of twice this time.
const KEEP_EVERY: Nanos = Nanos::from_millis(500);

/// Files and threads that a scrub uses in addition to its disk.
pub(super) struct Files {
    /// Progress file, and the handle through which other threads make the file durable.
    pub progress: Option<(ProgressFile, Arc<DurableFile>)>,
    /// Watches to notify of writes, also if this scrub neither hashes nor copies.
    pub watches: Vec<Arc<Watch>>,
    /// Receiver of the data, if the scrub hashes or copies them.
    pub sink: Option<Sink>,
}

/// Reads a range of a disk block by block, in gaps and in idle time.
///
/// Invariants:
///
/// - `progress.is_some()` ⇔ `syncs.is_some()`.
/// - `state = Over` ⇒ `taker`, `progress` and `syncs` are `None`.
/// - `taker = Some(t)` ⇒ (`t.moment.is_some()` ⇔ `plan.is_copy()`).
/// - `date_taken.is_some()` ⇒ `plan.promises.date.is_some()`.
pub(super) struct Scrub<P: Passing> {
    state: State,
    plan: ScrubPlan,
    reading: Reading<P>,
    /// Taker of the data, if the scrub hashes or copies. A scrub that is over has none.
    taker: Option<Taker>,
    face: Arc<Face>,
    disk: Arc<dyn Served>,
    watches: Vec<Arc<Watch>>,
    progress: Option<ProgressFile>,
    /// Thread that makes the progress file durable.
    syncs: Option<Syncs>,
    keep_at: Time,
    /// Message if the progress file was removed or replaced.
    is_gone: Option<String>,
    /// True while a caller of `resume` waits until both the job and the taker have tried to write.
    is_asked: bool,
    /// Largest read in idle time or at foreground priority.
    piece: Sectors,
    /// Promises, verdict and pause as the progress file has them. `said` is the present verdict and its date.
    on_file: OnFile,
    said: Option<(Verdict, Wall)>,
    date_taken: Option<PromiseDate>,
    /// Number of verdicts at the last report about promises.
    told_verdicts: usize,
}

impl<P: Passing> Scrub<P> {
    /// Makes the job for the blocks that `restored` does not list as done. `may` is `Used` if gaps can be looked for, else the reason why
    /// not.
    pub fn new(
        scan: Freeblock<P>,
        plan: ScrubPlan,
        may: Gaps,
        disk: Arc<dyn Served>,
        (files, restored): (Files, Option<&Restored>),
        (face, piece): (Arc<Face>, Sectors),
    ) -> io::Result<Scrub<P>> {
        let gaps = face.status().gaps;
        let mut reading = Reading::new(scan, &plan, (may, gaps));
        match (&files.sink, restored) {
            (Some(sink), _) if plan.is_copy() => {
                reading.skip_done(&plan, &sink.watch().marks());
            }
            (_, Some(restored)) => reading.skip_done(&plan, &restored.done),
            (_, None) => {}
        }
        face.status().left = reading.wanted();
        let (progress, durable) = files.progress.unzip();
        let syncs = durable.map(Syncs::begin).transpose()?;
        let paused = face.paused.load(Ordering::SeqCst);
        if plan.promises.any() {
            face.promise(plan.promises);
        }
        let said = restored.and_then(|restored| restored.verdict);
        Ok(Scrub {
            state: State::new(paused, Ending::NotYet),
            taker: files.sink.map(|sink| Taker::new(sink, &plan)),
            reading,
            on_file: OnFile {
                promises: plan.promises,
                said,
                paused,
            },
            said,
            plan,
            face,
            disk,
            watches: files.watches,
            progress,
            syncs,
            keep_at: Time::ZERO,
            is_gone: None,
            is_asked: false,
            piece,
            date_taken: None,
            told_verdicts: 0,
        })
    }

    /// Makes each block of a copy wanted that is neither marked as copied nor wanted. A client may have written such a block while the job
    /// was being made.
    pub fn misses_nothing(&mut self) {
        if let Some(taker) = self.taker.as_ref().filter(|_| self.plan.is_copy()) {
            let marks = taker.sink.watch().marks();
            self.reading.want_all_but(&self.plan, marks);
        }
    }

    /// Number of blocks that are not done.
    fn left(&self) -> u64 {
        let under_way = self.reading.open.len() as u64;
        match self.is_drawn() {
            true => under_way,
            false => self.reading.wanted() + under_way,
        }
    }

    /// Returns true if the scrub may request reads at present.
    fn reads(&self) -> bool {
        let goes_on = matches!(self.state, State::Runs(_)) && !self.is_stopped();
        goes_on && self.taker.as_ref().is_none_or(Taker::has_room)
    }

    fn is_stopped(&self) -> bool {
        self.face.stopped.load(Ordering::SeqCst)
    }

    /// Handles orders of the controlling threads and results of the taker, and does the periodic work that is due.
    fn poll(&mut self, now: Time) {
        if self.state == State::Over {
            return;
        }
        self.take_results(now);
        self.look_at_watches(now);
        self.look_for_line(now);
        let paused = self.face.paused.load(Ordering::SeqCst);
        self.state.pause(paused);
        if paused != self.on_file.paused {
            self.on_file.paused = paused;
            let state = if paused { "paused" } else { "running" };
            let told = self.progress.as_mut().map(|kept| kept.state(state));
            self.kept(told);
            self.face.status().pace.forget();
            self.publish(now);
        }
        if self.face.goes_on.swap(false, Ordering::SeqCst) {
            self.goes_on(now);
        }
        self.see_to_promises(now);
        if now >= self.keep_at {
            self.keep();
            self.keep_at = now.saturating_add(KEEP_EVERY);
        }
        self.end_if_over(now);
        let takes = self.taker.as_ref().map(|taker| taker.takes);
        if self.is_asked && takes != Some(Takes::Tries) {
            self.is_asked = false;
            self.face.answers();
        }
    }

    /// Handles `resume`: clears errors and tries all writes again.
    fn goes_on(&mut self, now: Time) {
        self.is_asked = true;
        // A scrub that can only begin anew does not continue.
        if !matches!(self.state, State::Lost(_) | State::Over) {
            self.state.go_on(self.on_file.paused);
            self.reading.rests = FailurePause::default();
            if self
                .syncs
                .as_ref()
                .is_some_and(|syncs| syncs.durable.again())
                && let Some(progress) = &mut self.progress
            {
                // The kernel does not retry a failed write by itself.
                progress.all_changed();
            }
            if let Some(taker) = &mut self.taker {
                taker.sink.send(Task::Again);
                taker.takes = Takes::Tries;
            }
            self.keep();
        }
        self.publish(now);
    }

    /// Writes the progress to its files.
    fn keep(&mut self) {
        self.keep_marks();
        self.keep_counts();
        self.keep_promises();
        let Some(progress) = self.progress.as_mut().filter(|kept| kept.is_dirty()) else {
            return;
        };
        if let Err(error) = progress.is_in_place() {
            self.is_gone = Some(format!("{}: {error}", progress.path().shown()));
            return;
        }
        let unreadable = self.face.status().unreadable.clone();
        let (plan, reading) = (&self.plan, &self.reading);
        // For blocks with unreadable sectors, lines and not bits say that they are done.
        let written =
            progress.write(|word| !(reading.undone(word) | plan.with_any(&unreadable, word)));
        self.kept(Some(written));
        let synced = self.syncs.as_ref().map(Syncs::ask);
        self.kept(synced);
    }

    /// Holds the scrub if its progress could not be written.
    fn kept(&mut self, written: Option<io::Result<()>>) {
        if let (Some(Err(error)), Some(progress)) = (written, &self.progress) {
            let problem = format!("{}: {error}", progress.path().shown());
            self.hold_until_mended(&problem);
        }
    }

    fn hold_until_mended(&mut self, problem: &str) {
        self.hold(format!(
            "{problem}; mend that, and `headtime scrub .. resume` goes on"
        ));
    }

    fn hold(&mut self, problem: String) {
        tracing::error!(disk = self.disk.name(), "the scrub rests: {problem}");
        self.state.hold(problem);
    }

    /// Notes that a block is done.
    fn close(&mut self, block: u64) {
        self.reading.close(block);
        let progress = self.progress.as_mut().filter(|_| !self.plan.is_copy());
        let written = progress.map(|kept| kept.looked(block, &self.face.status().unreadable));
        self.kept(written);
        self.changed(block, 1);
    }

    fn changed(&mut self, block: u64, blocks: u64) {
        // The marks of a copy's watch say which blocks are done.
        let progress = self.progress.as_mut().filter(|_| !self.plan.is_copy());
        if let Some(progress) = progress {
            for block in (block..block + blocks)
                .step_by(64)
                .chain([block + blocks - 1])
            {
                progress.changed(block);
            }
        }
    }

    /// Updates the status, unless the scrub is over.
    fn publish(&mut self, now: Time) {
        if self.state == State::Over {
            return;
        }
        let left = self.left();
        let mut status = self.face.status();
        let is_told = self.face.goes_on.load(Ordering::SeqCst);
        let paused = self.face.paused.load(Ordering::SeqCst);
        status.state = match self.state.problem() {
            // A caller of `resume` must not see the state from before the call.
            _ if is_told => ScrubState::Running,
            Some(why) => ScrubState::Held(why.to_owned()),
            None if paused => ScrubState::Paused,
            None => ScrubState::Running,
        };
        let read = status.blocks.saturating_sub(left);
        status.left = left;
        self.reading.tell(&mut status);
        if let (Some(hashes), Some(taker)) = (&mut status.hashes, &self.taker) {
            hashes.compared = taker.compared;
        }
        if let (Some(copy), Some(moment)) = (&mut status.copy, self.moment()) {
            (copy.again, copy.is_settled) = (moment.again, moment.is_drawn());
        }
        status.pace.note(now, read);
    }

    /// Reason to read parts of blocks at clients' cost.
    fn urgency(&self) -> Urgency {
        match self.hurries() {
            _ if self.is_closing() => Urgency::Closing,
            true if self.plan.promises.any() => Urgency::Promised,
            true => Urgency::Due,
            false => Urgency::None,
        }
    }
}

impl<P: Passing + Clone + 'static> Background for Scrub<P> {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.poll(now);
        self.reading.look_at(engine, approach);
        self.reading.note_parts(now);
        if !self.reads() || now < self.reading.rests.until() {
            return None;
        }
        self.close_in();
        let in_gaps = approach.filter(|_| self.reading.gaps == Gaps::Used);
        let urgency = self.urgency();
        if approach.is_none() || urgency != Urgency::None {
            let how = (self.plan.idle(), urgency);
            let part = self.reading.read_part(now, (engine, approach), how);
            if part.is_some() {
                return part;
            }
        }
        // For a date the scrub reads at foreground priority, even if gaps cannot be used.
        let in_order = self
            .moment()
            .is_some_and(|moment| moment.line == Line::ClosesIn)
            || self.plan.promises.any();
        let asked = match approach.is_some() && in_gaps.is_none() && !in_order {
            true => None,
            false => self.reading.scan.joins(now, engine, in_gaps),
        };
        let is_due = urgency == Urgency::Due && self.reading.scan.has_only_suspects();
        let asked = asked.or_else(|| match is_due {
            true => self.reading.scan.block_before(engine, approach),
            false => None,
        });
        if let Some((arrival, _, join)) = &asked {
            self.reading.has_asked(arrival, *join);
            // The line has to be drawn before another write can arrive.
            self.look_for_line(now);
        }
        asked
    }

    fn is_offered(&self) -> bool {
        let may = matches!(self.reading.gaps, Gaps::Used | Gaps::OtherOrder);
        let may = may || self.plan.promises.any();
        self.reads() && may && (self.reading.scan.is_offered() || self.hurries())
    }

    fn depth(&self) -> Option<u32> {
        self.reading.scan.depth().filter(|_| self.reads())
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        let dirty = self.progress.as_ref().is_some_and(ProgressFile::is_dirty);
        let dirty = dirty || self.watches.iter().any(|watch| watch.is_dirty());
        let keeps = (dirty && self.state.goes_on()).then_some(self.keep_at);
        let next = self.reading.next_part(engine, self.plan.idle()).into_iter();
        let next = next.chain(self.next_part_beside());
        let next = next.chain(self.reading.scan.next_wakeup(engine));
        let next = next.chain(self.can_close_in().then_some(Time::ZERO)).min();
        let reads = next.filter(|_| self.reads());
        let reads = reads.map(|at| at.max(self.reading.rests.until()));
        keeps.into_iter().chain(reads).chain(self.next_look()).min()
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        match self.reading.may {
            Gaps::Used => self.reading.scan.tracker(),
            _ => None,
        }
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        self.reading.scan.arrives(now, arrival);
        if arrival.op.changes() && !arrival.extent.is_empty() {
            self.will_be_written(now, arrival.extent);
        }
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        // The data of clients' reads do not reach the scrub, so a scrub that takes data cannot use these reads.
        let counts = self.reads() && self.taker.is_none();
        if self.reading.seen(now, done, counts) {
            let blocks = self.reading.numbers(done.request.extent);
            let (first, last) = blocks.into_inner();
            self.changed(first, last - first + 1);
            self.publish(now);
            self.end_if_over(now);
        }
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        match done.id >= PARTS_FROM {
            true => self.part_was_read(now, done, data),
            false => self.was_read(now, done, data),
        }
        self.publish(now);
        self.poll(now);
    }
}

impl<P: Passing> Drop for Scrub<P> {
    /// Writes the progress, so that the end of a server loses nothing.
    fn drop(&mut self) {
        if self.state != State::Over {
            self.keep();
        }
        let taker = self.taker.take();
        for watch in &self.watches {
            watch.ends_with_disk();
        }
        if self.disk.is_stopped()
            && let Some(worker) = taker.map(|taker| taker.sink.thread())
        {
            // No other thread joins the sink's thread any more. The hashes have to be complete before the server ends.
            worker.join();
        }
    }
}
