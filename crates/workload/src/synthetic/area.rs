//! Part of a drive in which a process sends its requests.

use crate::Random;

/// Range of a process's addresses, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub start: u64,
    pub end: u64,
    pub align: u64,
}

impl Area {
    /// Returns true if a request of `len` sectors may begin at `start`.
    fn has_room(self, start: u64, len: u64) -> bool {
        self.start <= start && start <= self.end && len <= self.end - start
    }

    fn first_aligned(self) -> u64 {
        self.start.next_multiple_of(self.align)
    }

    /// Number of aligned places, at least one.
    pub(super) fn slots(self) -> u64 {
        (self.end.saturating_sub(self.first_aligned()) / self.align).max(1)
    }

    /// Returns the start of an aligned place by its number, or of the last place with room for the
    /// request.
    pub(super) fn slot(self, slot: u64, len: u64) -> u64 {
        let first = self.first_aligned();
        match self.has_room(first, len) {
            true => first + slot.min((self.end - len - first) / self.align) * self.align,
            false => self.start,
        }
    }

    /// Draws an aligned start. If no aligned start has room, returns the beginning of the range.
    pub(super) fn anywhere(self, len: u64, stream: &mut Random) -> u64 {
        let first = self.first_aligned();
        if self.has_room(first, len) {
            first + stream.below((self.end - len - first) / self.align + 1) * self.align
        } else {
            self.start
        }
    }

    /// Returns `from`, or the beginning of the range if the request does not fit at `from`.
    pub(super) fn onward(self, from: u64, len: u64) -> u64 {
        if self.has_room(from, len) {
            from
        } else {
            self.start
        }
    }

    /// Returns an aligned start about `distance` away from `from`.
    pub(super) fn near(self, from: u64, distance: u64, up: bool, len: u64) -> u64 {
        let toward = |up| {
            let start = if up {
                from.checked_add(distance)
            } else {
                from.checked_sub(distance)
            };
            start
                .map(|start| start - start % self.align)
                .filter(|start| self.has_room(*start, len))
        };
        toward(up).or_else(|| toward(!up)).unwrap_or_else(|| {
            let first = self.first_aligned();
            if up && self.has_room(first, len) {
                let last = self.end - len;
                last - last % self.align
            } else if self.has_room(first, len) {
                first
            } else {
                self.start
            }
        })
    }
}
