//! The numbers of a cluster.

use crate::builder::HostError;
use crate::spec::{DiskSize, PAGE};
use headtime_units::{Bytes, Nanos, Rate, Sectors};

/// The numbers of a cluster.
///
/// The defaults are the cluster of the U-Shape paper (section 4): PVFS2 2.8.2 on gigabit Ethernet. Times without a
/// source are marked as assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct ClusterSpec {
    /// Data servers, each with one disk; 1 to 64, default 9.
    pub servers: u16,
    /// Nodes that processes run on, the n-th process of a program on node n mod `nodes`; 1 to 4096, default 4.
    pub nodes: u16,
    /// Bytes of a file on a server before the next server's turn; default 64 KiB. A multiple of 4 KiB, up to 64 MiB.
    pub strip: Bytes,
    /// Bytes a second of the link of a node or server, in each direction; default 117.7 MB/s. 1 MB/s to 1 TB/s.
    /// The default is gigabit Ethernet with frames of 1538 bytes on the wire for 1448 of data.
    pub link: Rate,
    /// Time from one link to the other; default 40 us (assumed: half a round trip of 60 to 125 us, without processor
    /// time).
    pub latency: Nanos,
    /// Processor time of a message at the sender and at the receiver, each; default 15 us (assumed: 10 to 20 us).
    pub message: Nanos,
    /// Processor time of a server for each piece that it reads or writes; default 75 us (assumed: 50 to 100 us with the
    /// start of a thread).
    pub request: Nanos,
    /// Pieces that a server has in work at a time; 1 to 4096, default 16 (`TroveMaxConcurrentIO`).
    pub threads: u16,
    /// Time of a round of a barrier; default 50 us (assumed: 100 to 200 us for eight processes). P processes need
    /// ceil(log2(P)) rounds.
    pub barrier: Nanos,
}

impl Default for ClusterSpec {
    fn default() -> ClusterSpec {
        ClusterSpec {
            servers: 9,
            nodes: 4,
            strip: Bytes(64 << 10),
            link: Rate(117_700_000),
            latency: Nanos::from_micros(40),
            message: Nanos::from_micros(15),
            request: Nanos::from_micros(75),
            threads: 16,
            barrier: Nanos::from_micros(50),
        }
    }
}

impl ClusterSpec {
    /// The disk that clients see: the whole strips of the servers' disks, each of the size `disk`.
    pub fn volume(&self, disk: DiskSize) -> DiskSize {
        let strip = (self.strip.0 / u64::from(disk.sector_bytes)).max(1);
        let strips = disk.capacity.get() / strip;
        DiskSize {
            capacity: Sectors::new(strips * strip * u64::from(self.servers)),
            ..disk
        }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// The first number that is out of range.
    pub fn check(&self) -> Result<(), HostError> {
        let strip = self.strip.0;
        let longest = Nanos::from_secs(1);
        let numbers: [(&'static str, bool, &dyn ToString, &'static str); 9] = [
            (
                "servers",
                (1..=64).contains(&self.servers),
                &self.servers,
                "1 to 64",
            ),
            (
                "nodes",
                (1..=4096).contains(&self.nodes),
                &self.nodes,
                "1 to 4096",
            ),
            (
                "strip",
                strip > 0 && strip.is_multiple_of(PAGE) && strip <= 64 << 20,
                &self.strip,
                "a multiple of 4KiB up to 64MiB",
            ),
            (
                "link",
                (1_000_000..=1_000_000_000_000).contains(&self.link.0),
                &self.link,
                "1MB/s to 1TB/s",
            ),
            ("latency", self.latency <= longest, &self.latency, UP_TO_1S),
            ("message", self.message <= longest, &self.message, UP_TO_1S),
            ("request", self.request <= longest, &self.request, UP_TO_1S),
            (
                "threads",
                (1..=4096).contains(&self.threads),
                &self.threads,
                "1 to 4096",
            ),
            ("barrier", self.barrier <= longest, &self.barrier, UP_TO_1S),
        ];
        for (key, good, value, allowed) in numbers {
            if !good {
                let value = value.to_string();
                return Err(HostError::Range {
                    key,
                    value,
                    allowed,
                });
            }
        }
        Ok(())
    }
}

const UP_TO_1S: &str = "0ns to 1s";
