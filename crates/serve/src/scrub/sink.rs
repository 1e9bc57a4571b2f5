//! What becomes of the data that a scrub reads: on a thread of its own, since a file may take its time.

use super::blocks::BlocksFile;
use super::files::DurableFile;
use super::hashes::{HashFile, hash_of};
use super::image::ImageFile;
use super::watch::Watch;
use crate::disk::Disk;
use headtime_linux::shown::PathShown as _;
use headtime_units::Extent;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Data that may wait; then no more is read. One read more may be under way.
const WAITING_MAX: usize = 8 << 20;

/// What is to be done, in order.
#[derive(Debug)]
enum Task {
    /// These sectors were read, with these blocks whole in them.
    Data {
        extent: Extent,
        data: Vec<u8>,
        blocks: Vec<Whole>,
    },
    /// A part of a block was read.
    Part(Extent, Vec<u8>),
    /// These sectors cannot be read.
    Zero(Extent),
    /// All parts of a block were handed over.
    Close { number: u64, read: u64 },
    /// A block has changed, and it is written down that it has: this is its hash from now on.
    Keep { number: u64, read: u64, hash: u64 },
    /// All that was done is to be durable; the number tells it from others of its kind.
    Sync(u64),
    /// Tasks are done again from here on, if the data that did not fit find room now.
    Again,
}

/// A block of which all was read at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub number: u64,
    /// By which read: the block may be read again before it is known what has become of this.
    pub read: u64,
    pub extent: Extent,
    /// Its hash is to be the one that is kept.
    pub is_known: bool,
}

/// What has become of something that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sunk {
    /// The hash of a block is on file, and was the same before if it was to be compared; or the block is.
    Kept {
        number: u64,
        read: u64,
        compared: bool,
    },
    /// A block has another hash than it was to have. On file is still the one before.
    Changed { number: u64, read: u64, hash: u64 },
    /// The page on which the hash of a block is to be is damaged: of all blocks on it there is no hash any more.
    Damaged { number: u64 },
    /// Tasks are done again.
    Again,
    /// All before this is durable.
    Synced(u64),
}

/// Why nothing more is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinkProblem {
    pub text: String,
    /// What was done before is not to be relied on either.
    pub is_loss: bool,
}

#[derive(Debug, Default)]
struct Reached {
    sunk: Mutex<Vec<Sunk>>,
    problem: Mutex<Option<SinkProblem>>,
    waiting: AtomicUsize,
    /// Somebody waits until less waits.
    is_awaited: AtomicBool,
    /// There is something to be taken.
    any: AtomicBool,
}

impl Reached {
    /// Whoever waits for it waits in vain.
    fn ends_by_a_bug(&self) {
        *guard(&self.problem) = Some(SinkProblem {
            text: "the thread that takes data has ended by a bug".to_owned(),
            is_loss: true,
        });
        self.waiting.store(0, Ordering::SeqCst);
        self.any.store(true, Ordering::SeqCst);
    }
}

/// Where data go.
#[derive(Debug)]
pub(super) struct Sink {
    watch: Arc<Watch>,
    tasks: Sender<Task>,
    reached: Arc<Reached>,
    thread: SinkThread,
}

/// The thread of a sink, which ends when it has done what was handed over and the sink is gone.
#[derive(Clone, Debug, Default)]
pub(super) struct SinkThread(Arc<Mutex<Option<JoinHandle<()>>>>);

