//! What a probe of a drive can do: send commands and note when they are answered.

use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use serde::{Deserialize, Serialize};

/// A drive, of which nothing is known but its size and the times of its answers.
///
/// Commands have tags, and several may be in the drive at once. Both times of a command, when it was
/// sent and when it was answered, are read from one clock.
pub trait Probe {
    /// What it is called, for the provenance of what is learned.
    fn name(&self) -> String;

    /// Addresses: 0 up to this.
    fn capacity(&self) -> Sectors;

    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;

    /// Bytes that are one on the medium, as the disk says: a multiple of a sector's. Those of a sector where it says nothing.
    fn physical_bytes(&self) -> u32 {
        self.sector_bytes()
    }

    /// The most commands that it takes at once, 1 or more.
    fn depth(&self) -> u16;

    /// What the clock shows now.
    fn now(&mut self) -> Time;

    /// Sends a command, past any cache of the host's. A flush has no sectors.
    ///
    /// # Errors
    ///
    /// If the host cannot send it, or it is a write outside the sectors that may be written.
    ///
    /// # Panics
    ///
    /// May panic if the tag is in use or not below [`Probe::depth`], or if the extent is empty or leaves the disk.
    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError>;

    /// Waits for the next answer to a command that was sent.
    ///
    /// # Errors
    ///
    /// If the host cannot wait for it. That a drive failed a command is an [`Answer`].
    ///
    /// # Panics
    ///
    /// May panic if no command is in the drive.
    fn answer(&mut self) -> Result<Answer, ProbeError>;

    /// Lets so much time pass without a command.
    fn pause(&mut self, span: Nanos);

    /// Returns true if the switch is on; `None` if the drive has no such switch, or the host cannot reach it.
    fn switch(&mut self, _which: Switch) -> Option<bool> {
        None
    }

    /// Turns a switch on or off.
    ///
    /// # Errors
    ///
    /// If there is no such switch, or the drive refuses.
    ///
    /// # Panics
    ///
    /// May panic if a command is in the drive.
    fn set(&mut self, which: Switch, _on: bool) -> Result<(), ProbeError> {
        Err(ProbeError::NoSwitch(which))
    }

    /// Reads sectors, and says how long that took: from sending the command to having its data.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    ///
    /// # Panics
    ///
    /// May panic if the extent is empty or leaves the disk, or if a command is in the drive.
    fn read(&mut self, extent: Extent) -> Result<Nanos, ProbeError> {
        self.send(0, Op::Read, extent)?;
        let answer = self.answer()?;
        match answer.failure {
            None => Ok(answer.at - answer.sent),
            Some(source) => Err(ProbeError::Failed {
                op: Op::Read,
                extent,
                source,
            }),
        }
    }
}

/// What a drive can be told to do or to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Reading on behind what was asked for (ATA: look-ahead; SCSI: caching mode page, DRA).
    LookAhead,
    /// Answering writes that are not on the medium (SCSI: WCE).
    WriteCache,
}

impl Switch {
    /// All that there are.
    pub const ALL: [Switch; 2] = [Switch::LookAhead, Switch::WriteCache];
}

impl std::fmt::Display for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Switch::LookAhead => "look-ahead",
            Switch::WriteCache => "the write cache",
        })
    }
}

/// The answer to a command.
#[derive(Debug)]
pub struct Answer {
    /// The command's.
    pub tag: u16,
    /// When the command was sent.
    pub sent: Time,
    /// When the answer came.
    pub at: Time,
    /// Why the drive failed the command, if it did.
    pub failure: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Why a drive could not be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The drive or the system failed a command.
    #[error("a {} of sectors {extent} failed: {source}", format!("{op:?}").to_lowercase())]
    Failed {
        op: Op,
        extent: Extent,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The drive has no such switch, or the host cannot reach it.
    #[error("{0} cannot be switched here")]
    NoSwitch(Switch),
    /// The drive, or the host, does not turn a switch.
    #[error("{which} cannot be turned: {source}")]
    Refused {
        which: Switch,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What a switch is to be put back to could not be recorded, so that it was not turned.
    #[error("{which} stays as it is, since its state cannot be recorded: {source}")]
    NotRecorded {
        which: Switch,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing may be written here.
    #[error("sectors {0} may not be written: they are not in the scratch range")]
    NotScratch(Extent),
    /// See [`crate::Stopping`].
    #[error("told to stop")]
    Stopped,
}
