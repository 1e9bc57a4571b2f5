//! Summary of the wanted blocks of each track, in three bytes. A disk of today has ten million tracks.

use super::arcs::Arcs;

/// Summary of the wanted blocks that begin on a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OnTrack {
    /// Number of the blocks; `u16::MAX` stands for this number or more.
    pub count: u16,
    /// Arcs in which the blocks begin.
    pub arcs: Arcs,
}

impl OnTrack {
    /// Returns an upper bound of the number of blocks.
    pub fn most(self) -> u64 {
        match self.count {
            u16::MAX => u64::MAX,
            count => u64::from(count),
        }
    }
}

/// Summaries of all tracks.
#[derive(Clone, Debug)]
pub(super) enum OnTracks {
    /// No track has more than 255 wanted blocks.
    Few(Vec<[u8; 3]>),
    /// A track has, or had, more than 255 wanted blocks, since blocks are small.
    Many(Vec<OnTrack>),
}

impl OnTracks {
    /// Returns the summaries of `tracks` tracks without wanted blocks.
    pub fn none(tracks: usize) -> OnTracks {
        OnTracks::Few(vec![[0; 3]; tracks])
    }

    pub fn len(&self) -> usize {
        match self {
            OnTracks::Few(tracks) => tracks.len(),
            OnTracks::Many(tracks) => tracks.len(),
        }
    }

    /// Returns the summary of a track; `None` if there is no such track.
    pub fn get(&self, index: usize) -> Option<OnTrack> {
        match self {
            OnTracks::Few(tracks) => tracks.get(index).copied().map(unpacked),
            OnTracks::Many(tracks) => tracks.get(index).copied(),
        }
    }

    /// # Panics
    ///
    /// If there is no such track.
    pub fn set(&mut self, index: usize, on: OnTrack) {
        if let (OnTracks::Few(tracks), Ok(count)) = (&mut *self, u8::try_from(on.count)) {
            let [low, high] = on.arcs.to_bits().to_le_bytes();
            tracks[index] = [count, low, high];
            return;
        }
        if let OnTracks::Few(tracks) = self {
            *self = OnTracks::Many(tracks.iter().copied().map(unpacked).collect());
        }
        if let OnTracks::Many(tracks) = self {
            tracks[index] = on;
        }
    }
}

fn unpacked([count, low, high]: [u8; 3]) -> OnTrack {
    OnTrack {
        count: u16::from(count),
        arcs: Arcs::from_bits(u16::from_le_bytes([low, high])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_set_last_is_what_a_track_has(
            sets in prop::collection::vec((0_usize..8, prop_oneof![0_u16..300, Just(u16::MAX)], any::<u16>()), 0..40),
        ) {
            let mut all = OnTracks::none(8);
            let mut expected = [OnTrack::default(); 8];
            for (index, count, arcs) in sets {
                let on = OnTrack { count, arcs: Arcs::from_bits(arcs) };
                all.set(index, on);
                expected[index] = on;
                for (index, on) in expected.iter().enumerate() {
                    prop_assert_eq!(all.get(index), Some(*on));
                }
            }
            prop_assert_eq!(all.get(8), None);
            prop_assert_eq!(all.len(), 8);
        }
    }

    #[test]
    fn a_track_takes_three_bytes_unless_one_has_more_than_255_blocks() {
        let mut all = OnTracks::none(2);
        let of = |count| OnTrack {
            count,
            arcs: Arcs::ALL,
        };
        all.set(0, of(255));
        assert!(matches!(all, OnTracks::Few(_)));
        all.set(1, of(256));
        assert!(matches!(all, OnTracks::Many(_)));
        assert_eq!(all.get(0), Some(of(255)));
        assert_eq!([of(255).most(), of(u16::MAX).most()], [255, u64::MAX]);
    }
}
