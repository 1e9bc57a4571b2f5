//! Layout of an array that clients make of the disks, such as md's in a guest.

use headtime_engine::{Member, Striped};
use headtime_units::{Extent, Sectors};

/// Layout of an array over parts of its disks. The server has no part in the array: clients read and write the disks.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Layout over the disks' data.
    pub layout: Striped,
    /// For each disk, the sector at which its data begin. Sectors before, and sectors behind the layout's last row,
    /// belong to no array.
    pub offsets: Vec<Sectors>,
}

impl Geometry {
    /// Returns the first run of array sectors in an extent of a disk, and the number of runs. Each run is in a chunk of
    /// its own.
    pub(crate) fn steps(&self, member: Member, extent: Extent) -> (Option<Extent>, u64) {
        let begin = self.offsets[member.index()].get();
        let start = extent.start.get().max(begin);
        let len = extent.end().get().saturating_sub(start);
        let mut rest = Extent::at(start - begin, len);
        let (mut first, mut runs) = (None, 0);
        while !rest.is_empty() {
            let (address, len) = self.layout.address(member, rest);
            if let Some(start) = address {
                first = first.or(Some(Extent { start, len }));
                runs += 1;
            }
            rest.start = rest.start + len;
            rest.len = Sectors::new(rest.len.get() - len.get());
        }
        (first, runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_of_a_disk_has_a_run_for_each_chunk_of_data() {
        let sizes = [Sectors::new(40); 3];
        let layout = Striped::with_parity(Sectors::new(8), &sizes).expect("allowed");
        let offsets = vec![Sectors::new(100); 3];
        let geometry = Geometry { layout, offsets };
        let steps = |member, start, len| geometry.steps(Member(member), Extent::at(start, len));
        let none = (None, 0);
        let runs = |start, len, runs| (Some(Extent::at(start, len)), runs);
        assert_eq!(steps(0, 0, 100), none, "before the data");
        assert_eq!(steps(0, 0, 0), none, "a flush");
        assert_eq!(steps(0, 140, 20), none, "behind the last row");
        assert_eq!(steps(2, 100, 8), none, "parity of the first row");
        assert_eq!(steps(0, 96, 8), runs(0, 4, 1));
        assert_eq!(steps(1, 102, 2), runs(10, 2, 1));
        // Rows 0 to 2 of disk 2 are parity, chunk 2 and chunk 5.
        assert_eq!(steps(2, 100, 24), runs(16, 8, 2));
    }
}