impl SinkThread {
    /// Waits for its end.
    pub fn join(&self) {
        let thread = guard(&self.0).take();
        // If it had a bug, it has said so.
        let _ = thread.map(JoinHandle::join);
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    /// Has blocks compared and hashed, or copied, and makes the progress durable, too. Its thread ends after this.
    pub fn start(watch: Arc<Watch>, progress: Arc<DurableFile>, disk: Disk) -> io::Result<Sink> {
        let (tasks, to_do) = channel();
        let reached = Arc::<Reached>::default();
        let worker = Worker {
            watch: Arc::clone(&watch),
            progress,
            sector_bytes: u64::from(disk.sector_bytes()),
            disk,
            reached: Arc::clone(&reached),
            has_failed: false,
            failed_at: None,
        };
        let thread = std::thread::Builder::new()
            .name("scrub-sink".to_owned())
            .spawn(move || worker.run(&to_do))?;
        Ok(Sink {
            watch,
            tasks,
            reached,
            thread: SinkThread(Arc::new(Mutex::new(Some(thread)))),
        })
    }

    /// Who is told which blocks are kept.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// What does the work.
    pub fn thread(&self) -> SinkThread {
        self.thread.clone()
    }

    fn send(&self, task: Task) {
        if self.tasks.send(task).is_err() {
            self.reached.ends_by_a_bug();
        }
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

    /// Hands over what was read of a block that cannot be read as a whole.
    pub fn part(&self, extent: Extent, data: &[u8]) {
        self.reached.waiting.fetch_add(data.len(), Ordering::SeqCst);
        self.send(Task::Part(extent, data.to_vec()));
    }

    /// These sectors cannot be read.
    pub fn zero(&self, extent: Extent) {
        self.send(Task::Zero(extent));
    }

    /// All parts of a block were handed over, and its sectors that cannot be read.
    pub fn close(&self, number: u64, read: u64) {
        self.send(Task::Close { number, read });
    }

    /// It is written down that a block has changed.
    pub fn keep(&self, number: u64, read: u64, hash: u64) {
        self.send(Task::Keep { number, read, hash });
    }

    /// Asks for all that was done to be durable.
    pub fn sync(&self, nth: u64) {
        self.send(Task::Sync(nth));
    }

    /// What is handed over from now on is done again. What was before and is not done will not be.
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

    /// What was done since this was asked before, and why nothing more is, which is said once.
    pub fn take(&self) -> (Vec<Sunk>, Option<SinkProblem>) {
        if !self.reached.any.swap(false, Ordering::SeqCst) {
            return (Vec::new(), None);
        }
        // What was done before it failed is there when that shows.
        let problem = guard(&self.reached.problem).take();
        (std::mem::take(&mut guard(&self.reached.sunk)), problem)
    }
}

struct Worker {
    watch: Arc<Watch>,
    progress: Arc<DurableFile>,
    sector_bytes: u64,
    disk: Disk,
    reached: Arc<Reached>,
    has_failed: bool,
    /// The sectors that could not be written.
    failed_at: Option<Extent>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.reached.ends_by_a_bug();
            self.disk.ask_jobs();
        }
    }
}

impl Worker {
    fn run(mut self, to_do: &Receiver<Task>) {
        while let Ok(task) = to_do.recv() {
            match task {
                Task::Again => self.again(),
                Task::Data {
                    extent,
                    data,
                    blocks,
                } => {
                    if !self.has_failed {
                        self.take(extent, &data, &blocks);
                    }
                    self.has_taken(data.len());
                }
                Task::Part(extent, data) => {
                    self.with_image(extent, |image, at| image.write(at(extent), &data));
                    self.has_taken(data.len());
                }
                _ if self.has_failed => {}
                Task::Zero(extent) => {
                    let len = self.bytes(extent.len.get());
                    self.with_image(extent, |image, at| image.zero(at(extent), len));
                }
                Task::Close { number, read } => self.done(vec![Sunk::Kept {
                    number,
                    read,
                    compared: false,
                }]),
                Task::Keep { number, read, hash } => self.keep(number, read, hash),
                Task::Sync(nth) => self.sync(nth),
            }
        }
    }

    fn bytes(&self, sectors: u64) -> u64 {
        sectors * self.sector_bytes
    }

    /// Does something with the image, if there is one; it is told where an extent begins there.
    fn with_image(
        &mut self,
        extent: Extent,
        what: impl FnOnce(&ImageFile, &dyn Fn(Extent) -> u64) -> io::Result<()>,
    ) {
        if let (BlocksFile::Image(image), false) = (self.watch.blocks(), self.has_failed)
            && let Err(error) = what(image, &|extent| self.bytes(extent.start.get()))
        {
            self.fail_with_blocks(extent, &error);
        }
    }

    /// Tries again, if there is room now for the data that could not be written.
    fn again(&mut self) {
        self.has_failed = false;
        if let Some(extent) = self.failed_at.take() {
            let (at, len) = (self.bytes(extent.start.get()), self.bytes(extent.len.get()));
            let made = match self.watch.blocks() {
                BlocksFile::Hashes(hashes) => {
                    hashes.write_again(extent.start.get() / self.watch.block().get())
                }
                BlocksFile::Image(image) => image.try_room(at, len),
            };
            if let Err(error) = made {
                return self.fail_with_blocks(extent, &error);
            }
        }
        self.done(vec![Sunk::Again]);
    }

    fn keep(&mut self, number: u64, read: u64, hash: u64) {
        let BlocksFile::Hashes(hashes) = self.watch.blocks() else {
            return;
        };
        match hashes.set(number, hash) {
            Ok(_) => self.done(vec![Sunk::Kept {
                number,
                read,
                compared: true,
            }]),
            Err(error) => {
                let block = self.watch.block().get();
                self.fail_with_blocks(Extent::at(number * block, block), &error);
            }
        }
    }

