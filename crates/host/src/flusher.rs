//! State of the flusher: dirty files and blocks, and processes that wait for write-back.

use crate::file::NONE;
use crate::process::Asker;
use crate::spec::{HostSpec, PAGE};
use crate::waiters::Chain;
use headtime_units::{Nanos, Time};

/// Pages of a file, or blocks, written before the next file has its turn (`MAX_WRITEBACK_PAGES`).
pub(crate) const TURN_PAGES: u32 = 1024;
/// Pages between two checks of the limits while the limits are exceeded.
const LOOK_OFTEN: u32 = 8;

/// The flusher, and the lists of dirty files and blocks.
///
/// Invariants: `background` is at most `limit`; `turn` is at most [`TURN_PAGES`].
#[derive(Debug)]
pub(crate) struct WriteBack {
    pub asker: Asker,
    pub interval: Nanos,
    pub expire: Nanos,
    /// Dirty pages above which the flusher writes, and above which processes have to write as well.
    pub background: u64,
    pub limit: u64,
    /// Pages between two checks of the limits.
    pub look: u32,
    pub exceeded: bool,
    /// Files by the time at which they became dirty, and files that are due to be written.
    pub dirty: Queue,
    pub due: Queue,
    /// Pages that the file in front of `due` may still write in this turn.
    pub turn: u32,
    /// Dirty blocks.
    pub blocks: Vec<u64>,
    /// Time at which the first dirty block became dirty.
    pub blocks_dirtied: Time,
    /// True if the flusher's clock is set.
    pub ticking: bool,
    /// If set, the flusher writes data that became dirty up to this time.
    pub expired: Option<Time>,
    /// True while the flusher waits for a congested queue.
    pub congested: bool,
    /// Outstanding write-back requests.
    pub outstanding: u32,
    /// Processes that wait for a free request, and processes that wait until the queue is relieved.
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
            turn: TURN_PAGES,
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

    /// Pages that a process may dirty between two checks of the limits.
    pub fn look_every(&self) -> u32 {
        if self.exceeded { LOOK_OFTEN } else { self.look }
    }

    /// Pages that a process has to write while the limit is exceeded.
    pub fn share(&self) -> u32 {
        self.look + self.look / 2
    }
}
