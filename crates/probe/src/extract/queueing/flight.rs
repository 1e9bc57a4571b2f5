//! Several commands in the drive at once.

use super::super::bench::Bench;
use super::super::error::ExtractError;
use crate::{Answer, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Time};

/// Commands in the drive. The drop awaits all answers.
pub(super) struct Flight<'b, 'a> {
    pub bench: &'b mut Bench<'a>,
    inside: usize,
}

impl<'b, 'a> Flight<'b, 'a> {
    /// Starts without a command in the drive.
    pub fn new(bench: &'b mut Bench<'a>) -> Flight<'b, 'a> {
        Flight { bench, inside: 0 }
    }

    pub fn send(&mut self, tag: u16, lba: u64, count: u64) -> Result<Time, ExtractError> {
        let sent = self.bench.probe.now();
        let extent = Extent::at(lba, count);
        self.bench.probe.send(tag, Op::Read, extent)?;
        self.inside += 1;
        self.bench.reads += 1;
        Ok(sent)
    }

    pub fn answer(&mut self) -> Result<Answer, ExtractError> {
        self.inside -= 1;
        let answer = self.bench.probe.answer()?;
        match answer.failure {
            None => Ok(answer),
            Some(source) => Err(ExtractError::Failed(ProbeError::Failed {
                op: Op::Read,
                extent: Extent::at(0, 0),
                source,
            })),
        }
    }

    pub fn empty(&mut self) -> Result<(), ExtractError> {
        while self.inside > 0 {
            self.answer()?;
        }
        Ok(())
    }
}

impl Drop for Flight<'_, '_> {
    fn drop(&mut self) {
        while self.inside > 0 {
            self.inside -= 1;
            // If waiting for an answer fails, the command is given up.
            let _ = self.bench.probe.answer();
        }
    }
}
