//! Interface of a probe: sends commands and notes the times of their answers.

use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use serde::{Deserialize, Serialize};

/// A drive with a known size and observable answer times.
///
/// Commands have tags, and several commands may be in the drive at once. A command has two times, when it was sent and when it was
/// answered, both from the same clock.
pub trait Probe {
    /// Name of the drive, for the provenance of a profile.
    fn name(&self) -> String;

    /// Number of sectors; addresses are smaller than this.
    fn capacity(&self) -> Sectors;

    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;

    /// Bytes of a physical sector, as the disk reports: a multiple of the sector size. Equal to the sector size if the disk reports
    /// nothing.
    fn physical_bytes(&self) -> u32 {
        self.sector_bytes()
    }

    /// Most commands in the drive at once, at least 1.
    fn depth(&self) -> u16;

    /// Current time of the clock.
    fn now(&mut self) -> Time;

    /// Sends a command, past any cache of the host. A flush has no sectors.
    ///
    /// # Errors
    ///
    /// If the host cannot send the command, or if the command writes outside the permitted sectors.
    ///
    /// # Panics
    ///
    /// May panic if the tag is in use or not below [`Probe::depth`], or if the extent is empty or leaves the disk.
    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError>;

    /// Waits for the next answer to a command that was sent.
    ///
    /// # Errors
    ///
    /// If the host cannot wait for an answer. A command that the drive failed is an [`Answer`].
    ///
    /// # Panics
    ///
    /// May panic if no command is in the drive.
    fn answer(&mut self) -> Result<Answer, ProbeError>;

    /// Lets time pass without a command.
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

    /// Reads sectors. Returns the time from sending the command to having its data.
    ///
    /// # Errors
    ///
    /// If the sectors cannot be read.
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

/// A setting of a drive that can be turned on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Read-ahead behind the requested sectors (ATA: look-ahead; SCSI: caching mode page, DRA).
    LookAhead,
    /// Answers to writes that are not on the medium yet (SCSI: WCE).
    WriteCache,
}

impl Switch {
    /// All switches.
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
    /// Tag of the command.
    pub tag: u16,
    /// Time when the command was sent.
    pub sent: Time,
    /// Time when the answer came.
    pub at: Time,
    /// Reason for a failure of the command.
    pub failure: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Reasons why a drive could not be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The drive or the system failed a command.
    #[error("a {} of sectors {extent} failed: {source}", format!("{op:?}").to_lowercase())]
    Failed {
        op: Op,
        extent: Extent,
        /// Error from the drive or the system.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The drive has no such switch, or the host cannot reach it.
    #[error("{0} cannot be switched here")]
    NoSwitch(Switch),
    /// The drive or the host refuses to turn a switch.
    #[error("{which} cannot be turned: {source}")]
    Refused {
        which: Switch,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The old state of a switch could not be recorded, and the switch was not turned.
    #[error("{which} stays as it is, since its state cannot be recorded: {source}")]
    NotRecorded {
        which: Switch,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The sectors may not be written.
    #[error("sectors {0} may not be written: they are not in the scratch range")]
    NotScratch(Extent),
    /// Stopped on request; see [`crate::Stopping`].
    #[error("told to stop")]
    Stopped,
}
