//! Watches that notice writes during scrubs and between them.

use super::super::ask::ScrubError;
use super::super::blocks::{BlocksFile, Keeps};
use super::super::byte_range::ByteRange;
use super::super::files;
use super::super::identity::ProgressError;
use super::super::job::Resting;
use super::super::sink::SinkThread;
use super::super::watch::{Resumed, Watch};
use super::{Now, Scrubs};
use headtime_engine::Background;
use headtime_units::{Bytes, Sectors};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

impl Now {
    pub(super) fn watch(&self, keeps: Keeps) -> Option<Arc<Watch>> {
        match keeps {
            Keeps::Hashes => self.hashed.clone(),
            Keeps::Image => self.copied.upgrade(),
        }
    }

    /// Replaces the watch of its kind. Returns the watch before.
    pub(super) fn set_watch(&mut self, watch: &Arc<Watch>) -> Option<Arc<Watch>> {
        let keeps = watch.blocks().keeps();
        let before = self.watch(keeps);
        match keeps {
            Keeps::Hashes => self.hashed = Some(Arc::clone(watch)),
            Keeps::Image => self.copied = Arc::downgrade(watch),
        }
        before
    }

    /// All watches to notify of writes.
    pub(super) fn watches(&self) -> Vec<Arc<Watch>> {
        let both = [Keeps::Hashes, Keeps::Image].into_iter();
        let watches = both.filter_map(|keeps| self.watch(keeps));
        watches.filter(|watch| !watch.is_lost()).collect()
    }
}

/// Error for an image in the place of a new one, if the record of the unfinished copy is lost.
fn lost_image(path: &Path, why: &str) -> ProgressError {
    let loss = Keeps::Image.loss();
    let problem = format!(
        "it is there already, and is left as it is: {loss}: {why}; \
        if this is the image of the unfinished copy, move it away to begin anew"
    );
    files::failed(path, io::Error::new(ErrorKind::AlreadyExists, problem))
}

impl Scrubs {
    /// Path of the watch for hashes or for an image.
    pub(super) fn watch_path(&self, keeps: Keeps) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        Some(file.with_file_name(format!("{}.{}", self.disk.name(), keeps.ending())))
    }

    /// Continues the watch that an earlier server has left.
    pub(super) fn resume_watch(
        &self,
        now: &mut Now,
        keeps: Keeps,
    ) -> Result<Option<Arc<Watch>>, ScrubError> {
        let Some(path) = self.watch_path(keeps) else {
            return Ok(None);
        };
        let disk = (&self.disk, &self.identity);
        match Watch::resume((&path, keeps), disk, self.sole_writer)? {
            Resumed::Watch(watch) => {
                now.set_watch(&watch);
                return Ok(Some(watch));
            }
            Resumed::Lost(why) => {
                let (disk, loss) = (self.disk.name(), keeps.loss());
                tracing::warn!(disk, "{loss}: {why}");
                match keeps {
                    Keeps::Hashes => now.why_not = Some(why),
                    Keeps::Image => now.why_anew = Some(why),
                }
            }
            Resumed::None => {}
        }
        Ok(None)
    }

    /// Removes the watch of an image when no copy is unfinished, so that no later server takes the watch for one of an unfinished copy.
    pub(super) fn end_copy(&self, now: &mut Now) {
        match (now.copied.upgrade(), self.watch_path(Keeps::Image)) {
            (Some(watch), _) => watch.end(),
            (None, Some(path)) => Watch::remove(&path),
            (None, None) => {}
        }
    }

    /// Starts a job that notices writes and reads nothing.
    pub(super) fn rest(&self, watches: Vec<Arc<Watch>>) {
        let (told, is_there) = channel::<()>();
        let job = move || {
            drop(told);
            Box::new(Resting::new(watches, SinkThread::default())) as Box<dyn Background>
        };
        self.disk.run_job(Box::new(job));
        // The disk's thread takes clients' requests first. The job has to be there before the first write of a client.
        let _ = is_there.recv();
    }

    /// Returns the watch for the hashes or the image, and makes the watch if there is none. For hashes that exist but cannot be compared,
    /// also returns the reason.
    pub(super) fn watch_for(
        &self,
        now: &mut Now,
        (keeps, path): (Keeps, &Path),
        part: ByteRange,
        block: Sectors,
    ) -> Result<(Arc<Watch>, Option<String>), ScrubError> {
        let marks = self.watch_path(keeps);
        let marks = marks.ok_or(ScrubError::NotKept(keeps.key()))?;
        let mut why_not = now.why_not.clone();
        if let Some(watch) = now.watch(keeps) {
            if watch.is_of((keeps, path), part, block) {
                return Ok((watch, None));
            }
            let is_other = watch.blocks().path() != path;
            why_not = match is_other {
                true => Some("other hashes were kept meanwhile".to_owned()),
                false => watch.lost(),
            };
            let is_same = watch.blocks().id().is_at(path);
            if is_same && watch.lost().is_none() && keeps == Keeps::Hashes {
                let bytes = |block: Sectors| Bytes(block.bytes(self.identity.sector_bytes));
                return Err(ScrubError::Progress(ProgressError::OtherBlocks {
                    path: path.to_owned(),
                    has: bytes(watch.block()).to_string(),
                    asked: bytes(block).to_string(),
                }));
            }
            if is_same {
                // The former owner does not use the file any more.
                watch.blocks().unlock();
            }
        }
        let is_new = !path.exists();
        let ours = Watch::file_of(&marks, keeps, &self.identity);
        let is_known = ours.is_some();
        let blocks = BlocksFile::open_or_create((keeps, path), &self.identity, part, block, ours);
        let blocks = blocks.map_err(|error| match (&error, &now.why_anew) {
            (ProgressError::Io { error, .. }, Some(why))
                if keeps == Keeps::Image
                    && !is_known
                    && error.kind() == ErrorKind::AlreadyExists =>
            {
                lost_image(path, why)
            }
            _ => error,
        })?;
        let watch = Watch::begin(&marks, (&self.disk, &self.identity), block, blocks)?;
        let watch = Arc::new(watch);
        if let Some(before) = now.set_watch(&watch) {
            before.lose("another file has taken its place".to_owned());
        }
        if keeps == Keeps::Image {
            return Ok((watch, None));
        }
        now.why_not = None;
        let why_not = match is_new {
            true => None,
            false => {
                why_not.or_else(|| Some("nobody has noticed what was written since".to_owned()))
            }
        };
        Ok((watch, why_not))
    }
}
