//! Coordination of the members of a volume: a conductor sees all that passes through the engines, and gives orders to
//! their schedulers and gates.

use crate::few::Few;
use crate::map::Member;
use crate::volume::Part;
use crate::{Engine, GateOrder, RequestId, Seen};
use headtime_sched::{Directive, Request};
use headtime_units::{Nanos, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Counts of a conductor so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conducted {
    /// Streams in the volume's addresses that were established.
    pub streams: u64,
    /// Slices in which all members served one stream.
    pub slices: u64,
    /// Slices of them that ended early, without the next request of the stream on a member.
    pub broken: u64,
    /// Time of the slices that have ended.
    pub dedicated: Nanos,
}

/// Order of a conductor to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// A directive to the schedulers of a member.
    Scheduler(Directive<RequestId>),
    /// An order to the gate of a member.
    Gate(GateOrder),
}

impl From<Directive<RequestId>> for Conduct {
    fn from(directive: Directive<RequestId>) -> Conduct {
        Conduct::Scheduler(directive)
    }
}

impl From<GateOrder> for Conduct {
    fn from(order: GateOrder) -> Conduct {
        Conduct::Gate(order)
    }
}

/// Coordinates the members of a volume.
///
/// A directive becomes the event [`Event::Directed`](crate::Event::Directed) of a member, and an order to a gate the event
/// [`Event::Ordered`](crate::Event::Ordered). The log has those events like others, so a replay needs no conductor.
pub trait Conductor {
    /// A part of the client's request `whole` is about to arrive at a member, whose engine has nothing of the part yet.
    /// The parts of a request come in the order of their addresses. A flush has a part without sectors on each member.
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    );

    /// An event, command or swap passes through the engine of a member.
    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine);

    /// Time at which the conductor is to be asked though nothing happens; in the past means at once. A conductor that is
    /// asked then has to give a directive, or to name a later time.
    fn next_wakeup(&self) -> Option<Time>;

    /// Counts so far, of a conductor that coordinates streams.
    fn conducted(&self) -> Option<Conducted> {
        None
    }

    /// The next order, and the member that obeys. Asked when there are no more commands, until `None`.
    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)>;
}

/// A conductor that somebody else looks at while it runs.
impl<C: Conductor> Conductor for Rc<RefCell<C>> {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        self.borrow_mut().asked(now, whole, member, part, engine);
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.borrow_mut().seen(now, member, seen, engine);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.borrow().next_wakeup()
    }

    fn conducted(&self) -> Option<Conducted> {
        self.borrow().conducted()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        self.borrow_mut().order(now, engines)
    }
}
