//! Goals of programs on several servers, by one planner outside of the servers.
//!
//! ```text
//! servers ──notes──> Coordinator ──notes of all up to a moment──> Goals ──orders──> servers
//! ```
//!
//! [`Goals`] is the planner that a single server runs, too. Here [`Goals`] gets the notes of all servers, in the coordinator's time. The
//! coordinator plans up to the latest moment that the answers of all servers cover. If a server is silent, the coordinator plans up to half a
//! period ago. The gates get each plan in time, as plans are made a whole period ahead.
//!
//! There is no clock and no socket here. The caller asks the servers, and gives the times.

use super::exchange::{About, Question, ServerAnswer};
use super::feed::{Note, What};
use super::offset::Offset;
use super::options::{IDLE_PERIODS, check_gate};
use super::{Goals, Until};
use headtime_engine::GateOrder;
use headtime_units::{Nanos, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Most disks of all servers together.
const DISKS_MAX: usize = u16::MAX as usize;

/// State of a server, for people and scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    /// Name of the server: its socket.
    pub name: String,
    /// True if the last question was answered and the server obeys.
    pub joined: bool,
    /// Problem with the server: the reason why it has not joined, or a clock that is not known precisely enough.
    pub why: Option<String>,
    /// Time of the server less the time of the coordinator, in nanoseconds, and the largest error.
    pub offset: Option<(i64, Nanos)>,
    /// Time since the last answer; `None` before the first.
    pub silent: Option<Nanos>,
    /// Requests that are in no note.
    pub unseen: u64,
}

/// Reason why a server did not answer as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The server does not answer. The session may continue later.
    Silent(String),
    /// The server refuses, or answers something else. A new session has to start.
    Refused(String),
}

/// Session with a server.
#[derive(Debug)]
struct ServerSession {
    offset: Offset,
    /// Notes so far.
    taken: u64,
    /// Number of the last order that the server has.
    ordered: u64,
    /// Time of the last note, so that notes of a server ascend.
    noted: Time,
}

/// A server.
#[derive(Debug)]
struct RemoteServer {
    name: String,
    about: About,
    /// Number of the first disk.
    base: u16,
    /// Number of the session, or of the next one.
    number: u64,
    session: Option<ServerSession>,
    /// Number of the last order in the question that is under way.
    ordering: u64,
    why: Option<String>,
    /// Time of the last answer.
    heard: Option<Time>,
    /// Time of the last answer by the server's clock: all earlier notes are there.
    known: Time,
    notes: VecDeque<(u16, Note)>,
    /// Requests that are not over, by disk and program.
    outstanding: BTreeMap<(u16, u16), u64>,
    unseen: u64,
}

/// Plans for several servers.
#[derive(Debug)]
pub struct Coordinator {
    number: u64,
    questions: u64,
    period: Nanos,
    guard: Nanos,
    goals: Arc<Mutex<Goals>>,
    servers: Vec<RemoteServer>,
    /// Orders in force, in the coordinator's time, by their numbers from 1 on.
    orders: VecDeque<(u64, GateOrder)>,
    ordered: u64,
    /// End of the time that the planner has seen.
    moment: Time,
}

/// Checks that one plan fits all servers.
///
/// # Errors
///
/// If no windows can be planned for a server, or if there are too many disks. Also if a server has another gate than
/// the first server, or other programs than the coordinator. The text names the server.
pub fn check_alike(servers: &[(String, About)], programs: &[String]) -> Result<(), String> {
    let mut disks = 0;
    for (name, about) in servers {
        let (first, other) = &servers[0];
        if about.gate.info().name != "windows" {
            return Err(format!(
                "{name}: the gate of its disks is {}, which has no windows; give gate = \"windows\" to all disks with programs",
                about.gate
            ));
        }
        check_gate(&about.gate, programs.len()).map_err(|problem| {
            format!("{name}: the gate of its disks is {}: {problem}", about.gate)
        })?;
        disks += about.disks.len();
        if about.disks.is_empty() || disks > DISKS_MAX {
            return Err(format!(
                "{name}: it has {} disks with programs, and all servers so far have {disks}; allowed are 1 or more, and {DISKS_MAX} together: give each server's programs exports of a disk",
                about.disks.len()
            ));
        }
        if about.gate != other.gate {
            return Err(format!(
                "{name}: the gate of its disks is {}, and {first} has {}; give all servers the same gate",
                about.gate, other.gate
            ));
        }
        if about.programs != programs {
            return Err(format!(
                "{name}: its programs are {}; allowed are the coordinator's in the same order, {}; change [[qos.program]] on one side",
                about.programs.join(", "),
                programs.join(", ")
            ));
        }
    }
    Ok(())
}

