//! Counts the ascending numbers before a given number, mostly without a search.

/// For each bucket of `1 << shift` numbers, the number of keys of an ascending list before the
/// bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    before: Vec<u32>,
    shift: u32,
}

impl Buckets {
    /// Buckets for the keys of a list: at most `most` buckets from 0 to the last key.
    pub(super) fn new<T>(list: &[T], key: impl Fn(&T) -> u64, most: u64) -> Buckets {
        let last = list.last().map_or(0, &key);
        let shift = (last / most).max(1).next_power_of_two().ilog2();
        let mut at = 0;
        let before = (0..=last >> shift).map(|bucket| {
            let first = bucket << shift;
            while list.get(at).is_some_and(|of| key(of) < first) {
                at += 1;
            }
            at as u32
        });
        let mut before: Vec<u32> = before.collect();
        before.push(list.len() as u32);
        Buckets { before, shift }
    }

    /// Number of keys up to `number`, in the list from which the buckets were made.
    #[inline]
    pub(super) fn until<T>(&self, list: &[T], key: impl Fn(&T) -> u64, number: u64) -> usize {
        let last = self.before.len() - 2;
        let bucket = (number >> self.shift).min(last as u64) as usize;
        let (from, to) = (
            self.before[bucket] as usize,
            self.before[bucket + 1] as usize,
        );
        from + list[from..to].partition_point(|of| key(of) <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_count_as_a_search_does(
            mut keys in prop::collection::vec(0_u64..5_000, 0..200),
            spread in 0..40_u32,
            most in 1..300_u64,
            numbers in prop::collection::vec(0_u64..6_000, 1..50),
        ) {
            keys.iter_mut().for_each(|key| *key <<= spread);
            keys.sort_unstable();
            let buckets = Buckets::new(&keys, |key| *key, most);
            let near = keys.iter().flat_map(|key| [key.saturating_sub(1), *key, key + 1]);
            for number in near.chain(numbers.iter().map(|number| number << spread)) {
                let counted = buckets.until(&keys, |key| *key, number);
                prop_assert_eq!(counted, keys.partition_point(|key| *key <= number), "{}", number);
            }
        }
    }
}
