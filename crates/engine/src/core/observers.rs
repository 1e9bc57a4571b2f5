//! Observers of the loop. They see all events and commands of the engines, and may ask for events in turn.
//!
//! The observers of a [`Core`](crate::Core) are its log, its conductor, and for each member an audit and a job in the
//! background. A [`Core`](crate::Core) without observers tests one pointer for each event and command.
//!
//! An observer gives an order by asking for [`Event::Ordered`], as a job does to limit the depth. The log has that event like others, so a
//! replay needs no observer.

use super::depths::Depths;
use crate::audit::Audit;
use crate::conduct::{Conduct, Conductor};
use crate::log::{Sink, Writer};
use crate::volume::{Part, Volume};
use crate::world::{Background, Broken};
use crate::{Command, Engine, Event, GateOrder, Lane, Member, RequestId, Seen};
use headtime_units::Time;

/// The observers of a volume.
pub(super) struct Observers<L> {
    pub log: Option<Writer<L>>,
    /// Coordinates the members.
    pub conductor: Option<Box<dyn Conductor>>,
    /// By member.
    beside: Vec<Beside>,
    /// True if jobs are asked for events.
    pub asks_jobs: bool,
    /// Member that is asked next.
    turn: usize,
    /// True if a member has asked for an event in this round.
    any_asked: bool,
}

/// The observers of a member.
#[derive(Default)]
struct Beside {
    audit: Option<Audit>,
    job: Option<Box<dyn Background>>,
    depths: Depths,
}

impl<L: Sink> Observers<L> {
    /// Creates observers for `members` members, all empty.
    pub fn of(members: usize) -> Observers<L> {
        Observers {
            log: None,
            conductor: None,
            beside: std::iter::repeat_with(Beside::default)
                .take(members)
                .collect(),
            asks_jobs: true,
            turn: 0,
            any_asked: false,
        }
    }

    /// Checks the promises of all engines from now on.
    pub fn audit(&mut self, volume: &mut Volume) {
        for (member, beside) in (0..).map(Member).zip(&mut self.beside) {
            let audit = beside.audit.insert(Audit::new());
            audit.watch(volume.engine(member));
        }
    }

    /// Notes that the engine of a member has a new gate.
    pub fn regated(&mut self, member: Member, engine: &mut Engine) {
        if let Some(audit) = &mut self.beside[member.index()].audit {
            audit.watch(engine);
        }
    }

