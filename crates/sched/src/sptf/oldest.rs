//! Requests by address. Of several requests for the same sectors, only the oldest.

use crate::sorted_map::SortedMap;
use crate::{Age, LbaIndex, Op, Requests, Tag};
use headtime_units::{Lba, Sectors};

/// Target of a request. Requests with equal targets have the same place and take the same time.
type Target = (Lba, Sectors, Op);

/// An index by address that holds the oldest request of each target.
#[derive(Clone, Debug, Default)]
pub(super) struct Oldest {
    index: LbaIndex,
    /// The other requests, by target and by age.
    behind: SortedMap<(Target, Age), Tag>,
}

impl Oldest {
    /// The oldest of each target.
    pub fn index(&self) -> &LbaIndex {
        &self.index
    }

    /// Adds a queued request.
    pub fn insert(&mut self, requests: &Requests, tag: Tag) {
        let (lba, ..) = target(requests, tag);
        if self.index.insert(lba, tag)
            && let Some(other) = self.same(requests, tag)
        {
            let younger = match requests.age(other) < requests.age(tag) {
                true => tag,
                false => other,
            };
            self.index.remove(lba, younger);
            let key = (target(requests, younger), requests.age(younger));
            self.behind.insert(key, younger);
        }
    }

    /// Removes a request that is still queued, with the extent and the age with which it was added.
    pub fn remove(&mut self, requests: &Requests, tag: Tag) {
        let target = target(requests, tag);
        if !self.index.remove(target.0, tag) {
            let there = self.behind.remove(&(target, requests.age(tag)));
            assert_eq!(there, Some(tag), "the index lost request {}", tag.0);
            return;
        }
        if self.behind.is_empty() {
            return;
        }
        let first = (target, Age::default());
        if let Some((key, next)) = self.behind.first_at_or_after(&first)
            && key.0 == target
        {
            self.behind.remove(&key);
            self.index.insert(target.0, next);
        }
    }

    pub fn clear(&mut self) {
        self.index.clear();
        self.behind.clear();
    }

    /// Returns another request in the index with the same target.
    fn same(&self, requests: &Requests, tag: Tag) -> Option<Tag> {
        let wanted = target(requests, tag);
        let at = self.index.upward(wanted.0);
        at.take_while(|entry| entry.lba == wanted.0)
            .inspect(|_| {
                #[cfg(test)]
                headtime_testkit::steps::one();
            })
            .map(|entry| entry.tag)
            .find(|other| *other != tag && target(requests, *other) == wanted)
    }
}

fn target(requests: &Requests, tag: Tag) -> Target {
    let request = requests.get(tag);
    (request.extent.start, request.extent.len, request.op)
}
