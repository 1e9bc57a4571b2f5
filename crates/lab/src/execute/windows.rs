//! The planner of windows as the conductor of all servers.

use super::lone::Said;
use headtime_engine::conduct::{Conduct, Conducted, Conductor};
use headtime_engine::{Command, Engine, Event, Few, GateOrder, Member, Part, Seen};
use headtime_qos::Planner;
use headtime_sched::{Class, Request};
use headtime_units::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A program with a goal, and the planner's verdicts on its run.
pub(super) struct Watched {
    pub number: u16,
    pub deadline: Time,
    pub said: Arc<Mutex<Said>>,
}

/// Passes on what servers see to a planner, and its orders to the gates of all servers.
pub(super) struct Windows {
    planner: Planner,
    /// Coordinator of the servers' schedulers, if they have one.
    streams: Option<Box<dyn Conductor>>,
    watched: Vec<Watched>,
    servers: u16,
    sector_bytes: u32,
    /// Orders that have not been given.
    waiting: VecDeque<(Member, GateOrder)>,
}

impl Windows {
    /// A conductor of this number of servers. `streams` coordinates their schedulers.
    pub fn new(
        planner: Planner,
        streams: Option<Box<dyn Conductor>>,
        watched: Vec<Watched>,
        servers: u16,
        sector_bytes: u32,
    ) -> Windows {
        Windows {
            planner,
            streams,
            watched,
            servers,
            sector_bytes,
            waiting: VecDeque::new(),
        }
    }

    /// Notes the times at which runs leave their profiles, and at which goals can no longer be met.
    fn watch(&self, now: Time) {
        for state in self.planner.states() {
            let Some(of) = self.watched.iter().find(|of| of.number == state.number) else {
                continue;
            };
            let mut said = of.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.grouped = state.grouped;
            if state.drift.is_some() {
                said.left_profile.get_or_insert(now);
            }
            // A program that asks for nothing has no window, and may be over.
            let is_over = state.window.is_zero() || state.rest.is_zero();
            if !is_over && now + state.rest > of.deadline {
                said.hopeless.get_or_insert(now);
            }
        }
    }
}

impl Conductor for Windows {
    fn asked(
        &mut self,
        now: Time,
        whole: &Request<()>,
        member: Member,
        part: &Part,
        engine: &Engine,
    ) {
        if let Some(streams) = &mut self.streams {
            streams.asked(now, whole, member, part, engine);
        }
    }

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, engine: &Engine) {
        if let Some(streams) = &mut self.streams {
            streams.seen(now, member, seen, engine);
        }
        match seen {
            // Urgent requests have no window.
            Seen::Event(Event::Arrived(arrival)) if arrival.class != Class::REAL_TIME => {
                let (number, op) = (arrival.origin.program, arrival.op);
                self.planner
                    .asked(now, member.0, number, op, arrival.extent);
            }
            Seen::Command(Command::Finish(done)) if done.request.class != Class::REAL_TIME => {
                let request = &done.request;
                let bytes = request.extent.len.bytes(self.sector_bytes);
                self.planner
                    .done(now, member.0, request.origin.program, bytes);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let streams = self.streams.as_ref().and_then(|all| all.next_wakeup());
        self.planner.next_wakeup().into_iter().chain(streams).min()
    }

    fn conducted(&self) -> Option<Conducted> {
        self.streams.as_ref()?.conducted()
    }

    fn order(&mut self, now: Time, engines: &Few<Engine>) -> Option<(Member, Conduct)> {
        let streams = self.streams.as_mut();
        if let Some(order) = streams.and_then(|all| all.order(now, engines)) {
            return Some(order);
        }
        if self.waiting.is_empty()
            && let Some(order) = self.planner.order(now)
        {
            self.watch(now);
            let members = (0..self.servers).map(Member);
            self.waiting.extend(members.map(|member| (member, order)));
        }
        let (member, order) = self.waiting.pop_front()?;
        Some((member, order.into()))
    }
}
