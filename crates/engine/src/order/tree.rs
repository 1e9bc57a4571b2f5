//! Any number of live requests that overlap, and the waits among them.
//!
//! An extent is cut into pieces. The size of a piece is a power of two sectors, and the piece is aligned to its size.
//! An extent has at most two pieces of each size. Two such ranges are nested or disjoint, so they form a binary tree. A
//! node exists only if it has a piece, or if two branches part there. A piece overlaps another request exactly if that
//! request has a piece at the same node, at a lower node, or at a higher node.
//!
//! Requests come in order, and each waits for earlier requests. A request does not list the requests that it waits for.
//! The request waits in two kinds of places:
//!
//! - at the node of each of its pieces, until no earlier request is there or below;
//! - at each node above, until no earlier request is there.
//!
//! The waiting requests of a node are in a queue, in order of arrival. When the first request of the node is gone, the
//! node has a new first request. Requests at the front of the queue that came no later than the new first request then
//! pass.
//!
//! A request of `s` sectors has less than `2 log2 s` pieces. Above the pieces are at most 64 nodes in each of two
//! branches. This bounds the cost of entering and leaving, apart from the waiting requests that pass. Each waiting
//! request passes once for each queue that contained it.

use headtime_sched::Tag;
use headtime_units::Extent;

const NIL: u32 = u32::MAX;

/// Sequence number later than any request.
const NEVER: u64 = u64::MAX;

/// Index of reads, and of requests that change sectors.
const READS: usize = 0;
const CHANGES: usize = 1;

/// Pieces of a node, in the order in which their requests came.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    last: u32,
}

/// Requests that wait at a node, in the order in which they came.
#[derive(Clone, Copy, Debug)]
struct WaitList {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first sector.
    start: u64,
    /// Binary logarithm of the node's number of sectors, 0 to 64.
    level: u32,
    parent: u32,
    children: [u32; 2],
    /// The pieces at this node, of reads and of changes.
    own: [Run; 2],
    /// Sequence number of the first request here and below, of reads and of changes.
    first: [u64; 2],
    /// Requests that wait for requests at this node, and requests that wait for this node and all below; each for reads
    /// and for changes.
    here: [WaitList; 2],
    below: [WaitList; 2],
}

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
struct Piece {
    sequence: u64,
    changes: bool,
    node: u32,
    /// Neighbours in the run.
    prev: u32,
    next: u32,
    /// The next piece of the same request, upward.
    following: u32,
}

/// A waiting request.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    sequence: u64,
    tag: Tag,
    next: u32,
}

/// Result of [`Tree::enter`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    /// The first piece.
    pub piece: u32,
    /// Number of queues that the request has to pass until it may start.
    pub waits: u32,
}

/// Requests, and the waits among them; see the module's page.
#[derive(Debug)]
pub(super) struct Tree {
    root: u32,
    nodes: Slab<Node>,
    pieces: Slab<Piece>,
    waiters: Slab<Waiter>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            root: NIL,
            nodes: Slab::default(),
            pieces: Slab::default(),
            waiters: Slab::default(),
        }
    }
}

