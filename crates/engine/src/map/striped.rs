//! Chunks on each member in turn, with or without parity; and mirrors.

use super::{Added, Map, MapError, Member, ReadFrom};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Sectors};
use std::ops::Range;

/// Chunks of sectors on each member in turn, as RAID 0 of Linux's md lays them.
///
/// Sizes of members are rounded down to chunks. Members of unequal sizes form zones: zone `i` takes the rows of chunks that
/// exist on at least `n_i` members, and stripes over these members. Within a zone, row `r` has chunk `r * n_i + j` on the
/// zone's member `j`, in the order of the members. From the second zone on this is the layout that md calls "alternate".
///
/// With parity the layout is md's RAID 5, left-symmetric. Row `r` of `n` members has its parity on member
/// `n - 1 - r % n`, and its data chunks on the members behind, in turn. All members have the size of the smallest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Striped {
    chunk: u64,
    members: u16,
    /// In ascending order: zone `i` ends where zone `i + 1` begins.
    zones: Vec<Zone>,
    capacity: u64,
    /// Chunks of parity in a row: 0 or 1.
    parity: u64,
    /// Choice of the member for a read, if each member has all sectors. There is one chunk, on the first member.
    mirror: Option<ReadFrom>,
}

/// Rows of chunks that the same members have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    /// First sector of the volume.
    start: u64,
    /// First sector on each of the members.
    start_on_member: u64,
    members: Vec<Member>,
}

impl Striped {
    /// Stripes chunks of `chunk` sectors over members with `sizes` sectors.
    ///
    /// # Errors
    ///
    /// If the number of members is not 2 to [`MEMBERS_MAX`](super::MEMBERS_MAX), or the sum of the sizes overflows.
    /// Also if the chunk is empty, or a member has no whole chunk.
    pub fn new(chunk: Sectors, sizes: &[Sectors]) -> Result<Striped, MapError> {
        let members = MapError::check_members(sizes)?;
        if chunk == Sectors::ZERO {
            return Err(MapError::Chunk);
        }
        if let Some(small) = sizes.iter().position(|size| *size < chunk) {
            return Err(MapError::Small(small, sizes[small], chunk));
        }
        let whole = |size: &Sectors| size.get() - size.get() % chunk.get();
        let (mut zones, mut capacity, mut on_member) = (Vec::new(), 0_u64, 0);
        while let Some(end) = sizes.iter().map(whole).filter(|end| *end > on_member).min() {
            let has = |(_, size): &(u16, &Sectors)| whole(size) >= end;
            let members: Vec<Member> = (0..)
                .zip(sizes)
                .filter(has)
                .map(|(member, _)| Member(member))
                .collect();
            let sectors = (end - on_member).checked_mul(members.len() as u64);
            let zone = Zone {
                start: capacity,
                start_on_member: on_member,
                members,
            };
            let after = sectors.and_then(|sectors| capacity.checked_add(sectors));
            capacity = after.ok_or(MapError::Large)?;
            zones.push(zone);
            on_member = end;
        }
        Ok(Striped {
            chunk: chunk.get(),
            members,
            zones,
            capacity,
            parity: 0,
            mirror: None,
        })
    }

    /// Mirrors all sectors on each member. The volume has the size of the smallest.
    ///
    /// # Errors
    ///
    /// If the number of members is not allowed, or a member has no sectors.
    pub fn mirrored(reads: ReadFrom, sizes: &[Sectors]) -> Result<Striped, MapError> {
        let smallest = sizes.iter().min().copied().unwrap_or_default();
        let striped = Striped::new(smallest, &vec![smallest; sizes.len()]);
        let mut striped = striped.map_err(|error| match error {
            MapError::Chunk => {
                let empty = sizes.iter().position(|size| *size == Sectors::ZERO);
                MapError::Empty(empty.unwrap_or_default())
            }
            error => error,
        })?;
        striped.zones[0].members.truncate(1);
        Ok(Striped {
            capacity: smallest.get(),
            mirror: Some(reads),
            ..striped
        })
    }

    /// Like [`Striped::new`], with a chunk of parity in each row.
    ///
    /// # Errors
    ///
    /// As [`Striped::new`], and if there are two members.
    pub fn with_parity(chunk: Sectors, sizes: &[Sectors]) -> Result<Striped, MapError> {
        // Errors name the member.
        Striped::new(chunk, sizes)?;
        let smallest = sizes.iter().min().copied().unwrap_or_default();
        let striped = Striped::new(chunk, &vec![smallest; sizes.len()])?;
        let members = u64::from(striped.members);
        if members < 3 {
            return Err(MapError::Parity(sizes.len()));
        }
        Ok(Striped {
            capacity: striped.capacity / members * (members - 1),
            parity: 1,
            ..striped
        })
    }