    fn done(&self, mut sunk: Vec<Sunk>) {
        guard(&self.reached.sunk).append(&mut sunk);
        self.tell();
    }

    fn tell(&self) {
        self.reached.any.store(true, Ordering::SeqCst);
        self.disk.ask_jobs();
    }

    fn has_taken(&self, bytes: usize) {
        let before = self.reached.waiting.fetch_sub(bytes, Ordering::SeqCst);
        if before - bytes < WAITING_MAX / 2 && self.reached.is_awaited.swap(false, Ordering::SeqCst)
        {
            self.disk.ask_jobs();
        }
    }

    fn fail(&mut self, path: &Path, error: &io::Error, is_loss: bool) {
        self.has_failed = true;
        let text = format!("{}: {error}", path.shown());
        *guard(&self.reached.problem) = Some(SinkProblem { text, is_loss });
        self.tell();
    }

    fn fail_with_blocks(&mut self, extent: Extent, error: &io::Error) {
        self.failed_at = Some(extent);
        let path = self.watch.blocks().path().to_owned();
        self.fail(&path, error, error.kind() == io::ErrorKind::InvalidData);
    }

    fn take(&mut self, extent: Extent, data: &[u8], blocks: &[Whole]) {
        let mut sunk = Vec::with_capacity(blocks.len());
        for block in blocks {
            let from = self.bytes(block.extent.start.get() - extent.start.get());
            let len = self.bytes(block.extent.len.get());
            let data = &data[from as usize..(from + len) as usize];
            let taken = match self.watch.blocks() {
                BlocksFile::Hashes(hashes) => compare(hashes, block, hash_of(data), &mut sunk),
                BlocksFile::Image(image) => {
                    let written = image.write(self.bytes(block.extent.start.get()), data);
                    written.map(|()| block.kept(false))
                }
            };
            match taken {
                Ok(as_it_is) => sunk.push(as_it_is),
                Err(error) => {
                    self.done(sunk);
                    return self.fail_with_blocks(block.extent, &error);
                }
            }
        }
        self.done(sunk);
    }

    fn sync(&mut self, nth: u64) {
        // What could not be made durable may be gone, and nobody can say what of it.
        if let Err((path, error)) = self.watch.sync() {
            return self.fail(&path, &error, true);
        }
        // A copy that nobody finds is none.
        if let Err(error) = self.watch.blocks().is_in_place() {
            let path = self.watch.blocks().path().to_owned();
            return self.fail(&path, &error, true);
        }
        match self.progress.sync() {
            Ok(()) => self.done(vec![Sunk::Synced(nth)]),
            Err(error) => {
                let path = self.progress.path().to_owned();
                self.fail(&path, &error, false);
            }
        }
    }
}

impl Whole {
    fn kept(&self, compared: bool) -> Sunk {
        Sunk::Kept {
            number: self.number,
            read: self.read,
            compared,
        }
    }
}

