//! Sorting of many requests.

use headtime_units::Extent;

/// Least number of extents for a radix sort. Fewer extents are sorted by comparison.
const RADIX_EXTENTS_MIN: usize = 1 << 10;

/// Largest number of bits in a digit.
const DIGIT_BITS_MAX: u32 = 11;

/// Sorts extents by their first sectors. Extents with the same first sector keep their order.
pub(crate) fn sort_by_start(extents: &mut Vec<Extent>) {
    let key = |extent: &Extent| extent.start.get();
    if extents.is_sorted_by_key(key) {
        return;
    }
    if extents.len() < RADIX_EXTENTS_MIN {
        extents.sort_by_key(key);
        return;
    }
    // Radix sort, the lowest digit first.
    let bits = extents.iter().fold(0, |all, extent| all | key(extent));
    let bits = u64::BITS - bits.leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS_MAX);
    let width = bits.div_ceil(passes);
    let mut sorted = extents.clone();
    for pass in 0..passes {
        let digit = |extent: &Extent| (key(extent) >> (pass * width)) as usize % (1 << width);
        let mut next = [0; 1 << DIGIT_BITS_MAX];
        for extent in extents.iter() {
            next[digit(extent)] += 1;
        }
        let mut before = 0;
        for next in &mut next {
            before += std::mem::replace(next, before);
        }
        for extent in extents.iter() {
            let at = &mut next[digit(extent)];
            sorted[*at] = *extent;
            *at += 1;
        }
        std::mem::swap(extents, &mut sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_sorted_as_by_comparing_and_those_that_begin_together_stay_in_order() {
        for (count, span) in [
            (0, 10),
            (1, 10),
            (900, 1 << 20),
            (5_000, 1),
            (5_000, 700),
            (5_000, 1 << 20),
            (20_000, 1 << 35),
            (3_000, u64::MAX >> 8),
        ] {
            let draw = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) % span;
            let mut extents: Vec<Extent> = (0..count).map(|n| Extent::at(draw(n), n)).collect();
            let mut expected = extents.clone();
            expected.sort_by_key(|extent| extent.start);
            sort_by_start(&mut extents);
            assert_eq!(extents, expected, "{count} below {span}");
        }
    }
}
