//! What a task asks for, and who is told of it.

use headtime_units::{Extent, Sectors, Time};

/// Names a task among those of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// What somebody's write to a block means for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnWrite {
    /// Nothing: the medium is to be read, whatever is on it.
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
    /// Whole blocks of the disk.
    pub ranges: Vec<Extent>,
    /// Sectors of the blocks of which the task hears when all of one has been read: a multiple of the blocks in which all
    /// tasks are read.
    pub block: Sectors,
    /// Whether the ranges are wanted at once; else blocks of them are once they are written, with [`OnWrite::Again`].
    pub all: bool,
    /// See there.
    pub on_write: OnWrite,
    /// Whether what clients read counts, whose data the task does not see.
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
    /// Sectors that a task wants were read. `data` are theirs in a live server; `None` in simulation, and where a client read
    /// them for a task that counts that.
    fn piece(&mut self, now: Time, task: TaskId, extent: Extent, data: Option<&[u8]>);

    /// Nothing of a block of the task's own size is wanted any longer: it was read, written, or is unreadable.
    fn block(&mut self, _now: Time, _task: TaskId, _block: Extent) {}

    /// Sectors cannot be read. They are not tried again.
    fn unreadable(&mut self, now: Time, task: TaskId, extent: Extent);

    /// Sectors of a task's ranges are written, and are wanted, perhaps again. What was read of them is old.
    fn changed(&mut self, _now: Time, _task: TaskId, _extent: Extent) {}

    /// A task wants nothing more; it may want something again with [`OnWrite::Again`].
    fn done(&mut self, _now: Time, _task: TaskId) {}
}
