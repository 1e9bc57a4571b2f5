//! Moves the bytes of commands to and from the store.

use super::Emulated;
use super::store::{WriteError, failure};
use crate::device::Parts;
use crate::request::{Data, Failure};
use headtime_sched::Op;
use headtime_units::{Lba, Sectors};

impl Emulated {
    /// Puts the bytes of a write into the store, and retains the bytes that they replace.
    pub(super) fn put(&mut self, parts: &Parts) -> Result<(), Failure> {
        let sector = self.geometry.sector_bytes;
        for part in parts {
            let Data::Buffer(buffer) = &part.data else {
                continue;
            };
            let offset = part.extent.start.get() * u64::from(sector);
            self.before.resize(buffer.len(), 0);
            if let Err(errno) = self.store.read(offset, &mut self.before) {
                self.take_back(parts, Some(part.extent.start));
                return Err(failure(errno));
            }
            self.undo.begin(part.extent, &self.before);
            if let Err(error) = self.store.write(offset, buffer) {
                let sectors = error.written.div_ceil(u64::from(sector));
                self.take_back(parts, Some(part.extent.start + Sectors::new(sectors)));
                return Err(failure(error.errno));
            }
        }
        Ok(())
    }

    /// Undoes a write by restoring the bytes that it replaced. If the write stopped early, `until` is the first sector
    /// that it did not change. The later sectors are left alone, because the store may have no space for them.
    pub(super) fn take_back(&mut self, parts: &Parts, until: Option<Lba>) {
        let sector = self.geometry.sector_bytes;
        for part in parts.iter().filter(|part| part.has_bytes()) {
            self.undo.undone(part.extent, |lba, old| {
                let there = until.map_or(u64::MAX, |until| {
                    until.get().saturating_sub(lba.get()) * u64::from(sector)
                });
                let old = &old[..old.len().min(there as usize)];
                let offset = lba.get() * u64::from(sector);
                if let Err(WriteError { errno, .. }) = self.store.write(offset, old) {
                    // The write failed or was given up on. Its client has to expect that the write may have happened.
                    tracing::warn!(sector = %lba, "a write could not be taken back: {errno}");
                }
            });
        }
    }

    /// Applies a completed command to the store: fills the buffers of a read, and discards or zeroes sectors.
    pub(super) fn settle(&mut self, op: Op, parts: &mut Parts) -> Result<(), Failure> {
        let sector = self.geometry.sector_bytes;
        for part in parts {
            let offset = part.extent.start.get() * u64::from(sector);
            let len = part.extent.len.bytes(sector);
            match (op, &mut part.data) {
                (Op::Read, Data::Buffer(buffer)) => self.store.read(offset, buffer),
                (Op::Discard, _) | (Op::Write, Data::Zeroes { may_punch: true }) => {
                    self.undo.forget(part.extent);
                    self.store.punch(offset, len)
                }
                (Op::Write, Data::Zeroes { may_punch: false }) => {
                    self.undo.forget(part.extent);
                    self.store.zero(offset, len)
                }
                _ => Ok(()),
            }
            .map_err(|errno| Failure {
                at: Some(part.extent.start),
                ..failure(errno)
            })?;
        }
        Ok(())
    }
}
