//! Control of the scrubs of a disk: begin, pause, resume, stop, and continue after a restart.

mod promises;
mod watches;

use super::ask::{ScrubAsk, ScrubError};
use super::blocks::Keeps;
use super::flat::Flat;
use super::identity::{Identity, ProgressError, serial_of};
use super::job::{Face, Files, Scrub};
use super::progress::{ProgressFile, Restored, ScrubPlan};
use super::served::{MakeJob, Served};
use super::sink::{Sink, SinkThread};
use super::status::{
    CopyStatus, Damage, FoundSectors, Gaps, HashStatus, Pace, ScrubState, ScrubStatus,
};
use super::watch::Watch;
use headtime_disk::Model;
use headtime_disk::profile::Profile;
use headtime_gaps::{Freeblock, FreeblockOptions, Idle};
use headtime_linux::clock::Wall;
use headtime_linux::shown::PathShown as _;
use headtime_sched::Passing;
use headtime_units::{Bytes, Sectors};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Bytes of the largest read in idle time. A client's request that arrives meanwhile waits for the read, which takes a disk a few
/// milliseconds.
const IDLE_PIECE: u64 = 256 << 10;

/// Longest wait for the last reads of the scrub before, when a scrub begins anew.
const LET_GO: Duration = Duration::from_secs(1);

/// The scrubs of one disk.
pub struct Scrubs {
    disk: Arc<dyn Served>,
    identity: Identity,
    belief: Option<Profile>,
    model: OnceLock<Option<Arc<Model>>>,
    /// Path of the progress file, if progress is recorded.
    file: Option<PathBuf>,
    /// True if this server is the only writer to the disk, also between two runs of the server.
    sole_writer: bool,
    now: Mutex<Now>,
    /// Answer to a question about the last scrub. Locked for a moment only; `now` is locked while files are written.
    shown: Mutex<Shown>,
}

/// Answer to a question about the last scrub.
#[derive(Default)]
enum Shown {
    #[default]
    None,
    Scrub(Arc<Face>),
    /// Reason why the scrub of an earlier server does not continue.
    Obstacle(String),
}

/// Present scrub and watches.
#[derive(Default)]
struct Now {
    /// The last scrub.
    last: Option<Last>,
    /// Watch for hashes, which outlives the scrub that made it.
    hashed: Option<Arc<Watch>>,
    /// Watch for an unfinished copy, as long as a job has it. A finished image belongs to the user.
    copied: Weak<Watch>,
    /// Reason why hashes of an earlier server cannot be compared, and reason why an earlier server's copy does not count.
    why_not: Option<String>,
    why_anew: Option<String>,
}

struct Last {
    plan: ScrubPlan,
    face: Arc<Face>,
    /// Thread that hashes or copies for this scrub.
    worker: SinkThread,
}

/// State that a scrub begins or continues with.
#[derive(Default)]
struct BeginsWith<'a> {
    progress: Option<ProgressFile>,
    restored: Option<&'a Restored>,
    /// Changes that an earlier attempt of the scrub had found, and the state of the new one.
    changed: FoundSectors,
    state: Option<ScrubState>,
    watches: Vec<Arc<Watch>>,
    /// Watch for the hashes or the image of this scrub.
    watch: Option<Arc<Watch>>,
    why_not: Option<String>,
    why_anew: Option<String>,
}

impl Scrubs {
    /// Makes the control of a disk without a scrub. `device` names the device behind the disk. `folder` is the directory of the progress
    /// files, and is created with the first scrub. `belief` is the assumed profile, which gap reads need.
    pub fn new(
        disk: impl Served + 'static,
        device: &str,
        belief: Option<Profile>,
        folder: Option<&Path>,
    ) -> Scrubs {
        let disk = Arc::new(disk);
        let file = folder.map(|folder| folder.join(format!("{}.scrub", disk.name())));
        Scrubs {
            file,
            sole_writer: false,
            now: Mutex::default(),
            shown: Mutex::default(),
            identity: Identity {
                device: serial_of(device).unwrap_or_else(|| device.to_owned()),
                capacity: disk.capacity(),
                sector_bytes: disk.sector_bytes(),
            },
            disk,
            belief,
            model: OnceLock::new(),
        }
    }

