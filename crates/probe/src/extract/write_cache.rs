//! Treatment of written data that the drive has answered already.
//!
//! Only sectors of the scratch range are written. A write is fast if its answer comes before the arm can have arrived from far away
//! (DIXtrac). The time of a read far from the scratch range shows the position of the arm.

mod scratch_area;

use super::bench::Bench;
use super::error::ExtractError;
use super::known_drive::KnownDrive;
use super::learned_keys::LearnedKeys;
use super::turns::median;
use headtime_disk::profile::{CacheSpec, Destage, WriteBack};
use headtime_units::{Extent, Lba, Nanos};
pub(super) use scratch_area::Reads;
use scratch_area::{ScratchArea, TRIALS_PER_DECISION};
use serde::{Deserialize, Serialize};

/// Results about written data. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriteCache {
    pub write_back: Option<WriteBack>,
    /// Small scattered writes that the cache takes at a time, and sectors.
    pub runs: Option<u64>,
    pub room: Option<u64>,
    pub destage: Option<Destage>,
    pub write_segments: Option<u64>,
    pub delay: Option<f64>,
    pub age: Option<f64>,
    pub serves_reads: Option<bool>,
    pub dedicated: Option<bool>,
    /// Sectors of a write that the buffer takes, and its response times after a read and after a write.
    #[serde(default)]
    pub accepted: Option<(u64, [f64; 2])>,
    /// True if no write was timed. The drive reports the state of its write cache, and the use of the cache is assumed.
    #[serde(default)]
    pub is_read: bool,
}

/// Questions in their order.
#[derive(Clone, Copy, Debug)]
pub(super) enum WriteQuestion {
    Kind,
    Size,
    Delay,
    Age,
    ReadHits,
    Dedicated,
    Accepted,
}

pub(super) const QUESTIONS: [WriteQuestion; 7] = [
    WriteQuestion::Kind,
    WriteQuestion::Size,
    WriteQuestion::Delay,
    WriteQuestion::Age,
    WriteQuestion::ReadHits,
    WriteQuestion::Dedicated,
    WriteQuestion::Accepted,
];

/// Processing of writes that the buffer takes.
const ACCEPTED: [&str; 2] = [
    "overhead.write_hit_after_read",
    "overhead.write_hit_after_write",
];

pub(super) const KEYS: [&str; 11] = [
    "access.zero_latency_write",
    "cache.write_back",
    "cache.write_segments",
    "cache.destage",
    "cache.destage_runs",
    "cache.destage_delay",
    "cache.destage_age",
    "cache.read_hits_on_write_data",
    "cache.dedicated_write_segment",
    ACCEPTED[0],
    ACCEPTED[1],
];

/// Sectors of buffer for each run of dirty data, and idle nanoseconds before the drive writes them. Both are assumed.
const SECTORS_A_RUN: u64 = 128;
const IDLE_NS: f64 = 50e6;
/// Longest destage delay that the search covers, in nanoseconds.
const LONGEST_DELAY: f64 = 400e6;
/// Longest age of dirty data that the search covers, in nanoseconds.
const LONGEST_AGE: f64 = 4_600e6;