impl Coordinator {
    /// A coordinator of these servers, whose number no other coordinator has. The goals have the disks of all servers, in the order of the
    /// servers.
    ///
    /// # Panics
    ///
    /// If the goals have other disks.
    pub fn new(
        number: u64,
        servers: Vec<(String, About)>,
        goals: Arc<Mutex<Goals>>,
    ) -> Coordinator {
        let (planning, gate, disks) = {
            let goals = goals.lock().unwrap_or_else(PoisonError::into_inner);
            let options = &goals.options;
            (options.planning, options.gate.clone(), options.servers())
        };
        let mut base = 0;
        let servers = servers.into_iter().map(|(name, about)| {
            let first = base;
            base += about.disks.len() as u16;
            RemoteServer::new(name, about, first)
        });
        let servers: Vec<RemoteServer> = servers.collect();
        assert_eq!(base, disks, "the goals are for all disks");
        Coordinator {
            number,
            questions: 1,
            period: planning.period,
            guard: gate.options().duration("guard"),
            goals,
            servers,
            orders: VecDeque::new(),
            ordered: 0,
            moment: Time::ZERO,
        }
    }

    /// Asks a server for its disks and programs, before there is a coordinator.
    pub fn first_question(number: u64) -> Question {
        Question {
            coordinator: number,
            session: 0,
            number: 1,
            taken: 0,
            orders: Vec::new(),
        }
    }

    /// The goals.
    pub fn goals(&self) -> Arc<Mutex<Goals>> {
        Arc::clone(&self.goals)
    }

    /// Returns the next question to a server. Called once the last question was answered or given up.
    pub fn question(&mut self, server: usize) -> Question {
        self.questions += 1;
        let remote = &mut self.servers[server];
        if remote.session.is_none() {
            remote.number += 1;
        }
        remote.ordering = self.ordered;
        let session = remote.session.as_ref();
        let orders = session.map_or(Vec::new(), |session| {
            let new = self
                .orders
                .iter()
                .filter(|(number, _)| *number > session.ordered);
            new.filter_map(|(_, order)| session.there(order)).collect()
        });
        Question {
            coordinator: self.number,
            session: remote.number,
            number: self.questions,
            taken: session.map_or(0, |session| session.taken),
            orders,
        }
    }

    /// Takes the answer to the last question to a server, which was sent and received at these times.
    pub fn answered(
        &mut self,
        server: usize,
        sent: Time,
        received: Time,
        answer: Result<ServerAnswer, NoAnswer>,
    ) {
        let remote = &mut self.servers[server];
        let answered = answer.and_then(|answer| {
            let joins = answer.started.is_some() || remote.why.is_some();
            let new = Offset::of(sent, received, answer.now);
            let taken = remote.take(answer, new, received);
            taken.map(|()| joins).map_err(NoAnswer::Refused)
        });
        let why = match answered {
            Ok(joins) => {
                remote.why = None;
                if joins && let Some(ServerSession { offset, .. }) = &remote.session {
                    tracing::info!(
                        "{}: has joined; its clock is {} ns ahead, give or take {}",
                        remote.name,
                        offset.nanos(),
                        offset.error()
                    );
                }
                return;
            }
            Err(NoAnswer::Silent(why)) => why,
            Err(NoAnswer::Refused(why)) => {
                remote.leave();
                why
            }
        };
        if remote.why.as_ref() != Some(&why) {
            tracing::warn!(
                "{}: {why}; it keeps the last plan for {IDLE_PERIODS} periods, then its programs share; it is asked again",
                remote.name
            );
        }
        remote.why = Some(why);
    }

    /// Plans up to `now`, or up to the last moment that the answers cover.
    pub fn tick(&mut self, now: Time, until: Until<'_>) {
        let rest = self.period * IDLE_PERIODS;
        for remote in &mut self.servers {
            if remote.session.is_some() && remote.heard.is_none_or(|heard| now >= heard + rest) {
                remote.leave();
            }
        }
        let known = self.servers.iter().map(|remote| remote.known).min();
        let latest = Time::ZERO + now.saturating_since(Time::ZERO + self.period / 2);
        let moment = known.unwrap_or(now).min(now).max(latest).max(self.moment);
        self.moment = moment;
        let mut goals = self.goals.lock().unwrap_or_else(PoisonError::into_inner);
        for remote in &mut self.servers {
            let due = remote.notes.partition_point(|(_, note)| note.at <= moment);
            for (disk, note) in remote.notes.drain(..due) {
                goals.bring(remote.base + disk, note);
            }
        }
        let mut orders = Vec::new();
        goals.tick(moment, until, &mut orders);
        drop(goals);
        for order in orders {
            self.order(order);
        }
    }

    /// Adds an order. Removes the orders that it replaces, and windows that ended more than a period ago.
    fn order(&mut self, order: GateOrder) {
        let oldest = Time::ZERO + self.moment.saturating_since(Time::ZERO + self.period);
        self.orders.retain(|(_, other)| match (*other, order) {
            (GateOrder::Assign { of, .. }, GateOrder::Assign { of: new, .. }) => of != new,
            (GateOrder::Keep { lane, .. }, GateOrder::Keep { lane: new, .. }) => lane != new,
            (GateOrder::Keep { until, .. }, _) => until >= oldest,
            (GateOrder::Window { from, span, .. }, _) => from + span >= oldest,
            _ => true,
        });
        self.ordered += 1;
        self.orders.push_back((self.ordered, order));
    }

