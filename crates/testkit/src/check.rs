//! Checks the promises of every policy on a scenario.

use crate::arrivals::Scenario;
use crate::counted::Counted;
use crate::model::{Model, Promise, Queued, Way};
use crate::subject::{Subject, Twins};
use crate::toy_disk::ToyDisk;
use crate::violation::{Rule, Violation};
use crate::waits::Waits;
use headtime_sched::{BoundsWaits, Dispatch, Elevator, Request, Scheduler, Tag};
use headtime_units::{Nanos, Time};
use std::collections::{BTreeSet, VecDeque};

/// The longest that a scheduler may leave the disk idle while requests are queued, if nothing allows it more.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// A request that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The request, merged as it was.
    pub request: Request,
    /// The arrivals in it, by number.
    pub parts: Vec<usize>,
    /// Time at which the request was handed out.
    pub at: Time,
}

/// Drives a scheduler through a scenario. Returns the requests served, or the promise broken.
///
/// `make` is called for the scheduler, and again for its successor if there is a swap. Requests that
/// touch are merged as the engine would.
///
/// # Errors
///
/// The first broken promise: conserved, once, bounded, live, drain.
pub fn check<S: Scheduler>(
    make: impl FnMut() -> S,
    scenario: &Scenario,
) -> Result<Vec<Served>, Violation> {
    check_patiently(Nanos::ZERO, make, scenario)
}

/// As [`check`], for a scheduler that is asked to wait as long as `patience`.
///
/// # Errors
///
/// The first broken promise, as for [`check`].
pub fn check_patiently<S: Scheduler>(
    patience: Nanos,
    mut make: impl FnMut() -> S,
    scenario: &Scenario,
) -> Result<Vec<Served>, Violation> {
    let mut run = Run::new(Counted::new(make()), scenario);
    run.patience = patience.saturating_add(PATIENCE);
    run.run(|| Counted::new(make()))
}

/// As [`check`], for an elevator. In addition, the check peeks at every turn and at other heads. The elevator must
/// take the request that it showed, and the same request as a twin that is never peeked at.
///
/// # Errors
///
/// The first broken promise of [`check`], or peek.
pub fn check_elevator<E: Elevator>(
    mut make: impl FnMut() -> E,
    scenario: &Scenario,
) -> Result<Vec<Served>, Violation> {
    let twins = Twins::new(make(), make());
    Run::new(twins, scenario).run(|| Twins::new(make(), make()))
}

/// As [`check_elevator`]. In addition, no request may wait longer than the elevator's bound in time, with the slowest
/// access of the run.
///
/// # Errors
///
/// The first broken promise of [`check_elevator`], or in time.
///
/// # Panics
///
/// If the scenario has a swap, or a request that is held back: the bounds do not cover such scenarios.
pub fn check_waits<E: Elevator + BoundsWaits + 'static>(
    mut make: impl FnMut() -> E,
    scenario: &Scenario,
) -> Result<Vec<Served>, Violation> {
    assert_eq!(scenario.swap_after, None);
    assert!(
        scenario
            .arrivals
            .iter()
            .all(|arrival| arrival.held == Nanos::ZERO)
    );
    let judge = make();
    let twins = Twins::new(make(), make());
    let mut run = Run::new(twins, scenario);
    run.promise = Some(Box::new(move |request, ahead| {
        judge.wait_max(request, ahead)
    }));
    run.run(|| unreachable!("there is no swap"))
}

type Judge = Box<dyn Fn(&Request, usize) -> Option<headtime_sched::WaitBound>>;

/// A request that the disk serves.
struct InFlight {
    done: Time,
    request: Request,
    /// True if the scheduler has not handed the request out. It is not notified of the completion then.
    withdrawn: bool,
    tags: Vec<Tag>,
}

/// A scheduler on its way through a scenario.
///
/// Invariants:
///
/// - `next ≤ scenario.arrivals.len()`.
/// - `free_tags.len() + model.len() + held_tags.len()` + Σ of `tags.len()` of `in_flight` = `scenario.arrivals.len()`.
/// - Times `done` of `in_flight` never descend.
/// - `swapped` ⇒ `scenario.swap_after.is_some()`.
/// - `!swapped` and `scenario.swap_after = Some(n)` ⇒ `next ≤ n`.
struct Run<'a, S> {
    subject: S,
    scenario: &'a Scenario,
    now: Time,
    /// The number of the next arrival.
    next: usize,
    model: Model,
    turns: u64,
    free_tags: BTreeSet<Tag>,
    /// The tags that the parts of a queued request hold besides its own, by its tag.
    held_tags: Vec<(Tag, Tag)>,
    disk: ToyDisk,
    in_flight: VecDeque<InFlight>,
    idle_until: Option<Time>,
    idle_since: Option<Time>,
    swapped: bool,
    /// Number of occasions to withdraw a request so far.
    looks: usize,
    served: Vec<Served>,
    promise: Option<Judge>,
    patience: Nanos,
    waits: Waits,
}