impl WriteCache {
    pub(super) fn ask(
        &mut self,
        question: WriteQuestion,
        bench: &mut Bench<'_>,
        drive: &KnownDrive<'_>,
        reads: Reads,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let mut none = |why: &str| {
            if let WriteQuestion::Kind = question {
                for key in KEYS {
                    learned.doubt(key, why);
                }
                self.read(reads, drive, learned);
            }
            Ok(())
        };
        let Some(scratch) = drive.scratch else {
            return none("nothing may be written without a scratch range");
        };
        if scratch.len.get() < super::writes::SECTORS_MIN {
            return none("the scratch range is too small");
        }
        let unit = drive.unit;
        let capacity = bench.capacity();
        // Use the end of the disk that is farther from the scratch range.
        let size = (capacity / 400).max(2);
        let far = match scratch.start.get() > capacity - scratch.end().get() {
            true => Extent::at(0, size),
            false => Extent::at(capacity - size, size),
        };
        let track = |lba: u64| drive.layout.run(Lba::new(lba)).track;
        let ends = [scratch.start.get(), scratch.end().get() - 1];
        let way = ends.map(|end| drive.way(track(far.start.get()), track(end)));
        // If the scratch range is the whole disk, a half of it is far away.
        let middle = scratch.start.get() + scratch.len.get() / 2;
        let scratch = match way[0].min(way[1]) < 3e6 {
            true if far.start.get() == 0 => Extent::at(middle, scratch.end().get() - middle),
            true => Extent::at(scratch.start.get(), middle - scratch.start.get()),
            false => scratch,
        };
        let ends = [scratch.start.get(), scratch.end().get() - 1];
        let way = ends.map(|end| drive.way(track(far.start.get()), track(end)));
        let way = way[0].min(way[1]);
        if way < 3e6 {
            return none("no place is far from the scratch range");
        }
        if self.write_back.is_none() && !matches!(question, WriteQuestion::Kind) {
            return Ok(());
        }
        let mut area = ScratchArea {
            bench,
            drive,
            reads,
            scratch,
            unit,
            far,
            way,
        };
        match question {
            WriteQuestion::Kind => self.kind(&mut area, learned),
            WriteQuestion::Size => self.size(&mut area, learned),
            WriteQuestion::Delay => self.delay(&mut area, learned),
            WriteQuestion::Age => self.age(&mut area, learned),
            WriteQuestion::ReadHits => self.read_hits(&mut area, learned),
            WriteQuestion::Dedicated => self.dedicated(&mut area, learned),
            WriteQuestion::Accepted => self.accepted(&mut area, learned),
        }
    }

    /// Takes the state of the write cache from the drive, where no write can be timed.
    ///
    /// A drive with its cache on may answer any write from its buffer, or only sequential writes. Drives whose addresses run along surfaces
    /// are recent enough to answer any write. The other keys are assumed as for a datasheet. The state "off" is ignored, because the kernel
    /// reports "off" for disks behind USB without asking them.
    fn read(&mut self, reads: Reads, drive: &KnownDrive<'_>, learned: &mut LearnedKeys) {
        if reads.cached != Some(true) || drive.layout.group_cylinders() == 1 {
            return;
        }
        self.write_back = Some(WriteBack::Full);
        self.is_read = true;
        learned.know("cache.write_back", 0.9);
        let segments = reads.segments.unwrap_or(1);
        let sectors = segments * reads.segment.unwrap_or(0);
        self.write_segments = Some(segments / 2);
        self.destage = Some(Destage::Sweep);
        self.runs = Some((sectors / SECTORS_A_RUN).clamp(16, 8_192));
        self.delay = Some(IDLE_NS);
    }

    fn kind(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let mut times = Vec::new();
        for _ in 0..2 * TRIALS_PER_DECISION {
            area.flush()?;
            let [far, place] = [area.far_place(), area.place()];
            area.read(far)?;
            times.push(area.write(place, area.unit)?);
        }
        area.flush()?;
        times.sort_unstable_by(f64::total_cmp);
        // The arm alone takes longer than this limit, even with the transfer of the data.
        let limit = area.way * 0.9;
        let fast = times.iter().filter(|time| **time < limit).count();
        let kind = match (fast, times.len() - fast) {
            (0..=1, _) => WriteBack::Off,
            (_, 0..=1) => {
                let stayed = area.stayed()?;
                match area.read_after(0.0, 2 * TRIALS_PER_DECISION + 1)? < stayed {
                    true => WriteBack::Full,
                    false => WriteBack::Flushed,
                }
            }
            _ => {
                for key in KEYS {
                    learned.doubt(
                        key,
                        "some writes are answered before they are on the medium, and some not",
                    );
                }
                return Ok(());
            }
        };
        self.write_back = Some(kind);
        learned.know("cache.write_back", 0.9);
        let why = "writes of whole tracks are not timed; it is taken to be that of reads";
        learned.doubt("access.zero_latency_write", why);
        Ok(())
    }