    /// States of all servers.
    pub fn statuses(&self, now: Time) -> Vec<ServerStatus> {
        let statuses = self.servers.iter().map(|remote| ServerStatus {
            name: remote.name.clone(),
            joined: remote.session.is_some() && remote.why.is_none(),
            why: remote.why.clone().or_else(|| remote.imprecise(self.guard)),
            offset: remote
                .session
                .as_ref()
                .map(|session| (session.offset.nanos(), session.offset.error())),
            silent: remote.heard.map(|heard| now.saturating_since(heard)),
            unseen: remote.unseen,
        });
        statuses.collect()
    }
}

impl ServerSession {
    /// Converts an order to the server's time. Returns `None` for a window before the server's clock started.
    fn there(&self, order: &GateOrder) -> Option<GateOrder> {
        match *order {
            GateOrder::Keep { lane, until } => {
                let until = self.offset.there(until);
                Some(GateOrder::Keep { lane, until })
            }
            GateOrder::Window { lane, from, span } => {
                let (from, until) = (self.offset.there(from), self.offset.there(from + span));
                let span = until - from;
                (!span.is_zero()).then_some(GateOrder::Window { lane, from, span })
            }
            order => Some(order),
        }
    }
}

impl RemoteServer {
    fn new(name: String, about: About, base: u16) -> RemoteServer {
        RemoteServer {
            name,
            about,
            base,
            number: 0,
            session: None,
            ordering: 0,
            why: Some("it was not asked so far".to_owned()),
            heard: None,
            known: Time::ZERO,
            notes: VecDeque::new(),
            outstanding: BTreeMap::new(),
            unseen: 0,
        }
    }

    /// Ends the session. No note of the ends of outstanding requests will follow, so these requests end now, without
    /// bytes.
    fn leave(&mut self) {
        self.session = None;
        let at = self.notes.back().map_or(self.known, |(_, note)| note.at);
        for ((disk, program), count) in std::mem::take(&mut self.outstanding) {
            let what = What::Done { bytes: 0 };
            let note = (disk, Note { at, program, what });
            self.notes.extend((0..count).map(|_| note));
        }
    }

    /// Returns a message if the server's clock is not known precisely enough, so that windows may begin too early or
    /// late.
    fn imprecise(&self, guard: Nanos) -> Option<String> {
        let error = self.session.as_ref()?.offset.error();
        (error > guard).then(|| {
            format!(
                "its clock is known to {error} only, as answers take long; allowed is the guard of its gate, {guard}: give a longer guard, or a faster connection"
            )
        })
    }

    /// Takes an answer.
    fn take(&mut self, answer: ServerAnswer, new: Offset, received: Time) -> Result<(), String> {
        if let Some(about) = &answer.started {
            // The server has no session of this coordinator, because the server was restarted or has given up.
            self.leave();
            if *about != self.about {
                return Err("its disks, gate or programs are not those from the start of the coordinator; start the coordinator again".to_owned());
            }
            let (taken, ordered, noted) = (0, 0, self.known);
            self.session = Some(ServerSession {
                offset: new,
                taken,
                ordered,
                noted,
            });
        } else if let Some(session) = &mut self.session {
            session.offset.add(new);
            session.ordered = self.ordering;
        }
        let Some(session) = &mut self.session else {
            return Err("the answer took three periods or longer; a new session starts".to_owned());
        };
        let (disks, programs) = (self.about.disks.len(), self.about.programs.len());
        let is_known = |(disk, note): &(u16, Note)| {
            usize::from(*disk) < disks && usize::from(note.program) <= programs
        };
        if answer.first > session.taken || !answer.notes.iter().all(is_known) {
            return Err("notes are missing, or of disks or programs that it does not have; use the same version of headtime on both sides".to_owned());
        }
        let seen = session.taken - answer.first;
        for (disk, mut note) in answer
            .notes
            .into_iter()
            .skip(usize::try_from(seen).unwrap_or(usize::MAX))
        {
            session.taken += 1;
            let outstanding = self.outstanding.entry((disk, note.program)).or_default();
            match note.what {
                What::Asked { .. } => *outstanding += 1,
                // The request came before the session.
                What::Done { .. } if *outstanding == 0 => continue,
                What::Done { .. } => *outstanding -= 1,
            }
            note.at = session
                .offset
                .here(note.at.min(answer.now))
                .max(session.noted);
            session.noted = note.at;
            self.notes.push_back((disk, note));
        }
        self.known = session.offset.here(answer.now).max(session.noted);
        (self.unseen, self.heard) = (answer.unseen, Some(received));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
