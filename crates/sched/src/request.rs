//! Requests to a disk.

use headtime_units::{Extent, Time};

/// Name of a request among the requests that are queued or in flight.
///
/// Tags are small and dense. The engine hands out the lowest tags first. It reuses a tag once the
/// request has completed, so a policy may keep per-request state in a vector indexed by tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// The tag as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Operation on the sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Read the sectors from the medium.
    Read,
    /// Write data to the sectors.
    Write,
    /// Make every completed write durable. A flush has no sectors.
    Flush,
    /// Discard the contents of the sectors.
    Discard,
}

impl Op {
    /// Returns true if the operation moves data from the disk to the host.
    pub const fn is_read(self) -> bool {
        matches!(self, Op::Read)
    }

    /// Returns true if the operation changes sectors. The order of such an operation against others on
    /// the same sectors matters.
    pub const fn changes(self) -> bool {
        matches!(self, Op::Write | Op::Discard)
    }
}

/// Reason why requests of the host are not in the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backlog {
    /// The host has no waiting requests.
    #[default]
    Nothing,
    /// The drive has the largest number of commands that it may have at a time.
    Busy,
    /// The scheduler has requests, and chose to wait.
    Chosen,
    /// The queue holds requests back, independently of the scheduler: to keep the order, or until other
    /// requests join them.
    Held,
}

/// Properties of a request beyond its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// Force unit access: a write completes only when it is on the medium.
    pub const FUA: Flags = Flags(1);
    /// All writes that completed before this request become durable before this request starts.
    pub const PREFLUSH: Flags = Flags(2);
    /// A client waits for the request. Reads always count as waited for.
    pub const SYNC: Flags = Flags(4);

    /// Returns the union of both sets of flags.
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

/// Origin of a request. Zero means unknown, which is the usual case at a storage target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The process or thread.
    pub process: u32,
    /// The program, a set of processes.
    pub program: u16,
    /// The export or device through which the request came.
    pub export: u16,
}

/// Rank of a request: 0 is the most important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

impl Class {
    /// Ahead of all other classes.
    pub const REAL_TIME: Class = Class(0);
    /// The default class.
    pub const BEST_EFFORT: Class = Class(1);
    /// Served only when no other request is queued.
    pub const IDLE: Class = Class(2);
}

impl Default for Class {
    fn default() -> Class {
        Class::BEST_EFFORT
    }
}

/// A request to a disk.
///
/// Policies know a request by its [`Tag`]. The drive's commands and reported requests have a `tag` of
/// another type, so that the compiler rejects a confusion of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request<T = Tag> {
    /// Name of the request. For a policy, the tag is valid while the request is queued or in flight.
    pub tag: T,
    /// The operation.
    pub op: Op,
    /// The sectors. Merging grows this extent.
    pub extent: Extent,
    /// Further properties.
    pub flags: Flags,
    /// Origin. For a merged request, the origin of the first part.
    pub origin: Origin,
    /// Rank of the request.
    pub class: Class,
    /// Time of arrival. For a merged request, the earliest arrival of all parts.
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

    /// Replaces the tag and keeps all other fields.
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

    /// Returns true if a client waits for the request: for a read, or a request with [`Flags::SYNC`].
    pub const fn is_sync(&self) -> bool {
        self.op.is_read() || self.flags.has(Flags::SYNC)
    }
}
