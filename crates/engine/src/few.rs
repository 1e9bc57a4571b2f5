//! A short list whose first element needs no pointer.

use core::iter::Chain;
use core::ops::{Index, IndexMut};
use core::{option, slice};
use headtime_units::Time;

/// A list that is never empty.
///
/// Most engines have one lane, and most volumes one member. Each request reads the list many times. So the first
/// element is stored in place, and only the others behind a pointer.
#[derive(Clone, Debug)]
pub struct Few<T> {
    first: T,
    others: Vec<T>,
}

impl<T> Few<T> {
    /// Creates a list of one element.
    pub const fn one(first: T) -> Few<T> {
        Few {
            first,
            others: Vec::new(),
        }
    }

    /// Returns the element of a list of one, `None` for a longer list.
    #[inline(always)]
    pub fn only(&self) -> Option<&T> {
        self.others.is_empty().then_some(&self.first)
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub const fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the earliest time of all elements, [`Time::NEVER`] if no element has a time. Called before each event.
    #[inline(always)]
    pub fn earliest(&self, time: impl Fn(&T) -> Option<Time>) -> Time {
        match self.only() {
            Some(only) => time(only).unwrap_or(Time::NEVER),
            None => self.earliest_of_several(time),
        }
    }

    /// The case of several elements, out of line so that the inlined case of one element stays small.
    #[cold]
    #[inline(never)]
    fn earliest_of_several(&self, time: impl Fn(&T) -> Option<Time>) -> Time {
        self.iter().filter_map(time).fold(Time::NEVER, Time::min)
    }

    /// Changes all elements in order.
    #[inline(always)]
    pub fn change(&mut self, mut change: impl FnMut(&mut T)) {
        change(&mut self.first);
        if !self.others.is_empty() {
            self.others.iter_mut().for_each(change);
        }
    }

    /// Iterates over all elements in order.
    #[inline(always)]
    pub fn iter(&self) -> Chain<option::IntoIter<&T>, slice::Iter<'_, T>> {
        Some(&self.first).into_iter().chain(&self.others)
    }

    /// Iterates over all elements in order, mutably.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> Chain<option::IntoIter<&mut T>, slice::IterMut<'_, T>> {
        let first = Some(&mut self.first);
        first.into_iter().chain(&mut self.others)
    }

    /// Returns the element at an index, if there is one.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(1) {
            None => Some(&self.first),
            Some(other) => self.others.get(other),
        }
    }
}

impl<T> From<Vec<T>> for Few<T> {
    /// # Panics
    ///
    /// If the list is empty.
    fn from(mut all: Vec<T>) -> Few<T> {
        assert!(!all.is_empty(), "there is at least one");
        let first = all.remove(0);
        Few { first, others: all }
    }
}

impl<T> Index<usize> for Few<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        match index.checked_sub(1) {
            None => &self.first,
            Some(other) => &self.others[other],
        }
    }
}

impl<T> IndexMut<usize> for Few<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match index.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other],
        }
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = Chain<option::IntoIter<&'a T>, slice::Iter<'a, T>>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = Chain<option::IntoIter<&'a mut T>, slice::IterMut<'a, T>>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = Chain<option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        Some(self.first).into_iter().chain(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_one_to_four_is_what_the_same_vec_is() {
        for count in 1..5 {
            let plain: Vec<u32> = (10..10 + count).collect();
            let mut few = Few::from(plain.clone());
            assert_eq!(few.count(), plain.len());
            assert_eq!(few.only(), (count == 1).then_some(&10));
            assert!(few.iter().eq(&plain));
            for (index, mut value) in plain.iter().copied().enumerate() {
                assert_eq!((few[index], few.get(index)), (value, Some(&value)));
                assert_eq!(&mut few[index], &mut value);
            }
            assert_eq!(few.get(plain.len()), None);
            let later =
                |value: &u32| (*value > 10).then(|| Time::from_nanos(u64::from(100 - *value)));
            let last = plain.iter().filter_map(later).min();
            assert_eq!(few.earliest(later), last.unwrap_or(Time::NEVER));
            few.iter_mut().for_each(|value| *value -= 1);
            few.change(|value| *value += 2);
            assert!(few.into_iter().eq(plain.iter().map(|value| value + 1)));
        }
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_number_beyond_the_last_is_refused() {
        let _ = Few::one(1)[1];
    }

    #[test]
    #[should_panic(expected = "at least one")]
    fn an_empty_list_is_refused() {
        let _ = Few::from(Vec::<u32>::new());
    }
}
