//! The scrubs of a disk: begun, paused, stopped, and gone on with after a restart.

use super::flat::Flat;
use super::hashes::HashFile;
use super::identity::{Identity, ProgressError};
use super::job::{Face, Files, Resting, Scrub};
use super::progress::{Plan, ProgressFile, Restored};
use super::sink::{Sink, SinkThread};
use super::status::{FoundSectors, Gaps, HashStatus, Pace, ScrubState, ScrubStatus};
use super::watch::{Resumed, Watch};
use crate::buffer::BUFFER_BYTES_MAX;
use crate::disk::Disk;
use headtime_disk::Model;
use headtime_disk::profile::Profile;
use headtime_engine::{Background, Freeblock, FreeblockOptions, Idle, Member};
use headtime_sched::Passing;
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What is to be scrubbed, and how; what is not said is as usual, or as the unfinished scrub has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubAsk {
    /// The first byte and the one behind the last; the whole disk if `None`.
    pub range: Option<(u64, u64)>,
    /// Bytes of a block.
    pub block: Option<u64>,
    /// After how long without requests idle time is used; `Some(None)` if it is not.
    pub idle: Option<Option<Nanos>>,
    /// Where hashes of blocks are kept.
    pub hash: Option<PathBuf>,
}

/// Why a scrub does not do what it is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// What is asked cannot be.
    #[error("{key}: {problem}")]
    Value {
        /// The option.
        key: &'static str,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// There is an unfinished scrub that is another one.
    #[error(
        "an unfinished scrub has another {0}; go on with it by giving no options, or stop it before another one begins"
    )]
    Unfinished(&'static str),
    /// There is nothing to be told.
    #[error("no scrub is under way")]
    None,
    /// Nothing could be read: there is no idle time to be used, and gaps cannot be.
    #[error("--idle off leaves nothing to read in: gaps are {0}")]
    NothingToReadIn(&'static str),
    /// What was hashed could not be told from what was written since.
    #[error(
        "--hash takes scrub = \"DIRECTORY\" in the configuration of the disk, where it is kept what was written to"
    )]
    NotKept,
    /// The drive has not answered yet.
    #[error("a read of the scrub is still under way; try again when it has ended")]
    UnderWay,
    /// A disk of several members.
    #[error("a volume of several devices cannot be scrubbed")]
    Volume,
    /// Its progress cannot be kept.
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// The machine refuses a thread.
    #[error("{0}")]
    Machine(#[from] io::Error),
}

/// Idle time begins so long after the last request, if nothing else is said: longer than a program thinks that reads on, shorter
/// than a person does.
const IDLE_AFTER: Nanos = Nanos::from_millis(50);

/// The most that is read at a time while nobody asks for anything: whoever comes then waits for it. A disk reads it in a few
/// milliseconds.
const IDLE_PIECE: u64 = 256 << 10;

/// Blocks of a disk, if nothing else is said: as small as possible, since small ones pass whole in more gaps, but no more than
/// this, for which all that is known of blocks and tracks takes less than 64 MB.
const BLOCKS_MAX: u64 = 80_000_000;
const BLOCK_MIN: u64 = 8 << 10;

/// The largest block that can be asked for.
const BLOCK_MAX: u64 = 8 << 20;

/// How long a scrub that begins anew waits for the last reads of the one before.
const LET_GO: Duration = Duration::from_secs(1);

/// What one read asks for fits a buffer: a block in idle time, and in a gap less than a turn's sectors.
const _: () = assert!(BLOCK_MAX <= BUFFER_BYTES_MAX as u64);

/// The scrubs of one disk.
pub struct Scrubs {
    disk: Disk,
    identity: Identity,
    belief: Option<Profile>,
    model: OnceLock<Option<Arc<Model>>>,
    /// Where progress is kept, if it is.
    file: Option<PathBuf>,
    /// Where it is kept which blocks have been written to since they were hashed.
    marks: Option<PathBuf>,
    /// Nobody else writes to the disk, also while no server runs.
    sole_writer: bool,
    now: Mutex<Now>,
    /// What is told of the last one. Held for a moment only, unlike `now`, which whoever begins one holds while it writes files.
    shown: Mutex<Option<Arc<Face>>>,
}