    /// Sets whether this server is the only writer to the disk, also between two runs of the server. With a sole writer, hashes stay valid
    /// over restarts.
    pub fn with_sole_writer(mut self, sole_writer: bool) -> Scrubs {
        self.sole_writer = sole_writer;
        self
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `last` the scrub that callers see.
    fn show(&self, now: &mut Now, last: Last) {
        *self.shown() = Shown::Scrub(Arc::clone(&last.face));
        now.last = Some(last);
    }

    /// Reason why the scrub of an earlier server does not continue; `None` once another scrub begins.
    pub fn obstacle(&self) -> Option<String> {
        match &*self.shown() {
            Shown::Obstacle(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// Status of the last scrub; `None` if there was none. The call never waits for a scrub that begins.
    pub fn status(&self) -> Option<ScrubStatus> {
        let face = match &*self.shown() {
            Shown::Scrub(face) => Arc::clone(face),
            _ => return None,
        };
        let mut status = face.status().clone();
        if face.must_begin_anew.load(Ordering::SeqCst) {
            let promise = status.promise;
            status.promise = promise.map(|promise| promise.unless_passed(Wall::now()));
        }
        Some(status)
    }

    /// Continues a scrub that an earlier server has not finished. Call this before a client can write. Builds the state of the disk's
    /// blocks, which takes some tenths of a second for a large disk.
    ///
    /// # Errors
    ///
    /// If a file of the scrub cannot be read, or is of another disk. [`Scrubs::obstacle`] returns the error as text.
    pub fn resume_unfinished(&self) -> Result<(), ScrubError> {
        self.try_resume().inspect_err(|error| {
            *self.shown() = Shown::Obstacle(error.to_string());
        })
    }

    fn try_resume(&self) -> Result<(), ScrubError> {
        let mut now = self.now();
        let Some(file) = &self.file else {
            return Ok(());
        };
        // Both watches are resumed before any other step can fail.
        let both = [Keeps::Hashes, Keeps::Image];
        let resumed = both.map(|keeps| self.resume_watch(&mut now, keeps));
        let watches: Vec<_> = (resumed.iter().flatten().flatten()).cloned().collect();
        if !watches.is_empty() {
            self.rest(watches);
        }
        for resumed in resumed {
            resumed?;
        }
        if let Some((progress, restored)) = self.open_progress(file)? {
            let unfinished = !restored.state.is_over();
            if !unfinished || !restored.plan.is_copy() {
                self.end_copy(&mut now);
            }
            let last = match unfinished {
                false => self.over(restored),
                true => self.go_on_with(&mut now, progress, restored)?,
            };
            self.show(&mut now, last);
        }
        Ok(())
    }

    /// Opens the progress file, and logs a warning if the file is damaged.
    fn open_progress(
        &self,
        file: &Path,
    ) -> Result<Option<(ProgressFile, Restored)>, ProgressError> {
        let opened = ProgressFile::open(file, &self.identity)?;
        if let Some((_, restored)) = &opened
            && restored.damage.pages > 0
        {
            let (disk, path, pages) = (self.disk.name(), file.shown(), restored.damage.pages);
            let sectors = restored.damage.sectors.sectors();
            tracing::warn!(
                disk,
                pages,
                sectors,
                "{path}: pages or lines are damaged; the sectors whose state they had are read again"
            );
        }
        Ok(opened)
    }

    /// Begins a scrub, or continues an unfinished scrub with the same options, also a paused one.
    ///
    /// # Errors
    ///
    /// If the options are invalid, or differ from the unfinished scrub's.
    pub fn begin(&self, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let mut now = self.now();
        if unfinished(&now).is_ok() {
            return self.go_on_as(&mut now, ask);
        }
        let plan = self.plan(ask)?;
        self.may_begin(&plan)?;
        self.may_promise(&plan, plan.range.len.get())?;
        let Some(file) = &self.file else {
            if let Some((keeps, _)) = &plan.keeps {
                return Err(ScrubError::NotKept(keeps.key()));
            }
            let begun = self.start(plan, BeginsWith::default())?;
            self.show(&mut now, begun);
            return Ok(());
        };
        // The file may have been added or removed since the server started.
        if let Some((kept, restored)) = self.open_progress(file)?
            && !restored.state.is_over()
        {
            self.fits(&restored.plan, ask)?;
            let again = self.go_on_with(&mut now, kept, restored)?;
            self.show(&mut now, again);
            return self.go_on_as(&mut now, ask);
        }
        let begun = self.begin_anew(
            &mut now,
            plan,
            &FoundSectors::default(),
            ScrubState::Running,
        )?;
        self.show(&mut now, begun);
        Ok(())
    }

    /// Continues the scrub of a progress file. Hashes and copies count only if all writes since were noticed. Otherwise the scrub begins
    /// anew.
    fn go_on_with(
        &self,
        now: &mut Now,
        progress: ProgressFile,
        restored: Restored,
    ) -> Result<Last, ScrubError> {
        let plan = restored.plan.clone();
        let mut kept = None;
        if let Some((keeps, path)) = &plan.keeps {
            let watch = now.watch(*keeps);
            kept = watch.filter(|watch| watch.is_of((*keeps, path), plan.part, plan.block));
        }
        if plan.keeps.is_some() && kept.is_none() {
            // The new progress file takes the place of this one.
            drop(progress);
            return self.begin_anew(now, plan, &restored.changed, restored.state);
        }
        self.start(
            plan,
            BeginsWith {
                progress: Some(progress),
                restored: Some(&restored),
                watches: now.watches(),
                watch: kept,
                ..BeginsWith::default()
            },
        )
    }

    /// Begins a scrub with no block done. `changed` lists changes that an earlier attempt found, which the status still shows.
    fn begin_anew(
        &self,
        now: &mut Now,
        plan: ScrubPlan,
        changed: &FoundSectors,
        state: ScrubState,
    ) -> Result<Last, ScrubError> {
        // The scrub before finishes its hashes first.
        now.last.iter().for_each(|last| last.worker.join());
        let mut from = BeginsWith::default();
        if let Some(file) = &self.file {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(|error| ProgressError::Io {
                path: folder.to_owned(),
                error,
            })?;
            if let Some((keeps, path)) = &plan.keeps {
                let (watch, why_not) =
                    self.watch_for(now, (*keeps, path), plan.part, plan.block)?;
                (from.watch, from.why_not) = (Some(watch), why_not);
                if *keeps == Keeps::Image {
                    from.why_anew = now.why_anew.take();
                }
            }
            from.watches = now.watches();
            let says = Restored::new(plan.clone(), changed, state.clone());
            from.progress = Some(ProgressFile::create(file, &says)?);
        }
        from.changed.clone_from(changed);
        from.state = Some(state);
        self.start(plan, from)
    }

    /// Pauses the scrub.
    ///
    /// # Errors
    ///
    /// If no scrub is under way, or if the scrub has lost its results and can only begin anew.
    pub fn pause(&self) -> Result<(), ScrubError> {
        let face = unfinished(&self.now())?;
        if face.must_begin_anew.load(Ordering::SeqCst) {
            return Err(ScrubError::OnlyAnew);
        }
        face.paused.store(true, Ordering::SeqCst);
        self.disk.ask_job();
        Ok(())
    }

    /// Resumes the scrub. If its results cannot be relied on, the scrub begins anew.
    ///
    /// # Errors
    ///
    /// If no scrub is under way, or the scrub has to begin anew and cannot.
    pub fn resume(&self) -> Result<(), ScrubError> {
        let mut now = self.now();
        unfinished(&now)?;
        self.go_on(&mut now)
    }

    /// Stops the scrub and removes its progress.
    ///
    /// # Errors
    ///
    /// If no scrub is under way.
    pub fn stop(&self) -> Result<(), ScrubError> {
        // The lock is held to the end. A caller of `resume` could otherwise begin the scrub whose files are removed here.
        let mut now = self.now();
        let face = unfinished(&now)?;
        face.stopped.store(true, Ordering::SeqCst);
        self.disk.ask_job();
        if face.must_begin_anew.load(Ordering::SeqCst) && face.wait_for_job(LET_GO) {
            // The job has ended, so the file is removed here.
            if let Some(file) = &self.file {
                match fs::remove_file(file) {
                    Ok(()) => {}
                    // The job has removed the file already.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        let path = file.clone();
                        return Err(ProgressError::Io { path, error }.into());
                    }
                }
            }
            self.end_copy(&mut now);
            face.status().state = ScrubState::Stopped;
        }
        // The next scrub may begin at once, unless a read in the drive takes longer.
        face.wait_for_job(LET_GO);
        Ok(())
    }

    /// Makes the scrub continue, and waits up to [`LET_GO`] for the outcome.
    fn go_on(&self, now: &mut Now) -> Result<(), ScrubError> {
        let Some(Last { plan, face, .. }) = &now.last else {
            return Err(ScrubError::None);
        };
        if face.must_begin_anew.load(Ordering::SeqCst) {
            if !face.wait_for_job(LET_GO) {
                return Err(ScrubError::UnderWay);
            }
            let (plan, changed) = (plan.clone(), face.status().changed.clone());
            self.may_begin(&plan)?;
            let begun = self.begin_anew(now, plan, &changed, ScrubState::Running)?;
            self.show(now, begun);
            return Ok(());
        }
        {
            // The job announces its end under the same lock.
            let mut status = face.status();
            if status.state.is_over() {
                return Ok(());
            }
            face.paused.store(false, Ordering::SeqCst);
            face.go_on();
            // A caller that asks for the status before the job has run must not see the old state.
            status.state = ScrubState::Running;
        }
        self.disk.ask_job();
        face.wait_for_answer(LET_GO);
        match &face.status().state {
            ScrubState::Held(why) => Err(ScrubError::Held(why.clone())),
            _ => Ok(()),
        }
    }

    /// Checks that the options match an unfinished scrub's.
    fn fits(&self, plan: &ScrubPlan, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let sector_bytes = self.identity.sector_bytes;
        let block = plan.block.bytes(sector_bytes);
        let asked = self.plan(&ScrubAsk {
            // The range is rounded to whole blocks of this size, unless the options name another size.
            block: ask.block.or(Some(block)),
            ..ask.clone()
        })?;
        let of = |keeps: Keeps| plan.keeps.as_ref().filter(|(kept, _)| *kept == keeps);
        let file = |keeps: Keeps| match of(keeps) {
            Some((_, file)) => file.shown().to_string(),
            None => "none".to_owned(),
        };
        let idle = || match plan.idle() {
            Some(idle) => idle.to_string(),
            None => "off".to_owned(),
        };
        // A request for a copy without a range must not continue a copy of a part.
        let has_range = match plan.is_copy() {
            true => (ask.range.is_none() && ask.copy.is_none()) || asked.part == plan.part,
            false => ask.range.is_none() || asked.range == plan.range,
        };
        let has_block = ask.block.is_none() || asked.block == plan.block;
        let has_idle = ask.idle.is_none() || asked.idle() == plan.idle();
        let has_hash = ask.hash.is_none() || asked.keeps == plan.keeps;
        let has_copy = ask.copy.is_none() || asked.keeps == plan.keeps;
        let (what, is) = if !has_hash {
            ("hash", file(Keeps::Hashes))
        } else if !has_copy {
            ("copy", file(Keeps::Image))
        } else if !has_range {
            ("range", plan.part.to_string())
        } else if !has_block {
            ("block", Bytes(block).to_string())
        } else if !has_idle {
            ("idle", idle())
        } else {
            return Ok(());
        };
        Err(ScrubError::Unfinished { what, is })
    }

    fn plan(&self, ask: &ScrubAsk) -> Result<ScrubPlan, ScrubError> {
        if self.disk.members() != 1 {
            return Err(ScrubError::Volume);
        }
        let plan = ask.plan(&self.identity)?;
        match (&plan.keeps, &self.file) {
            (Some((what, file)), Some(own)) if are_side_by_side(file, own) => {
                let key = match what {
                    Keeps::Image => "copy",
                    Keeps::Hashes => "hash",
                };
                let problem = format!(
                    "{}: lies where the server keeps what it knows of scrubs; allowed is any other directory",
                    file.shown()
                );
                Err(ScrubError::Value { key, problem })
            }
            _ => Ok(plan),
        }
    }

    /// `Used` if gaps can be looked for, else the reason why not.
    fn gaps(&self) -> Gaps {
        match &self.belief {
            None => Gaps::NoBelief,
            Some(profile) => {
                let (geometry, disk) = (&profile.geometry, &self.identity);
                let fits = geometry.sector_bytes == disk.sector_bytes
                    && geometry.capacity >= disk.capacity;
                match fits {
                    true => Gaps::Used,
                    false => Gaps::WrongBelief,
                }
            }
        }
    }

    /// Expected use of gaps, until requests of clients show the actual one.
    fn expected(&self, may: Gaps) -> Gaps {
        may.at_depth(self.disk.depth())
    }

    /// Checks that the scrub has idle time or gaps to read in.
    fn may_begin(&self, plan: &ScrubPlan) -> Result<(), ScrubError> {
        let may = self.gaps();
        match plan.idle().is_none() && may != Gaps::Used {
            true => Err(ScrubError::NothingToReadIn(may.text())),
            false => Ok(()),
        }
    }

    fn start(&self, plan: ScrubPlan, from: BeginsWith<'_>) -> Result<Last, ScrubError> {
        self.may_begin(&plan)?;
        let may = self.gaps();
        let restored = from.restored;
        let mut damage = restored.map_or_else(Damage::default, |restored| restored.damage.clone());
        if let Some(watch) = &from.watch {
            damage.add_all(&watch.take_damage());
        }
        let kept = from.progress.as_ref();
        let kept = kept.map(|kept| kept.path().display().to_string());
        let found = |of: fn(&Restored) -> &FoundSectors| restored.map(of).cloned();
        let mut status = ScrubStatus {
            state: (from.state)
                .or(restored.map(|restored| restored.state.clone()))
                .unwrap_or(ScrubState::Running),
            unreadable: found(|restored| &restored.unreadable).unwrap_or_default(),
            changed: found(|restored| &restored.changed).unwrap_or(from.changed),
            damage,
            gaps: self.expected(may),
            ..blank(&plan, kept)
        };
        if let Some(hashes) = &mut status.hashes {
            hashes.why_not = from.why_not;
        }
        if let Some(copy) = &mut status.copy {
            copy.why_anew = from.why_anew;
        }
        let face = Arc::new(Face::new(status));
        let progress = from.progress;
        let progress = progress.map(|progress| Ok((progress.durable()?, progress)));
        let progress = progress.transpose().map_err(ScrubError::Machine)?;
        let mut sink = None;
        if let (Some(watch), Some((durable, _))) = (from.watch, &progress) {
            sink = Some(Sink::start(
                watch,
                Arc::clone(durable),
                Arc::clone(&self.disk),
            )?);
        }
        let worker = sink.as_ref().map(Sink::thread).unwrap_or_default();
        let files = Files {
            progress: progress.map(|(durable, progress)| (progress, durable)),
            watches: from.watches,
            sink,
        };
        let from = (files, restored);
        let make = match self.model().filter(|_| may == Gaps::Used) {
            Some(model) => self.job(Arc::clone(model), &plan, may, from, &face)?,
            None => self.job(Flat(self.identity.capacity), &plan, may, from, &face)?,
        };
        self.disk.run_job(make);
        Ok(Last { plan, face, worker })
    }

    /// Model of the assumed profile.
    fn model(&self) -> Option<&Arc<Model>> {
        let model = || (self.belief.as_ref()).map(|profile| Arc::new(Model::new(profile)));
        self.model.get_or_init(model).as_ref()
    }

    fn job<P: Passing + Clone + Send + 'static>(
        &self,
        model: P,
        plan: &ScrubPlan,
        may: Gaps,
        from: (Files, Option<&Restored>),
        face: &Arc<Face>,
    ) -> Result<MakeJob, ScrubError> {
        let piece = IDLE_PIECE / u64::from(self.identity.sector_bytes);
        let options = FreeblockOptions {
            block: plan.block,
            idle: plan.idle().map(|after| Idle {
                after,
                piece: Sectors::new(piece),
            }),
            ..FreeblockOptions::default()
        };
        let scan = Freeblock::new(model, self.identity.capacity, plan.range, options);
        let scan = scan.expect("a model that knows where the platter is, or none");
        let scan = scan.with_end_told();
        let (plan, face) = (plan.clone(), (Arc::clone(face), Sectors::new(piece)));
        let mut job = Scrub::new(scan, plan, may, Arc::clone(&self.disk), from, face)?;
        Ok(Box::new(move || {
            // On the disk's thread no write can start before the job is there.
            job.misses_nothing();
            Box::new(job)
        }))
    }

    /// Status of a scrub that had ended before this server started.
    fn over(&self, restored: Restored) -> Last {
        let kept = self.file.as_ref().map(|file| file.display().to_string());
        let mut status = ScrubStatus {
            state: restored.state,
            left: 0,
            damage: restored.damage,
            unreadable: restored.unreadable,
            changed: restored.changed,
            gaps: self.expected(self.gaps()),
            promise: restored
                .plan
                .promises
                .became(restored.verdict, restored.done_at),
            ..blank(&restored.plan, kept)
        };
        if let (Some(hashes), Some(compared)) = (&mut status.hashes, restored.compared) {
            (hashes.compared, hashes.why_not) = compared;
        }
        Last {
            plan: restored.plan,
            face: Arc::new(Face::new(status)),
            worker: SinkThread::default(),
        }
    }
}

/// Returns true if two files are in one directory.
fn are_side_by_side(one: &Path, other: &Path) -> bool {
    // The directory may not exist yet.
    let directory = |file: &Path| {
        let parent = file.parent().map(Path::to_owned);
        parent.map(|parent| fs::canonicalize(&parent).unwrap_or(parent))
    };
    directory(one) == directory(other)
}

/// Status of a scrub without progress.
fn blank(plan: &ScrubPlan, kept: Option<String>) -> ScrubStatus {
    let blocks = plan.range_blocks();
    let blocks = blocks.end - blocks.start;
    let file = |what: Keeps| {
        let keeps = plan.keeps.clone().filter(|(keeps, _)| *keeps == what);
        keeps.map(|(_, file)| file)
    };
    ScrubStatus {
        state: ScrubState::Running,
        range: plan.range,
        block: plan.block,
        blocks,
        left: blocks,
        in_gaps: 0,
        in_idle_time: 0,
        by_others: 0,
        errors: 0,
        failing: 0,
        unreadable: FoundSectors::default(),
        changed: FoundSectors::default(),
        outright: 0,
        damage: Damage::default(),
        hashes: file(Keeps::Hashes).map(|file| HashStatus {
            file,
            compared: 0,
            why_not: None,
        }),
        copy: file(Keeps::Image).map(|file| CopyStatus {
            file,
            part: plan.copied_part().map(|part| (part.start, part.end)),
            again: 0,
            is_settled: false,
            why_anew: None,
        }),
        gaps: Gaps::NoBelief,
        idle: plan.idle(),
        kept,
        pace: Pace::default(),
        promise: plan.promises.unknown(Wall::now()),
    }
}

fn unfinished(now: &Now) -> Result<Arc<Face>, ScrubError> {
    let face = now.last.as_ref().map(|last| Arc::clone(&last.face));
    let face = face.filter(|face| !face.status().state.is_over());
    face.ok_or(ScrubError::None)
}

impl fmt::Debug for Scrubs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubs({:?}, {:?})", self.disk, self.file)
    }
}
