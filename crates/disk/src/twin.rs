//! A simulated drive that receives the commands of a real drive.

use crate::drive::{Command, Drive, Hit};
use crate::layout::Layout;
use crate::profile::Profile;
use headtime_sched::{Ending, Op, TrackedCommand, Twin};
use headtime_units::{Lba, Time};
use std::sync::Arc;

/// A drive without noise.
#[derive(Clone, Debug)]
pub(crate) struct DriveTwin {
    drive: Drive,
    now: Time,
    /// Tag of the last command in the simulated drive. The real drive's tags may come again while the simulated drive still works.
    last: u32,
    /// Commands of the real drive: the tag there, the tag in the simulated drive, and the end in the simulated drive,
    /// if reached.
    commands: Vec<(u32, u32, Option<Ending>)>,
}

impl DriveTwin {
    /// A drive at rest.
    pub fn new(profile: &Profile, layout: &Arc<Layout>) -> DriveTwin {
        let quiet = profile.with(|spec| spec.noise = Default::default());
        let quiet = quiet.expect("a drive without noise is as plausible");
        DriveTwin {
            drive: Drive::with_layout(&quiet, Arc::clone(layout), 0),
            now: Time::ZERO,
            last: 0,
            commands: Vec::with_capacity(quiet.queue.depth as usize),
        }
    }

    /// Simulates the drive up to `now`.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(next) = self.drive.next_event().filter(|next| *next <= self.now) {
            let Some(done) = self.drive.poll(next) else {
                continue;
            };
            for (_, own, ending) in &mut self.commands {
                if *own == done.tag {
                    let (done, is_hit) = (done.at, done.hit == Hit::Full);
                    *ending = Some(Ending { done, is_hit });
                }
            }
        }
    }
}

impl Twin for DriveTwin {
    fn issued(&mut self, now: Time, tag: u32, what: TrackedCommand) {
        self.advance(now);
        let on_disk = what.extent.end() <= Lba::ZERO + self.drive.capacity();
        let has_data = !what.extent.is_empty() || what.op == Op::Flush;
        if !on_disk || !has_data || self.drive.in_flight() >= self.drive.depth() as usize {
            return;
        }
        self.last = self.last.wrapping_add(1);
        self.commands.push((tag, self.last, None));
        let command = Command {
            tag: self.last,
            op: what.op,
            extent: what.extent,
            fua: what.forced,
            high: false,
        };
        self.drive.submit(self.now, command);
    }

    fn ends(&mut self, now: Time, tag: u32) -> Option<Ending> {
        self.advance(now);
        let (_, own, ending) = self.commands.iter().find(|(of, ..)| *of == tag)?;
        ending.or_else(|| self.drive.planned_end(*own))
    }

    fn ended(&mut self, now: Time, tag: u32) -> Option<Ending> {
        let ending = self.ends(now, tag);
        let index = self.commands.iter().position(|(of, ..)| *of == tag)?;
        let (_, own, _) = self.commands.swap_remove(index);
        if ending.is_none() {
            self.drive.abort(self.now, own);
        }
        ending
    }
}
