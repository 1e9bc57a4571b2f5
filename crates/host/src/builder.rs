//! Builds a host and checks its parts.

use crate::spec::{BarrierId, DiskSize, File, FileId, HostSpec, PAGE, PoolId, ProcessSpec, Step};
use headtime_sched::Class;
use headtime_units::{Extent, Nanos, Sectors};

/// Most steps that all programs together may plan in advance. Each step takes some 30 bytes.
pub(crate) const PLANNED_MAX: u64 = 1 << 27;

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
        /// Number of the file, counted from 1 in the order of addition.
        file: usize,
        extent: Extent,
        /// Sectors of the disk.
        capacity: Sectors,
    },
    /// An extent of a file is not a whole number of pages, or empty.
    #[error("file {file}: sectors {extent} are not a whole number of pages of {page} sectors")]
    NotPages {
        /// Number of the file, counted from 1 in the order of addition.
        file: usize,
        extent: Extent,
        /// Sectors of a page.
        page: u64,
    },
    /// A file is bigger than its extents.
    #[error("file {file}: {size} bytes do not fit into its extents of {room} bytes")]
    TooBig {
        /// Number of the file, counted from 1 in the order of addition.
        file: usize,
        size: u64,
        /// Bytes of the file's extents.
        room: u64,
    },
    /// All files together have more pages than the host supports.
    #[error("the files have more than {most} pages of 4 KiB together")]
    TooManyPages {
        /// Largest number of pages.
        most: u64,
    },
    /// There are more files than the host supports.
    #[error("there are more than {most} files")]
    TooManyFiles {
        /// Largest number of files.
        most: usize,
    },
    /// There are more processes than the host supports.
    #[error("there are {processes} processes; allowed are {most}")]
    TooManyProcesses {
        processes: usize,
        /// Largest number of processes.
        most: usize,
    },
    /// A file of a cluster is not in one piece.
    #[error("file {file}: a cluster stripes files with one extent alone")]
    InPieces {
        /// Number of the file, counted from 1 in the order of addition.
        file: usize,
    },
    /// Every process would end when the others have ended.
    #[error("every process runs until the others have ended; add a process that ends by itself")]
    OnlyBackground,
    /// The host has no process.
    #[error("a host needs at least one process")]
    NoProcess,
    /// A process belongs to a program whose number is too high.
    #[error("process {process}: program {program} is out of range; allowed is 0 to 65535")]
    Program {
        /// Number of the process, counted from 1 in the order of addition.
        process: usize,
        program: u32,
    },
    /// A name does not come from this builder.
    #[error("{kind} {index} is not of this host")]
    Unknown { kind: &'static str, index: u32 },
    /// A barrier has no members, or more members than the host has processes.
    #[error("barrier {barrier} is for {members} members; the host has {processes} processes")]
    BarrierMembers {
        /// Number of the barrier, counted from 1 in the order of addition.
        barrier: usize,
        members: u32,
        /// Processes of the host.
        processes: usize,
    },
    /// A pool without workers.
    #[error("pool {pool} has no workers")]
    EmptyPool {
        /// Number of the pool, counted from 1 in the order of addition.
        pool: usize,
    },
}

/// Builds a [`Host`](crate::Host) from files and processes.
pub struct HostBuilder {
    pub(crate) spec: HostSpec,
    pub(crate) disk: DiskSize,
    /// Files as they lie on the disk, and the file that each name stands for.
    pub(crate) files: Vec<File>,
    pub(crate) names: Vec<u32>,
    pub(crate) barriers: Vec<u32>,
    pub(crate) pools: Vec<u32>,
    pub(crate) processes: Vec<ProcessSpec>,
    /// Class of each process, and class of processes that are added later.
    pub(crate) classes: Vec<Class>,
    class: Class,
    /// By process: true for a background process, which ends when no other processes are left.
    pub(crate) background: Vec<bool>,
    /// Steps that programs have planned.
    pub(crate) planned: u64,
    pages: u64,
}

impl HostBuilder {
    /// Makes a builder without files and processes, for a disk of this size.
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
            classes: Vec::new(),
            class: Class::default(),
            background: Vec::new(),
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

