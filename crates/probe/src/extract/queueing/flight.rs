//! Several commands at once.

use super::super::bench::Bench;
use super::super::error::ExtractError;
use crate::{Answer, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Time};

/// Commands that are in the drive. None is left there, however asking ends.
pub(super) struct Flight<'b, 'a> {
    pub bench: &'b mut Bench<'a>,
    inside: usize,
}

impl<'b, 'a> Flight<'b, 'a> {
    /// With none in the drive.
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
            // What cannot be waited for is not waited for again.
            let _ = self.bench.probe.answer();
        }
    }
}
