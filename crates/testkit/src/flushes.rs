//! A check of the order of a volume's flushes.

use headtime_engine::{Command, Event, Member, Seen};
use headtime_sched::Op;

/// Finds a part that passes a flush. Such a part reaches a member after a flush did, while the flush has not ended on
/// every member of the volume. Each flush has a part on every member.
#[derive(Clone, Debug)]
pub struct FlushLook {
    /// Number of flushes that reached each member.
    came: Vec<u64>,
    /// Number of flushes that ended on each member.
    ended: Vec<u64>,
}

impl FlushLook {
    /// A check of a new volume.
    pub fn new(members: u16) -> FlushLook {
        FlushLook {
            came: vec![0; members.into()],
            ended: vec![0; members.into()],
        }
    }

    /// Takes note of an event or a command of a member's engine.
    ///
    /// # Errors
    ///
    /// If a part passes a flush.
    pub fn see(&mut self, member: Member, seen: Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Event(Event::Arrived(arrival)) => {
                let came = self.came[member.index()];
                if let Some(other) = self.ended.iter().position(|ended| *ended < came) {
                    let id = arrival.id;
                    return Err(format!(
                        "part {id} reaches member {} after flush {came}, which has not ended on member {other}",
                        member.0
                    ));
                }
                self.came[member.index()] += u64::from(arrival.op == Op::Flush);
            }
            Seen::Command(Command::Finish(done)) => {
                self.ended[member.index()] += u64::from(done.request.op == Op::Flush);
            }
            _ => {}
        }
        Ok(())
    }
}