/// What there is at present.
#[derive(Default)]
struct Now {
    /// The last scrub.
    last: Option<Last>,
    /// Who notices writes, from one scrub with hashes to the next.
    watch: Option<Arc<Watch>>,
    /// Why what a former server has hashed cannot be compared.
    why_not: Option<String>,
}

struct Last {
    plan: Plan,
    face: Arc<Face>,
    /// What hashes for it.
    worker: SinkThread,
}

/// What a scrub begins or goes on with.
#[derive(Default)]
struct BeginsWith<'a> {
    progress: Option<ProgressFile>,
    restored: Option<&'a Restored>,
    /// What a scrub has found that begins anew.
    changed: FoundSectors,
    watch: Option<Arc<Watch>>,
    why_not: Option<String>,
}

impl Scrubs {
    /// None so far, of a disk of which `device` is behind it. `folder` is where progress is to be kept, which is made if it is not
    /// there. Gaps are found by what is believed of the drive.
    pub fn new(disk: Disk, device: &str, belief: Option<Profile>, folder: Option<&Path>) -> Scrubs {
        let file = |kind: &str| folder.map(|it| it.join(format!("{}.{kind}", disk.name())));
        Scrubs {
            file: file("scrub"),
            marks: file("watch"),
            sole_writer: false,
            now: Mutex::default(),
            shown: Mutex::default(),
            identity: Identity {
                device: serial_of(device).unwrap_or_else(|| device.to_owned()),
                capacity: disk.geometry().capacity,
                sector_bytes: disk.sector_bytes(),
            },
            disk,
            belief,
            model: OnceLock::new(),
        }
    }

    /// Says whether nobody writes to the disk but through a server that has these scrubs, also while none runs. Then hashes count
    /// over restarts.
    pub fn with_sole_writer(mut self, sole_writer: bool) -> Scrubs {
        self.sole_writer = sole_writer;
        self
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last one is this from now on.
    fn show(&self, now: &mut Now, last: Last) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Some(Arc::clone(&last.face));
        now.last = Some(last);
    }

