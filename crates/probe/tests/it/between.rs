//! A drive between which and a probe something stands.

use headtime_disk::profile::by_name;
use headtime_probe::{Answer, Modelled, Probe, ProbeError};
use headtime_units::Nanos;

/// A drive between which and us something stands.
pub struct Between<F> {
    pub drive: Modelled,
    /// Effect on each read by number: a delay of the answer, or a failure.
    meddle: F,
    pub reads: u64,
}

/// Effect on a read.
pub enum Meddled {
    Late(Nanos),
    Fails,
}

impl<F: FnMut(u64) -> Meddled> Between<F> {
    /// A shipped drive whose only delays come from `meddle`.
    pub fn new(name: &str, meddle: F) -> Between<F> {
        let profile = by_name(name).unwrap().with(|spec| {
            (spec.noise.retried_reads, spec.noise.long_waits) = (0.0, 0.0);
        });
        let drive = Modelled::new(&profile.unwrap(), 5);
        Between {
            drive,
            meddle,
            reads: 0,
        }
    }
}

impl<F: FnMut(u64) -> Meddled> headtime_probe::Layer for Between<F> {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn depth(&self) -> u16 {
        1
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let answer = self.drive.answer()?;
        self.reads += 1;
        match (self.meddle)(self.reads) {
            Meddled::Late(span) => {
                self.drive.pause(span);
                Ok(Answer {
                    at: answer.at + span,
                    ..answer
                })
            }
            Meddled::Fails => Ok(Answer {
                failure: Some("unrecovered read error".into()),
                ..answer
            }),
        }
    }
}
