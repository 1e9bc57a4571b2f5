//! Number of segments of a buffer.
//!
//! Different places are read, and then read again in reverse order. The number of hits is the number of segments (DIXtrac; Worthington et
//! al., SIGMETRICS 1995, ask forward for the first place alone). Hits do not change the buffer, so the first miss ends the count.

use super::buffer_probe::BufferProbe;
use super::error::ExtractError;
use super::learned_keys::LearnedKeys;
use serde::{Deserialize, Serialize};

/// Results about segments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segments {
    /// Number of places that the buffer holds at a time, if little is read of each.
    pub count: Option<u64>,
    /// Lower bound of the number, if the segments cannot be counted.
    pub least: u64,
    /// Number of full segments that the buffer holds.
    pub full: Option<u64>,
    /// Total sectors of all segments, if less than the sum of their sizes.
    pub room: Option<u64>,
}

/// Least distance between places, in sectors.
const PLACE_DISTANCE_MIN: u64 = 65_536;
/// Most segments that are counted.
const SEGMENTS_MAX: u64 = 2_048;

impl Segments {
    /// Reads places with the given lengths, and counts the places that the buffer holds afterwards. With `behind`, the question is about
    /// the sector behind each read.
    fn held(
        buffer: &mut BufferProbe<'_, '_, '_>,
        lengths: &[u64],
        behind: bool,
    ) -> Result<u64, ExtractError> {
        let capacity = buffer.bench.capacity();
        let count = lengths.len() as u64;
        let longest = lengths.iter().copied().max().unwrap_or(1);
        let stride = (capacity / (count + 1)).min(PLACE_DISTANCE_MIN.max(longest * 8));
        let first = buffer.bench.random.up_to(capacity - (count + 1) * stride);
        let mut places: Vec<u64> = (0..count).map(|index| first + index * stride).collect();
        for at in (1..places.len()).rev() {
            places.swap(at, buffer.bench.random.up_to(at as u64) as usize);
        }
        let mut last = Vec::with_capacity(places.len());
        for (place, len) in places.into_iter().zip(lengths) {
            let place = place + buffer.bench.random.up_to(stride / 4);
            buffer.bench.read(place, *len)?;
            last.push(place + len - u64::from(!behind));
        }
        let mut held = 0;
        for lba in last.into_iter().rev() {
            if !buffer.is_held(lba)? {
                break;
            }
            held += 1;
            if held == 1 {
                // A second read on a track may have started read-ahead there.
                buffer.rest(0);
            }
        }
        Ok(held)
    }

    pub(super) fn count(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.segments";
        let most = SEGMENTS_MAX.min(buffer.bench.capacity() / 4096);
        let mut tried = 4;
        let mut seen = Vec::new();
        let mut next = tried;
        for _ in 0..20 {
            if seen.len() == 4 {
                break;
            }
            let held = Segments::held(buffer, &vec![1; next as usize], false)?;
            if held == next {
                // The buffer holds all places, so there may be more segments.
                if next >= most {
                    self.least = next;
                    learned.doubt(key, format!("{next} or more"));
                    return Ok(());
                }
                tried = next;
                next = (tried * 2).min(most);
                seen.clear();
                continue;
            }
            if seen.contains(&held) && held > 0 {
                self.count = Some(held);
                learned.know(key, 0.9);
                return Ok(());
            }
            seen.push(held);
            next = held + 2 + seen.len() as u64;
        }
        seen.push(tried);
        seen.sort_unstable();
        self.least = seen[seen.len() - 1];
        learned.doubt(
            key,
            format!(
                "the buffer held {} to {} places",
                seen[0],
                seen[seen.len() - 1]
            ),
        );
        Ok(())
    }

    /// Finds out if segments share a room that is too small for all when full, and measures the room.
    pub(super) fn room(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        (segment, passing): (Option<u64>, Option<u64>),
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.room_sectors";
        let count = self.count.unwrap_or(self.least);
        let Some(segment) = segment.filter(|_| count > 0) else {
            learned.doubt(key, "the size of a segment is not known");
            return Ok(());
        };
        let full = |buffer: &mut BufferProbe<'_, '_, '_>, count: u64, behind: bool| {
            Segments::held(buffer, &vec![segment; count as usize], behind)
        };
        // Read-ahead may have replaced the requested sectors.
        let mut stays = [false; 2];
        for (stays, behind) in stays.iter_mut().zip([false, true]) {
            let few = count.min(3);
            *stays = full(buffer, few, behind)? == few && full(buffer, few, behind)? == few;
        }
        let behind = stays[1] && !stays[0];
        if stays == [false; 2] {
            learned.doubt(key, "nothing stays of a segment that was filled");
            return Ok(());
        }
        // Most buffers hold all full segments. For the others a few segments are enough to see a shortage.
        let (mut held, mut tried) = (0, count.min(8));
        loop {
            held = full(buffer, tried, behind)?.max(held);
            if held < tried {
                held = full(buffer, tried, behind)?.max(held);
            }
            if held < tried || tried == count {
                break;
            }
            tried = (tried * 2).min(count);
        }
        self.full = Some(held);
        if held == count {
            learned.know(key, 0.9);
            return Ok(());
        }
        if held == 0 || full(buffer, held, behind)? < held || full(buffer, held + 1, behind)? > held
        {
            learned.doubt(key, "how many full segments the buffer holds varies");
            return Ok(());
        }
        // Read full segments and a partial one. The first segment is evicted if the partial one does not fit.
        let (mut low, mut high) = (0, segment);
        let near = (segment / 16).max(1);
        while high - low > near {
            let part = low + (high - low) / 2;
            let mut lengths = vec![segment; held as usize];
            lengths.push(part);
            let all = Segments::held(buffer, &lengths, behind)?;
            if all > held {
                low = part;
            } else {
                high = part;
            }
        }
        self.room = Some(held * segment + low + (high - low) / 2 + passing.unwrap_or(0));
        learned.know(key, 0.8);
        Ok(())
    }
}
