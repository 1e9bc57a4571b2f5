//! The scrubs of a disk: begun, paused, stopped, and gone on with after a restart.

use super::flat::Flat;
use super::job::{Face, Scrub};
use super::progress::{Identity, Plan, ProgressError, ProgressFile, Restored};
use super::status::{Gaps, Pace, ScrubState, ScrubStatus, Unreadable};
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

/// What is to be scrubbed, and how; what is not said is as usual, or as the unfinished scrub has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubAsk {
    /// The first byte and the one behind the last; the whole disk if `None`.
    pub range: Option<(u64, u64)>,
    /// Bytes of a block.
    pub block: Option<u64>,
    /// After how long without requests idle time is used; `Some(None)` if it is not.
    pub idle: Option<Option<Nanos>>,
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
    /// The last one.
    last: Mutex<Option<Last>>,
}

struct Last {
    plan: Plan,
    face: Arc<Face>,
}

impl Scrubs {
    /// None so far, of a disk of which `device` is behind it. `folder` is where progress is to be kept, which is made if it is not
    /// there. Gaps are found by what is believed of the drive.
    pub fn new(disk: Disk, device: &str, belief: Option<Profile>, folder: Option<&Path>) -> Scrubs {
        let name = format!("{}.scrub", disk.name());
        Scrubs {
            identity: Identity {
                device: serial_of(device).unwrap_or_else(|| device.to_owned()),
                capacity: disk.geometry().capacity,
                sector_bytes: disk.sector_bytes(),
            },
            disk,
            belief,
            model: OnceLock::new(),
            file: folder.map(|folder| folder.join(name)),
            last: Mutex::new(None),
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the last one is; `None` if there was none.
    pub fn status(&self) -> Option<ScrubStatus> {
        let face = Arc::clone(&self.last().as_ref()?.face);
        let status = face.status().clone();
        Some(status)
    }

    /// Goes on with what a former server has not finished, if anything. Builds what is known of the disk, which takes some tenths of a
    /// second for a large one.
    ///
    /// # Errors
    ///
    /// If the file that says so cannot be read, or is of another disk.
    pub fn resume_unfinished(&self) -> Result<(), ScrubError> {
        let mut last = self.last();
        let Some(file) = &self.file else {
            return Ok(());
        };
        let Some((progress, restored)) = ProgressFile::open(file, &self.identity)? else {
            return Ok(());
        };
        *last = Some(match restored.state.is_over() {
            true => self.over(restored),
            false => self.start(restored.plan.clone(), Some(progress), Some(&restored))?,
        });
        Ok(())
    }

    /// Begins a scrub, or goes on with an unfinished one of the same kind, also if it was paused.
    ///
    /// # Errors
    ///
    /// If what is asked cannot be, or differs from an unfinished one.
    pub fn begin(&self, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let mut last = self.last();
        if let Some(Last { plan, face }) = last.as_ref()
            && !face.status().state.is_over()
        {
            self.fits(plan, ask)?;
            self.go_on(face);
            return Ok(());
        }
        let plan = self.plan(ask)?;
        let mut progress = None;
        if let Some(file) = &self.file {
            // It may have been put there, or taken away, since the server started.
            if let Some((kept, restored)) = ProgressFile::open(file, &self.identity)?
                && !restored.state.is_over()
            {
                self.fits(&restored.plan, ask)?;
                let again = self.start(restored.plan.clone(), Some(kept), Some(&restored))?;
                self.go_on(&last.insert(again).face);
                return Ok(());
            }
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(|error| ProgressError::Io {
                path: folder.to_owned(),
                error,
            })?;
            progress = Some(ProgressFile::create(file, &plan)?);
        }
        *last = Some(self.start(plan, progress, None)?);
        Ok(())
    }

    /// Has it rest.
    ///
    /// # Errors
    ///
    /// If none is under way.
    pub fn pause(&self) -> Result<(), ScrubError> {
        let face = self.unfinished()?;
        face.paused.store(true, Ordering::SeqCst);
        self.disk.ask_jobs();
        Ok(())
    }

    /// Has it go on.
    ///
    /// # Errors
    ///
    /// If none is under way.
    pub fn resume(&self) -> Result<(), ScrubError> {
        let face = self.unfinished()?;
        self.go_on(&face);
        Ok(())
    }

    /// Gives it up; its progress is forgotten.
    ///
    /// # Errors
    ///
    /// If none is under way.
    pub fn stop(&self) -> Result<(), ScrubError> {
        let face = self.unfinished()?;
        face.stopped.store(true, Ordering::SeqCst);
        self.disk.ask_jobs();
        Ok(())
    }

    fn unfinished(&self) -> Result<Arc<Face>, ScrubError> {
        let face = self.last().as_ref().map(|last| Arc::clone(&last.face));
        let face = face.filter(|face| !face.status().state.is_over());
        face.ok_or(ScrubError::None)
    }

    fn go_on(&self, face: &Face) {
        face.paused.store(false, Ordering::SeqCst);
        face.goes_on.store(true, Ordering::SeqCst);
        self.disk.ask_jobs();
    }

    /// Whether what is asked is what an unfinished one does.
    fn fits(&self, plan: &Plan, ask: &ScrubAsk) -> Result<(), ScrubError> {
        let asked = self.plan(ask)?;
        let same = [
            ("range", ask.range.is_none() || asked.range == plan.range),
            ("block", ask.block.is_none() || asked.block == plan.block),
            ("idle", ask.idle.is_none() || asked.idle == plan.idle),
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

    fn start(
        &self,
        plan: Plan,
        progress: Option<ProgressFile>,
        restored: Option<&Restored>,
    ) -> Result<Last, ScrubError> {
        let may = self.gaps();
        if plan.idle.is_none() && may != Gaps::Used {
            return Err(ScrubError::NothingToReadIn(may.text()));
        }
        let kept = progress.as_ref();
        let kept = kept.map(|kept| kept.path().display().to_string());
        let status = ScrubStatus {
            state: restored.map_or(ScrubState::Running, |restored| restored.state.clone()),
            unreadable: restored
                .map_or_else(Unreadable::default, |restored| restored.unreadable.clone()),
            gaps: may,
            ..blank(&plan, kept)
        };
        let face = Arc::new(Face::new(status));
        let from = (progress, restored);
        let model = || (self.belief.as_ref()).map(|profile| Arc::new(Model::new(profile)));
        let model = self.model.get_or_init(model).as_ref();
        let job = match model.filter(|_| may == Gaps::Used) {
            Some(model) => self.job(Arc::clone(model), &plan, may, from, &face)?,
            None => self.job(Flat(self.identity.capacity), &plan, may, from, &face)?,
        };
        self.disk
            .run_in_background(Member(0), Box::new(move || job as Box<dyn Background>));
        Ok(Last { plan, face })
    }

    fn job<P: Passing + Clone + Send + 'static>(
        &self,
        model: P,
        plan: &Plan,
        may: Gaps,
        from: (Option<ProgressFile>, Option<&Restored>),
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
            gaps: self.gaps(),
            ..blank(&restored.plan, kept)
        };
        Last {
            plan: restored.plan,
            face: Arc::new(Face::new(status)),
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
        unreadable: Unreadable::default(),
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
