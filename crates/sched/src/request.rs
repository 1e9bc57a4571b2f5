//! What is asked of a disk.

use headtime_units::{Extent, Time};

/// Names a request among those that are queued or in flight.
///
/// Tags are small and dense: the engine hands out the lowest ones first and reuses a tag once its
/// request has completed, so a policy may keep per-request state in a vector indexed by tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// The tag as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What to do with the sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Bring them from the medium.
    Read,
    /// Put data on them.
    Write,
    /// Make every completed write durable; has no sectors.
    Flush,
    /// Forget their contents.
    Discard,
}

impl Op {
    /// Returns true if the operation moves data from the disk to the host.
    pub const fn is_read(self) -> bool {
        matches!(self, Op::Read)
    }

    /// Returns true if the operation changes sectors, so that its order against others that touch them
    /// matters.
    pub const fn changes(self) -> bool {
        matches!(self, Op::Write | Op::Discard)
    }
}

/// Why requests that the host has are not in the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backlog {
    /// There are none.
    #[default]
    Nothing,
    /// The drive has as many commands as it is to have at a time.
    Busy,
    /// The scheduler has some, and chose to wait.
    Chosen,
    /// The queue keeps them back, whatever the scheduler: for order, or until others join them.
    Held,
}

/// Properties of a request beyond its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// None of them.
    pub const NONE: Flags = Flags(0);
    /// Force unit access: a write completes only when it is on the medium.
    pub const FUA: Flags = Flags(1);
    /// Every write completed before this request becomes durable before it starts.
    pub const PREFLUSH: Flags = Flags(2);
    /// Somebody waits for it (reads always count as waited for).
    pub const SYNC: Flags = Flags(4);

    /// All the flags of both.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns true if all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as bits: 1 FUA, 2 PREFLUSH, 4 SYNC; for logs.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The flags of these bits, or `None` if a bit is unknown.
    pub const fn from_bits(bits: u8) -> Option<Flags> {
        if bits < 8 { Some(Flags(bits)) } else { None }
    }
}

/// Who asks. Zero means that it is not known, which is what most storage targets see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The process or thread.
    pub process: u32,
    /// The program, a set of processes.
    pub program: u16,
    /// The export or device through which it came.
    pub export: u16,
}

/// Rank of a request: 0 is the most important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

impl Class {
    /// Ahead of everything else.
    pub const REAL_TIME: Class = Class(0);
    /// Where a request is unless somebody says otherwise.
    pub const BEST_EFFORT: Class = Class(1);
    /// Only when nothing else is to do.
    pub const IDLE: Class = Class(2);
}

impl Default for Class {
    fn default() -> Class {
        Class::BEST_EFFORT
    }
}

/// What is asked of a disk.
///
/// Policies know a request by its [`Tag`]. Others name it in their own way: the drive's commands, and
/// requests that are reported, have a `tag` of another type, so that nobody takes one for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request<T = Tag> {
    /// Its name; for a policy, while it is queued or in flight.
    pub tag: T,
    /// What to do.
    pub op: Op,
    /// To which sectors; grows by merging.
    pub extent: Extent,
    /// Further properties.
    pub flags: Flags,
    /// Who asks; of a merged request, the first.
    pub origin: Origin,
    /// Its rank.
    pub class: Class,
    /// When it came; of a merged request, the earliest.
    pub arrival: Time,
}

impl<T> Request<T> {
    /// A best-effort request of unknown origin without flags.
    pub fn new(tag: T, op: Op, extent: Extent, arrival: Time) -> Request<T> {
        Request {
            tag,
            op,
            extent,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
            arrival,
        }
    }

    /// The same request under another name.
    pub fn tagged<U>(self, tag: U) -> Request<U> {
        let Request {
            tag: _,
            op,
            extent,
            flags,
            origin,
            class,
            arrival,
        } = self;
        Request {
            tag,
            op,
            extent,
            flags,
            origin,
            class,
            arrival,
        }
    }

    /// Returns true if somebody waits for it: it is a read, or a write that says so.
    pub const fn is_sync(&self) -> bool {
        self.op.is_read() || self.flags.has(Flags::SYNC)
    }
}