    /// Lays zones from the second on as md did up to Linux 3.13, in the layout that md calls "original". Chunk `k` of the
    /// volume is on member `k % n_i` of its zone.
    #[must_use]
    pub fn original(mut self) -> Striped {
        for zone in &mut self.zones {
            let first = zone.start / self.chunk % zone.members.len() as u64;
            zone.members.rotate_left(first as usize);
        }
        self
    }

    /// Returns the address in the volume of a member's first sector in `extent`, and the sectors of `extent` in the same
    /// chunk. The address is `None` for parity, and for sectors that hold no chunk.
    pub fn address(&self, member: Member, extent: Extent) -> (Option<Lba>, Sectors) {
        let start = extent.start.get();
        let zone = self
            .zones
            .partition_point(|zone| zone.start_on_member <= start)
            - 1;
        let zone = &self.zones[zone];
        let offset = start - zone.start_on_member;
        let (row, within) = (offset / self.chunk, offset % self.chunk);
        let members = zone.members.len() as u64;
        let columns = members - self.parity;
        let place = zone.members.iter().position(|other| *other == member);
        let column = place.map(|place| match self.parity {
            0 => place as u64,
            _ => (row % members + place as u64) % members,
        });
        let column = column.filter(|column| *column < columns);
        let address =
            column.map(|column| zone.start + (row * columns + column) * self.chunk + within);
        let address = address.filter(|address| *address < self.capacity);
        let len = extent.len.get().min(self.chunk - within);
        (address.map(Lba::new), Sectors::new(len))
    }

    /// Returns the number of data chunks in a row of all members.
    pub fn data_disks(&self) -> u16 {
        self.zones[0].members.len() as u16 - self.parity as u16
    }

    /// Returns the zone's member with data chunk `column` of a row. With parity, the column behind the data is parity.
    fn member(&self, zone: &Zone, row: u64, column: u64) -> Member {
        let members = zone.members.len() as u64;
        let place = match self.parity {
            0 => column,
            // Behind the member with the parity.
            _ => (members - row % members + column) % members,
        };
        zone.members[place as usize]
    }

    /// Adds the accesses for parity where all chunks of `columns`, and no others of the row, are written. `part` is within
    /// the chunks.
    ///
    /// Source: `handle_stripe_dirtying5` in md/raid5.c of Linux 2.6.31. The new parity comes from the old sectors and the old
    /// parity if these are fewer reads, and else from the other data of the row.
    fn add_parity(
        &self,
        row: u64,
        columns: &Range<u64>,
        part: &Range<u64>,
        added: &mut Vec<Added>,
    ) {
        let (zone, data) = (&self.zones[0], u64::from(self.members) - 1);
        let written = columns.end - columns.start;
        let extent = Extent::at(row * self.chunk + part.start, part.end - part.start);
        let mut add = |op, column| {
            let member = self.member(zone, row, column);
            // Adjacent sectors of a member make one access.
            let mut same = added.iter_mut().rev();
            let same = same.find(|access| (access.op, access.member) == (op, member));
            match same {
                Some(access) if access.extent.end() == extent.start => {
                    access.extent.len += extent.len;
                }
                _ => added.push(Added { op, member, extent }),
            }
        };
        match written + 1 < data - written {
            true => columns
                .clone()
                .chain([data])
                .for_each(|column| add(Op::Read, column)),
            false => {
                let others = (0..data).filter(|column| !columns.contains(column));
                others.for_each(|column| add(Op::Read, column));
            }
        }
        add(Op::Write, data);
    }
}

