//! Calls and answers of a gate, recorded for an audit.

use crate::shared::SharedCell;
use crate::{DriveTag, Gate, GateOrder, Lane, LaneState, Lanes, Next};
use headtime_sched::{Class, Origin, Request};
use headtime_units::Time;
use std::collections::BTreeSet;

/// Record of the calls between an engine and its gate.
#[derive(Clone, Debug, Default)]
pub(super) struct GateNotes {
    /// The lane that the gate took last, unless a command has gone since.
    named: Option<Lane>,
    /// The last command that the gate was notified of.
    pub last: Option<Told>,
    /// Commands in the drive, by the notifications to the gate.
    pub in_drive: BTreeSet<DriveTag>,
    /// The state of each lane when the gate refused all lanes, if there has been no event since.
    pub refused: Option<Vec<LaneState>>,
}

/// A command that the gate was notified of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub tag: DriveTag,
    pub lane: Lane,
    /// True if the gate had taken the lane.
    pub let_through: bool,
}

pub(super) type SharedNotes = SharedCell<GateNotes>;

/// A wrapper that records the calls of a gate.
#[derive(Debug)]
pub(super) struct Watched {
    pub gate: Box<dyn Gate>,
    pub account: SharedNotes,
}

impl Gate for Watched {
    fn lanes(&self) -> usize {
        self.gate.lanes()
    }

    fn lane(&self, origin: Origin, class: Class) -> Lane {
        self.gate.lane(origin, class)
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        self.gate.outranks(lane, other)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        let next = self.gate.next(now, lanes);
        let mut account = self.account.lock();
        (account.named, account.refused) = match next {
            Next::Take(lane) => (Some(lane), None),
            Next::Hold(_) => {
                let all = (0..=u8::MAX).map(Lane).take(self.gate.lanes());
                (None, Some(all.map(|lane| lanes.state(lane)).collect()))
            }
        };
        next
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.gate.ahead(lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.gate.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        let mut account = self.account.lock();
        let let_through = account.named.take() == Some(lane);
        account.last = Some(Told {
            tag: command.tag,
            lane,
            let_through,
        });
        account.in_drive.insert(command.tag);
        self.gate.taken(now, command, lane);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.account.lock().in_drive.remove(&tag);
        self.gate.returned(now, tag);
    }

    fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.gate.starved(nth)
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        self.gate.obey(now, order);
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        self.gate.in_force(tell);
    }
}