    fn size(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let keys = [
            "cache.write_segments",
            "cache.destage",
            "cache.destage_runs",
        ];
        if self.write_back != Some(WriteBack::Full) {
            for key in keys {
                learned.doubt(key, "no data wait in the buffer while others are written");
            }
            return Ok(());
        }
        let (Some(segment), Some(segments)) = (area.reads.segment, area.reads.segments) else {
            for key in keys {
                learned.doubt(key, "the segments are not known");
            }
            return Ok(());
        };
        let Some(small) = area.fill(area.unit)? else {
            for key in keys {
                learned.doubt(key, "no write had to wait in the scratch range");
            }
            return Ok(());
        };
        self.runs = Some(libm::round(small) as u64);
        let len = (segment / 4).clamp(area.unit, 1_024) / area.unit * area.unit;
        let large = area.fill(len)?;
        let Some(large) = large else {
            for key in keys {
                learned.doubt(key, "no long write had to wait in the scratch range");
            }
            return Ok(());
        };
        let by_segment = (small - large).abs() <= 1.0 + 0.1 * large && small <= segments as f64;
        // The last write fitted in part.
        let sectors = (large + 0.5) * len as f64;
        self.room = Some(sectors as u64);
        if by_segment {
            let again = area.fill(area.unit)?;
            if again != Some(small) || !(1.0..=40.0).contains(&small) {
                for key in keys {
                    learned.doubt(key, "how many writes the buffer takes varies");
                }
                return Ok(());
            }
            self.destage = Some(Destage::Segment);
            self.write_segments = Some(small as u64);
            learned.know("cache.destage", 0.7);
            learned.know("cache.write_segments", 0.9);
            learned.doubt(
                "cache.destage_runs",
                "it has no meaning where each write takes a segment",
            );
            return Ok(());
        }
        self.destage = Some(Destage::Sweep);
        learned.know("cache.destage", 0.8);
        let parts = sectors / segment as f64;
        let count = libm::round(parts).max(1.0) as u64;
        if (parts - count as f64).abs() < 0.3 && parts < 4.0 || parts >= 4.0 {
            self.write_segments = Some(count.min(segments));
            learned.know("cache.write_segments", if parts < 8.0 { 0.8 } else { 0.6 });
        } else {
            learned.doubt(
                "cache.write_segments",
                format!("about {sectors:.0} sectors wait, which is no number of segments"),
            );
        }
        if small * (area.unit as f64) < 0.8 * sectors {
            learned.know("cache.destage_runs", 0.6);
        } else {
            self.runs = None;
            learned.doubt(
                "cache.destage_runs",
                "small writes fill the room before there are so many",
            );
        }
        Ok(())
    }

    fn delay(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.destage_delay";
        if self.write_back != Some(WriteBack::Full) {
            learned.doubt(key, "what is written sets out at once");
            return Ok(());
        }
        let stayed = area.stayed()?;
        if area.read_after(LONGEST_DELAY, TRIALS_PER_DECISION)? < stayed {
            learned.doubt(
                key,
                format!("it is longer than {:.0} ms", LONGEST_DELAY / 1e6),
            );
            return Ok(());
        }
        let (mut low, mut high) = (0.0, LONGEST_DELAY);
        while high - low > 2e6 {
            let middle = (low + high) / 2.0;
            if area.read_after(middle, TRIALS_PER_DECISION)? < stayed {
                low = middle;
            } else {
                high = middle;
            }
        }
        let found = (low + high) / 2.0;
        let margin = 6e6;
        let before =
            found < margin || area.read_after(found - margin, TRIALS_PER_DECISION)? < stayed;
        let behind = area.read_after(found + margin, TRIALS_PER_DECISION)? >= stayed;
        if before && behind {
            self.delay = Some(found);
            learned.know(key, 0.8);
        } else {
            learned.doubt(key, "it differs from time to time");
        }
        Ok(())
    }

