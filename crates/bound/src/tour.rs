//! Shortest path through tracks.

use crate::moves::Moves;
use headtime_units::Track;

/// Tracks that the arm has to visit, each added once.
///
/// Movements between neighbours join cylinders, head switches join tracks of one cylinder. So only
/// the set of cylinders and the number of tracks count.
#[derive(Debug)]
pub(crate) struct Tour {
    /// A bit for each cylinder.
    cylinders: Vec<u64>,
    /// Number of cylinders, and number of tracks.
    places: u64,
    tracks: u64,
    /// True if the tracks include the first track of the drive.
    first: bool,
}

impl Tour {
    /// Creates an empty tour of a drive with `cylinders` cylinders.
    pub fn new(cylinders: u32) -> Tour {
        Tour {
            cylinders: vec![0; cylinders.div_ceil(64) as usize],
            places: 0,
            tracks: 0,
            first: false,
        }
    }

    /// Adds a track that is not yet in the tour.
    pub fn add(&mut self, track: Track) {
        let cylinder = track.cylinder.0;
        let word = &mut self.cylinders[(cylinder / 64) as usize];
        let bit = 1 << (cylinder % 64);
        self.places += u64::from(*word & bit == 0);
        *word |= bit;
        self.tracks += 1;
        self.first |= track == Track::default();
    }

    /// Makes the arm begin at `track`, which is the first track of the drive.
    pub fn begin(&mut self, track: Track) {
        debug_assert_eq!(track, Track::default());
        if !self.first {
            self.add(track);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tracks == 0
    }

    /// Returns the number of movements within a cylinder.
    pub fn switches(&self) -> u64 {
        self.tracks - self.places
    }

    /// Returns the least times of the movements between cylinders.
    pub fn ways<'a>(&'a self, moves: &'a Moves) -> impl Iterator<Item = u64> + 'a {
        let mut before: Option<u32> = None;
        self.all_cylinders().filter_map(move |cylinder| {
            let way = before.map(|before| moves.least(cylinder - before));
            before = Some(cylinder);
            way
        })
    }

    /// Returns all cylinders in ascending order.
    fn all_cylinders(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.cylinders).flat_map(|(number, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(number * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::Mechanics;
    use headtime_disk::profile::by_name;
    use headtime_units::{Cylinder, Head};

    /// Compares with a path through the sorted tracks.
    #[test]
    fn a_tour_takes_what_going_from_track_to_track_in_order_takes() {
        let profile = by_name("wd5000aaks").unwrap();
        let moves = Moves::new(&profile, &Mechanics::new(&profile));
        let draw = |seed: u64, n: u64| {
            (seed * 1_000_003 + n)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9)
                >> 33
        };
        for seed in 0..200 {
            let span = [3, 70, 5_000, 186_240][seed as usize % 4];
            let mut tracks: Vec<Track> = (0..draw(seed, 0) % 60)
                .map(|n| Track {
                    cylinder: Cylinder((draw(seed, 2 * n + 1) % span) as u32),
                    head: Head((draw(seed, 2 * n + 2) % 4) as u16),
                })
                .collect();
            tracks.sort_unstable();
            tracks.dedup();
            let rests = seed % 3 == 0;
            let mut tour = Tour::new(186_240);
            for track in tracks.iter().rev() {
                tour.add(*track);
            }
            assert_eq!(tour.is_empty(), tracks.is_empty());
            if rests {
                tour.begin(Track::default());
                if tracks.first() != Some(&Track::default()) {
                    tracks.insert(0, Track::default());
                }
            }
            let mut expected: Vec<u64> = tracks
                .windows(2)
                .map(|pair| moves.least(pair[0].cylinder.distance(pair[1].cylinder)))
                .collect();
            let mut found: Vec<u64> = tour.ways(&moves).collect();
            found.extend((0..tour.switches()).map(|_| moves.least(0)));
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{seed}");
        }
    }
}