impl Tree {
    /// Adds a request. If `waits` is true, the request came after all others, and waits for the requests that it
    /// conflicts with. If false, the request has no conflicts, or the conflicting requests wait for it already.
    pub fn enter(
        &mut self,
        tag: Tag,
        extent: Extent,
        sequence: u64,
        changes: bool,
        waits: bool,
    ) -> Entered {
        let kind = usize::from(changes);
        let mut entered = Entered {
            piece: NIL,
            waits: 0,
        };
        let (mut start, end) = (extent.start.get(), extent.end().get());
        let (mut node, mut last) = (NIL, NIL);
        while start < end {
            // Go up to the ancestor of the next piece, and down from there.
            while node != NIL && !self.nodes[node].covers(start) {
                node = self.refresh(node);
            }
            let level = level_of(start, end);
            loop {
                #[cfg(test)]
                headtime_testkit::steps::one();
                let parent = node;
                let child = self.child(parent, start);
                if child == NIL {
                    node = self.add(start, level, parent, NIL);
                    break;
                }
                let Node {
                    start: there,
                    level: height,
                    ..
                } = self.nodes[child];
                if height >= level && range_holds(there, height, start) {
                    node = child;
                    if height == level {
                        break;
                    }
                    if waits && earliest(kind, self.first_here(node)) != NEVER {
                        let waiter = self.waiters.add(Waiter::new(tag, sequence));
                        self.push(node, kind, waiter, false);
                        entered.waits += 1;
                    }
                    continue;
                }
                if height < level && range_holds(start, level, there) {
                    node = self.add(start, level, parent, child);
                    break;
                }
                // The two ranges part at the highest bit that differs.
                let parting = u64::BITS - (start ^ there).leading_zeros();
                let fork = self.add(floor(start, parting), parting, parent, child);
                node = self.add(start, level, fork, NIL);
                break;
            }
            if waits && earliest(kind, self.nodes[node].first) != NEVER {
                let waiter = self.waiters.add(Waiter::new(tag, sequence));
                self.push(node, kind, waiter, true);
                entered.waits += 1;
            }
            let piece = self.append(node, sequence, changes);
            match last {
                NIL => entered.piece = piece,
                last => self.pieces[last].following = piece,
            }
            last = piece;
            // This cannot overflow, since the end of the extent fits in 64 bits.
            start += 1 << level;
        }
        while node != NIL {
            node = self.refresh(node);
        }
        entered
    }