    fn age(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.destage_age";
        if self.destage != Some(Destage::Sweep) {
            learned.doubt(key, "it has no meaning, or is not known to have one");
            return Ok(());
        }
        // A movement there and back must exceed a turn plus a short movement.
        let limit = area.drive.turn + area.reads.hit.middle + 0.75 * area.way;
        if 1.8 * area.way < limit {
            learned.doubt(key, "no place is far enough from the scratch range");
            return Ok(());
        }
        let mut seen: Vec<f64> = Vec::new();
        for _ in 0..3 {
            area.flush()?;
            // Destaging by age may start a period in which all dirty data go. The pause lets this period end.
            area.pause(2_500e6);
            let [far, place] = [area.far_place(), area.place()];
            area.read(far)?;
            area.write(place, area.unit)?;
            let begin = area.bench.probe.now();
            loop {
                let now = (area.bench.probe.now() - begin).as_nanos() as f64;
                if now > LONGEST_AGE {
                    area.flush()?;
                    learned.doubt(key, "reads go before what is written for more than 4.6 s");
                    return Ok(());
                }
                let far = area.far_place();
                let took = area.read(far)?;
                if took > limit {
                    seen.push(now + 0.5 * (took - 2.0 * area.way).max(0.0));
                    break;
                }
            }
            seen.sort_unstable_by(f64::total_cmp);
            let agree = seen.windows(2).find(|pair| pair[1] - pair[0] < 25e6);
            if let Some(pair) = agree {
                self.age = Some((pair[0] + pair[1]) / 2.0);
                learned.know(key, 0.8);
                return Ok(());
            }
        }
        learned.doubt(key, "what is written goes to the medium at various ages");
        Ok(())
    }

    fn read_hits(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.read_hits_on_write_data";
        if area.reads.segments.is_none_or(|count| count < 3) {
            learned.doubt(
                key,
                "the buffer forgets what was written when another command comes",
            );
            return Ok(());
        }
        let idle = match (self.write_back, self.delay) {
            (_, Some(delay)) => delay,
            (Some(WriteBack::Full), None) => LONGEST_DELAY,
            _ => 0.0,
        };
        let mut held = 0;
        for _ in 0..TRIALS_PER_DECISION {
            area.flush()?;
            let [far, place] = [area.far_place(), area.place()];
            area.write(place, area.unit)?;
            // The arm has gone to the scratch range and comes back.
            area.pause(idle + 3.0 * area.drive.turn + 2.0 * area.way);
            area.read(far)?;
            area.pause(area.drive.turn);
            // A hit after a write may take a different time.
            held += usize::from(area.read(place)? < area.way * 0.9);
        }
        area.flush()?;
        match held {
            0..=1 => self.serves_reads = Some(false),
            _ if held + 1 >= TRIALS_PER_DECISION => self.serves_reads = Some(true),
            _ => {
                learned.doubt(key, "written data are sometimes held and sometimes not");
                return Ok(());
            }
        }
        learned.know(key, 0.9);
        Ok(())
    }

