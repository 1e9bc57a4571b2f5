//! Numbers for things, in order of first appearance.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Numbers things from 0 on. One thing often appears several times in a row.
#[derive(Debug, Default)]
pub(crate) struct Numbered<K> {
    numbers: BTreeMap<K, u32>,
    last: Option<(K, u32)>,
}

impl<K: Ord + Clone> Numbered<K> {
    /// Returns the number of the key that equals `borrowed`. A new key is made by `owned` and gets the
    /// next number.
    #[inline]
    pub(crate) fn number<Q>(&mut self, borrowed: &Q, owned: impl FnOnce() -> K) -> u32
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        match &self.last {
            Some((last, number)) if last.borrow() == borrowed => *number,
            _ => self.find(borrowed, owned),
        }
    }

    fn find<Q>(&mut self, borrowed: &Q, owned: impl FnOnce() -> K) -> u32
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let (key, number) = match self.numbers.get_key_value(borrowed) {
            Some((key, number)) => (key.clone(), *number),
            None => {
                let (key, number) = (owned(), self.numbers.len() as u32);
                self.numbers.insert(key.clone(), number);
                (key, number)
            }
        };
        self.last = Some((key, number));
        number
    }

    /// Returns all keys, in the order of their numbers.
    pub(crate) fn into_list(self) -> Vec<K> {
        let mut list: Vec<(K, u32)> = self.numbers.into_iter().collect();
        list.sort_unstable_by_key(|(_, number)| *number);
        list.into_iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_numbered_in_order_of_appearance() {
        let mut numbered: Numbered<String> = Numbered::default();
        let numbers: Vec<u32> = ["b", "b", "a", "c", "a", "b"]
            .iter()
            .map(|name| numbered.number(*name, || (*name).to_owned()))
            .collect();
        assert_eq!(numbers, [0, 0, 1, 2, 1, 0]);
        assert_eq!(numbered.into_list(), ["b", "a", "c"]);
    }
}