    /// How far the last one is; `None` if there was none. Waits for nobody who begins one.
    pub fn status(&self) -> Option<ScrubStatus> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let face = Arc::clone(shown.as_ref()?);
        drop(shown);
        let status = face.status().clone();
        Some(status)
    }

    /// Goes on with what a former server has not finished, if anything, before anybody can write. Builds what is known of the disk,
    /// which takes some tenths of a second for a large one.
    ///
    /// # Errors
    ///
    /// If a file that says so cannot be read, or is of another disk.
    pub fn resume_unfinished(&self) -> Result<(), ScrubError> {
        let mut now = self.now();
        let (Some(file), Some(marks)) = (&self.file, &self.marks) else {
            return Ok(());
        };
        let watch = Watch::resume(marks, (&self.disk, &self.identity), self.sole_writer);
        match watch {
            Ok(Resumed::Watch(watch)) => {
                // Before anything else can go wrong.
                self.rest(&watch);
                now.watch = Some(watch);
            }
            Ok(Resumed::Lost(why)) => {
                let disk = self.disk.name();
                tracing::warn!(
                    disk,
                    "nothing can be compared with the hashes of its scrubs: {why}"
                );
                now.why_not = Some(why);
            }
            Ok(Resumed::None) => {}
            Err(error) => return Err(error.into()),
        }
        let Some((progress, restored)) = ProgressFile::open(file, &self.identity)? else {
            return Ok(());
        };
        let last = match restored.state.is_over() {
            true => self.over(restored),
            false => self.go_on_with(&mut now, progress, restored)?,
        };
        self.show(&mut now, last);
        Ok(())
    }

    /// Has writes noticed, and nothing read.
    fn rest(&self, watch: &Arc<Watch>) {
        let watch = Arc::clone(watch);
        let job =
            move || Box::new(Resting::new(watch, SinkThread::default())) as Box<dyn Background>;
        self.disk.run_in_background(Member(0), Box::new(job));
    }

    /// Begins a scrub, or goes on with an unfinished one of the same kind, also if it was paused.
    ///
    /// # Errors
    ///
    /// If what is asked cannot be, or differs from an unfinished one.
    pub fn begin(&self, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let mut now = self.now();
        if let Some(Last { plan, face, .. }) = now.last.as_ref()
            && !face.status().state.is_over()
        {
            self.fits(plan, ask)?;
            return self.go_on(&mut now);
        }
        let plan = self.plan(ask)?;
        self.may_begin(&plan)?;
        let Some(file) = &self.file else {
            if plan.hash.is_some() {
                return Err(ScrubError::NotKept);
            }
            let begun = self.start(plan, BeginsWith::default())?;
            self.show(&mut now, begun);
            return Ok(());
        };
        // It may have been put there, or taken away, since the server started.
        if let Some((kept, restored)) = ProgressFile::open(file, &self.identity)?
            && !restored.state.is_over()
        {
            self.fits(&restored.plan, ask)?;
            let again = self.go_on_with(&mut now, kept, restored)?;
            self.show(&mut now, again);
            return self.go_on(&mut now);
        }
        let begun = self.begin_anew(&mut now, plan, &FoundSectors::default())?;
        self.show(&mut now, begun);
        Ok(())
    }

    /// Goes on with what a file says. What it has hashed counts if writes were noticed all the time; else it begins anew.
    fn go_on_with(
        &self,
        now: &mut Now,
        progress: ProgressFile,
        restored: Restored,
    ) -> Result<Last, ScrubError> {
        let plan = restored.plan.clone();
        let watch = now.watch.clone();
        if let Some(path) = &plan.hash
            && !(watch.as_ref()).is_some_and(|watch| watch.is_of(path, plan.block))
        {
            // Its place is taken by the new one.
            drop(progress);
            let begun = self.begin_anew(now, plan, &restored.changed)?;
            if restored.state == ScrubState::Paused {
                begun.face.paused.store(true, Ordering::SeqCst);
                self.disk.ask_jobs();
            }
            return Ok(begun);
        }
        self.start(
            plan,
            BeginsWith {
                progress: Some(progress),
                restored: Some(&restored),
                watch,
                ..BeginsWith::default()
            },
        )
    }

    /// Begins with nothing done. What had changed before is told still.
    fn begin_anew(
        &self,
        now: &mut Now,
        plan: Plan,
        changed: &FoundSectors,
    ) -> Result<Last, ScrubError> {
        // What the one before still had to hash comes before what this has.
        now.last.iter().for_each(|last| last.worker.join());
        let mut from = BeginsWith::default();
        if let Some(file) = &self.file {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(|error| ProgressError::Io {
                path: folder.to_owned(),
                error,
            })?;
            from.why_not = self.watch_for(now, &plan)?;
            from.watch.clone_from(&now.watch);
            from.progress = Some(ProgressFile::create(file, &plan, changed)?);
        }
        from.changed.clone_from(changed);
        self.start(plan, from)
    }

    /// Sees to it that writes are noticed for the hashes of a plan, if it has any. Returns why nothing can be compared with them, if
    /// there are some.
    fn watch_for(&self, now: &mut Now, plan: &Plan) -> Result<Option<String>, ScrubError> {
        let (Some(path), Some(marks)) = (&plan.hash, &self.marks) else {
            return Ok(None);
        };
        let mut why_not = now.why_not.clone();
        if let Some(watch) = &now.watch {
            if watch.is_of(path, plan.block) {
                return Ok(None);
            }
            let is_other = watch.hashes().path() != path;
            why_not = match is_other {
                true => Some("other hashes were kept meanwhile".to_owned()),
                false => watch.lost(),
            };
            let is_same = watch.hashes().id().is_at(path);
            if is_same && watch.lost().is_none() {
                let bytes = |block: Sectors| Bytes(block.bytes(self.identity.sector_bytes));
                return Err(ScrubError::Progress(ProgressError::OtherBlocks {
                    path: path.clone(),
                    has: bytes(watch.block()).to_string(),
                    asked: bytes(plan.block).to_string(),
                }));
            }
            if is_same {
                // Whoever still has it does nothing with it any more.
                watch.hashes().unlock();
            }
        }
        let is_new = !path.exists();
        let hashes = HashFile::open_or_create(path, &self.identity, plan.block)?;
        let watch = Watch::begin(marks, (&self.disk, &self.identity), plan.block, hashes)?;
        if let Some(before) = now.watch.replace(Arc::new(watch)) {
            before.lose("another file of hashes has taken its place".to_owned());
        }
        now.why_not = None;
        Ok(match is_new {
            true => None,
            false => {
                why_not.or_else(|| Some("nobody has noticed what was written since".to_owned()))
            }
        })
    }

    /// Has it rest.
    ///
    /// # Errors
    ///
    /// If none is under way.
    pub fn pause(&self) -> Result<(), ScrubError> {
        let face = unfinished(&self.now())?;
        face.paused.store(true, Ordering::SeqCst);
        self.disk.ask_jobs();
        Ok(())
    }

    /// Has it go on, from the beginning if what it has done is not to be relied on.
    ///
    /// # Errors
    ///
    /// If none is under way, or it cannot begin anew.
    pub fn resume(&self) -> Result<(), ScrubError> {
        let mut now = self.now();
        unfinished(&now)?;
        self.go_on(&mut now)
    }

    /// Gives it up; its progress is forgotten.
    ///
    /// # Errors
    ///
    /// If none is under way.
    pub fn stop(&self) -> Result<(), ScrubError> {
        let face = unfinished(&self.now())?;
        face.stopped.store(true, Ordering::SeqCst);
        if face.must_begin_anew.load(Ordering::SeqCst) && face.wait_for_job(LET_GO) {
            // There is no job any more that would do it.
            if let Some(file) = &self.file {
                match fs::remove_file(file) {
                    Ok(()) => {}
                    // The job was in time after all.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        let path = file.clone();
                        return Err(ProgressError::Io { path, error }.into());
                    }
                }
            }
            face.status().state = ScrubState::Stopped;
        }
        self.disk.ask_jobs();
        Ok(())
    }

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
            let begun = self.begin_anew(now, plan, &changed)?;
            self.show(now, begun);
            return Ok(());
        }
        {
            // The job says under the same lock that it is over.
            let mut status = face.status();
            if status.state.is_over() {
                return Ok(());
            }
            face.paused.store(false, Ordering::SeqCst);
            face.goes_on.store(true, Ordering::SeqCst);
            // Whoever looks before the job does is not to see what is over.
            status.state = ScrubState::Running;
        }
        self.disk.ask_jobs();
        Ok(())
    }

    /// Whether what is asked is what an unfinished one does.
    fn fits(&self, plan: &Plan, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let asked = self.plan(ask)?;
        let same = [
            ("range", ask.range.is_none() || asked.range == plan.range),
            ("block", ask.block.is_none() || asked.block == plan.block),
            ("idle", ask.idle.is_none() || asked.idle == plan.idle),
            ("hash", ask.hash.is_none() || asked.hash == plan.hash),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((what, _)) => Err(ScrubError::Unfinished(what)),
            None => Ok(()),
        }
    }

    fn plan(&self, ask: &ScrubAsk) -> Result<Plan, ScrubError> {
        let sector = u64::from(self.identity.sector_bytes);
        let capacity = self.disk.bytes();
        if self.disk.members() > 1 {
            return Err(ScrubError::Volume);
        }
        let block = match ask.block {
            None => usual_block(capacity).max(sector),
            Some(block) if block.is_power_of_two() && (sector..=BLOCK_MAX).contains(&block) => {
                block
            }
            Some(block) => {
                return Err(ScrubError::Value {
                    key: "block",
                    problem: format!(
                        "{}: allowed are powers of two from a sector's {} to {}",
                        Bytes(block),
                        Bytes(sector),
                        Bytes(BLOCK_MAX)
                    ),
                });
            }
        };
        let (start, end) = ask.range.unwrap_or((0, capacity));
        if start >= end || end > capacity {
            return Err(ScrubError::Value {
                key: "range",
                problem: format!(
                    "{}..{}: allowed is a part of the disk's 0..{}, not an empty one",
                    Bytes(start),
                    Bytes(end),
                    Bytes(capacity)
                ),
            });
        }
        // Whole blocks are read.
        let start = start / block * block;
        let end = end.next_multiple_of(block).min(capacity);
        let idle = ask.idle.unwrap_or(Some(IDLE_AFTER));
        Ok(Plan {
            identity: self.identity.clone(),
            range: Extent::new(
                Lba::new(start / sector),
                Sectors::new((end - start) / sector),
            ),
            block: Sectors::new(block / sector),
            idle,
            hash: ask.hash.clone(),
        })
    }

    /// Whether gaps can be looked for.
    fn gaps(&self) -> Gaps {
        match &self.belief {
            None => Gaps::NoBelief,
            Some(profile) => {
                let (geometry, disk) = (&profile.geometry, self.disk.geometry());
                let fits = geometry.sector_bytes == disk.sector_bytes
                    && geometry.capacity >= disk.capacity;
                match fits {
                    true => Gaps::Used,
                    false => Gaps::WrongBelief,
                }
            }
        }
    }

    /// Whether there is anything to read in.
    fn may_begin(&self, plan: &Plan) -> Result<(), ScrubError> {
        let may = self.gaps();
        match plan.idle.is_none() && may != Gaps::Used {
            true => Err(ScrubError::NothingToReadIn(may.text())),
            false => Ok(()),
        }
    }

    fn start(&self, plan: Plan, from: BeginsWith<'_>) -> Result<Last, ScrubError> {
        self.may_begin(&plan)?;
        let may = self.gaps();
        let BeginsWith {
            progress,
            restored,
            changed,
            watch,
            why_not,
        } = from;
        let kept = progress.as_ref();
        let kept = kept.map(|kept| kept.path().display().to_string());
        let found = |of: fn(&Restored) -> &FoundSectors| restored.map(of).cloned();
        let status = ScrubStatus {
            state: restored.map_or(ScrubState::Running, |restored| restored.state.clone()),
            unreadable: found(|restored| &restored.unreadable).unwrap_or_default(),
            changed: found(|restored| &restored.changed).unwrap_or(changed),
            hashes: plan.hash.as_ref().map(|file| HashStatus {
                file: file.clone(),
                compared: 0,
                why_not,
            }),
            gaps: may,
            ..blank(&plan, kept)
        };
        let face = Arc::new(Face::new(status));
        let mut sink = None;
        if let (Some(_), Some(watch), Some(progress)) = (&plan.hash, &watch, &progress) {
            let durable = (progress.syncer()?, progress.path().to_owned());
            sink = Some(Sink::start(Arc::clone(watch), durable, self.disk.clone())?);
        }
        let worker = sink.as_ref().map(Sink::thread).unwrap_or_default();
        let files = Files {
            progress,
            watch,
            sink,
        };
        let from = (files, restored);
        let model = || (self.belief.as_ref()).map(|profile| Arc::new(Model::new(profile)));
        let model = self.model.get_or_init(model).as_ref();
        let job = match model.filter(|_| may == Gaps::Used) {
            Some(model) => self.job(Arc::clone(model), &plan, may, from, &face)?,
            None => self.job(Flat(self.identity.capacity), &plan, may, from, &face)?,
        };
        self.disk
            .run_in_background(Member(0), Box::new(move || job as Box<dyn Background>));
        Ok(Last { plan, face, worker })
    }

    fn job<P: Passing + Clone + Send + 'static>(
        &self,
        model: P,
        plan: &Plan,
        may: Gaps,
        from: (Files, Option<&Restored>),
        face: &Arc<Face>,
    ) -> Result<Box<dyn Background + Send>, ScrubError> {
        let piece = IDLE_PIECE / u64::from(self.identity.sector_bytes);
        let options = FreeblockOptions {
            block: plan.block,
            idle: plan.idle.map(|after| Idle {
                after,
                piece: Sectors::new(piece),
            }),
            ..FreeblockOptions::default()
        };
        let scan = Freeblock::new(model, self.identity.capacity, plan.range, options);
        let scan = scan.expect("a model that knows where the platter is, or none");
        let (plan, face) = (plan.clone(), Arc::clone(face));
        let job = Scrub::new(scan, plan, may, self.disk.clone(), from, face)?;
        Ok(Box::new(job))
    }

    /// One that has ended before this server started.
    fn over(&self, restored: Restored) -> Last {
        let kept = self.file.as_ref().map(|file| file.display().to_string());
        let status = ScrubStatus {
            state: restored.state,
            left: 0,
            unreadable: restored.unreadable,
            changed: restored.changed,
            gaps: self.gaps(),
            ..blank(&restored.plan, kept)
        };
        Last {
            plan: restored.plan,
            face: Arc::new(Face::new(status)),
            worker: SinkThread::default(),
        }
    }
}