    /// Removes the request that has this first piece. Calls `pass` with each request that passes a queue.
    pub fn leave(&mut self, first: u32, mut pass: impl FnMut(Tag)) {
        let mut piece = first;
        while piece != NIL {
            let Piece {
                changes,
                node,
                prev,
                next,
                following,
                ..
            } = self.pieces.remove(piece);
            let run = &mut self.nodes[node].own[usize::from(changes)];
            match prev {
                NIL => run.first = next,
                prev => self.pieces[prev].next = next,
            }
            match next {
                NIL => run.last = prev,
                next => self.pieces[next].prev = prev,
            }
            self.let_pass(node, false, self.first_here(node), &mut pass);
            let until = match following {
                NIL => None,
                following => Some(self.nodes[self.pieces[following].node].start),
            };
            let mut at = node;
            while at != NIL && !until.is_some_and(|start| self.nodes[at].covers(start)) {
                let parent = self.refresh(at);
                self.let_pass(at, true, self.nodes[at].first, &mut pass);
                self.prune(at);
                at = parent;
            }
            piece = following;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Returns true if any request here conflicts with a request of this extent.
    pub fn conflicts(&self, extent: Extent, changes: bool) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        self.conflicts_below(self.root, start, end, usize::from(changes))
    }

    fn conflicts_below(&self, node: u32, start: u64, end: u64, kind: usize) -> bool {
        if node == NIL {
            return false;
        }
        #[cfg(test)]
        headtime_testkit::steps::one();
        let at = &self.nodes[node];
        if earliest(kind, at.first) == NEVER || at.last() < start || at.start >= end {
            return false;
        }
        // A piece at a node covers the whole node. Pieces below cover a part.
        let inside = start <= at.start && at.last() < end;
        inside
            || earliest(kind, self.first_here(node)) != NEVER
            || at
                .children
                .iter()
                .any(|child| self.conflicts_below(*child, start, end, kind))
    }

    /// Returns the child of a node on the side of this sector. The parent of the root has the root as its only child.
    fn child(&self, parent: u32, start: u64) -> u32 {
        match parent {
            NIL => self.root,
            parent => {
                let parent = &self.nodes[parent];
                parent.children[parent.side(start)]
            }
        }
    }

    /// Adds a node under `parent` in place of `child`, which becomes the new node's child.
    fn add(&mut self, start: u64, level: u32, parent: u32, child: u32) -> u32 {
        const NOBODY: WaitList = WaitList {
            first: NIL,
            last: NIL,
        };
        const NOTHING: Run = Run {
            first: NIL,
            last: NIL,
        };
        let node = self.nodes.add(Node {
            start,
            level,
            parent,
            children: [NIL; 2],
            own: [NOTHING; 2],
            first: [NEVER; 2],
            here: [NOBODY; 2],
            below: [NOBODY; 2],
        });
        if child != NIL {
            let below = &mut self.nodes[child];
            below.parent = node;
            let (under, first) = (below.start, below.first);
            let added = &mut self.nodes[node];
            added.children[added.side(under)] = child;
            added.first = first;
        }
        self.hang(parent, start, node);
        node
    }

    /// Makes a node the child of another, or the root.
    fn hang(&mut self, parent: u32, start: u64, node: u32) {
        match parent {
            NIL => self.root = node,
            parent => {
                let parent = &mut self.nodes[parent];
                parent.children[parent.side(start)] = node;
            }
        }
    }

    /// Removes a node that has no piece of a request and fewer than two children. The only child, if any, takes its place in the tree.
    fn prune(&mut self, node: u32) {
        let Node {
            start,
            parent,
            children,
            own,
            ..
        } = self.nodes[node];
        if own.iter().any(|run| run.first != NIL) || !children.contains(&NIL) {
            return;
        }
        let [one, other] = children;
        let child = if one == NIL { other } else { one };
        if child != NIL {
            self.nodes[child].parent = parent;
        }
        self.hang(parent, start, child);
        let Node { here, below, .. } = self.nodes.remove(node);
        let waits = here.iter().chain(&below).any(|queue| queue.first != NIL);
        assert!(!waits, "somebody waits for nothing");
    }

    /// Updates the first requests here and below. Returns the parent.
    fn refresh(&mut self, node: u32) -> u32 {
        #[cfg(test)]
        headtime_testkit::steps::one();
        let mut first = self.first_here(node);
        for child in self.nodes[node].children {
            if child != NIL {
                let below = self.nodes[child].first;
                for kind in [READS, CHANGES] {
                    first[kind] = first[kind].min(below[kind]);
                }
            }
        }
        let node = &mut self.nodes[node];
        node.first = first;
        node.parent
    }

    /// Returns the sequence numbers of the first requests at a node, of reads and of changes.
    fn first_here(&self, node: u32) -> [u64; 2] {
        self.nodes[node].own.map(|run| match run.first {
            NIL => NEVER,
            first => self.pieces[first].sequence,
        })
    }

    /// Adds a piece at a node.
    fn append(&mut self, node: u32, sequence: u64, changes: bool) -> u32 {
        let prev = self.nodes[node].own[usize::from(changes)].last;
        let piece = self.pieces.add(Piece {
            sequence,
            changes,
            node,
            prev,
            next: NIL,
            following: NIL,
        });
        let run = &mut self.nodes[node].own[usize::from(changes)];
        run.last = piece;
        match prev {
            NIL => run.first = piece,
            prev => {
                let before = &mut self.pieces[prev];
                before.next = piece;
                assert!(before.sequence < sequence, "requests come in order");
            }
        }
        piece
    }

    /// Returns the queues of a node, for reads and for changes: of requests that wait for this node, or for this node
    /// and all below.
    fn queues(&mut self, node: u32, below: bool) -> &mut [WaitList; 2] {
        let node = &mut self.nodes[node];
        match below {
            true => &mut node.below,
            false => &mut node.here,
        }
    }

    /// Lets a request wait at a node.
    fn push(&mut self, node: u32, kind: usize, waiter: u32, below: bool) {
        let queue = &mut self.queues(node, below)[kind];
        match core::mem::replace(&mut queue.last, waiter) {
            NIL => queue.first = waiter,
            last => self.waiters[last].next = waiter,
        }
    }

    /// Lets the waiting requests of a node pass that came no later than the node's first requests, of reads and of
    /// changes.
    fn let_pass(&mut self, node: u32, below: bool, first: [u64; 2], pass: &mut impl FnMut(Tag)) {
        for kind in [READS, CHANGES] {
            let mut at = self.queues(node, below)[kind].first;
            if at == NIL {
                continue;
            }
            let first = earliest(kind, first);
            while at != NIL && self.waiters[at].sequence <= first {
                #[cfg(test)]
                headtime_testkit::steps::one();
                let Waiter { tag, next, .. } = self.waiters.remove(at);
                pass(tag);
                at = next;
            }
            let queue = &mut self.queues(node, below)[kind];
            queue.first = at;
            if at == NIL {
                queue.last = NIL;
            }
        }
    }
}

impl Node {
    /// Returns true if the sector is in the aligned range of the node.
    fn covers(&self, sector: u64) -> bool {
        range_holds(self.start, self.level, sector)
    }

