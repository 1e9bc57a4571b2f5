//! Sink for the data that a scrub reads: hashes or copies them on a thread of its own, since file operations may take long.

use super::blocks::BlocksFile;
use super::files::DurableFile;
use super::hashes::{HashFile, hash_of};
use super::image::ImageFile;
use super::served::Served;
use super::watch::Watch;
use headtime_linux::shown::PathShown as _;
use headtime_units::Extent;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Bytes of waiting data at which the scrub stops reading. The data of reads under way may come on top.
const WAITING_MAX: usize = 8 << 20;

/// Task of the sink's thread. Tasks are done in order.
#[derive(Debug)]
pub(super) enum Task {
    /// Data of sectors that were read. `blocks` lists the blocks that lie whole in them.
    Data {
        extent: Extent,
        data: Vec<u8>,
        blocks: Vec<Whole>,
    },
    /// Data of a part of a block.
    Part(Extent, Vec<u8>),
    /// Sectors that cannot be read.
    Zero(Extent),
    /// End of a block whose parts were all handed over.
    Close(BlockRead),
    /// New hash of a block that has changed. The change is recorded already.
    Keep(BlockRead, u64),
    /// Request to make all results durable. The number tells it from other such requests.
    Sync(u64),
    /// Request to do tasks again after a failure, if there is room now for the data that could not be written. Tasks that were handed over
    /// before this one and not done are dropped.
    Again,
}

/// Block that one read has brought as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub number: u64,
    /// Id of the read. The block may be read again before the result of this read is known.
    pub read: u64,
    pub extent: Extent,
    /// True if the block's hash has to be the same as the stored one.
    pub is_known: bool,
}

/// Number of a block, and id of the read that has brought the block.
pub(super) type BlockRead = (u64, u64);

/// Result of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sunk {
    /// The block's hash, or the block itself, is in the file. The flag is true if the hash was compared with the stored one.
    Kept(BlockRead, bool),
    /// The block has this hash, which differs from the stored one. The file still has the old hash.
    Changed(BlockRead, u64),
    /// The page for the hash of the block with this number is damaged. The hashes of all blocks on the page are lost.
    Damaged(u64),
    /// The sink does tasks again after a failure.
    Again,
    /// All results before this request are durable.
    Synced(u64),
}

/// Failure of the sink, after which it does no task until [`Task::Again`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinkProblem {
    pub text: String,
    /// True if earlier results cannot be relied on either.
    pub is_loss: bool,
}

#[derive(Debug, Default)]
struct Reached {
    sunk: Mutex<Vec<Sunk>>,
    problem: Mutex<Option<SinkProblem>>,
    waiting: AtomicUsize,
    /// True if the scrub waits for room.
    is_awaited: AtomicBool,
    /// True if there is a result or a problem to take.
    any: AtomicBool,
}

impl Reached {
    /// Reports that the thread has panicked, so that the scrub does not wait for it.
    fn ends_by_a_bug(&self) {
        *guard(&self.problem) = Some(SinkProblem {
            text: "the thread that takes data has ended by a bug".to_owned(),
            is_loss: true,
        });
        self.waiting.store(0, Ordering::SeqCst);
        self.any.store(true, Ordering::SeqCst);
    }
}

/// Handle of a sink. The job hands data over through it.
#[derive(Debug)]
pub(super) struct Sink {
    watch: Arc<Watch>,
    tasks: Sender<Task>,
    reached: Arc<Reached>,
    thread: SinkThread,
}

/// Thread of a sink. The thread ends when the sink is dropped and all tasks are done.
#[derive(Clone, Debug, Default)]
pub(super) struct SinkThread(Arc<Mutex<Option<JoinHandle<()>>>>);

