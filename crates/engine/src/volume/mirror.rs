//! Choice of the member that serves a read of a mirror.

use crate::map::{Member, ReadFrom};
use headtime_units::{Extent, Lba};

/// State of a mirror.
///
/// The rule is md's `read_balance` (drivers/md/raid1.c of Linux 2.6.31), except for the place of the head. md takes
/// the end of the member's last completed access. By the time of the new read the arm has served the outstanding
/// accesses, so their mean counts here. The design note on arrays has the effect.
///
/// - `sums[m]` = Σ of the first sectors of the `placed[m]` outstanding parts with sectors; `placed[m] <= outstanding[m]`.
pub(super) struct Mirror {
    from: ReadFrom,
    outstanding: Vec<u32>,
    placed: Vec<u32>,
    sums: Vec<u128>,
    /// Address behind the last access that was given to a member.
    heads: Vec<Lba>,
    /// Member of the last read.
    last: usize,
    /// Address behind the last read.
    end: Lba,
}

impl Mirror {
    pub fn new(from: ReadFrom, members: usize) -> Mirror {
        Mirror {
            from,
            outstanding: vec![0; members],
            placed: vec![0; members],
            sums: vec![0; members],
            heads: vec![Lba::ZERO; members],
            last: 0,
            end: Lba::ZERO,
        }
    }

    /// Chooses the member for a read. A read in sequence stays on the last member. Another read goes to an idle member if
    /// there is one, and among equals to the nearest.
    pub fn choose(&mut self, extent: Extent) -> Member {
        let (start, members) = (extent.start, self.heads.len());
        let chosen = match self.from {
            ReadFrom::Alternate => (self.last + 1) % members,
            ReadFrom::Nearest if start == self.end || start == self.heads[self.last] => self.last,
            ReadFrom::Nearest => {
                let others = (1..=members).map(|step| (self.last + members - step) % members);
                let nearest = others.min_by_key(|member| {
                    let is_busy = self.outstanding[*member] > 0;
                    // Of equal distances the last member's comes first.
                    (is_busy, self.distance(*member, start), *member != self.last)
                });
                nearest.unwrap_or(self.last)
            }
        };
        (self.last, self.end) = (chosen, extent.end());
        Member(chosen as u16)
    }

    fn distance(&self, member: usize, start: Lba) -> u64 {
        let place = match self.placed[member] {
            0 => self.heads[member].get(),
            count => (self.sums[member] / u128::from(count)) as u64,
        };
        place.abs_diff(start.get())
    }

    /// Notes that a member gets an access. `extent` is empty for a flush, which has no place.
    pub fn begins(&mut self, member: Member, extent: Extent) {
        let member = member.index();
        self.outstanding[member] += 1;
        if !extent.is_empty() {
            self.placed[member] += 1;
            self.sums[member] += u128::from(extent.start.get());
            self.heads[member] = extent.end();
        }
    }

    pub fn ends(&mut self, member: Member, extent: Extent) {
        let member = member.index();
        self.outstanding[member] -= 1;
        if !extent.is_empty() {
            self.placed[member] -= 1;
            self.sums[member] -= u128::from(extent.start.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_to_the_last_member_in_sequence_then_to_idle_members_then_to_the_nearest() {
        let mut mirror = Mirror::new(ReadFrom::Nearest, 3);
        let read = |mirror: &mut Mirror, start| {
            let extent = Extent::at(start, 8);
            let member = mirror.choose(extent);
            mirror.begins(member, extent);
            member.0
        };
        assert_eq!(read(&mut mirror, 0), 0, "all heads are at 0");
        assert_eq!(read(&mut mirror, 8), 0, "in sequence");
        assert_eq!(read(&mut mirror, 5_000), 2, "idle");
        assert_eq!(read(&mut mirror, 100), 1, "idle");
        assert_eq!(read(&mut mirror, 4_000), 2, "nearest");
        // The mean of disk 2 is 4500, of disk 1 it is 100, and of disk 0 it is 4.
        assert_eq!(read(&mut mirror, 2_310), 2);
        assert_eq!(read(&mut mirror, 40), 0);
        mirror.ends(Member(1), Extent::at(100, 8));
        mirror.begins(Member(1), Extent::default());
        assert_eq!(read(&mut mirror, 45), 0, "a flush keeps disk 1 busy at 108");
        mirror.ends(Member(1), Extent::default());
        assert_eq!(read(&mut mirror, 9_000), 1, "idle");
    }

    #[test]
    fn reads_alternate() {
        let mut mirror = Mirror::new(ReadFrom::Alternate, 2);
        let read = |start| mirror.choose(Extent::at(start, 8)).0;
        assert_eq!([0, 8, 16, 500].map(read), [1, 0, 1, 0]);
    }
}
