//! A recorded trace as a program.

use super::site::{BenchmarkError, Site, add_process};
use super::{Laid, Lay};
use crate::spec::PAGE;
use crate::{Behaviour, FileId, HostBuilder, Step};
use headtime_sched::Op;
use headtime_units::Extent;
use std::sync::Arc;

/// A read or write of a trace.
pub type Traced = (Op, Extent);

/// `replay`: each device of a trace is a process. The process makes the device's requests one after the other, past the page
/// cache and without thinking.
///
/// Rests on the trace. Arrival times are left out. A process makes a request when its previous request is done.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReplaySpec {
    /// File of the trace. The caller reads the file, and hands the requests to [`ReplaySpec::lay`].
    pub trace: String,
}

impl ReplaySpec {
    /// The requests of each device, which lie on the disk.
    pub fn lay(&self, devices: Vec<Vec<Traced>>) -> Laid {
        Laid(Lay::Traced(devices.into_iter().map(Arc::from).collect()))
    }

    /// Adds a process for each device to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If the host has no room for a file of the size of the disk.
    pub(super) fn add(
        devices: &[Arc<[Traced]>],
        builder: &mut HostBuilder,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let disk = builder.disk();
        let sector_bytes = u64::from(disk.sector_bytes);
        let size = disk.capacity.get() * sector_bytes / PAGE * PAGE;
        let file = Site::new("replay", disk).add_file(builder, 0, size)?;
        for requests in devices {
            let replayed = Replayed {
                requests: Arc::clone(requests),
                next: 0,
                file,
                sector_bytes,
            };
            add_process(builder, program, replayed);
        }
        Ok(program + 1)
    }
}

/// Makes requests one after the other.
struct Replayed {
    requests: Arc<[Traced]>,
    next: usize,
    file: FileId,
    sector_bytes: u64,
}

impl Behaviour for Replayed {
    fn next(&mut self) -> Step {
        let Some(&(op, extent)) = self.requests.get(self.next) else {
            return Step::Exit;
        };
        self.next += 1;
        Step::Direct {
            op,
            file: self.file,
            offset: extent.start.get() * self.sector_bytes,
            len: extent.len.get() * self.sector_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskSize, HostSpec};
    use headtime_units::Sectors;

    #[test]
    fn each_device_is_a_process_with_its_requests_in_their_order() {
        let disk = DiskSize {
            capacity: Sectors::new(1_000_003),
            sector_bytes: 512,
        };
        let mut builder = HostBuilder::new(HostSpec::default(), disk).unwrap();
        let first = vec![(Op::Write, Extent::at(5, 2)), (Op::Read, Extent::at(0, 8))];
        let laid = ReplaySpec::default().lay(vec![first, vec![(Op::Read, Extent::at(9, 1))]]);
        let spec = crate::workload::BenchmarkSpec::Replay(ReplaySpec::default());
        assert_eq!(spec.add_laid(&laid, &mut builder, 3), Ok(4));
        let steps = builder
            .into_plan()
            .processes
            .into_iter()
            .map(|mut process| {
                assert_eq!(process.program, 3);
                let steps = std::iter::from_fn(|| match process.behaviour.next() {
                    Step::Direct {
                        op, offset, len, ..
                    } => Some((op, offset, len)),
                    _ => None,
                });
                steps.collect::<Vec<_>>()
            });
        let expected = [
            vec![(Op::Write, 2560, 1024), (Op::Read, 0, 4096)],
            vec![(Op::Read, 4608, 512)],
        ];
        assert_eq!(steps.collect::<Vec<_>>(), expected);
    }
}