/// The status of a scrub that has done nothing.
fn blank(plan: &Plan, kept: Option<String>) -> ScrubStatus {
    let block = plan.block.get();
    let blocks = plan.range.end().get().div_ceil(block) - plan.range.start.get() / block;
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
        unreadable: FoundSectors::default(),
        changed: FoundSectors::default(),
        hashes: None,
        gaps: Gaps::NoBelief,
        idle: plan.idle,
        kept,
        pace: Pace::default(),
    }
}

/// Bytes of a block of a disk of so many bytes, if nothing else is said.
fn usual_block(capacity: u64) -> u64 {
    let mut block = BLOCK_MIN;
    while capacity.div_ceil(block) > BLOCKS_MAX {
        block *= 2;
    }
    block
}

fn unfinished(now: &Now) -> Result<Arc<Face>, ScrubError> {
    let face = now.last.as_ref().map(|last| Arc::clone(&last.face));
    let face = face.filter(|face| !face.status().state.is_over());
    face.ok_or(ScrubError::None)
}

/// What a block device calls itself, which its path does not: that may be another one's after the next start.
fn serial_of(device: &str) -> Option<String> {
    use std::os::linux::fs::MetadataExt;
    use std::os::unix::fs::FileTypeExt;
    let metadata = fs::metadata(device).ok()?;
    if !metadata.file_type().is_block_device() {
        return None;
    }
    let number = metadata.st_rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let about = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let names = ["device/wwid", "wwid", "device/serial", "../device/wwid"];
    let mut names = names.iter().filter_map(|name| {
        let text = fs::read_to_string(about.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    });
    names.next()
}

impl fmt::Debug for Scrubs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubs({:?}, {:?})", self.disk, self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_small_unless_there_would_be_too_many() {
        assert_eq!(usual_block(1 << 20), 8 << 10);
        assert_eq!(usual_block(600_000_000_000), 8 << 10);
        assert_eq!(usual_block(4_000_000_000_000), 64 << 10);
        assert_eq!(usual_block(20_000_000_000_000), 256 << 10);
    }
}
