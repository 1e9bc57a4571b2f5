//! Live requests that overlap, and the waits among them.
//!
//! While the requests are few, a new one is compared with each, which is fastest. Above [`FEW_MAX`] requests, a
//! [`Tree`] contains them until none is left.

use super::tree::Tree;
use headtime_sched::Tag;
use headtime_units::Extent;

/// Largest number of requests that are compared with each other. Small in tests, so that trees are frequent.
const FEW_MAX: usize = if cfg!(test) { 8 } else { 64 };

/// The data of a request that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded {
    pub tag: Tag,
    pub extent: Extent,
    /// Number of earlier requests.
    pub sequence: u64,
    pub changes: bool,
}

impl Crowded {
    fn conflicts(&self, extent: Extent, changes: bool) -> bool {
        (self.changes || changes) && self.extent.overlaps(extent)
    }
}

/// State of a waiting request, by tag.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// Number of requests that it waits for; in the tree, number of queues that it has to pass.
    waits: u32,
    /// First piece of the request in the tree.
    piece: u32,
}

/// Live requests that overlap; see the module's page.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    members: Vec<Waits>,
    few: Vec<Crowded>,
    /// Empty while the requests are few.
    tree: Tree,
    held: usize,
}

impl Crowd {
    /// Adds a request. Returns true if the request may start. If `waits` is true, the request came after all others,
    /// and waits for the requests that it conflicts with. If false, the request has no conflicts, or the conflicting
    /// requests wait for it already.
    pub fn enter(&mut self, new: Crowded, waits: bool) -> bool {
        let at = new.tag.index();
        if at >= self.members.len() {
            self.members.resize(at + 1, Waits::default());
        }
        if self.few.len() == FEW_MAX {
            self.plant();
        }
        let member = if self.tree.is_empty() {
            let blocks = |other: &&Crowded| waits && other.conflicts(new.extent, new.changes);
            let waits = self.few.iter().filter(blocks).count() as u32;
            self.few.push(new);
            Waits { waits, piece: 0 }
        } else {
            self.enter_tree(new, waits)
        };
        self.members[at] = member;
        self.held += usize::from(member.waits > 0);
        member.waits == 0
    }

    /// Removes a request, and adds the requests that waited for no other to `freed`.
    ///
    /// # Panics
    ///
    /// If the request waits.
    pub fn leave(&mut self, tag: Tag, freed: &mut Vec<Tag>) {
        let Crowd {
            members,
            few,
            tree,
            held,
        } = self;
        let Waits { waits, piece } = members[tag.index()];
        assert!(waits == 0, "request {} waits for others", tag.0);
        let mut pass = |tag: Tag| {
            let member = &mut members[tag.index()];
            member.waits -= 1;
            if member.waits == 0 {
                *held -= 1;
                freed.push(tag);
            }
        };
        if !tree.is_empty() {
            tree.leave(piece, pass);
            return;
        }
        let at = few.iter().position(|other| other.tag == tag);
        let gone = few.swap_remove(at.expect("it is one of the few"));
        // The request has waited for all earlier conflicting requests, so the remaining conflicting requests are later.
        for other in few.iter() {
            if other.conflicts(gone.extent, gone.changes) {
                pass(other.tag);
            }
        }
    }

    /// Returns true if any request here conflicts with a request of this extent.
    pub fn conflicts(&self, extent: Extent, changes: bool) -> bool {
        let conflict = |other: &Crowded| other.conflicts(extent, changes);
        self.few.iter().any(conflict) || self.tree.conflicts(extent, changes)
    }

    /// Returns the number of requests that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Makes a tree of the few.
    fn plant(&mut self) {
        let mut few = core::mem::take(&mut self.few);
        few.sort_unstable_by_key(|request| request.sequence);
        for request in &few {
            // In this order each request comes after all others in the tree.
            let member = self.enter_tree(*request, true);
            let before = core::mem::replace(&mut self.members[request.tag.index()], member);
            assert_eq!(before.waits > 0, member.waits > 0, "the rule is the same");
        }
        few.clear();
        self.few = few;
    }

    fn enter_tree(&mut self, new: Crowded, waits: bool) -> Waits {
        let Crowded {
            tag,
            extent,
            sequence,
            changes,
        } = new;
        let entered = self.tree.enter(tag, extent, sequence, changes, waits);
        Waits {
            waits: entered.waits,
            piece: entered.piece,
        }
    }
}

#[cfg(test)]
impl Crowd {
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.tree.is_empty() && self.held == 0
    }

    pub fn check(&self) {
        assert!(self.few.is_empty() || self.tree.is_empty());
        self.tree.check();
    }
}
