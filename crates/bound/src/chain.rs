//! Longest chain of sequential steps of processes.

use headtime_units::{Nanos, Time};

/// A step of a process that takes time in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The process computes, thinks, or waits for the least time of a command.
    Spend(Nanos),
    /// The process requests data of this resource now, and sleeps until the data arrive.
    Fetch(u32),
    /// A mark in the chain that [`Link::Since`] may name, counted from 0.
    Mark,
    /// The process sleeps until data of this resource (first number) arrive. The request was sent at the mark (second
    /// number) or later.
    Since(u32, u32),
    /// The process meets others at a barrier.
    Meet(u32),
}

/// A process: its start and its steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub start: Time,
    pub links: Vec<Link>,
    marks: u32,
}

impl Chain {
    pub fn new(start: Time) -> Chain {
        Chain {
            start,
            ..Chain::default()
        }
    }

    pub fn spend(&mut self, span: Nanos) {
        if span.is_zero() {
            return;
        }
        match self.links.last_mut() {
            Some(Link::Spend(spent)) => *spent = spent.saturating_add(span),
            _ => self.links.push(Link::Spend(span)),
        }
    }

    pub fn push(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Adds a mark, and returns its number.
    pub fn mark(&mut self) -> u32 {
        self.links.push(Link::Mark);
        self.marks += 1;
        self.marks - 1
    }
}

/// Progress of a process.
struct Walker {
    at: usize,
    time: Time,
    marks: Vec<Time>,
}

/// Returns the earliest end of each process.
///
/// `fetch` returns the least time of a fetch of a resource. It is zero if other processes use the resource too, since
/// these may have fetched the data before. `members` is the number of processes of each meeting. If another number of
/// processes comes to a meeting, the meeting joins an unknown subset, so it is ignored.
pub(crate) fn ends(chains: &[Chain], members: &[u32], fetch: impl Fn(u32) -> Nanos) -> Vec<Time> {
    let mut who = vec![Vec::new(); members.len()];
    for (process, chain) in chains.iter().enumerate() {
        for link in &chain.links {
            if let Link::Meet(meeting) = link
                && who[*meeting as usize].last() != Some(&process)
            {
                who[*meeting as usize].push(process);
            }
        }
    }
    let strict: Vec<bool> = who
        .iter()
        .zip(members)
        .map(|(who, members)| who.len() == *members as usize)
        .collect();
    let mut walkers: Vec<Walker> = chains
        .iter()
        .map(|chain| Walker {
            at: 0,
            time: chain.start,
            marks: Vec::with_capacity(chain.marks as usize),
        })
        .collect();
    let mut there = vec![0u32; members.len()];
    let mut ready: Vec<usize> = (0..chains.len()).rev().collect();
    while let Some(process) = ready.pop() {
        let walker = &mut walkers[process];
        let mut met = None;
        while let Some(link) = chains[process].links.get(walker.at) {
            walker.at += 1;
            let time = &mut walker.time;
            match *link {
                Link::Spend(span) => *time = time.saturating_add(span),
                Link::Fetch(resource) => *time = time.saturating_add(fetch(resource)),
                Link::Mark => walker.marks.push(walker.time),
                Link::Since(resource, mark) => {
                    let took = fetch(resource);
                    if !took.is_zero() {
                        *time = walker.marks[mark as usize].saturating_add(took).max(*time);
                    }
                }
                Link::Meet(meeting) if strict[meeting as usize] => {
                    met = Some(meeting as usize);
                    break;
                }
                Link::Meet(_) => {}
            }
        }
        let Some(meeting) = met else { continue };
        there[meeting] += 1;
        if there[meeting] == members[meeting] {
            there[meeting] = 0;
            let last = who[meeting].iter().map(|other| walkers[*other].time).max();
            for other in &who[meeting] {
                walkers[*other].time = last.unwrap_or_default();
                ready.push(*other);
            }
        }
    }
    walkers.into_iter().map(|walker| walker.time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(links: &[Link]) -> Chain {
        let mut chain = Chain::new(Time::ZERO);
        for link in links {
            match link {
                Link::Spend(span) => chain.spend(*span),
                Link::Mark => {
                    chain.mark();
                }
                link => chain.push(*link),
            }
        }
        chain
    }

    fn spend(nanos: u64) -> Link {
        Link::Spend(Nanos::from_nanos(nanos))
    }

    fn nanos(chains: &[Chain], members: &[u32]) -> Vec<u64> {
        let fetch = |resource: u32| Nanos::from_nanos(u64::from(resource) * 10);
        ends(chains, members, fetch)
            .iter()
            .map(|time| time.as_nanos())
            .collect()
    }

    /// A program may compute after each of millions of steps. Only waits take memory.
    #[test]
    fn what_is_spent_without_a_wait_between_is_one_link() {
        let computes = chain(&[spend(5), spend(0), spend(7), Link::Fetch(4), spend(1)]);
        assert_eq!(computes.links.len(), 3);
        assert_eq!(nanos(&[computes], &[]), [53]);
    }

    #[test]
    fn who_meets_waits_for_the_last() {
        let fast = chain(&[spend(5), Link::Meet(0), spend(5), Link::Meet(0), spend(1)]);
        let slow = chain(&[spend(50), Link::Meet(0), Link::Meet(0), spend(7)]);
        assert_eq!(nanos(&[fast.clone(), slow.clone()], &[2]), [56, 62]);
        // Three processes come to a meeting of two, so the pair is unknown.
        let third = chain(&[spend(1), Link::Meet(0)]);
        assert_eq!(nanos(&[fast, slow, third], &[2]), [11, 57, 1]);
    }

    #[test]
    fn what_was_asked_for_early_is_waited_for_only_as_long_as_it_takes() {
        // Resource 4 takes 40 from the mark on. Computing takes 30 of these.
        let windowed = [Link::Mark, spend(30), Link::Since(4, 0), spend(1)];
        assert_eq!(nanos(&[chain(&windowed)], &[]), [41]);
        let late = [Link::Mark, spend(70), Link::Since(4, 0), spend(1)];
        assert_eq!(nanos(&[chain(&late)], &[]), [71]);
        assert_eq!(
            nanos(&[chain(&[spend(3), Link::Fetch(4), spend(1)])], &[]),
            [44]
        );
        // The resource is shared, so another process may have fetched it.
        assert_eq!(nanos(&[chain(&[spend(3), Link::Fetch(0)])], &[]), [3]);
    }
}
