//! The planner of windows as the conductor of all servers.

use headtime_engine::conduct::{Conduct, Conductor};
use headtime_engine::{Command, Engine, Event, Few, GateOrder, Member, Part, Seen};
use headtime_qos::{Planner, State};
use headtime_sched::Request;
use headtime_units::Time;
use std::collections::VecDeque;

/// Passes on what servers see to a planner, and its orders to the gates of all servers.
pub(super) struct Windows {
    planner: Planner,
    servers: u16,
    sector_bytes: u32,
    /// Orders that have not been given.
    waiting: VecDeque<(Member, GateOrder)>,
}

impl Windows {
    /// State of each program.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.planner.states()
    }

    /// A conductor of so many servers.
    pub fn new(planner: Planner, servers: u16, sector_bytes: u32) -> Windows {
        Windows {
            planner,
            servers,
            sector_bytes,
            waiting: VecDeque::new(),
        }
    }
}

impl Conductor for Windows {
    fn asked(&mut self, _: Time, _: &Request<()>, _: Member, _: &Part, _: &Engine) {}

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, _: &Engine) {
        match seen {
            Seen::Event(Event::Arrived(arrival)) => {
                let (number, op) = (arrival.origin.program, arrival.op);
                self.planner
                    .asked(now, member.0, number, op, arrival.extent);
            }
            Seen::Command(Command::Finish(done)) => {
                let request = &done.request;
                let bytes = request.extent.len.bytes(self.sector_bytes);
                self.planner
                    .done(now, member.0, request.origin.program, bytes);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.planner.next_wakeup()
    }

    fn order(&mut self, now: Time, _: &Few<Engine>) -> Option<(Member, Conduct)> {
        if self.waiting.is_empty()
            && let Some(order) = self.planner.order(now)
        {
            let members = (0..self.servers).map(Member);
            self.waiting.extend(members.map(|member| (member, order)));
        }
        let (member, order) = self.waiting.pop_front()?;
        Some((member, order.into()))
    }
}