impl SinkThread {
    /// Waits until the thread has ended.
    pub fn join(&self) {
        let thread = guard(&self.0).take();
        // A thread that panicked has reported that already.
        let _ = thread.map(JoinHandle::join);
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    /// Starts a sink that compares and hashes blocks, or copies them, and makes the progress durable. The thread may outlive the sink for a
    /// while.
    pub fn start(
        watch: Arc<Watch>,
        progress: Arc<DurableFile>,
        disk: Arc<dyn Served>,
    ) -> io::Result<Sink> {
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

    /// Watch of the hashes or the image.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Thread that does the tasks.
    pub fn thread(&self) -> SinkThread {
        self.thread.clone()
    }

    /// Hands over a task without data.
    pub fn send(&self, task: Task) {
        if self.tasks.send(task).is_err() {
            self.reached.ends_by_a_bug();
        }
    }

    /// Hands over the data of a read.
    pub fn data(&self, extent: Extent, data: &[u8], blocks: Vec<Whole>) {
        self.reached.waiting.fetch_add(data.len(), Ordering::SeqCst);
        self.send(Task::Data {
            extent,
            data: data.to_vec(),
            blocks,
        });
    }

    /// Hands over the data of a part of a block that cannot be read as a whole.
    pub fn part(&self, extent: Extent, data: &[u8]) {
        self.reached.waiting.fetch_add(data.len(), Ordering::SeqCst);
        self.send(Task::Part(extent, data.to_vec()));
    }

    /// Returns true if there is room for more data. A full sink makes the disk's jobs run again once there is room.
    pub fn has_room(&self) -> bool {
        let reached = &self.reached;
        if reached.waiting.load(Ordering::SeqCst) < WAITING_MAX {
            return true;
        }
        reached.is_awaited.store(true, Ordering::SeqCst);
        reached.waiting.load(Ordering::SeqCst) < WAITING_MAX
    }

    /// Takes the results since the last call, and the reason of a failure, which is reported once.
    pub fn take(&self) -> (Vec<Sunk>, Option<SinkProblem>) {
        if !self.reached.any.swap(false, Ordering::SeqCst) {
            return (Vec::new(), None);
        }
        // Results from before a failure are complete when the failure shows.
        let problem = guard(&self.reached.problem).take();
        (std::mem::take(&mut guard(&self.reached.sunk)), problem)
    }
}

struct Worker {
    watch: Arc<Watch>,
    progress: Arc<DurableFile>,
    sector_bytes: u64,
    disk: Arc<dyn Served>,
    reached: Arc<Reached>,
    has_failed: bool,
    /// Sectors of the block that could not be written.
    failed_at: Option<Extent>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.reached.ends_by_a_bug();
            self.disk.ask_job();
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
                Task::Close(block) => self.done(vec![Sunk::Kept(block, false)]),
                Task::Keep(block, hash) => self.keep(block, hash),
                Task::Sync(nth) => self.sync(nth),
            }
        }
    }

    fn bytes(&self, sectors: u64) -> u64 {
        sectors * self.sector_bytes
    }

    /// Applies `what` to the image, if there is one. The second argument of `what` gives the byte of the disk at which an extent begins.
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

    /// Ends a failure, if there is room now for the data that could not be written.
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

    fn keep(&mut self, (number, read): BlockRead, hash: u64) {
        let BlocksFile::Hashes(hashes) = self.watch.blocks() else {
            return;
        };
        match hashes.set(number, hash) {
            Ok(_) => self.done(vec![Sunk::Kept((number, read), true)]),
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
        self.disk.ask_job();
    }

    fn has_taken(&self, bytes: usize) {
        let before = self.reached.waiting.fetch_sub(bytes, Ordering::SeqCst);
        if before - bytes < WAITING_MAX / 2 && self.reached.is_awaited.swap(false, Ordering::SeqCst)
        {
            self.disk.ask_job();
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
        // Data that could not be made durable may be lost, and nothing shows which.
        if let Err((path, error)) = self.watch.sync() {
            return self.fail(&path, &error, true);
        }
        // An image that is no longer at its path is lost to its user.
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
        Sunk::Kept((self.number, self.read), compared)
    }
}

fn compare(hashes: &HashFile, block: &Whole, hash: u64, sunk: &mut Vec<Sunk>) -> io::Result<Sunk> {
    let (number, read) = (block.number, block.read);
    if block.is_known {
        match hashes.hash(number)? {
            Some(has) if has == hash => return Ok(block.kept(true)),
            // The new hash is written after the line that names the change.
            Some(_) => return Ok(Sunk::Changed((number, read), hash)),
            // There is no hash to compare with.
            None => sunk.push(Sunk::Damaged(number)),
        }
    }
    if hashes.set(number, hash)? && !block.is_known {
        sunk.push(Sunk::Damaged(number));
    }
    Ok(block.kept(false))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Keeps;
    use super::super::byte_range::ByteRange;
    use super::super::identity::Identity;
    use super::super::served::MakeJob;
    use super::*;
    use headtime_testkit::Folder;
    use headtime_units::Sectors;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const BLOCK: u64 = 8;

    /// Disk that serves nobody.
    #[derive(Debug)]
    struct Alone;

    impl Served for Alone {
        fn name(&self) -> &str {
            "one"
        }

        fn capacity(&self) -> Sectors {
            Sectors::new(1 << 13)
        }

        fn sector_bytes(&self) -> u32 {
            512
        }

        fn members(&self) -> usize {
            1
        }

        fn depth(&self) -> u32 {
            1
        }

        fn has_failed(&self) -> bool {
            false
        }

        fn is_stopped(&self) -> bool {
            false
        }

        fn run_job(&self, _: MakeJob) {}

        fn end_job(&self) {}

        fn ask_job(&self) {}
    }

    fn disk() -> Arc<dyn Served> {
        Arc::new(Alone)
    }

    fn watch(folder: &Folder, disk: &Arc<dyn Served>) -> Arc<Watch> {
        let identity = Identity {
            device: "null".to_owned(),
            capacity: disk.capacity(),
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
        assert_eq!(next(&sink), (vec![Sunk::Kept((number, 9), compared)], None));
        hand_over(&sink, 3, true);
        let compared = true;
        assert_eq!(next(&sink), (vec![Sunk::Kept((number, 9), compared)], None));
        // A damaged page has no hash to compare with.
        let hashes = File::options().write(true).open(folder.join("hashes"));
        let hashes = hashes.expect("there");
        hashes.write_all_at(b"damage", 20 << 10).expect("there");
        hand_over(&sink, 3, true);
        let compared = false;
        let anew = Sunk::Kept((number, 9), compared);
        assert_eq!(next(&sink), (vec![Sunk::Damaged(number), anew], None));
        let hash = hash_of(&[3; 4096]) + 1;
        sink.send(Task::Keep((number, 9), hash));
        let compared = true;
        assert!(matches!(next(&sink).0[..], [Sunk::Kept(..)]));
        hand_over(&sink, 3, true);
        let hash = hash_of(&[3; 4096]);
        assert_eq!(next(&sink).0, [Sunk::Changed((number, 9), hash)]);
        sink.send(Task::Keep((number, 9), hash));
        assert_eq!(next(&sink).0, [Sunk::Kept((number, 9), compared)]);
        sink.send(Task::Sync(5));
        assert_eq!(next(&sink), (vec![Sunk::Synced(5)], None));
    }

    #[test]
    fn it_is_not_said_that_all_is_durable_before_it_is() {
        let (folder, disk) = (Folder::new(), disk());
        // The kernel refuses to make this one durable.
        let never = Path::new("/dev/null").to_owned();
        let durable = DurableFile::of(File::open(&never).expect("every machine has it"), never);
        let sink = Sink::start(watch(&folder, &disk), durable, disk.clone()).expect("a thread");
        sink.send(Task::Sync(5));
        let (sunk, problem) = next(&sink);
        assert_eq!(sunk, []);
        assert!(problem.expect("refused").text.starts_with("/dev/null: "));
    }

    #[test]
    fn whoever_waits_for_room_learns_that_the_thread_has_ended_by_a_bug() {
        let (folder, disk) = (Folder::new(), disk());
        let progress = File::create(folder.join("progress")).expect("room");
        let durable = DurableFile::of(progress, folder.join("progress"));
        let sink = Sink::start(watch(&folder, &disk), durable, disk.clone()).expect("a thread");
        // Less data than the sectors need: only a bug hands over such data.
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
    }
}