    fn dedicated(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.dedicated_write_segment";
        let Some(count) = area.reads.segments.filter(|count| *count < 1_500) else {
            learned.doubt(key, "the segments cannot be counted");
            return Ok(());
        };
        let apart = area.far.len.get() / (count + 1);
        if apart < 2 {
            learned.doubt(key, "the disk is too small");
            return Ok(());
        }
        let mut held = 0;
        let trials = if count > 64 { 3 } else { 5 };
        for _ in 0..trials {
            area.flush()?;
            let begin = area.bench.random.up_to(apart - 1);
            let mut first = None;
            for index in 0..count {
                // Alternate between both ends, so no read continues another.
                let at = if index % 2 == 0 {
                    index / 2
                } else {
                    count - 1 - index / 2
                };
                let lba = area.far.start.get() + at * apart + begin;
                area.read(lba)?;
                first = first.or(Some(lba));
            }
            let place = area.place();
            area.write(place, area.unit)?;
            area.flush()?;
            // The arm is at the scratch range now.
            let first = first.expect("a segment");
            held += usize::from(area.read(first)? < area.way * 0.9);
        }
        match held {
            0 => self.dedicated = Some(false),
            _ if held == trials => self.dedicated = Some(true),
            _ => {
                learned.doubt(
                    key,
                    "a write sometimes takes the place of what was read, and sometimes not",
                );
                return Ok(());
            }
        }
        if self.dedicated == Some(true) && self.serves_reads == Some(false) {
            // Reads do not look in the dedicated segment.
            self.serves_reads = None;
            learned.doubt(
                "cache.read_hits_on_write_data",
                "written data are kept apart from what serves reads",
            );
        }
        learned.know(key, 0.9);
        Ok(())
    }

    /// Times writes of a unit that the buffer takes, each after a read and each after such a write.
    fn accepted(
        &mut self,
        area: &mut ScratchArea<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        if self.write_back == Some(WriteBack::Off) {
            for key in ACCEPTED {
                learned.doubt(key, "no write is answered before it is on the medium");
            }
            return Ok(());
        }
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..2 * TRIALS_PER_DECISION {
            area.flush()?;
            let far = area.far_place();
            area.read(far)?;
            // A write beside read-ahead may wait.
            area.pause(8.0 * area.drive.turn);
            for times in &mut times {
                let place = area.place();
                let took = area.write(place, area.unit)?;
                // A slower write has waited for the arm.
                if took < area.way * 0.9 {
                    times.push(took);
                }
            }
        }
        area.flush()?;
        let [after_read, after_write] = times.each_mut().map(|times| median(times));
        let Some(after_read) = after_read else {
            for key in ACCEPTED {
                learned.doubt(key, "each write waited for the arm");
            }
            return Ok(());
        };
        learned.know(ACCEPTED[0], 0.9);
        match after_write {
            Some(_) => learned.know(ACCEPTED[1], 0.9),
            None => learned.doubt(
                ACCEPTED[1],
                "a write after another waits for the arm; its processing is taken to be that after a read",
            ),
        }
        self.accepted = Some((area.unit, [after_read, after_write.unwrap_or(after_read)]));
        Ok(())
    }

    /// Copies the results to a profile.
    pub(super) fn apply(&self, cache: &mut CacheSpec) {
        if self.dedicated == Some(true) {
            // The dedicated segment is in addition to the counted segments.
            cache.dedicated_write_segment = true;
            cache.segments = (cache.segments + 1).min(65_535);
        }
        let Some(write_back) = self.write_back else {
            return;
        };
        cache.write_back = write_back;
        let nanos = |time: f64| Nanos::from_nanos(time.max(0.0) as u64);
        let most = match cache.room_sectors {
            0 => u64::from(cache.segments),
            // Reads need a segment in addition to dirty data.
            room => u64::from(room / cache.segment_sectors)
                .saturating_sub(1)
                .max(1),
        };
        if let Some(count) = self.write_segments {
            cache.write_segments = count.clamp(1, most) as u32;
        }
        cache.destage = self.destage.unwrap_or(cache.destage);
        if let Some(runs) = self.runs.filter(|_| self.destage == Some(Destage::Sweep)) {
            cache.destage_runs = runs.clamp(1, 65_535) as u32;
        }
        cache.destage_delay = self.delay.map_or(cache.destage_delay, nanos);
        if let Some(age) = self.age {
            cache.destage_age = nanos(age).clamp(Nanos::from_millis(1), CacheSpec::DESTAGE_AGE);
        }
        cache.read_hits_on_write_data = self.serves_reads.unwrap_or(true);
    }
}