fn compare(hashes: &HashFile, block: &Whole, hash: u64, sunk: &mut Vec<Sunk>) -> io::Result<Sunk> {
    let (number, read) = (block.number, block.read);
    if block.is_known {
        match hashes.hash(number)? {
            Some(has) if has == hash => return Ok(block.kept(true)),
            // The new hash is written after the line that names the change.
            Some(_) => return Ok(Sunk::Changed { number, read, hash }),
            // There is nothing to compare with.
            None => sunk.push(Sunk::Damaged { number }),
        }
    }
    if hashes.set(number, hash)? && !block.is_known {
        sunk.push(Sunk::Damaged { number });
    }
    Ok(block.kept(false))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Keeps;
    use super::super::byte_range::ByteRange;
    use super::super::identity::Identity;
    use super::*;
    use crate::device::Device;
    use crate::disk::Options;
    use crate::null::Null;
    use headtime_linux::clock::Clock;
    use headtime_sched::{Noop, WorkConserving};
    use headtime_testkit::Folder;
    use headtime_units::Sectors;
    use std::convert::Infallible;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const BLOCK: u64 = 8;

    fn disk() -> Disk {
        let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
        let options = Options::new("one", Clock::start(), ("noop".into(), Box::new(build)));
        let device = || Box::new(Null::new(Sectors::new(1 << 13), 32)) as Box<dyn Device>;
        Disk::start(options, move || Ok::<_, Infallible>(device())).expect("starts")
    }

    fn watch(folder: &Folder, disk: &Disk) -> Arc<Watch> {
        let identity = Identity {
            device: "null".to_owned(),
            capacity: disk.geometry().capacity,
            sector_bytes: 512,
        };
        let block = Sectors::new(BLOCK);
        let path = folder.join("hashes");
        let hashes = BlocksFile::open_or_create(
            (Keeps::Hashes, &path),
            &identity,
            ByteRange::whole(&identity),
            block,
            None,
        );
        let path = folder.join("watch");
        let watch = Watch::begin(&path, (disk, &identity), block, hashes.expect("new"));
        Arc::new(watch.expect("begins"))
    }

    fn next(sink: &Sink) -> (Vec<Sunk>, Option<SinkProblem>) {
        loop {
            match sink.take() {
                (sunk, None) if sunk.is_empty() => std::thread::yield_now(),
                come => return come,
            }
        }
    }

    fn hand_over(sink: &Sink, number: u64, is_known: bool) {
        let extent = Extent::at(number * BLOCK, BLOCK);
        let whole = Whole {
            number,
            read: 9,
            extent,
            is_known,
        };
        sink.data(extent, &[number as u8; 4096], vec![whole]);
    }

    #[test]
    fn a_block_is_compared_with_its_hash_and_hashed_where_that_is_damaged() {
        let (folder, disk) = (Folder::new(), disk());
        let watch = watch(&folder, &disk);
        let progress = File::create(folder.join("progress")).expect("room");
        let durable = DurableFile::of(progress, folder.join("progress"));
        let sink = Sink::start(Arc::clone(&watch), durable, disk.clone()).expect("a thread");
        hand_over(&sink, 3, false);
        let number = 3;
        let compared = false;
        assert_eq!(
            next(&sink),
            (
                vec![Sunk::Kept {
                    number,
                    read: 9,
                    compared
                }],
                None
            )
        );
        hand_over(&sink, 3, true);
        let compared = true;
        assert_eq!(
            next(&sink),
            (
                vec![Sunk::Kept {
                    number,
                    read: 9,
                    compared
                }],
                None
            )
        );
        // A damaged page has no hash to compare with.
        let hashes = File::options().write(true).open(folder.join("hashes"));
        let hashes = hashes.expect("there");
        hashes.write_all_at(b"damage", 20 << 10).expect("there");
        hand_over(&sink, 3, true);
        let compared = false;
        let anew = Sunk::Kept {
            number,
            read: 9,
            compared,
        };
        assert_eq!(next(&sink), (vec![Sunk::Damaged { number }, anew], None));
        let hash = hash_of(&[3; 4096]) + 1;
        sink.keep(number, 9, hash);
        let compared = true;
        assert!(matches!(next(&sink).0[..], [Sunk::Kept { .. }]));
        hand_over(&sink, 3, true);
        let hash = hash_of(&[3; 4096]);
        assert_eq!(
            next(&sink).0,
            [Sunk::Changed {
                number,
                read: 9,
                hash
            }]
        );
        sink.keep(number, 9, hash);
        assert_eq!(
            next(&sink).0,
            [Sunk::Kept {
                number,
                read: 9,
                compared
            }]
        );
        sink.sync(5);
        assert_eq!(next(&sink), (vec![Sunk::Synced(5)], None));
        disk.stop().expect("stops");
    }

    #[test]
    fn it_is_not_said_that_all_is_durable_before_it_is() {
        let (folder, disk) = (Folder::new(), disk());
        // The kernel refuses to make this one durable.
        let never = Path::new("/dev/null").to_owned();
        let durable = DurableFile::of(File::open(&never).expect("every machine has it"), never);
        let sink = Sink::start(watch(&folder, &disk), durable, disk.clone()).expect("a thread");
        sink.sync(5);
        let (sunk, problem) = next(&sink);
        assert_eq!(sunk, []);
        assert!(problem.expect("refused").text.starts_with("/dev/null: "));
        disk.stop().expect("stops");
    }

    #[test]
    fn whoever_waits_for_room_learns_that_the_thread_has_ended_by_a_bug() {
        let (folder, disk) = (Folder::new(), disk());
        let progress = File::create(folder.join("progress")).expect("room");
        let durable = DurableFile::of(progress, folder.join("progress"));
        let sink = Sink::start(watch(&folder, &disk), durable, disk.clone()).expect("a thread");
        // Less data than sectors, which nobody who has no bug hands over.
        let whole = Whole {
            number: 0,
            read: 1,
            extent: Extent::at(0, 1 << 20),
            is_known: false,
        };
        sink.data(Extent::at(0, 1 << 20), &vec![0; WAITING_MAX], vec![whole]);
        let (sunk, problem) = next(&sink);
        assert_eq!(sunk, []);
        assert!(problem.expect("a bug").is_loss);
        assert!(sink.has_room());
        disk.stop().expect("stops");
    }
}
