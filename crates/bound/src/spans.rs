//! Sets of sectors.

use headtime_units::Extent;

/// Spans of sectors, ascending and not touching. Each goes from its first sector to the sector after its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Returns all sectors of some extents, which may overlap and be in any order.
    pub fn of(extents: impl IntoIterator<Item = Extent>) -> Spans {
        let mut all: Vec<(u64, u64)> = extents
            .into_iter()
            .filter(|extent| !extent.is_empty())
            .map(|extent| (extent.start.get(), extent.end().get()))
            .collect();
        all.sort_unstable();
        let mut spans = Spans::with_room(all.len());
        for (start, end) in all {
            spans.add(start, end);
        }
        spans
    }

    /// As [`Spans::of`], for extents in the order of their first sectors.
    pub fn of_sorted(extents: &[Extent]) -> Spans {
        debug_assert!(extents.is_sorted_by_key(|extent| extent.start));
        let mut spans = Spans::with_room(extents.len());
        for extent in extents.iter().filter(|extent| !extent.is_empty()) {
            spans.add(extent.start.get(), extent.end().get());
        }
        spans
    }

    fn with_room(count: usize) -> Spans {
        Spans(Vec::with_capacity(count.min(1 << 16)))
    }

    /// Adds a span that begins no earlier than the last one.
    fn add(&mut self, start: u64, end: u64) {
        match self.0.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => self.0.push((start, end)),
        }
    }

    /// Returns the union of both sets.
    pub fn and(&self, other: &Spans) -> Spans {
        let mut both = Spans::with_room(self.0.len() + other.0.len());
        let (mut one, mut other) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let next = match (one.peek(), other.peek()) {
                (Some(first), Some(second)) if first <= second => one.next(),
                (_, Some(_)) => other.next(),
                (_, None) => one.next(),
            };
            match next {
                Some(&(start, end)) => both.add(start, end),
                None => return both,
            }
        }
    }

    /// Returns the sectors that are not in `other`.
    pub fn without(&self, other: &Spans) -> Spans {
        let mut left = Vec::with_capacity(self.0.len());
        let mut at = 0;
        for &(mut start, end) in &self.0 {
            while at < other.0.len() && other.0[at].1 <= start {
                at += 1;
            }
            // The last span of `other` may reach into the next span of `self`.
            let mut next = at;
            while start < end {
                match other.0.get(next) {
                    Some(&(from, to)) if from < end => {
                        if start < from {
                            left.push((start, from));
                        }
                        start = start.max(to);
                        next += 1;
                    }
                    _ => {
                        left.push((start, end));
                        break;
                    }
                }
            }
        }
        Spans(left)
    }

    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.0
            .iter()
            .map(|&(start, end)| Extent::at(start, end - start))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn sectors(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns the number of spans.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the sector after the last.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |(_, end)| *end)
    }

    /// Returns the first sector.
    pub fn start(&self) -> u64 {
        self.0.first().map_or(0, |(start, _)| *start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(u64, u64)]) -> Spans {
        Spans::of(
            of.iter()
                .map(|(start, end)| Extent::at(*start, end - start)),
        )
    }

    #[test]
    fn extents_that_touch_or_overlap_are_one() {
        let one = spans(&[(10, 20), (30, 40), (20, 25), (12, 14), (35, 50)]);
        assert_eq!(one.0, [(10, 25), (30, 50)]);
        assert_eq!(
            (one.sectors(), one.count(), one.start(), one.end()),
            (35, 2, 10, 50)
        );
        assert!(spans(&[(5, 5)]).is_empty());
    }

    #[test]
    fn taking_away_leaves_what_is_between() {
        let all = spans(&[(0, 100), (200, 300), (400, 500)]);
        let some = spans(&[(10, 20), (50, 250), (260, 270), (290, 410), (500, 600)]);
        assert_eq!(
            all.without(&some).0,
            [(0, 10), (20, 50), (250, 260), (270, 290), (410, 500)]
        );
        assert_eq!(all.without(&Spans::default()), all);
        assert!(all.without(&all).is_empty());
        // A span that overlaps two spans takes from both.
        assert_eq!(
            spans(&[(0, 10), (20, 30)]).without(&spans(&[(5, 25)])).0,
            [(0, 5), (25, 30)]
        );
    }

    #[test]
    fn sets_hold_each_sector_once() {
        // Compares with bit sets, for random sets of up to two spans of a few sectors.
        let bits = |spans: &Spans| -> u32 {
            spans
                .extents()
                .flat_map(|e| e.start.get()..e.end().get())
                .fold(0, |bits, s| bits | 1 << s)
        };
        for seed in 0..20_000u64 {
            let draw = |n: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> n) % 12;
            let one = spans(&[
                (draw(3), draw(3) + draw(9) % 4),
                (draw(15), draw(15) + draw(21) % 5),
            ]);
            let other = spans(&[
                (draw(27), draw(27) + draw(33) % 4),
                (draw(39), draw(39) + draw(45) % 5),
            ]);
            assert_eq!(bits(&one.and(&other)), bits(&one) | bits(&other));
            assert_eq!(bits(&one.without(&other)), bits(&one) & !bits(&other));
        }
    }
}
