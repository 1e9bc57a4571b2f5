//! Coordination of the members of a volume. A conductor sees all events and commands of the engines, and gives orders
//! to their schedulers and gates.

use crate::few::Few;
use crate::map::Member;
use crate::shared::SharedCell;
use crate::volume::Part;
use crate::{Engine, GateOrder, RequestId, Seen};
use headtime_sched::{Directive, Request};
use headtime_units::{Nanos, Time};

/// Counts of a conductor so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conducted {
    /// Streams in the volume's addresses that were established.
    pub streams: u64,
    /// Slices in which all members served one stream.
    pub slices: u64,
    /// Slices that ended early, since a member did not get the stream's next request.
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
pub trait Conductor: Send {
    /// Notifies the conductor of a part of the client's request `whole`, before the part arrives at the member's
    /// engine. The parts of a request come in the order of their addresses. A flush has a part without sectors on each
    /// member.
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    );

    /// Notifies the conductor of an event, command or swap of a member's engine.
    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine);

    /// Returns the time at which the conductor is to be asked without an event. A time in the past means at once. A
    /// conductor that is asked then has to give a directive, or to name a later time.
    fn next_wakeup(&self) -> Option<Time>;

    /// Returns the counts so far, if the conductor coordinates streams.
    fn conducted(&self) -> Option<Conducted> {
        None
    }

    /// Returns the next order, and the member that obeys. Called when there are no more commands, until `None`.
    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)>;
}

/// A conductor that is shared, so that another owner can inspect it while it runs.
impl<C: Conductor> Conductor for SharedCell<C> {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        self.lock().asked(now, whole, member, part, engine);
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        self.lock().seen(now, member, seen, engine);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.lock().next_wakeup()
    }

    fn conducted(&self) -> Option<Conducted> {
        self.lock().conducted()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        self.lock().order(now, engines)
    }
}
