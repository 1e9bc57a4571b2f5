//! The description of a host, and the builder that checks it.

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

impl Default for HostSpec {
    fn default() -> HostSpec {
        HostSpec {
            read_ahead: Bytes(128 << 10),
            page_cache: Bytes(1792 << 20),
            copy_per_page: Nanos::from_nanos(1_200),
            request_max: Bytes(512 << 10),
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
/// state. [`HostBuilder::reopen`] gives another name for the same data.
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

/// Steps that programs may plan ahead, all together; each takes some 30 bytes.
pub(crate) const PLANNED_MAX: u64 = 1 << 27;

/// What a process does next.
///
/// Offsets and lengths are bytes. Reads end at the end of the file, writes at the end of its
/// extents. Nothing behind that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Lets time pass.
    Think(Nanos),
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
    /// Waits until all members have come; see [`HostBuilder::add_barrier`].
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

/// Why a host cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A number of [`HostSpec`] or [`DiskSize`] is out of range.
    #[error("{key} is {value}; allowed is {allowed}")]
    Range {
        key: &'static str,
        value: String,
        allowed: &'static str,
    },
    /// An extent of a file does not lie on the disk.
    #[error("file {file}: sectors {extent} are not on the disk, which has {capacity}")]
    OutsideDisk {
        /// The file, counted from 1 as they were added.
        file: usize,
        extent: Extent,
        /// Sectors of the disk.
        capacity: Sectors,
    },
    /// An extent of a file is not a whole number of pages, or empty.
    #[error("file {file}: sectors {extent} are not a whole number of pages of {page} sectors")]
    NotPages {
        /// The file, counted from 1 as they were added.
        file: usize,
        extent: Extent,
        /// Sectors of a page.
        page: u64,
    },
    /// A file is bigger than its extents.
    #[error("file {file}: {size} bytes do not fit into its extents of {room} bytes")]
    TooBig {
        /// The file, counted from 1 as they were added.
        file: usize,
        size: u64,
        /// Bytes of its extents.
        room: u64,
    },
    /// All files together have more pages than the host can tell apart.
    #[error("the files have more than {most} pages of 4 KiB together")]
    TooManyPages {
        /// How many it can.
        most: u64,
    },
    /// There are more files than the host can keep the state of.
    #[error("there are more than {most} files")]
    TooManyFiles {
        /// How many it can.
        most: usize,
    },
    /// There are more processes than the host can keep the state of.
    #[error("there are {processes} processes; allowed are {most}")]
    TooManyProcesses {
        processes: usize,
        /// How many it can.
        most: usize,
    },
    /// There is nothing to do.
    #[error("a host needs at least one process")]
    NoProcess,
    /// A process belongs to a program whose number is too high.
    #[error("process {process}: program {program} is out of range; allowed is 0 to 65535")]
    Program {
        /// The process, counted from 1 as they were added.
        process: usize,
        program: u32,
    },
    /// A name that this builder did not give.
    #[error("{kind} {index} is not of this host")]
    Unknown { kind: &'static str, index: u32 },
    /// A barrier that nobody, or not everybody, can come to.
    #[error("barrier {barrier} is for {members} members; the host has {processes} processes")]
    BarrierMembers {
        /// The barrier, counted from 1 as they were added.
        barrier: usize,
        members: u32,
        /// Processes of the host.
        processes: usize,
    },
    /// A pool without workers.
    #[error("pool {pool} has no workers")]
    EmptyPool {
        /// The pool, counted from 1 as they were added.
        pool: usize,
    },
}

/// Puts a [`Host`](crate::Host) together.
pub struct HostBuilder {
    pub(crate) spec: HostSpec,
    pub(crate) disk: DiskSize,
    /// The files as they lie, and which of them each name means.
    pub(crate) files: Vec<File>,
    pub(crate) names: Vec<u32>,
    pub(crate) barriers: Vec<u32>,
    pub(crate) pools: Vec<u32>,
    pub(crate) processes: Vec<ProcessSpec>,
    /// Steps that programs have planned.
    pub(crate) planned: u64,
    pages: u64,
}

impl HostBuilder {
    /// A host without files and processes, before a disk of this size.
    ///
    /// # Errors
    ///
    /// If a number is out of range.
    pub fn new(spec: HostSpec, disk: DiskSize) -> Result<HostBuilder, HostError> {
        check(&spec, disk)?;
        Ok(HostBuilder {
            spec,
            disk,
            files: Vec::new(),
            names: Vec::new(),
            barriers: Vec::new(),
            pools: Vec::new(),
            processes: Vec::new(),
            planned: 0,
            pages: 0,
        })
    }

    /// The properties of the host.
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    pub fn disk(&self) -> DiskSize {
        self.disk
    }

    /// Lays down a file, opened.
    ///
    /// Whether files overlap is not checked.
    ///
    /// # Errors
    ///
    /// If it does not lie on the disk, if an extent is not a whole number of pages, if it is bigger
    /// than its extents, or if there are too many pages (2³¹) or files (2²⁴) in all.
    pub fn add_file(&mut self, file: File) -> Result<FileId, HostError> {
        let number = self.files.len() + 1;
        if number > FILES_MAX {
            return Err(HostError::TooManyFiles { most: FILES_MAX });
        }
        let page = self.page_sectors();
        let mut pages = 0u64;
        for extent in &file.extents {
            let (start, len) = (extent.start.get(), extent.len.get());
            if start
                .checked_add(len)
                .is_none_or(|end| end > self.disk.capacity.get())
            {
                return Err(HostError::OutsideDisk {
                    file: number,
                    extent: *extent,
                    capacity: self.disk.capacity,
                });
            }
            if len == 0 || len % page != 0 {
                return Err(HostError::NotPages {
                    file: number,
                    extent: *extent,
                    page,
                });
            }
            pages = pages.saturating_add(len / page);
        }
        self.pages = self.pages.saturating_add(pages);
        if self.pages > PAGES_MAX {
            return Err(HostError::TooManyPages { most: PAGES_MAX });
        }
        if file.size > pages * PAGE {
            return Err(HostError::TooBig {
                file: number,
                size: file.size,
                room: pages * PAGE,
            });
        }
        self.names.push(self.files.len() as u32);
        self.files.push(file);
        Ok(FileId(self.names.len() as u32 - 1))
    }

    /// Another name of the same file, as if it were opened once more: with a state of readahead of
    /// its own, and the same cached pages.
    ///
    /// # Errors
    ///
    /// If the file is not of this host.
    pub fn reopen(&mut self, file: FileId) -> Result<FileId, HostError> {
        let index = *self.names.get(file.0 as usize).ok_or(HostError::Unknown {
            kind: "file",
            index: file.0,
        })?;
        self.names.push(index);
        Ok(FileId(self.names.len() as u32 - 1))
    }

    /// A barrier: so many processes meet there, go on at the same time, and may meet again.
    ///
    /// A process that ends does not count as having come, as with `pthread_barrier_wait`.
    pub fn add_barrier(&mut self, members: u32) -> BarrierId {
        self.barriers.push(members);
        BarrierId(self.barriers.len() as u32 - 1)
    }

    /// A server with so many workers, each a thread with an I/O context of its own.
    pub fn add_pool(&mut self, workers: u32) -> PoolId {
        self.pools.push(workers);
        PoolId(self.pools.len() as u32 - 1)
    }

    /// Adds a process. Processes are numbered from 1, which is the `process` of their requests'
    /// origin; workers of pools are numbered after them, and the flusher is the last.
    pub fn add_process(&mut self, process: ProcessSpec) {
        self.processes.push(process);
    }

    /// Steps that may still be planned.
    pub(crate) fn room_to_plan(&self) -> u64 {
        PLANNED_MAX.saturating_sub(self.planned)
    }

    /// What was put together, for somebody who wants to know what the processes will do and not to
    /// run them. It was not checked as [`HostBuilder::build`] does.
    pub fn into_plan(self) -> Plan {
        let page_sectors = self.page_sectors();
        Plan {
            spec: self.spec,
            page_sectors,
            files: self.files,
            names: self.names,
            barriers: self.barriers,
            processes: self.processes,
        }
    }

    pub(crate) fn page_sectors(&self) -> u64 {
        PAGE / u64::from(self.disk.sector_bytes)
    }
}

/// Processes and what they work on, as a [`HostBuilder`] got them.
pub struct Plan {
    /// The properties of the host.
    pub spec: HostSpec,
    pub page_sectors: u64,
    /// The files as they lie.
    pub files: Vec<File>,
    names: Vec<u32>,
    barriers: Vec<u32>,
    /// The processes, in the order of their numbers.
    pub processes: Vec<ProcessSpec>,
}

impl Plan {
    /// Which of the files a name means: files that were opened more than once have several names.
    ///
    /// # Panics
    ///
    /// If the name is of another host.
    pub fn file_of(&self, name: FileId) -> usize {
        self.names[name.0 as usize] as usize
    }

    /// A barrier as a number, counted from 0.
    pub fn number_of(&self, barrier: BarrierId) -> usize {
        barrier.0 as usize
    }

    /// How many processes meet at each barrier, in the order of their numbers.
    pub fn barriers(&self) -> &[u32] {
        &self.barriers
    }
}

/// Pages that all files together may have; blocks of metadata come on top.
const PAGES_MAX: u64 = 1 << 31;

/// Files that there may be.
const FILES_MAX: usize = if cfg!(test) { 1 << 17 } else { 1 << 24 };

/// Processes that there may be.
pub(crate) const PROCESSES_MAX: usize = 1_000_000;

fn check(spec: &HostSpec, disk: DiskSize) -> Result<(), HostError> {
    let range = |good: bool, key, value: &dyn ToString, allowed| match good {
        true => Ok(()),
        false => Err(HostError::Range {
            key,
            value: value.to_string(),
            allowed,
        }),
    };
    range(
        disk.sector_bytes.is_power_of_two() && (512..=4096).contains(&disk.sector_bytes),
        "sector_bytes",
        &disk.sector_bytes,
        "a power of two, 512 to 4096",
    )?;
    range(
        disk.capacity > Sectors::ZERO,
        "capacity",
        &disk.capacity,
        "at least 1 sector",
    )?;
    range(
        spec.read_ahead.0 <= 64 << 20,
        "read_ahead",
        &spec.read_ahead,
        "0 to 64MiB",
    )?;
    range(
        spec.page_cache.0 >= 1 << 20 && spec.page_cache.0 / PAGE <= PAGES_MAX,
        "page_cache",
        &spec.page_cache,
        "1MiB to 8TiB",
    )?;
    range(
        (PAGE..=64 << 20).contains(&spec.request_max.0),
        "request_max",
        &spec.request_max,
        "4KiB to 64MiB",
    )?;
    range(
        spec.writeback_interval >= Nanos::from_millis(1),
        "writeback_interval",
        &spec.writeback_interval,
        "1ms and more",
    )?;
    range(
        (1..=100).contains(&spec.dirty_limit),
        "dirty_limit",
        &spec.dirty_limit,
        "1 to 100 percent",
    )?;
    range(
        spec.dirty_background <= spec.dirty_limit,
        "dirty_background",
        &spec.dirty_background,
        "0 to dirty_limit percent",
    )
}
