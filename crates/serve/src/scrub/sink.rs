//! What becomes of the data that a scrub reads: on a thread of its own, since a file may take its time.

use super::hashes::Hashes;
use super::image::Image;
use super::xxh64::xxh64;
use crate::disk::Disk;
use headtime_units::{Extent, Nanos, Time};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Data that may wait to be written; then no more is read.
const WAITING_MAX: usize = 32 << 20;

/// What was written is made durable at least so often, and counts from then on.
const SYNC_EVERY: Nanos = Nanos::from_millis(250);

/// What is to be done, in order.
#[derive(Debug)]
enum Task {
    /// These sectors were read.
    Data {
        extent: Extent,
        data: Vec<u8>,
        /// Blocks that are whole in them, where they begin, and whether their hashes are to be those they had.
        blocks: Vec<Whole>,
    },
    /// All of a block has been handed over.
    End(u64),
    /// What could not be done before is tried again.
    Again,
}

/// A block of which all was read at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub number: u64,
    pub extent: Extent,
    pub is_known: bool,
}

/// A block of which all has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sunk {
    pub number: u64,
    /// Its hash, if it has one.
    pub hash: Option<u64>,
    /// The hash is another one than that which is kept, and was to be the same. It is not kept yet: whoever says that it
    /// is another one is to do so first.
    pub is_other: bool,
}

#[derive(Debug, Default)]
struct Reached {
    sunk: Mutex<Vec<Sunk>>,
    /// Why nothing more is done, once.
    problem: Mutex<Option<String>>,
    waiting: AtomicUsize,
    /// Somebody waits until less waits.
    is_awaited: AtomicBool,
}

/// Where data go.
#[derive(Debug)]
pub(super) struct Sink {
    tasks: Sender<Task>,
    reached: Arc<Reached>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    /// Hashes, copies, or both. Ends with this.
    pub fn start(
        hashes: Option<Arc<Hashes>>,
        image: Option<Image>,
        disk: Disk,
    ) -> io::Result<Sink> {
        let (tasks, to_do) = channel();
        let reached = Arc::<Reached>::default();
        let worker = Worker {
            hashes,
            image,
            sector_bytes: u64::from(disk.sector_bytes()),
            disk,
            reached: Arc::clone(&reached),
            written: Vec::new(),
            failed: false,
        };
        std::thread::Builder::new()
            .name("scrub-sink".to_owned())
            .spawn(move || worker.run(&to_do))?;
        Ok(Sink { tasks, reached })
    }

    fn send(&self, task: Task) {
        // It ends after whoever sends.
        let _ = self.tasks.send(task);
    }

    /// Hands over what was read.
    pub fn data(&self, extent: Extent, data: &[u8], blocks: Vec<Whole>) {
        self.reached.waiting.fetch_add(data.len(), Ordering::SeqCst);
        self.send(Task::Data {
            extent,
            data: data.to_vec(),
            blocks,
        });
    }

    /// All of a block has been handed over, in parts.
    pub fn end(&self, block: u64) {
        self.send(Task::End(block));
    }

    /// What was handed over and is not done is handed over again, or will never be.
    pub fn again(&self) {
        self.send(Task::Again);
    }

    /// Returns true if there is room for more. If not, the jobs of the disk are asked when there is.
    pub fn has_room(&self) -> bool {
        let reached = &self.reached;
        if reached.waiting.load(Ordering::SeqCst) < WAITING_MAX {
            return true;
        }
        reached.is_awaited.store(true, Ordering::SeqCst);
        reached.waiting.load(Ordering::SeqCst) < WAITING_MAX
    }

    /// What has been done since this was asked before.
    pub fn sunk(&self) -> Vec<Sunk> {
        std::mem::take(&mut guard(&self.reached.sunk))
    }

    /// Why nothing is done any more; said once.
    pub fn problem(&self) -> Option<String> {
        guard(&self.reached.problem).take()
    }
}

struct Worker {
    hashes: Option<Arc<Hashes>>,
    image: Option<Image>,
    sector_bytes: u64,
    disk: Disk,
    reached: Arc<Reached>,
    /// Not yet durable.
    written: Vec<Sunk>,
    failed: bool,
}

