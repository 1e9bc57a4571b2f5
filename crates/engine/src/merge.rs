//! An index of queued requests by their ends, to find requests that touch.

use headtime_sched::{Class, LbaTable, Op, Request, SortedMap, Tag};
use headtime_units::{Extent, Lba, Sectors};

/// The queued requests that may grow, by their two ends.
///
/// The rules are those of Linux 2.6's request queue (`elv_merge`, `elv_try_merge`). A back merge is tried before a
/// front merge. A request that grew is fused with the neighbour that it now touches.
#[derive(Debug, Default)]
pub(crate) struct Touching {
    by_start: Ends,
    by_end: Ends,
}

impl Touching {
    /// Adds a queued request; `key` is its [`Scheduler::merge_key`](headtime_sched::Scheduler).
    pub fn insert(&mut self, request: &Request, key: impl Fn() -> u64) {
        let extent = request.extent;
        self.by_start.insert(extent.start, request, &key);
        self.by_end.insert(extent.end(), request, &key);
    }

    pub fn remove(&mut self, tag: Tag, extent: Extent) {
        let there =
            self.by_start.remove(extent.start, tag) && self.by_end.remove(extent.end(), tag);
        assert!(there, "request {} is not queued at {extent}", tag.0);
    }

    /// Returns the index of queued requests by the end at which another request is to be merged.
    pub fn ends(&self, at: End) -> &Ends {
        match at {
            End::Back => &self.by_end,
            End::Front => &self.by_start,
        }
    }

    /// Computes the keys anew, for a new scheduler.
    pub fn rekey(&mut self, key: impl Fn(Tag) -> u64) {
        self.by_start.rekey(&key);
        self.by_end.rekey(&key);
    }
}

/// The end of a queued request at which another request is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Back,
    Front,
}

/// Properties that two requests must share to be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Likeness {
    op: Op,
    flags: u8,
    class: Class,
    key: u64,
}

impl Likeness {
    pub fn of(request: &Request, key: u64) -> Likeness {
        Likeness {
            op: request.op,
            flags: request.flags.bits(),
            class: request.class,
            key,
        }
    }
}

/// Sort key of a request that is not the first at its address. No two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    lba: Lba,
    like: Likeness,
    len: Sectors,
    /// Number of earlier insertions of requests that were not the first at their address.
    turn: u64,
}

/// Queued requests by one of their ends, in order of insertion at each address.
///
/// Most addresses have at most one request. If an address has many (reads of one place), the requests after the first
/// are sorted by [`Likeness`]. So a search for a partner does not have to check each request.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    by_lba: LbaTable,
    behind: SortedMap<Place, Tag>,
    /// By tag: sort key of a request that is not the first at its address.
    places: Vec<Option<Place>>,
    turns: u64,
}

impl Ends {
    fn insert(&mut self, lba: Lba, request: &Request, key: impl Fn() -> u64) {
        let tag = request.tag;
        if self.by_lba.insert(lba, tag) {
            let place = Place {
                lba,
                like: Likeness::of(request, key()),
                len: request.extent.len,
                turn: self.turns,
            };
            self.turns += 1;
            self.behind.insert(place, tag);
            if tag.index() >= self.places.len() {
                self.places.resize(tag.index() + 1, None);
            }
            self.places[tag.index()] = Some(place);
        }
    }

    fn remove(&mut self, lba: Lba, tag: Tag) -> bool {
        let there = self.by_lba.remove(lba, tag);
        // If the removed request was the first at its address, the next one becomes the first and leaves `behind`.
        if !self.behind.is_empty()
            && !self.come_forward(tag)
            && let Some(first) = self.first(lba)
        {
            self.come_forward(first);
        }
        there
    }

    /// Removes a request from `behind`. Returns true if the request was there.
    fn come_forward(&mut self, tag: Tag) -> bool {
        let place = self.places.get_mut(tag.index()).and_then(Option::take);
        if let Some(place) = place {
            let there = self.behind.remove(&place);
            assert!(
                there == Some(tag),
                "request {} is not at {}",
                tag.0,
                place.lba
            );
        }
        place.is_some()
    }

    /// Returns the request that came to this address first.
    pub fn first(&self, lba: Lba) -> Option<Tag> {
        self.by_lba.first_at(lba)
    }

    /// Returns true if another request came to the address after `first`.
    pub fn has_more(&self, lba: Lba, first: Tag) -> bool {
        self.by_lba.has_next(lba, first)
    }

    /// Returns the position in order of insertion of a request after the first at this address; `None` if the request
    /// is not one.
    pub fn turn(&self, lba: Lba, tag: Tag) -> Option<u64> {
        let place = self.places.get(tag.index()).copied().flatten()?;
        (place.lba == lba).then_some(place.turn)
    }

    /// Searches the requests after the first at this address. Returns the earliest alike request with at most `most`
    /// sectors and a turn of `from` or later, and its turn.
    pub fn next_alike(
        &self,
        lba: Lba,
        like: Likeness,
        most: Sectors,
        from: u64,
    ) -> Option<(u64, Tag)> {
        let mut next: Option<(u64, Tag)> = None;
        let mut len = Sectors::ZERO;
        // Try the earliest request of each length.
        loop {
            #[cfg(test)]
            headtime_testkit::steps::one();
            let wanted = Place {
                lba,
                like,
                len,
                turn: from,
            };
            let Some((place, tag)) = self.behind.first_at_or_after(&wanted) else {
                return next;
            };
            if (place.lba, place.like) != (lba, like) || place.len > most {
                return next;
            }
            if place.turn < from {
                // The turn is too early. Requests of this length with a later turn come after it in the map.
                len = place.len;
                continue;
            }
            if next.is_none_or(|(turn, _)| place.turn < turn) {
                next = Some((place.turn, tag));
            }
            len = place.len + Sectors::new(1);
        }
    }