    /// Adds a file and opens it.
    ///
    /// The builder does not check that files do not overlap.
    ///
    /// # Errors
    ///
    /// If the file does not lie on the disk, is larger than its extents, or has an extent that is not a whole number of
    /// pages. If there are too many pages (2³¹) or files (2²⁴) in all.
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

    /// Opens a file once more. The new name has a readahead state of its own, and shares the cached pages.
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

    /// Adds a barrier for `members` processes. The processes meet there, continue at the same time, and may meet again.
    ///
    /// A process that ends does not count as having arrived, as with `pthread_barrier_wait`.
    pub fn add_barrier(&mut self, members: u32) -> BarrierId {
        self.barriers.push(members);
        BarrierId(self.barriers.len() as u32 - 1)
    }

    /// Adds a server with `workers` workers. Each worker is a thread with an I/O context of its own.
    pub fn add_pool(&mut self, workers: u32) -> PoolId {
        self.pools.push(workers);
        PoolId(self.pools.len() as u32 - 1)
    }

    /// Adds a process. Processes are numbered from 1, and the origin of a process's requests has this number as
    /// `process`. Workers of pools are numbered after the processes. The flusher has the last number.
    pub fn add_process(&mut self, process: ProcessSpec) {
        self.add(process, false);
    }

    /// Adds a background process, which ends when all other processes have ended. The process takes no step after that
    /// time, so its behaviour may be endless.
    pub fn add_background(&mut self, process: ProcessSpec) {
        self.add(process, true);
    }

    /// Makes the processes of some programs end at once. Files and numbers stay as they are.
    pub fn silence(&mut self, is_silent: impl Fn(u32) -> bool) {
        for process in &mut self.processes {
            if is_silent(process.program) {
                process.behaviour = Box::new(|| Step::Exit);
            }
        }
    }

    fn add(&mut self, process: ProcessSpec, background: bool) {
        self.processes.push(process);
        self.classes.push(self.class);
        self.background.push(background);
    }

    /// Sets the class of all processes that are added later. The class applies to all their requests, including writes
    /// for which they wait. The initial class is [`Class::BEST_EFFORT`], which is also the flusher's class.
    pub fn set_class(&mut self, class: Class) {
        self.class = class;
    }

    /// Steps that may still be planned.
    pub(crate) fn room_to_plan(&self) -> u64 {
        PLANNED_MAX.saturating_sub(self.planned)
    }

    /// Returns the parts, for a caller that inspects the processes' steps and does not run them. The parts are not
    /// checked as in [`HostBuilder::build`].
    pub fn into_plan(self) -> HostPlan {
        let page_sectors = self.page_sectors();
        HostPlan {
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

/// Processes and files, as they were added to a [`HostBuilder`].
pub struct HostPlan {
    /// The properties of the host.
    pub spec: HostSpec,
    pub page_sectors: u64,
    /// Files as they lie on the disk.
    pub files: Vec<File>,
    names: Vec<u32>,
    barriers: Vec<u32>,
    /// The processes, in the order of their numbers.
    pub processes: Vec<ProcessSpec>,
}

impl HostPlan {
    /// Index of the file that a name stands for. A file that was opened more than once has several names.
    ///
    /// # Panics
    ///
    /// If the name is of another host.
    pub fn file_of(&self, name: FileId) -> usize {
        self.names[name.0 as usize] as usize
    }

    /// Number of a barrier, counted from 0.
    pub fn number_of(&self, barrier: BarrierId) -> usize {
        barrier.0 as usize
    }

    /// Number of processes that meet at each barrier, in the order of the barriers' numbers.
    pub fn barriers(&self) -> &[u32] {
        &self.barriers
    }
}

/// Most pages of all files together. Metadata blocks do not count.
const PAGES_MAX: u64 = 1 << 31;

/// Most files of a host.
const FILES_MAX: usize = if cfg!(test) { 1 << 17 } else { 1 << 24 };

/// Most processes of a host.
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
        spec.read_ahead <= HostSpec::READ_AHEAD_MAX,
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
    let chunk = spec.chunk.unwrap_or_default();
    range(
        chunk.0.is_multiple_of(PAGE) && chunk.0 <= 64 << 20,
        "chunk",
        &chunk,
        "0, or a multiple of 4KiB up to 64MiB",
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
