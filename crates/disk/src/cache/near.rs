//! Index of the segments that concern a read. Each read asks for them among all segments.

use super::segment::Segment;

/// The addresses at which a read that concerns a segment can begin: from `low` on, up to `span`
/// sectors behind.
#[derive(Clone, Copy, Debug)]
struct Near {
    low: u64,
    span: u64,
}

impl Near {
    /// The sectors of a segment, and its end.
    fn of(segment: &Segment) -> Near {
        Near {
            low: segment.start,
            span: segment.end - segment.start,
        }
    }

    fn has(&self, start: u64) -> bool {
        start.wrapping_sub(self.low) <= self.span
    }
}

/// Segments that are compared at a time.
const AT_ONCE: usize = 16;

/// Unit of the first comparison, in sectors, as a power of two. The unit is small compared with a segment. Segments
/// with earlier parts of a stream are therefore not taken for near.
const UNIT: u32 = 8;

/// The lower bits of an address in units.
fn unit(address: u64) -> u16 {
    (address >> UNIT) as u16
}

/// [`Near`] of several segments, rounded: they lie side by side, so that the processor compares eight at a time.
#[derive(Clone, Copy, Debug)]
struct Sixteen {
    low: [u16; AT_ONCE],
    span: [u16; AT_ONCE],
}

impl Sixteen {
    const NONE: Sixteen = Sixteen {
        low: [0; AT_ONCE],
        span: [0; AT_ONCE],
    };

    /// Returns false if no segment concerns a read that begins in this unit.
    #[inline(always)]
    fn may_have(&self, unit: u16) -> bool {
        let mut any = 0;
        for (low, span) in self.low.iter().zip(&self.span) {
            any |= u16::from(unit.wrapping_sub(*low) <= *span);
        }
        any > 0
    }

    /// The segments that may concern a read that begins in this unit, a bit for each. A function of its own, so that
    /// [`Sixteen::may_have`] remains two comparisons.
    #[inline(never)]
    fn near(&self, unit: u16) -> u16 {
        let mut near = 0;
        for (at, (low, span)) in self.low.iter().zip(&self.span).enumerate() {
            near |= u16::from(unit.wrapping_sub(*low) <= *span) << at;
        }
        near
    }
}

/// The addresses at which reads that concern segments can begin.
#[derive(Clone, Debug)]
pub(super) struct Nears {
    groups: Vec<Sixteen>,
}

impl Nears {
    pub fn of(segments: &[Segment]) -> Nears {
        let mut nears = Nears {
            groups: vec![Sixteen::NONE; segments.len().div_ceil(AT_ONCE)],
        };
        for (index, segment) in segments.iter().enumerate() {
            nears.set(index, segment);
        }
        nears
    }

    /// Notes the present sectors of a segment.
    #[inline]
    pub fn set(&mut self, index: usize, segment: &Segment) {
        let near = Near::of(segment);
        let span = ((near.low + near.span) >> UNIT) - (near.low >> UNIT);
        let group = &mut self.groups[index / AT_ONCE];
        group.low[index % AT_ONCE] = unit(near.low);
        group.span[index % AT_ONCE] = span.min(u64::from(u16::MAX)) as u16;
    }

    /// Returns true if any segment concerns a read that begins at `start`.
    #[inline]
    pub fn any(&self, segments: &[Segment], start: u64) -> bool {
        self.try_each(segments, start, |_, _| None).is_none()
    }

    /// Visits the segments that concern a read that begins at `start`, until a visit gives `None`.
    #[inline(always)]
    pub fn try_each(
        &self,
        segments: &[Segment],
        start: u64,
        mut visit: impl FnMut(usize, &Segment) -> Option<()>,
    ) -> Option<()> {
        let unit = unit(start);
        for (nth, group) in self.groups.iter().enumerate() {
            if !group.may_have(unit) {
                continue;
            }
            let mut near = group.near(unit);
            while near > 0 {
                let index = nth * AT_ONCE + near.trailing_zeros() as usize;
                near &= near - 1;
                // The last group has places without a segment.
                if let Some(segment) = segments.get(index)
                    && Near::of(segment).has(start)
                {
                    visit(index, segment)?;
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::State;

    fn segment(start: u64, end: u64) -> Segment {
        Segment {
            start,
            end,
            dirty_start: 0,
            dirty_end: 0,
            ahead_min: 0,
            ahead_max: 0,
            state: State::Clean,
            users: 0,
            last_was_write: None,
            used: 0,
        }
    }

    #[test]
    fn the_segments_that_a_look_by_groups_finds_are_those_that_a_look_at_each_finds() {
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 20) % below
        };
        for count in [1, 2, 15, 16, 17, 40, 64] {
            let place = |draw: &mut dyn FnMut(u64) -> u64| match draw(3) {
                // Addresses that differ only in bits that a unit drops.
                0 => draw(4) << (UNIT + 16),
                1 => draw(3 << UNIT),
                _ => draw(1 << 40),
            };
            let mut segments = Vec::new();
            for _ in 0..count {
                let start = place(&mut draw);
                let len = match draw(20) {
                    0 => draw(1 << 30),
                    _ => draw(2 << UNIT),
                };
                segments.push(segment(start, start + len));
            }
            let mut nears = Nears::of(&segments);
            for _ in 0..2_000 {
                let index = draw(count) as usize;
                let chosen = segments[index];
                let start = match draw(3) {
                    0 => place(&mut draw),
                    1 => chosen.start.saturating_sub(1) + draw(3),
                    _ => chosen.end.saturating_sub(1) + draw(3),
                };
                let each = segments.iter().map(Near::of);
                let each = each.enumerate().filter(|(_, near)| near.has(start));
                let each: Vec<usize> = each.map(|(index, _)| index).collect();
                let mut found = Vec::new();
                let all = nears.try_each(&segments, start, |index, _| {
                    found.push(index);
                    Some(())
                });
                assert_eq!((&found, all), (&each, Some(())), "{start}");
                assert_eq!(nears.any(&segments, start), !each.is_empty());
                segments[index].end += draw(100);
                nears.set(index, &segments[index]);
            }
        }
    }
}