impl Map for Striped {
    fn members(&self) -> u16 {
        self.members
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    fn first(&self, extent: Extent) -> (Member, Extent) {
        let start = extent.start.get();
        let zone = self.zones.partition_point(|zone| zone.start <= start) - 1;
        let zone = &self.zones[zone];
        let (chunk, within) = (
            (start - zone.start) / self.chunk,
            (start - zone.start) % self.chunk,
        );
        let columns = zone.members.len() as u64 - self.parity;
        let (row, column) = (chunk / columns, chunk % columns);
        let there = zone.start_on_member + row * self.chunk + within;
        let len = extent.len.get().min(self.chunk - within);
        (self.member(zone, row, column), Extent::at(there, len))
    }

    fn mirror(&self) -> Option<ReadFrom> {
        self.mirror
    }

    fn add_to_write(&self, extent: Extent, added: &mut Vec<Added>) {
        if self.parity == 0 || extent.is_empty() {
            return;
        }
        let columns = u64::from(self.members) - 1;
        let per_row = columns * self.chunk;
        let (start, end) = (extent.start.get(), extent.end().get());
        for row in start / per_row..=(end - 1) / per_row {
            // Sectors of the row's data.
            let from = start.max(row * per_row) - row * per_row;
            let until = end.min((row + 1) * per_row) - row * per_row;
            let (first, last) = (from / self.chunk, (until - 1) / self.chunk);
            // Sectors of the first and of the last chunk.
            let (begin, stop) = (from % self.chunk, (until - 1) % self.chunk + 1);
            if first == last {
                self.add_parity(row, &(first..first + 1), &(begin..stop), added);
                continue;
            }
            let (low, high) = (begin.min(stop), begin.max(stop));
            for part in [0..low, low..high, high..self.chunk] {
                let behind = u64::from(part.start < begin);
                let before = u64::from(part.start < stop);
                let written = first + behind..last + before;
                if !part.is_empty() && !written.is_empty() {
                    self.add_parity(row, &written, &part, added);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_one_to_one, sectors};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Checks that [`Striped::address`] is the inverse of [`Map::first`], and has no address for other sectors.
    fn has_addresses(striped: &Striped, sizes: &[u64]) {
        let mut addresses = 0;
        for (member, size) in (0..).map(Member).zip(sizes) {
            for sector in 0..*size {
                let extent = Extent::at(sector, size - sector);
                let (address, len) = striped.address(member, extent);
                assert!(len > Sectors::ZERO && len <= extent.len);
                let Some(address) = address else {
                    continue;
                };
                addresses += 1;
                let run = Extent {
                    start: address,
                    len,
                };
                assert_eq!(striped.first(run), (member, Extent { len, ..extent }));
            }
        }
        assert_eq!(addresses, striped.capacity().get());
    }

    proptest! {
        #[test]
        fn sectors_and_places_are_one_to_one(
            sizes in prop::collection::vec(1_u64..40, 2..6),
            chunk in 1_u64..9,
        ) {
            let smallest = *sizes.iter().min().expect("two and more");
            let chunk = chunk.min(smallest);
            let striped = Striped::new(Sectors::new(chunk), &sectors(&sizes)).expect("allowed");
            let whole: u64 = sizes.iter().map(|size| size / chunk * chunk).sum();
            prop_assert_eq!(striped.capacity().get(), whole);
            is_one_to_one(&striped, &sizes);
            has_addresses(&striped, &sizes);
            let original = striped.original();
            is_one_to_one(&original, &sizes);
            has_addresses(&original, &sizes);
        }

        /// Each offset of a row is decided alone: by the number of data chunks that are written there.
        #[test]
        fn a_write_reads_what_parity_needs_and_writes_parity(
            members in 3_u64..8,
            chunk in 1_u64..6,
            rows in 1_u64..9,
            part in (0.0..1.0, 0.0..1.0),
        ) {
            let sizes = vec![chunk * rows; members as usize];
            let striped = Striped::with_parity(Sectors::new(chunk), &sectors(&sizes)).expect("allowed");
            let capacity = striped.capacity().get();
            prop_assert_eq!(capacity, chunk * rows * (members - 1));
            is_one_to_one(&striped, &sizes);
            has_addresses(&striped, &sizes);
            let start = (part.0 * capacity as f64) as u64;
            let len = 1 + (part.1 * (capacity - start) as f64) as u64;
            let extent = Extent::at(start, len.min(capacity - start));
            let mut wanted = BTreeSet::new();
            for offset in 0..chunk * rows {
                // The members with data at this offset, and if the data are written.
                let (row, within) = (offset / chunk, offset % chunk);
                let place = |column| (row * (members - 1) + column) * chunk + within;
                let data: Vec<(Member, bool)> = (0..members - 1)
                    .map(|column| {
                        let (member, there) = striped.first(Extent::at(place(column), 1));
                        assert_eq!(there.start.get(), offset);
                        (member, extent.contains(Lba::new(place(column))))
                    })
                    .collect();
                let parity = Member((members - 1 - row % members) as u16);
                assert!(data.iter().all(|(member, _)| *member != parity));
                let written = data.iter().filter(|(_, written)| *written).count();
                if written == 0 {
                    continue;
                }
                let old = written + 1 < data.len() - written;
                let reads = data.iter().filter(|(_, written)| *written == old);
                wanted.extend(reads.map(|(member, _)| (false, *member, offset)));
                if old {
                    wanted.insert((false, parity, offset));
                }
                wanted.insert((true, parity, offset));
            }
            let mut added = Vec::new();
            striped.add_to_write(extent, &mut added);
            let mut found = BTreeSet::new();
            for access in added {
                for sector in access.extent.start.get()..access.extent.end().get() {
                    prop_assert!(found.insert((access.op == Op::Write, access.member, sector)));
                }
            }
            prop_assert_eq!(found, wanted);
        }

        /// The place of a run matches the places of its single sectors.
        #[test]
        fn a_run_is_contiguous_on_its_member(start in 0_u64..60, len in 1_u64..30) {
            let sizes = [9, 20, 33];
            let striped = Striped::new(Sectors::new(4), &sectors(&sizes)).expect("allowed");
            let start = start.min(striped.capacity().get() - 1);
            let len = len.min(striped.capacity().get() - start);
            let (member, there) = striped.first(Extent::at(start, len));
            prop_assert!(!there.is_empty() && there.len.get() <= len);
            for sector in 0..there.len.get() {
                let alone = striped.first(Extent::at(start + sector, 1));
                prop_assert_eq!(alone, (member, Extent::at(there.start.get() + sector, 1)));
            }
        }
    }

    #[test]
    fn chunks_lie_as_md_lays_them() {
        // Two zones: four rows of three members, then three rows of the second and the third.
        let striped = Striped::new(Sectors::new(8), &sectors(&[32, 60, 56])).expect("allowed");
        assert_eq!(striped.capacity(), Sectors::new(3 * 32 + 2 * 24));
        let at = |sector| striped.first(Extent::at(sector, 100));
        assert_eq!(at(0), (Member(0), Extent::at(0, 8)));
        assert_eq!(at(11), (Member(1), Extent::at(3, 5)));
        assert_eq!(at(24), (Member(0), Extent::at(8, 8)));
        assert_eq!(at(96), (Member(1), Extent::at(32, 8)));
        assert_eq!(at(104), (Member(2), Extent::at(32, 8)));
        assert_eq!(at(112), (Member(1), Extent::at(40, 8)));
    }

    #[test]
    fn original_zones_go_on_in_turn() {
        let striped = Striped::new(Sectors::new(8), &sectors(&[32, 60, 48])).expect("allowed");
        let at = |sector| striped.clone().original().first(Extent::at(sector, 8));
        // Chunk 12 of the volume, which is even, and the first of two disks.
        assert_eq!(at(96), (Member(1), Extent::at(32, 8)));
        let striped = Striped::new(Sectors::new(8), &sectors(&[8, 60, 48])).expect("allowed");
        let at = |sector| striped.clone().original().first(Extent::at(sector, 8));
        // Chunk 3, which is odd.
        assert_eq!(at(24), (Member(2), Extent::at(8, 8)));
        assert_eq!(at(32), (Member(1), Extent::at(8, 8)));
    }

    #[test]
    fn a_mirror_has_the_sectors_of_its_smallest_member() {
        let mirrored = |sizes: &[u64]| Striped::mirrored(ReadFrom::Nearest, &sectors(sizes));
        let mirror = mirrored(&[30, 20, 50]).expect("allowed");
        assert_eq!((mirror.capacity(), mirror.members()), (Sectors::new(20), 3));
        assert_eq!(
            mirror.first(Extent::at(3, 17)),
            (Member(0), Extent::at(3, 17))
        );
        assert_eq!(mirrored(&[30]), Err(MapError::Members(1)));
        assert_eq!(mirrored(&[30, 0]), Err(MapError::Empty(1)));
    }

    #[test]
    fn what_cannot_be_a_volume_is_refused() {
        let striped = |chunk, sizes: &[u64]| Striped::new(Sectors::new(chunk), &sectors(sizes));
        assert_eq!(striped(8, &[64]), Err(MapError::Members(1)));
        assert_eq!(striped(8, &[64; 65]), Err(MapError::Members(65)));
        assert_eq!(striped(0, &[64, 64]), Err(MapError::Chunk));
        let (small, chunk) = (Sectors::new(7), Sectors::new(8));
        assert_eq!(striped(8, &[64, 7]), Err(MapError::Small(1, small, chunk)));
        assert_eq!(striped(8, &[u64::MAX - 7; 2]), Err(MapError::Large));
    }
}