    fn last(&self) -> u64 {
        self.start | 1_u64.checked_shl(self.level).unwrap_or(0).wrapping_sub(1)
    }

    /// Returns the half of the node that contains this sector: 0 or 1.
    fn side(&self, sector: u64) -> usize {
        (sector >> (self.level - 1)) as usize & 1
    }
}

impl Waiter {
    fn new(tag: Tag, sequence: u64) -> Waiter {
        Waiter {
            sequence,
            tag,
            next: NIL,
        }
    }
}

/// Returns the first sequence number that a request of this kind conflicts with.
fn earliest(kind: usize, [reads, changes]: [u64; 2]) -> u64 {
    match kind {
        READS => changes,
        _ => reads.min(changes),
    }
}

/// The level of the largest piece at the start of an extent.
pub(super) fn level_of(start: u64, end: u64) -> u32 {
    start.trailing_zeros().min((end - start).ilog2())
}

/// Returns true if the range of this level that begins at `start` contains the sector.
fn range_holds(start: u64, level: u32, sector: u64) -> bool {
    (start ^ sector).checked_shr(level).unwrap_or(0) == 0
}

/// Returns the start of the range of this level that contains this sector.
fn floor(sector: u64, level: u32) -> u64 {
    let inside = sector.checked_shr(level).unwrap_or(0);
    inside.checked_shl(level).unwrap_or(0)
}

/// Things by number. The number that was freed last is used first.
#[derive(Debug)]
struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            things: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy> Slab<T> {
    fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.things[at as usize] = thing;
                at
            }
            None => {
                self.things.push(thing);
                self.things.len() as u32 - 1
            }
        }
    }

    fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        self.things[at as usize]
    }

    #[cfg(test)]
    fn in_use(&self) -> usize {
        self.things.len() - self.free.len()
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.things[at as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.things[at as usize]
    }
}

#[cfg(test)]
impl Tree {
    /// Checks the invariants of all nodes.
    pub fn check(&self) {
        let mut counts = (0, 0, 0);
        if self.root != NIL {
            assert_eq!(self.nodes[self.root].parent, NIL);
            self.check_node(self.root, &mut counts);
        }
        let used = (
            self.nodes.in_use(),
            self.pieces.in_use(),
            self.waiters.in_use(),
        );
        assert_eq!(counts, used, "nodes, pieces and waiters");
    }

    fn check_node(&self, at: u32, counts: &mut (usize, usize, usize)) {
        let node = &self.nodes[at];
        counts.0 += 1;
        assert_eq!(node.start, floor(node.start, node.level), "aligned");
        let mut first = self.first_here(at);
        for (kind, run) in node.own.iter().enumerate() {
            let (mut prev, mut piece) = (NIL, run.first);
            while piece != NIL {
                counts.1 += 1;
                let this = &self.pieces[piece];
                assert_eq!((this.prev, this.node), (prev, at));
                assert_eq!(usize::from(this.changes), kind);
                (prev, piece) = (piece, this.next);
            }
            assert_eq!(run.last, prev);
        }
        let branches = node.children.iter().filter(|child| **child != NIL);
        let branches = branches.count();
        let own = node.own.iter().any(|run| run.first != NIL);
        assert!(own || branches == 2, "a node without a purpose");
        for (side, child) in node.children.into_iter().enumerate() {
            if child == NIL {
                continue;
            }
            let below = &self.nodes[child];
            assert_eq!(below.parent, at);
            assert!(below.level < node.level && node.covers(below.start));
            assert_eq!(node.side(below.start), side);
            self.check_node(child, counts);
            for kind in [READS, CHANGES] {
                first[kind] = first[kind].min(below.first[kind]);
            }
        }
        assert_eq!(node.first, first);
        let here = self.first_here(at);
        for kind in [READS, CHANGES] {
            for (queue, first) in [(&node.here[kind], here), (&node.below[kind], node.first)] {
                let (mut last, mut at, mut after) = (NIL, queue.first, earliest(kind, first));
                while at != NIL {
                    counts.2 += 1;
                    let waiter = &self.waiters[at];
                    assert!(
                        waiter.sequence > after,
                        "it waits for one before it, in order"
                    );
                    after = waiter.sequence;
                    (last, at) = (at, waiter.next);
                }
                assert_eq!(queue.last, last);
            }
        }
    }
}
