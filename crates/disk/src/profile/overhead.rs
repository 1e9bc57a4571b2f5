//! Times that commands cost beside the work of the arm, as a profile gives them.

use headtime_units::Nanos;
use serde::Deserialize;

/// Time that commands cost before, between and after the work of the arm. Names in brackets are
/// DiskSim's parameters; all zero if not given.
///
/// Invariants, within a spec that [`Spec::check`](super::Spec::check) accepts: each time is at most 4 s. The times are
/// independent of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OverheadSpec {
    /// Any command, on arrival (`Per-request overhead time`).
    pub per_command: Nanos,
    /// A read hit after a read (`Read hit over. after read`).
    pub read_hit_after_read: Nanos,
    /// A read hit after a write (`Read hit over. after write`).
    pub read_hit_after_write: Nanos,
    /// A read miss after a read (`Read miss over. after read`).
    pub read_miss_after_read: Nanos,
    /// A read miss after a write (`Read miss over. after write`).
    pub read_miss_after_write: Nanos,
    /// A write that completes in the buffer, after a read (`Write hit over. after read`).
    pub write_hit_after_read: Nanos,
    /// A write that completes in the buffer, after a write (`Write hit over. after write`).
    pub write_hit_after_write: Nanos,
    /// A write that completes on the medium, after a read (`Write miss over. after read`).
    pub write_miss_after_read: Nanos,
    /// A write that completes on the medium, after a write (`Write miss over. after write`).
    pub write_miss_after_write: Nanos,
    /// Completing a read (`Read completion overhead`).
    pub read_completion: Nanos,
    /// Completing a write (`Write completion overhead`).
    pub write_completion: Nanos,
    /// Preparation before data go over the bus (`Data preparation overhead`).
    pub data_preparation: Nanos,
    /// Asking for the bus again the first time in a command (`First reselect overhead`).
    pub first_reselect: Nanos,
    /// Asking for the bus again later in a command (`Other reselect overhead`).
    pub other_reselect: Nanos,
    /// Giving up the bus in a read after a read (`Read disconnect afterread`).
    pub read_disconnect_after_read: Nanos,
    /// Giving up the bus in a read after a write (`Read disconnect afterwrite`).
    pub read_disconnect_after_write: Nanos,
    /// Giving up the bus in a write (`Write disconnect overhead`).
    pub write_disconnect: Nanos,
    /// Least time between a non-sequential write's command processing and the medium
    /// (`Minimum seek delay`).
    pub minimum_seek_delay: Nanos,
    /// The drive gives up the bus before a write's data have come (`Extra write disconnect`), and
    /// what that costs.
    pub early_write_disconnect: Option<EarlyDisconnect>,
}

impl OverheadSpec {
    /// Processing of a drive whose profile knows only its class. A read hit takes 60 us, a write that the buffer
    /// accepts 80 us, and a command that the arm serves 200 us.
    ///
    /// Manuals have less than 30 us for a hit and less than 400 us for a miss (IBM Ultrastar 146Z10, 4.5.1), and 0.2 ms for
    /// the controller (Seagate Constellation.2). Users measured 83 us for a read of a sector, and 90 us for a write of 4 KiB,
    /// both with the time of the host.
    pub(crate) fn of_hits_and_misses() -> OverheadSpec {
        let [hit, accepted, miss] = [30, 50, 170].map(Nanos::from_micros);
        OverheadSpec {
            per_command: Nanos::from_micros(30),
            read_hit_after_read: hit,
            read_hit_after_write: hit,
            read_miss_after_read: miss,
            read_miss_after_write: miss,
            write_hit_after_read: accepted,
            write_hit_after_write: accepted,
            write_miss_after_read: miss,
            write_miss_after_write: miss,
            ..OverheadSpec::default()
        }
    }

    /// Sectors of a write of `len` that must be in the buffer before the drive begins to write. A drive that gives up
    /// the bus early needs ten, or fifteen for a long write. DiskSim has these numbers for the one drive that was seen
    /// to do so. Other drives need one.
    pub(crate) fn write_lead(&self, len: u64) -> u64 {
        match self.early_write_disconnect {
            None => 1,
            Some(_) if len < 45 => len.min(10),
            Some(_) => 15,
        }
    }
}

/// Costs of a drive that gives up the bus after a write command and before its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EarlyDisconnect {
    /// Processing of such a write, in place of the write overheads (`Extradisc command overhead`).
    pub command: Nanos,
    /// Giving up the bus the first time (`Extradisc disconnect overhead`).
    pub first_disconnect: Nanos,
    /// Time from there until the drive asks for the bus again (`Extradisc inter-disconnect delay`).
    pub between: Nanos,
    /// Giving up the bus after the data (`Extradisc 2nd disconnect overhead`).
    pub second_disconnect: Nanos,
    /// Time from the command's processing until the arm may move (`Extradisc seek delta`).
    pub seek_delay: Nanos,
}

impl OverheadSpec {
    /// The plain durations, under the names that a profile's text gives them.
    pub fn durations(&self) -> [(&'static str, Nanos); 18] {
        [
            ("per_command", self.per_command),
            ("read_hit_after_read", self.read_hit_after_read),
            ("read_hit_after_write", self.read_hit_after_write),
            ("read_miss_after_read", self.read_miss_after_read),
            ("read_miss_after_write", self.read_miss_after_write),
            ("write_hit_after_read", self.write_hit_after_read),
            ("write_hit_after_write", self.write_hit_after_write),
            ("write_miss_after_read", self.write_miss_after_read),
            ("write_miss_after_write", self.write_miss_after_write),
            ("read_completion", self.read_completion),
            ("write_completion", self.write_completion),
            ("data_preparation", self.data_preparation),
            ("first_reselect", self.first_reselect),
            ("other_reselect", self.other_reselect),
            (
                "read_disconnect_after_read",
                self.read_disconnect_after_read,
            ),
            (
                "read_disconnect_after_write",
                self.read_disconnect_after_write,
            ),
            ("write_disconnect", self.write_disconnect),
            ("minimum_seek_delay", self.minimum_seek_delay),
        ]
    }
}

impl EarlyDisconnect {
    /// The durations, under the names that a profile's text gives them.
    pub fn durations(&self) -> [(&'static str, Nanos); 5] {
        [
            ("command", self.command),
            ("first_disconnect", self.first_disconnect),
            ("between", self.between),
            ("second_disconnect", self.second_disconnect),
            ("seek_delay", self.seek_delay),
        ]
    }
}