    fn rekey(&mut self, key: impl Fn(Tag) -> u64) {
        self.behind.clear();
        for (place, tag) in self.places.iter_mut().zip(0..) {
            if let Some(place) = place {
                place.like.key = key(Tag(tag));
                self.behind.insert(*place, Tag(tag));
            }
        }
    }
}

/// Returns true if two requests that touch may become one of at most `most` sectors.
pub(crate) fn alike(one: &Request, other: &Request, most: Sectors) -> bool {
    one.op == other.op
        && one.flags == other.flags
        && one.class == other.class
        && one.extent.len + other.extent.len <= most
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Flags;
    use headtime_testkit::steps;
    use headtime_units::Time;
    use proptest::prelude::*;

    fn request(tag: u32, len: u64, flags: Flags) -> Request {
        Request {
            flags,
            ..Request::new(Tag(tag), Op::Read, Extent::at(0, len), Time::ZERO)
        }
    }

    /// Requests by one end, in order of insertion: address, request, key.
    type Plain = Vec<(Lba, Request, u64)>;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64, Flags, u64),
        Remove(prop::sample::Index),
        /// Requests get new keys: the tag modulo this number.
        Rekey(u64),
    }

    fn flags() -> impl Strategy<Value = Flags> {
        prop::sample::select(vec![Flags::NONE, Flags::SYNC])
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0..3_u64, 1..20_u64, flags(), 0..4_u64)
                .prop_map(|(lba, len, flags, key)| Step::Insert(lba, len, flags, key)),
            8 => any::<prop::sample::Index>().prop_map(Step::Remove),
            1 => (1..4_u64).prop_map(Step::Rekey),
        ]
    }

    /// Compares the results for each address with a plain list.
    fn compare(ends: &Ends, plain: &Plain, like: Likeness, most: u64) {
        for lba in (0..3).map(Lba::new) {
            let here = plain.iter().filter(|(at, ..)| *at == lba);
            let mut here = here.map(|(_, request, key)| (request, key));
            let first = here.next().map(|(request, _)| request.tag);
            assert_eq!(ends.first(lba), first);
            let behind: Vec<_> = here.collect();
            let Some(first) = first else { continue };
            assert_eq!(ends.has_more(lba, first), !behind.is_empty());
            assert_eq!(ends.turn(lba, first), None);
            let turn = |tag| ends.turn(lba, tag).expect("it is behind the first");
            assert!(behind.is_sorted_by_key(|(request, _)| turn(request.tag)));
            let alike: Vec<Tag> = behind
                .iter()
                .filter(|(request, key)| Likeness::of(request, **key) == like)
                .filter(|(request, _)| request.extent.len.get() <= most)
                .map(|(request, _)| request.tag)
                .collect();
            let mut from = 0;
            let found = std::iter::from_fn(|| {
                let (turn, tag) = ends.next_alike(lba, like, Sectors::new(most), from)?;
                from = turn + 1;
                Some(tag)
            });
            assert_eq!(found.collect::<Vec<Tag>>(), alike);
        }
    }

    proptest! {
        #[test]
        fn ends_agree_with_a_plain_list(
            steps in prop::collection::vec(step(), 0..150),
            likes in prop::collection::vec((flags(), 0..4_u64, 0..22_u64), 4),
        ) {
            let (mut ends, mut plain) = (Ends::default(), Plain::new());
            for (tag, step) in (0..).zip(steps) {
                match step {
                    Step::Insert(lba, len, flags, key) => {
                        let (lba, request) = (Lba::new(lba), request(tag, len, flags));
                        ends.insert(lba, &request, || key);
                        plain.push((lba, request, key));
                    }
                    Step::Remove(which) if !plain.is_empty() => {
                        let (lba, request, _) = plain.remove(which.index(plain.len()));
                        prop_assert!(ends.remove(lba, request.tag));
                        prop_assert!(!ends.remove(lba, request.tag));
                    }
                    Step::Remove(_) => {}
                    Step::Rekey(by) => {
                        let key = |tag: Tag| u64::from(tag.0) % by;
                        ends.rekey(key);
                        for (_, request, of) in &mut plain {
                            *of = key(request.tag);
                        }
                    }
                }
                for (flags, key, most) in &likes {
                    let like = Likeness::of(&request(0, 1, *flags), *key);
                    compare(&ends, &plain, like, *most);
                }
            }
        }
    }

    #[test]
    fn of_many_at_one_end_those_that_do_not_fit_are_not_looked_at() {
        const MANY: u32 = 10_000;
        let at = Lba::new(64);
        let mut ends = Ends::default();
        for tag in 0..MANY {
            // Requests of eight lengths, all too long except for the last.
            let len = if tag + 1 == MANY {
                8
            } else {
                500 + u64::from(tag) % 8
            };
            ends.insert(at, &request(tag, len, Flags::NONE), || 0);
        }
        let like = Likeness::of(&request(0, 1, Flags::NONE), 0);
        let steps = steps::of(|| {
            let found = ends.next_alike(at, like, Sectors::new(100), 0);
            assert_eq!(found.map(|(_, tag)| tag), Some(Tag(MANY - 1)));
            let all = ends.next_alike(at, like, Sectors::new(1_000), 0);
            assert_eq!(all.map(|(_, tag)| tag), Some(Tag(1)));
            for tag in (0..MANY).rev().step_by(2).chain(0..10) {
                ends.remove(at, Tag(tag));
            }
        });
        assert!(steps < 20, "{steps}");
    }
}
