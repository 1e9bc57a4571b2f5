//! The description of a host: its properties, its files, and the steps of its processes.

use headtime_sched::Class;
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};

/// Bytes of a page, and of a block of every file: that of x86 and of ext3 on any disk of its time.
pub const PAGE: u64 = 4096;

/// How big the disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSize {
    pub capacity: Sectors,
    /// Bytes of a sector: a power of two, 512 to 4096.
    pub sector_bytes: u32,
}

impl DiskSize {
    /// The disk without the sectors behind its last whole page.
    pub fn whole_pages(self) -> DiskSize {
        let page = PAGE / u64::from(self.sector_bytes);
        let capacity = Sectors::new(self.capacity.get() / page * page);
        DiskSize { capacity, ..self }
    }
}

/// The properties of the host, which all its processes share.
///
/// The defaults are Linux 2.6.31 on the machine of the Stream Scheduling paper (section 3: Core 2
/// Duo, 2 GB of memory).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct HostSpec {
    /// The longest readahead window; default 128 KiB (`VM_MAX_READAHEAD`, `read_ahead_kb`). Rounded
    /// down to pages. More means larger requests of sequential readers, and more data read in vain
    /// after random ones; zero means that every page is read alone when it is touched. 0 to 64 MiB.
    pub read_ahead: Bytes,
    /// Memory for pages of files and for blocks; default 1792 MiB: the paper's 2 GB less what the
    /// kernel and the programs take (assumed). Once full, clean pages make room. Also what the limits
    /// of dirty memory are percentages of. At least 1 MiB.
    pub page_cache: Bytes,
    /// Processor time for each page that a read or write call touches, the call itself included;
    /// default 1.2 us (assumed: a copy of 4 KiB at 4 to 6 GB/s, and a system call). More makes
    /// readers slower than the disk. Zero is allowed.
    pub copy_per_page: Nanos,
    /// The largest request that the host makes; default 512 KiB (`max_sectors_kb` of SATA disks
    /// then). Rounded down to pages; 4 KiB to 64 MiB.
    pub request_max: Bytes,
    /// No request crosses a multiple of this on the disk; absent, the default, or zero: no such limit.
    /// md of 2.6.31 sets the limit to its chunk (`merge_bvec`). A page across a multiple is a request of
    /// its own. A multiple of 4 KiB, up to 64 MiB.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub chunk: Option<Bytes>,
    /// How often the flusher looks for pages to write; default 5 s (`dirty_writeback_centisecs`).
    /// At least 1 ms.
    pub writeback_interval: Nanos,
    /// The flusher writes files that became dirty so long ago; default 30 s
    /// (`dirty_expire_centisecs`).
    pub dirty_expire: Nanos,
    /// The flusher writes at once while more of the memory is dirty, in percent; default 10
    /// (`dirty_background_ratio`). At most `dirty_limit`.
    pub dirty_background: u32,
    /// Who dirties memory while more of it is dirty or being written, in percent, writes as well and
    /// waits; default 20 (`dirty_ratio`). 1 to 100.
    pub dirty_limit: u32,
    /// Whether [`Step::Sync`] ends with a flush of the drive's cache; default no, as ext3 then.
    pub barriers: bool,
}

impl HostSpec {
    /// The longest readahead window that is allowed.
    pub const READ_AHEAD_MAX: Bytes = Bytes(64 << 20);
}

impl Default for HostSpec {
    fn default() -> HostSpec {
        HostSpec {
            read_ahead: Bytes(128 << 10),
            page_cache: Bytes(1792 << 20),
            copy_per_page: Nanos::from_nanos(1_200),
            request_max: Bytes(512 << 10),
            chunk: None,
            writeback_interval: Nanos::from_secs(5),
            dirty_expire: Nanos::from_secs(30),
            dirty_background: 10,
            dirty_limit: 20,
            barriers: false,
        }
    }
}

/// Names an open file: what a file descriptor stands for.
///
/// The state of readahead belongs to it. Processes that read through the same name share that
/// state. [`HostBuilder::reopen`](crate::HostBuilder::reopen) gives another name for the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// Names a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BarrierId(pub(crate) u32);

/// Names a pool of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub(crate) u32);

/// A file as it lies on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where its pages are, in the order of the file; each a whole number of pages of 4 KiB (8
    /// sectors of 512 bytes) and not empty. They may hold more than `size`: room to grow.
    pub extents: Vec<Extent>,
    /// Bytes in it at the start of the run.
    pub size: u64,
}

/// What a process does next.
///
/// Offsets and lengths are bytes. Reads end at the end of the file, writes at the end of its
/// extents. Nothing behind that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Lets time pass.
    Think(Nanos),
    /// From here on the process asks in this class (`ioprio_set`). Takes no time and is no call.
    Ask(Class),
    /// One call of `read()`, through the page cache.
    Read {
        file: FileId,
        /// From which byte on.
        offset: u64,
        len: u64,
    },
    /// One call of `write()`: the data is in memory afterwards, dirty.
    Write {
        file: FileId,
        /// From which byte on.
        offset: u64,
        len: u64,
    },
    /// One call that passes by the page cache (`O_DIRECT`) and returns when the disk is done. Rounded
    /// outwards to sectors. Neither sees nor changes what is cached.
    Direct {
        /// [`Op::Read`](headtime_sched::Op::Read) or [`Op::Write`](headtime_sched::Op::Write).
        op: headtime_sched::Op,
        file: FileId,
        /// From which byte on.
        offset: u64,
        len: u64,
    },
    /// Reads the block of 4 KiB that starts at this sector unless it is cached: metadata.
    ReadBlock(headtime_units::Lba),
    /// Changes the block of 4 KiB that starts at this sector, in memory; it is written later. It is
    /// not read before.
    DirtyBlock(headtime_units::Lba),
    /// `fsync()`: returns when every dirty page of the file is on the disk.
    Sync(FileId),
    /// Deletes the file, or truncates it: its pages vanish from memory, dirty ones unwritten. Its
    /// size is again that at the start of the run, and its extents stay reserved, so that it can be
    /// written anew.
    Forget(FileId),
    /// Waits until all members have come; see [`HostBuilder::add_barrier`](crate::HostBuilder::add_barrier).
    Barrier(BarrierId),
    /// Ends the process.
    Exit,
}

/// The program of a process.
///
/// Knows no time and sees no result: its next step depends only on its earlier steps. Built again
/// from the same seed it takes the same steps. It is not asked again after [`Step::Exit`].
pub trait Behaviour: Send {
    /// What to do next. Of 268 million steps in a row at least one must take time.
    fn next(&mut self) -> Step;
}

impl<F: FnMut() -> Step + Send> Behaviour for F {
    fn next(&mut self) -> Step {
        self()
    }
}

/// A process or a thread: both have an I/O context of their own (`CLONE_IO` is not used).
pub struct ProcessSpec {
    /// The program that it is part of, 0 to 65,535; the `program` of its requests' origin.
    pub program: u32,
    /// What it does.
    pub behaviour: Box<dyn Behaviour>,
    /// The server that carries out its calls, if it is a client.
    pub served_by: Option<PoolId>,
    /// When it begins.
    pub start: Time,
}
