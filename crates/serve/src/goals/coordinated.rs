//! A server whose windows a coordinator of several servers plans.
//!
//! While a coordinator asks, programs take no goals of the server itself. If the coordinator is silent for three
//! periods, the server plans for itself again. By then the gates have repeated the last plan, and share.

use super::exchange::{About, Question, ServerAnswer};
use super::feed::Note;
use super::lease::Lease;
use super::options::{IDLE_PERIODS, RefusedGoal};
use super::program::Program;
use headtime_units::Time;
use std::collections::VecDeque;

/// Most notes that wait for a coordinator: 8 MiB.
const NOTES_MAX: usize = 1 << 17;

impl super::Goals {
    /// Answers a coordinator at `now`. The next tick passes the orders on.
    ///
    /// # Errors
    ///
    /// If the gates have no windows, if a goal is set here or a profile is recorded, or if another coordinator asks.
    pub fn coordinate(
        &mut self,
        now: Time,
        question: Question,
    ) -> Result<ServerAnswer, RefusedGoal> {
        // A program with a goal of this server is a reason to refuse, below.
        if !self.programs.iter().any(Program::has_goal) {
            self.take_notes(now);
        }
        let continues = match &self.lease {
            Some(lease) if lease.coordinator != question.coordinator => {
                return Err(RefusedGoal::Coordinated(self.rest()));
            }
            Some(lease) => lease.session == question.session,
            None => false,
        };
        let started = if continues { None } else { Some(self.about()?) };
        let session = question.session;
        if session == 0 {
            return Ok(ServerAnswer {
                now,
                first: 0,
                notes: Vec::new(),
                unseen: self.unseen,
                started,
            });
        }
        let lease = self.lease.take().filter(|_| continues);
        let lease = lease.unwrap_or_else(|| {
            tracing::info!("a coordinator of several servers plans windows from now on");
            Lease {
                coordinator: question.coordinator,
                session,
                number: 0,
                last: now,
                first: 0,
                notes: VecDeque::new(),
            }
        });
        let lease = self.lease.insert(lease);
        if question.number <= lease.number {
            return Err(RefusedGoal::Uncoordinated(format!(
                "question {} was overtaken by question {}",
                question.number, lease.number
            )));
        }
        // A new session has no notes so far.
        let taken = if continues {
            question.taken.saturating_sub(lease.first)
        } else {
            0
        };
        if taken > lease.notes.len() as u64 {
            return Err(RefusedGoal::Uncoordinated(format!(
                "the coordinator has {} notes, and there are {} so far",
                question.taken,
                lease.first + lease.notes.len() as u64
            )));
        }
        (lease.number, lease.last) = (question.number, now);
        lease.notes.drain(..taken as usize);
        lease.first += taken;
        if continues {
            self.orders.extend(question.orders);
        }
        Ok(ServerAnswer {
            now,
            first: lease.first,
            notes: lease.notes.iter().copied().collect(),
            unseen: self.unseen,
            started,
        })
    }

    /// Returns the disks and programs, if a coordinator may plan for them.
    fn about(&self) -> Result<About, RefusedGoal> {
        let options = &self.options;
        let programs = options.programs.iter();
        if options.rates() {
            return Err(RefusedGoal::Uncoordinated(format!(
                "the disks' gate is {}, which has no windows; give gate = \"windows\" to all disks with programs",
                options.gate
            )));
        }
        let own =
            |at: &usize| self.programs[*at].has_goal() || self.programs[*at].recording.is_some();
        if let Some(at) = (0..self.programs.len()).find(own) {
            let name = &options.programs[at].name;
            return Err(RefusedGoal::Uncoordinated(
                match self.programs[at].recording {
                    None => format!(
                        "program {name} has a goal of this server; clear it (`headtime control SOCKET qos goal {name} none`), and give the goal to the coordinator"
                    ),
                    Some(_) => format!(
                        "the profile of program {name} is recorded by this server; stop that (`headtime control SOCKET qos profile {name} stop`), and record with the coordinator"
                    ),
                },
            ));
        }
        Ok(About {
            gate: options.gate.clone(),
            disks: options.disks.clone(),
            programs: programs.map(|program| program.name.clone()).collect(),
            seek: options.seek.clone(),
        })
    }

    /// Returns an error while a coordinator plans.
    pub(super) fn alone(&self) -> Result<(), RefusedGoal> {
        match self.lease {
            Some(_) => Err(RefusedGoal::Coordinated(self.rest())),
            None => Ok(()),
        }
    }

    /// Adds notes for the coordinator, if there is one. Ends the session of a coordinator that is silent.
    pub(super) fn pass_on(&mut self, now: Time, batch: &[(u16, Note)]) {
        let rest = self.rest();
        let Some(lease) = &mut self.lease else {
            return;
        };
        lease.notes.extend(batch);
        if now >= lease.last + rest || lease.notes.len() > NOTES_MAX {
            self.lease = None;
            tracing::warn!(
                "the coordinator is silent: after {IDLE_PERIODS} periods without a plan, all programs share the disks"
            );
        }
    }
}
