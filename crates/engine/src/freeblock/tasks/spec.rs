//! What a task asks for, and who is told of it.

use headtime_units::{Extent, Sectors, Time};

/// Names a task among those of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// What a task does with the blocks that it wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// It reads them.
    #[default]
    Read,
    /// It writes them, through the drive's buffer to the medium (FUA). Its [`Consumer::fill`] is asked for the data directly before. No sector that it
    /// does not want is written.
    Write,
}

/// What a client's write to a block means for a task; for one that reads, a task's as well. Tasks that write the same block each do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnWrite {
    /// Nothing: the medium is to be read, whatever is on it; or to be written, also over what a client has written.
    #[default]
    Nothing,
    /// A block that is written whole is not wanted any longer.
    Satisfied,
    /// A block that is written is wanted, also if it has been read: the task has what is on the disk in the end.
    Again,
}

/// What a task wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Tasks of a higher one come first.
    pub priority: u8,
    /// See there.
    pub work: Work,
    /// Whole blocks of the disk.
    pub ranges: Vec<Extent>,
    /// Sectors of the blocks of which the task hears when all of one has been read: a multiple of the blocks in which all
    /// tasks are read.
    pub block: Sectors,
    /// Whether the ranges are wanted at once; else blocks of them are once they are written, with [`OnWrite::Again`].
    pub all: bool,
    /// See there.
    pub on_write: OnWrite,
    /// Whether what clients read counts, whose data the task does not see; also in parts, as far as there is room to know of them. Means nothing to a task that writes.
    pub others_count: bool,
}

/// Why a task cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A range is not on the disk.
    #[error("{0} leaves the disk, which has {1}")]
    Outside(Extent, Sectors),
    /// A range is not of whole blocks.
    #[error("{0} is not of whole blocks of {1}")]
    Parts(Extent, Sectors),
    /// The task's block is not of whole blocks.
    #[error("a task's block of {0} is not a multiple of {1}")]
    Block(Sectors, Sectors),
    /// There have been as many tasks as can be named.
    #[error("no more than {0} tasks")]
    TooMany(u32),
}

/// Who has tasks done.
pub trait Consumer {
    /// Sectors that a task wants were read, or written for it. `data` are what was read in a live server; `None` in simulation, where a client
    /// read them for a task that counts that, and of what was written.
    fn piece(&mut self, now: Time, task: TaskId, extent: Extent, data: Option<&[u8]>);

    /// Writes into `data`, which holds anything before, what a task is to write to these sectors, all of which it wants. Asked in a live server directly
    /// before they are written, so that what was decided last counts. It stands for these sectors until the task hears of them as a
    /// [piece](Consumer::piece): of a write that failed the sectors hold anything, and are asked for again.
    ///
    /// # Panics
    ///
    /// If there is no task that writes.
    fn fill(&mut self, task: TaskId, extent: Extent, data: &mut [u8]) {
        panic!(
            "{task:?} writes {extent}, {} bytes, and nobody says what",
            data.len()
        );
    }

    /// Nothing of a block of the task's own size is wanted any longer: it was read, written, or is unreadable.
    fn block(&mut self, _now: Time, _task: TaskId, _block: Extent) {}

    /// Sectors cannot be read, or written by a task that writes. They are not tried again.
    fn unreadable(&mut self, now: Time, task: TaskId, extent: Extent);

    /// Sectors of a task's ranges are written, and their blocks are wanted, perhaps again. What was read of them is old. A task that writes with
    /// [`OnWrite::Satisfied`] hears of blocks that were written in part: what it [fills](Consumer::fill) in there has to hold what was written.
    fn changed(&mut self, _now: Time, _task: TaskId, _extent: Extent) {}

    /// A task wants nothing more; it may want something again with [`OnWrite::Again`].
    fn done(&mut self, _now: Time, _task: TaskId) {}
}
