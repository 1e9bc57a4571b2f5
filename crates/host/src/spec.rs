//! The description of a host: its properties, its files, and the steps of its processes.

use headtime_sched::Class;
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};

/// Bytes of a page, and of a block of every file. Pages of x86 and blocks of ext3 had this size on any disk of the
/// time.
pub const PAGE: u64 = 4096;

/// Size of the disk.
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
    /// The longest readahead window; default 128 KiB (`VM_MAX_READAHEAD`, `read_ahead_kb`). Rounded down to pages. A
    /// longer window makes larger requests of sequential readers, and reads more data in vain for random readers. Zero:
    /// every page is read alone when it is touched. 0 to 64 MiB.
    pub read_ahead: Bytes,
    /// Memory for pages of files and for blocks; default 1792 MiB, which is the paper's 2 GB minus the memory of kernel
    /// and programs (assumed). When this memory is full, clean pages are evicted. The limits of dirty memory are
    /// percentages of this size. At least 1 MiB.
    pub page_cache: Bytes,
    /// Processor time for each page that a read or write call touches, including the system call; default 1.2 us. The
    /// default is assumed: a copy of 4 KiB at 4 to 6 GB/s, and a system call. A longer time makes readers slower than
    /// the disk. Zero is allowed.
    pub copy_per_page: Nanos,
    /// The largest request that the host makes; default 512 KiB (`max_sectors_kb` of SATA disks
    /// then). Rounded down to pages; 4 KiB to 64 MiB.
    pub request_max: Bytes,
    /// Boundary for requests: no request crosses a multiple of this size on the disk. Absent (the default) or zero: no
    /// such limit. The md driver of Linux 2.6.31 sets the limit to its chunk (`merge_bvec`). A page that lies across a
    /// boundary is a request of its own. Allowed is a multiple of 4 KiB, up to 64 MiB.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub chunk: Option<Bytes>,
    /// Time between two checks of the flusher for pages to write; default 5 s (`dirty_writeback_centisecs`). At least 1
    /// ms.
    pub writeback_interval: Nanos,
    /// Age at which the flusher writes a dirty file; default 30 s (`dirty_expire_centisecs`).
    pub dirty_expire: Nanos,
    /// Percentage of dirty memory above which the flusher writes at once; default 10 (`dirty_background_ratio`). At
    /// most `dirty_limit`.
    pub dirty_background: u32,
    /// Percentage of memory that is dirty or being written, above which a process that dirties pages has to write some
    /// itself and to wait; default 20 (`dirty_ratio`). 1 to 100.
    pub dirty_limit: u32,
    /// True if [`Step::Sync`] ends with a flush of the drive's cache; default false, as in ext3 of the time.
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

/// Name of an open file, like a file descriptor.
///
/// Each name has a readahead state of its own. Processes that read through the same name share that state.
/// [`HostBuilder::reopen`](crate::HostBuilder::reopen) gives another name for the same data.
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
    /// Extents of the file's pages, in the order of the file. Each extent is a whole number of pages of 4 KiB (8
    /// sectors of 512 bytes) and not empty. The extents may hold more than `size`, so that the file can grow.
    pub extents: Vec<Extent>,
    /// Bytes in the file at the start of the run.
    pub size: u64,
}

/// Next action of a process.
///
/// Offsets and lengths are in bytes. A read stops at the end of the file, and a write at the end of the file's extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Lets time pass.
    Think(Nanos),
    /// Sets the class of the process's later requests (`ioprio_set`). This step takes no time and does not count as a
    /// call.
    Ask(Class),
    /// One call of `read()`, through the page cache.
    Read {
        file: FileId,
        /// First byte.
        offset: u64,
        len: u64,
    },
    /// One call of `write()`. Afterwards the data is in memory as dirty pages.
    Write {
        file: FileId,
        /// First byte.
        offset: u64,
        len: u64,
    },
    /// One call that bypasses the page cache (`O_DIRECT`) and returns when the disk is done. The range is rounded
    /// outwards to sectors. The call neither uses nor changes cached pages.
    Direct {
        /// [`Op::Read`](headtime_sched::Op::Read) or [`Op::Write`](headtime_sched::Op::Write).
        op: headtime_sched::Op,
        file: FileId,
        /// First byte.
        offset: u64,
        len: u64,
    },
    /// Reads a metadata block, the 4 KiB that start at this sector, unless the block is cached.
    ReadBlock(headtime_units::Lba),
    /// Changes a metadata block, the 4 KiB that start at this sector, in memory. Write-back writes the block later. The
    /// block is not read first.
    DirtyBlock(headtime_units::Lba),
    /// `fsync()`: returns when every dirty page of the file is on the disk.
    Sync(FileId),
    /// Deletes or truncates the file. The file's pages leave memory, and dirty pages are not written. The file gets
    /// back the size that it had at the start of the run. The extents stay reserved, so that the file can be written
    /// again.
    Forget(FileId),
    /// Waits until all members have arrived; see [`HostBuilder::add_barrier`](crate::HostBuilder::add_barrier).
    Barrier(BarrierId),
    /// Ends the process.
    Exit,
}

/// The program of a process.
///
/// A program does not know the time and sees no results. The next step depends only on earlier steps, so a program that
/// is built again from the same seed takes the same steps. The host asks for no step after [`Step::Exit`].
pub trait Behaviour: Send {
    /// Returns the next step. At least one of 268 million consecutive steps must take time.
    fn next(&mut self) -> Step;
}

impl<F: FnMut() -> Step + Send> Behaviour for F {
    fn next(&mut self) -> Step {
        self()
    }
}

/// A process or a thread: both have an I/O context of their own (`CLONE_IO` is not used).
pub struct ProcessSpec {
    /// Program of the process, 0 to 65,535. The origin of the process's requests has this number as `program`.
    pub program: u32,
    /// Source of the process's steps.
    pub behaviour: Box<dyn Behaviour>,
    /// Server that carries out the process's calls, if the process is a client.
    pub served_by: Option<PoolId>,
    /// Start of the process.
    pub start: Time,
}