    /// Returns the job of a member.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn job(&mut self, member: Member) -> &mut Option<Box<dyn Background>> {
        &mut self.beside[member.index()].job
    }

    /// Returns all jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &dyn Background> {
        self.beside
            .iter()
            .filter_map(|beside| beside.job.as_deref())
    }

    /// Shows the conductor a part that is about to arrive at a member.
    pub fn asked(&mut self, now: Time, member: Member, part: &Part, volume: &Volume) {
        if let (Some(conductor), Some(whole)) = (&mut self.conductor, volume.whole_of(part)) {
            let engine = &volume.engines()[member.index()];
            conductor.asked(now, whole, member, part, engine);
        }
    }

    /// Limits an order to the depth that the job of the member asks for.
    pub fn limit(&mut self, member: Member, order: GateOrder) -> GateOrder {
        self.beside[member.index()].depths.order(order)
    }

    /// Shows an event, command or swap of a member's engine to log, audit, job and conductor.
    ///
    /// # Errors
    ///
    /// If the engine breaks a promise.
    #[inline(never)]
    pub fn see(
        &mut self,
        at: Time,
        member: Member,
        seen: Seen<'_>,
        engine: &Engine,
    ) -> Result<(), Broken> {
        if let Some(log) = &mut self.log {
            log.write(at, member, seen);
        }
        let beside = &mut self.beside[member.index()];
        if let Some(audit) = &mut beside.audit {
            let kept = match seen {
                Seen::Event(event) => audit.event(event),
                Seen::Command(command) => audit.command(engine, command),
                Seen::Swapped(..) | Seen::GateSwapped(..) => Ok(()),
            };
            kept.map_err(|violation| Broken { at, violation })?;
        }
        match (seen, &mut beside.job) {
            (Seen::Event(Event::Arrived(arrival)), Some(job)) => job.arrives(at, arrival),
            (Seen::Command(Command::Finish(done)), Some(job)) => job.seen(at, done),
            _ => {}
        }
        if let Some(conductor) = &mut self.conductor {
            conductor.seen(at, member, seen, engine);
        }
        Ok(())
    }

    /// Returns the earliest time at which an observer is to be asked without an event.
    #[inline(never)]
    pub fn next_wakeup(&self, volume: &Volume) -> Time {
        let beside = self.beside.iter().filter(|_| self.asks_jobs);
        let jobs = beside.zip(volume.engines());
        let wakes = jobs.filter_map(|(beside, engine)| beside.job.as_ref()?.next_wakeup(engine));
        let conductor = self.conductor.iter().filter_map(|all| all.next_wakeup());
        wakes.chain(conductor).min().unwrap_or(Time::NEVER)
    }

    /// Returns the next event that observers ask for, when there are no more commands. Members are asked in turn, until
    /// no member has asked for an event in a whole round. The rounds repeat since an event of a member may concern
    /// observers of another member.
    #[inline(never)]
    pub fn ask(&mut self, at: Time, volume: &mut Volume) -> Option<(Member, Event)> {
        loop {
            while self.turn < self.beside.len() {
                let member = Member(self.turn as u16);
                if let Some(event) = self.ask_member(at, member, volume.engine(member)) {
                    self.any_asked = true;
                    return Some((member, event));
                }
                self.turn += 1;
            }
            self.turn = 0;
            if let Some(conductor) = &mut self.conductor
                && let Some((member, conduct)) = conductor.order(at, volume.engines())
            {
                self.any_asked = true;
                let event = match conduct {
                    Conduct::Scheduler(directive) => Event::Directed(directive),
                    Conduct::Gate(order) => Event::Ordered(self.limit(member, order)),
                };
                return Some((member, event));
            }
            if !std::mem::take(&mut self.any_asked) {
                return None;
            }
        }
    }

    /// Returns the next event that the job of a member asks for, or an event that ends an effect of an earlier job.
    fn ask_member(&mut self, at: Time, member: Member, engine: &mut Engine) -> Option<Event> {
        let Beside { job, depths, .. } = &mut self.beside[member.index()];
        let job = job.as_mut().filter(|_| self.asks_jobs);
        let depth = job.as_ref().and_then(|job| job.depth());
        if let Some(order) = depths.job(depth, engine.depth_ordered()) {
            return Some(Event::Ordered(order));
        }
        let Some(job) = job else {
            return engine.is_offering().then_some(Event::Offering(false));
        };
        let offers = job.is_offered();
        if offers != engine.is_offering() {
            return Some(Event::Offering(offers));
        }
        let unoffered = engine.unoffered();
        let lane = match offers {
            true => unoffered,
            false => Some(Lane(0)),
        };
        let approach = lane.and_then(|lane| engine.approach(at, lane));
        let Some((arrival, lane, join)) = job.joins(at, engine, approach.as_ref()) else {
            return unoffered.map(Event::Offered);
        };
        let is_own = matches!(arrival.id, RequestId::Background(_));
        assert!(is_own, "a job asks as client {}", arrival.id);
        Some(Event::Joined {
            arrival,
            lane,
            join,
        })
    }

    /// Passes a full piece of the log to the sink, and checks the promises of engines without further commands.
    ///
    /// # Errors
    ///
    /// If an engine breaks a promise.
    #[inline(never)]
    pub fn at_rest(&mut self, at: Time, volume: &Volume) -> Result<(), Broken> {
        if let Some(log) = &mut self.log {
            log.flush_if_full();
        }
        for (beside, engine) in self.beside.iter().zip(volume.engines()) {
            if let Some(audit) = &beside.audit {
                let kept = audit.at_rest(engine, volume.behind());
                kept.map_err(|violation| Broken { at, violation })?;
            }
        }
        Ok(())
    }
}
