//! The flusher's state: what is dirty, and who waits for it to be written.

use crate::file::NONE;
use crate::process::Asker;
use crate::spec::{HostSpec, PAGE};
use crate::waiters::Chain;
use headtime_units::{Nanos, Time};

/// Pages of a file, or blocks, written before the next file has its turn (`MAX_WRITEBACK_PAGES`).
pub(crate) const TURN: u32 = 1024;
/// Pages between two looks at the limits while they are exceeded.
const LOOK_OFTEN: u32 = 8;

/// The flusher, and the lists of what is dirty.
#[derive(Debug)]
pub(crate) struct WriteBack {
    pub asker: Asker,
    pub interval: Nanos,
    pub expire: Nanos,
    /// Pages.
    pub background: u64,
    pub limit: u64,
    /// Pages between two looks at the limits.
    pub look: u32,
    pub exceeded: bool,
    /// Files by the time at which they became dirty, and those whose turn it is.
    pub dirty: Queue,
    pub due: Queue,
    /// Pages that the file in front of `due` may still write in this turn.
    pub turn: u32,
    /// Dirty blocks.
    pub blocks: Vec<u64>,
    /// When the first of them became dirty.
    pub blocks_dirtied: Time,
    /// Whether the flusher's clock is set.
    pub ticking: bool,
    /// The flusher writes what became dirty until then.
    pub expired: Option<Time>,
    /// Whether the flusher waits for the queue.
    pub congested: bool,
    /// Its requests outstanding.
    pub outstanding: u32,
    /// Processes that wait for one of the requests, and for the queue to be relieved.
    pub for_request: Chain,
    pub for_relief: Chain,
}

/// Both ends of a list of files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub head: u32,
    pub tail: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            head: NONE,
            tail: NONE,
        }
    }
}

impl WriteBack {
    pub fn new(spec: &HostSpec, asker: Asker, processes: usize) -> WriteBack {
        let memory = spec.page_cache.0 / PAGE;
        WriteBack {
            asker,
            interval: spec.writeback_interval,
            expire: spec.dirty_expire,
            background: memory * u64::from(spec.dirty_background) / 100,
            limit: memory * u64::from(spec.dirty_limit) / 100,
            // `ratelimit_pages` of a machine with two processors.
            look: (memory / 64).clamp(16, 1024) as u32,
            exceeded: false,
            dirty: Queue::default(),
            due: Queue::default(),
            turn: TURN,
            blocks: Vec::with_capacity(processes.max(256)),
            blocks_dirtied: Time::ZERO,
            ticking: false,
            expired: None,
            congested: false,
            outstanding: 0,
            for_request: Chain::default(),
            for_relief: Chain::default(),
        }
    }

    /// Pages that a process may dirty before it looks at the limits.
    pub fn look_every(&self) -> u32 {
        if self.exceeded { LOOK_OFTEN } else { self.look }
    }

    /// Pages that somebody above the limit has to write.
    pub fn share(&self) -> u32 {
        self.look + self.look / 2
    }
}
