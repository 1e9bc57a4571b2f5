//! Segments in the order of their last use.

use super::segment::SegmentId;

/// A list of all segments, the least recently used first.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    /// For each segment, the segments used just before and just after. The last entry has the
    /// newest and the oldest segment.
    links: Vec<Neighbours>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    older: u32,
    newer: u32,
}

impl Lru {
    /// A list of `segments` segments. Segment 0 is the oldest.
    pub fn new(segments: u32) -> Lru {
        let ring = segments + 1;
        let link = |at: u32| Neighbours {
            older: (at + ring - 1) % ring,
            newer: (at + 1) % ring,
        };
        Lru {
            links: (0..ring).map(link).collect(),
        }
    }

    /// A segment is used.
    pub fn make_newest(&mut self, id: SegmentId) {
        let last = self.links.len() - 1;
        let Neighbours { older, newer } = self.links[id.index()];
        self.links[older as usize].newer = newer;
        self.links[newer as usize].older = older;
        let newest = self.links[last].older;
        self.links[newest as usize].newer = id.0;
        self.links[last].older = id.0;
        self.links[id.index()] = Neighbours {
            older: newest,
            newer: last as u32,
        };
    }

    /// All segments, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let last = self.links.len() - 1;
        let mut at = last;
        std::iter::from_fn(move || {
            at = self.links[at].newer as usize;
            (at != last).then_some(SegmentId(at as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_goes_behind_all_others() {
        let mut order = Lru::new(5);
        let mut expected: Vec<u32> = (0..5).collect();
        for used in [0, 4, 4, 2, 0, 1, 3, 3, 0] {
            order.make_newest(SegmentId(used));
            expected.retain(|other| *other != used);
            expected.push(used);
            let found: Vec<u32> = order.iter().map(|id| id.0).collect();
            assert_eq!(found, expected);
        }
        let mut single = Lru::new(1);
        single.make_newest(SegmentId(0));
        assert_eq!(single.iter().collect::<Vec<_>>(), [SegmentId(0)]);
    }
}
