//! Configuration of an engine, in the engine's units. Users write it as an [`EngineSpec`](crate::EngineSpec).

use headtime_sched::Origin;
use headtime_units::{Nanos, Sectors};

/// Configuration of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Largest number of commands in the drive, 1 to 256.
    pub depth: u32,
    /// Size of a sector, for gates that charge by bytes.
    pub sector_bytes: u32,
    /// True if requests that touch are merged.
    pub merge: bool,
    /// The largest merged request, in sectors. 1024 sectors of 512 bytes are Linux's 512 KiB of the SATA era. A single
    /// request may be larger.
    pub merge_sectors_max: Sectors,
    /// True if the driver takes one request more from the scheduler than the drive has room for, as the request
    /// function of Linux 2.6 did. The scheduler then decides one step early.
    pub commit_ahead: bool,
    /// Time of choosing a request that goes to the drive behind others.
    pub issue: Issue,
    /// Plug, if requests that come to an empty queue are held back for a moment, so that others can merge with them.
    /// The block layer of Linux 2.6 did this.
    pub plug: Option<Plug>,
    /// True if the scheduler sees all requests as one process's. A storage target or a drive sees requests like this:
    /// it knows the export, but no client. Reports keep the true origins.
    pub hide_origins: bool,
}

/// Time of choosing a request that goes to the drive behind others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Issue {
    /// As soon as the drive has room.
    #[default]
    AtOnce,
    /// [`Issue::LEAD`] before the arm is free, as predicted by a tracker. Requests that arrive until then can be
    /// chosen, too. If no scheduler has a tracker ([`WithTracker`](headtime_sched::WithTracker)), this is the same as
    /// `AtOnce`.
    Late,
}

impl Issue {
    /// Lead of [`Issue::Late`]: more than a drive needs to process a command, and more than the error of predictions.
    pub const LEAD: Nanos = Nanos::from_micros(1_000);
}

impl Config {
    /// Returns the largest number of requests that a scheduler has handed out and that are not complete.
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
    /// Depth 1, merging up to 512 KiB on sectors of 512 bytes, nothing committed ahead, no plug, origins visible.
    fn default() -> Config {
        Config {
            depth: 1,
            sector_bytes: 512,
            merge: true,
            merge_sectors_max: Sectors::new(1024),
            commit_ahead: false,
            issue: Issue::AtOnce,
            plug: None,
            hide_origins: false,
        }
    }
}

/// Conditions that open a plugged queue. A request that finds the queue empty plugs it, whether or not the drive is
/// busy. The queue opens at the first of these: `requests`, `timeout`, [`Event::Unplugged`](crate::Event::Unplugged), a
/// completion, or a request flagged [`Flags::SYNC`](headtime_sched::Flags::SYNC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plug {
    /// Number of queued requests that opens the queue. 1 means that nothing is held back.
    pub requests: u32,
    /// Time after which the queue opens.
    pub timeout: Nanos,
}

impl Plug {
    /// Plug of Linux 2.6 with 250 ticks a second: four requests, one tick (3 ms rounded up).
    pub const LINUX_2_6: Plug = Plug {
        requests: 4,
        timeout: Nanos::from_millis(4),
    };
}

/// Error of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The depth is out of range.
    #[error("depth {0} is out of range; allowed is 1 to 256")]
    Depth(u32),
    /// Merging is on, but the largest merged request has no sector.
    #[error("merge_sectors_max is 0; allowed is 1 and more, or merging off")]
    MergeSectorsMax,
}
