//! What an engine may do, in an engine's own units. People write it as an [`EngineSpec`](crate::EngineSpec).

use headtime_sched::Origin;
use headtime_units::{Nanos, Sectors};

/// What the engine may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Requests in the drive at once, 1 to 256.
    pub depth: u32,
    /// Whether requests that touch become one.
    pub merge: bool,
    /// The most sectors of a merged request; 1024 of 512 bytes are Linux's 512 KiB of the SATA era.
    /// A single request may be larger.
    pub merge_sectors_max: Sectors,
    /// Whether the driver asks for one request more than the drive has room for and commits to it,
    /// as the request function of Linux 2.6 did. It leaves the scheduler one step early.
    pub commit_ahead: bool,
    /// When a request is chosen that goes to the drive behind others.
    pub issue: Issue,
    /// Whether requests that come to an empty queue are held back for a moment so that others can
    /// join them, as the block layer of Linux 2.6 did.
    pub plug: Option<Plug>,
    /// Whether the scheduler sees all requests as one process's, as a storage target or a drive
    /// does, which is told nothing of who asks but through which export. What is reported keeps the
    /// true origins.
    pub hide_origins: bool,
}

/// When a request is chosen that goes to the drive behind others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Issue {
    /// When the drive has room.
    #[default]
    AtOnce,
    /// Just before the arm is free for it ([`Issue::LEAD`]), as a tracker predicts that, so that what comes until then can
    /// be chosen too. As `AtOnce` if no scheduler has brought a tracker ([`WithTracker`](headtime_sched::WithTracker)).
    Late,
}

impl Issue {
    /// How long before: more than a drive needs to process a command, and than predictions err.
    pub const LEAD: Nanos = Nanos::from_micros(1_000);
}

impl Config {
    /// Returns the number of requests that a scheduler can have handed out and not got back.
    pub fn handed_out_max(&self) -> u64 {
        u64::from(self.depth) + u64::from(self.commit_ahead)
    }

    /// Returns the origin that the scheduler sees.
    pub(crate) fn seen(&self, origin: Origin) -> Origin {
        match self.hide_origins {
            true => Origin {
                export: origin.export,
                ..Origin::default()
            },
            false => origin,
        }
    }
}

impl Default for Config {
    /// Depth 1, merging up to 512 KiB on sectors of 512 bytes, nothing committed ahead, no plug, origins seen.
    fn default() -> Config {
        Config {
            depth: 1,
            merge: true,
            merge_sectors_max: Sectors::new(1024),
            commit_ahead: false,
            issue: Issue::AtOnce,
            plug: None,
            hide_origins: false,
        }
    }
}

/// When a plugged queue opens: holding back begins with a request that finds nothing queued,
/// whether or not the drive is busy, and ends with whatever comes first of these two, of
/// [`Event::Unplugged`](crate::Event::Unplugged), of a completion, and of a request flagged
/// [`Flags::SYNC`](headtime_sched::Flags::SYNC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plug {
    /// So many requests are queued; 1 means that nothing is held back.
    pub requests: u32,
    /// So much time has passed.
    pub timeout: Nanos,
}

impl Plug {
    /// That of Linux 2.6 with 250 ticks a second: four requests, one tick (3 ms rounded up).
    pub const LINUX_2_6: Plug = Plug {
        requests: 4,
        timeout: Nanos::from_millis(4),
    };
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The depth is out of range.
    #[error("depth {0} is out of range; allowed is 1 to 256")]
    Depth(u32),
    /// Merging is on, and no merged request could be as large as one sector.
    #[error("merge_sectors_max is 0; allowed is 1 and more, or merging off")]
    MergeSectorsMax,
}