impl<'a, S: Subject> Run<'a, S> {
    fn new(subject: S, scenario: &'a Scenario) -> Run<'a, S> {
        assert!(scenario.depth > 0, "a disk takes at least one request");
        Run {
            subject,
            scenario,
            now: Time::ZERO,
            next: 0,
            model: Model::default(),
            turns: 0,
            free_tags: (0..scenario.arrivals.len() as u32).map(Tag).collect(),
            held_tags: Vec::new(),
            disk: ToyDisk::default(),
            in_flight: VecDeque::new(),
            idle_until: None,
            idle_since: None,
            swapped: false,
            looks: 0,
            served: Vec::new(),
            promise: None,
            patience: PATIENCE,
            waits: Waits::default(),
        }
    }

    fn run(mut self, mut make: impl FnMut() -> S) -> Result<Vec<Served>, Violation> {
        loop {
            self.arrive()?;
            let after = self.scenario.swap_after;
            if !self.swapped && after.is_some_and(|after| self.next >= after) {
                self.swapped = true;
                self.swap(make())?;
                self.arrive()?;
            }
            self.dispatch()?;
            let arrival = self.scenario.arrivals.get(self.next);
            let next = [
                arrival.map(|arrival| arrival.inserted()),
                self.in_flight.front().map(|first| first.done),
                self.idle_until,
            ];
            let Some(next) = next.into_iter().flatten().min() else {
                break;
            };
            assert!(next >= self.now, "the checker went back in time");
            self.now = next;
            self.complete()?;
        }
        let (arrived, served) = (self.next, self.served.iter().map(|s| s.parts.len()).sum());
        self.ensure(arrived == served, Rule::Conserved, || {
            format!("{arrived} requests came and {served} were served")
        })?;
        self.waits.verdict()?;
        Ok(self.served)
    }

    fn arrive(&mut self) -> Result<(), Violation> {
        let scenario = self.scenario;
        while let Some(arrival) = scenario.arrivals.get(self.next)
            && arrival.inserted() <= self.now
            && (self.swapped || scenario.swap_after.is_none_or(|after| self.next < after))
        {
            let tag = self
                .free_tags
                .pop_first()
                .expect("there are as many as arrivals");
            let request = arrival.request(tag);
            let part = self.next;
            self.next += 1;
            let subject = &self.subject;
            let merge = match self.scenario.merge {
                true => {
                    let may =
                        |queued: &Request, new: &Request, way| may_merge(subject, queued, new, way);
                    self.model.merge(&request, part, may)
                }
                false => None,
            };
            if let Some(merge) = merge {
                self.held_tags.push((merge.grown.tag, tag));
                if let Some(gone) = merge.gone {
                    for (kept, _) in self.held_tags.iter_mut().filter(|(kept, _)| *kept == gone) {
                        *kept = merge.grown.tag;
                    }
                    self.held_tags.push((merge.grown.tag, gone));
                    self.subject.fused(merge.grown.tag, gone);
                }
                self.subject.merged(&merge.grown);
            } else {
                let judge = self.promise.as_ref();
                let ahead = self.model.ahead_of(request.op);
                let bound = judge.and_then(|judge| judge(&request, ahead));
                self.model.insert(Queued {
                    request,
                    parts: vec![part],
                    turn: self.turns,
                    overtaken: 0,
                    promise: Promise {
                        since: self.now,
                        bound,
                    },
                });
                self.subject.insert(self.now, request);
            }
            self.turns += 1;
            self.idle_until = None;
            self.conserved()?;
        }
        Ok(())
    }

    fn swap(&mut self, successor: S) -> Result<(), Violation> {
        let (queued, drained) = (self.model.by_age(), self.subject.drain());
        self.ensure(queued == drained, Rule::Drain, || {
            format!("queued was {queued:?}, and drained {drained:?}")
        })?;
        let (left, after) = (self.subject.queued(), self.ask()?);
        self.ensure(
            left == 0 && !matches!(after, Dispatch::Request(_)),
            Rule::Drain,
            || format!("{left} are queued after draining, and next is {after:?}"),
        )?;
        self.subject = successor;
        for request in drained {
            self.subject.insert(self.now, request);
        }
        for queued in self.model.values_mut() {
            queued.overtaken = 0;
        }
        self.idle_until = None;
        self.conserved()
    }

    fn dispatch(&mut self) -> Result<(), Violation> {
        loop {
            // Requests are withdrawn with or without room in the disk, and also in the middle of a wait.
            if let Some(request) = self.withdraw() {
                self.idle_until = None;
                self.hand_out(request, true)?;
                self.conserved()?;
            }
            let room = self.in_flight.len() < self.scenario.depth;
            if !room || self.idle_until.is_some_and(|until| until > self.now) {
                break;
            }
            let decision = self.ask()?;
            self.idle_until = None;
            match decision {
                Dispatch::Request(request) => {
                    self.idle_since = None;
                    self.hand_out(request, false)?;
                }
                Dispatch::IdleUntil(until) => {
                    self.idles(until)?;
                    self.idle_until = Some(until);
                }
                Dispatch::Empty => {
                    let left = self.model.len();
                    self.ensure(left == 0, Rule::Live, || {
                        format!("nothing is said to be queued, and {left} are")
                    })?;
                    break;
                }
            }
            self.conserved()?;
        }
        Ok(())
    }

    /// Asks the scheduler for its next decision. Returns an error if the subject has found a violation.
    fn ask(&mut self) -> Result<Dispatch, Violation> {
        let decision = self.subject.dispatch(self.now);
        self.subject.found().map_or(Ok(decision), Err)
    }

    /// Withdraws a request, if one is due. The disk gets this request now, past the scheduler.
    fn withdraw(&mut self) -> Option<Request> {
        let every = self.scenario.withdraw_every?;
        self.looks += 1;
        if self.looks % (every + 1) != every {
            return None;
        }
        let place = (self.looks * 7).checked_rem(self.model.len())?;
        let tag = self.model.tags().nth(place)?;
        Some(self.subject.withdraw(tag))
    }

    fn idles(&mut self, until: Time) -> Result<(), Violation> {
        self.ensure(until > self.now, Rule::Live, || {
            format!("waits until {until}")
        })?;
        let more_to_come = self.next < self.scenario.arrivals.len() || !self.in_flight.is_empty();
        if self.model.len() == 0 && more_to_come {
            self.idle_since = None;
        }
        let since = *self.idle_since.get_or_insert(self.now);
        self.ensure(
            until.saturating_since(since) <= self.patience,
            Rule::Live,
            || {
                format!(
                    "waits from {since} to {until}, with {} queued",
                    self.model.len()
                )
            },
        )
    }

    fn hand_out(&mut self, request: Request, withdrawn: bool) -> Result<(), Violation> {
        let queued = self.model.remove(request.tag);
        self.ensure(queued.is_some(), Rule::Once, || {
            format!("{request:?} is handed out and not queued")
        })?;
        let queued = queued.expect("just looked");
        self.ensure(queued.request == request, Rule::Once, || {
            format!("{:?} is handed out as {request:?}", queued.request)
        })?;
        // A withdrawn request is not the scheduler's choice.
        if !withdrawn {
            if let Some(most) = self.subject.overtake_max() {
                self.overtaken(&queued, most)?;
            }
            self.subject.dispatched(self.now, &request);
        }
        self.waits.note(self.now, &queued);
        // The disk serves in the order in which it gets requests.
        let start = self
            .in_flight
            .back()
            .map_or(self.now, |last| last.done.max(self.now));
        let access = self.disk.access(&request);
        self.waits.accessed(access);
        let mut tags = vec![request.tag];
        self.held_tags.retain(|(kept, held)| {
            let of_this = *kept == request.tag;
            tags.extend(of_this.then_some(*held));
            !of_this
        });
        self.in_flight.push_back(InFlight {
            done: start + access,
            request,
            withdrawn,
            tags,
        });
        self.served.push(Served {
            request,
            parts: queued.parts,
            at: self.now,
        });
        Ok(())
    }

    fn overtaken(&mut self, by: &Queued, most: usize) -> Result<(), Violation> {
        let mut worst = None;
        for queued in self.model.values_mut() {
            if by.is_younger_than(queued) {
                queued.overtaken += 1;
                if queued.overtaken > most {
                    worst = Some((queued.request, queued.overtaken));
                }
            }
        }
        match worst {
            None => Ok(()),
            Some((request, times)) => self.ensure(false, Rule::Bounded, || {
                format!("{request:?} was overtaken {times} times; the policy says at most {most}")
            }),
        }
    }

    fn complete(&mut self) -> Result<(), Violation> {
        while self
            .in_flight
            .front()
            .is_some_and(|first| first.done <= self.now)
        {
            let first = self.in_flight.pop_front().expect("just looked");
            if !first.withdrawn {
                self.subject.completed(self.now, &first.request);
            }
            self.free_tags.extend(first.tags);
            self.idle_until = None;
            self.conserved()?;
        }
        Ok(())
    }

    fn conserved(&self) -> Result<(), Violation> {
        let (says, is) = (self.subject.queued(), self.model.len());
        self.ensure(says == is, Rule::Conserved, || {
            let tags: Vec<u32> = self.model.tags().map(|tag| tag.0).collect();
            format!("{says} are said to be queued, and {is} are: tags {tags:?}")
        })
    }

    fn ensure(
        &self,
        holds: bool,
        rule: Rule,
        what: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if holds {
            return Ok(());
        }
        Err(Violation {
            rule,
            at: self.now,
            what: what(),
        })
    }
}

/// Asks whether two requests may be merged, and compares the answer with `partners` and `merge_key`, which the policy
/// states without this question.
fn may_merge(subject: &impl Subject, queued: &Request, new: &Request, way: Way) -> bool {
    let may = subject.may_merge(queued.tag, new);
    let (partners, other) = match way {
        Way::Join { front } => (subject.partners(new, front), queued),
        Way::Fuse => (subject.partners(queued, false), new),
    };
    assert!(
        !may || partners.include(other.tag),
        "{queued:?} and {new:?} may merge, and the policy says {partners:?}"
    );
    assert!(
        !may || subject.merge_key(queued) == subject.merge_key(new),
        "{queued:?} and {new:?} may merge, and have different keys"
    );
    may
}