impl Worker {
    fn run(mut self, to_do: &Receiver<Task>) {
        let mut until = None;
        loop {
            let task = match (until, self.written.is_empty()) {
                (_, true) => to_do.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (Some(until), _) => {
                    let left = Time::saturating_since(until, self.disk.now());
                    to_do.recv_timeout(Duration::from_nanos(left.as_nanos()))
                }
                (None, _) => Err(RecvTimeoutError::Timeout),
            };
            match task {
                Ok(task) => {
                    if self.written.is_empty() {
                        until = Some(self.disk.now() + SYNC_EVERY);
                    }
                    self.take(task);
                    if until.is_some_and(|until| self.disk.now() >= until) {
                        self.sync();
                        until = None;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.sync();
                    until = None;
                }
                Err(RecvTimeoutError::Disconnected) => return self.sync(),
            }
        }
    }

    fn take(&mut self, task: Task) {
        match task {
            Task::Again => self.failed = false,
            Task::End(number) if !self.failed => self.written.push(Sunk {
                number,
                hash: None,
                is_other: false,
            }),
            Task::End(_) => {}
            Task::Data {
                extent,
                data,
                blocks,
            } => {
                if !self.failed
                    && let Err((path, error)) = self.write(extent, &data, &blocks)
                {
                    self.fail(&path, &error);
                }
                let reached = &self.reached;
                let before = reached.waiting.fetch_sub(data.len(), Ordering::SeqCst);
                if before - data.len() < WAITING_MAX / 2
                    && reached.is_awaited.swap(false, Ordering::SeqCst)
                {
                    self.disk.ask_jobs();
                }
            }
        }
    }

    fn fail(&mut self, path: &Path, error: &io::Error) {
        self.failed = true;
        self.written.clear();
        *guard(&self.reached.problem) = Some(format!("{}: {error}", path.display()));
        self.disk.ask_jobs();
    }

    fn write(
        &mut self,
        extent: Extent,
        data: &[u8],
        blocks: &[Whole],
    ) -> Result<(), (std::path::PathBuf, io::Error)> {
        let first = extent.start.get();
        // What lies between blocks was read along, and is as good as they are.
        if let Some(image) = &mut self.image {
            let offset = |at: u64| at * self.sector_bytes;
            if blocks.is_empty() {
                let written = image.write(offset(first), data);
                written.map_err(|error| (image.path().to_owned(), error))?;
            }
            for block in blocks {
                let from = offset(block.extent.start.get() - first) as usize;
                let data = &data[from..from + offset(block.extent.len.get()) as usize];
                let written = image.write(offset(block.extent.start.get()), data);
                written.map_err(|error| (image.path().to_owned(), error))?;
            }
        }
        for block in blocks {
            let (mut is_other, mut hashed) = (false, None);
            if let Some(hashes) = &self.hashes {
                let from = (block.extent.start.get() - first) * self.sector_bytes;
                let len = block.extent.len.get() * self.sector_bytes;
                let hash = xxh64(&data[from as usize..(from + len) as usize]);
                let written = (|| {
                    is_other = block.is_known && hashes.hash(block.number)? != hash;
                    match is_other {
                        true => Ok(()),
                        false => hashes.set(block.number, hash),
                    }
                })();
                written.map_err(|error| (hashes.path().to_owned(), error))?;
                hashed = Some(hash);
            }
            self.written.push(Sunk {
                number: block.number,
                hash: hashed,
                is_other,
            });
        }
        Ok(())
    }

    /// What was written is durable, and counts.
    fn sync(&mut self) {
        if self.written.is_empty() {
            return;
        }
        if let Some(image) = &self.image
            && let Err(error) = image.sync()
        {
            let path = image.path().to_owned();
            return self.fail(&path, &error);
        }
        if let Some(hashes) = self.hashes.clone()
            && let Err(error) = hashes.sync()
        {
            return self.fail(hashes.path(), &error);
        }
        guard(&self.reached.sunk).append(&mut self.written);
        self.disk.ask_jobs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::disk::Options;
    use crate::null::Null;
    use headtime_linux::clock::Clock;
    use headtime_sched::{Noop, WorkConserving};
    use headtime_units::Sectors;
    use std::convert::Infallible;

    fn disk() -> Disk {
        let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
        let options = Options::new("one", Clock::start(), ("noop".into(), Box::new(build)));
        let device = || Box::new(Null::new(Sectors::new(64), 32)) as Box<dyn Device>;
        Disk::start(options, move || Ok::<_, Infallible>(device())).expect("starts")
    }

    /// What comes, waited for.
    fn next<T>(mut comes: impl FnMut() -> Option<T>) -> T {
        loop {
            match comes() {
                Some(come) => return come,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn what_a_full_file_system_does_not_take_is_not_done_and_room_is_asked_for_once() {
        let disk = disk();
        let image = Image::open(Path::new("/dev/full"), 0).expect("every machine has it");
        let sink = Sink::start(None, Some(image), disk.clone()).expect("a thread");
        let block = |number: u64| Whole {
            number,
            extent: Extent::at(number * 8, 8),
            is_known: false,
        };
        let data = |number: u64| {
            sink.data(Extent::at(number * 8, 8), &[7; 4096], vec![block(number)]);
        };
        (0..4).for_each(data);
        let problem = next(|| sink.problem());
        assert!(problem.starts_with("/dev/full: No space left"), "{problem}");
        // What comes behind it is not even tried, until somebody says so.
        data(4);
        sink.end(5);
        assert_eq!((sink.sunk(), sink.problem()), (vec![], None));
        sink.again();
        data(6);
        assert!(next(|| sink.problem()).contains("No space left"));
        assert_eq!(sink.sunk(), []);
        assert!(sink.has_room());
        disk.stop().expect("stops");
    }
}
