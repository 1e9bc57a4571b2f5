//! Values of a datasheet, and their allowed ranges.

use headtime_units::{Bytes, Nanos};
use std::fmt::Display;

/// More surfaces than any drive has.
pub(super) const MOST_HEADS: u16 = 32;

/// Values of a drive's datasheet. Each value that a sheet may lack is an option.
///
/// Invariants of a sheet that [`Datasheet::profile`] accepts, for the values that are given:
///
/// - `name` has one or more of `a` to `z`, `0` to `9`, `-` and `.`.
/// - `3000 ≤ rpm ≤ 20000`.
/// - `0.5 ms ≤ seek ≤ 50 ms`; `seek ≤ seek_write ≤ 2 seek`.
/// - `0.01 seek ≤ track ≤ 0.4 seek`; `track ≤ track_write ≤ 0.5 seek`.
/// - `1.3 seek ≤ maximum ≤ 4 seek`; `maximum ≤ maximum_write ≤ 4 seek_write`.
/// - `1 MB/s ≤ rate ≤ 1 GB/s`; a turn at `rate` passes at most 3.5 MB.
/// - `rate / 3 ≤ rate_inner ≤ rate ≤ interface ≤ 100 GB/s`.
/// - `64 KiB ≤ cache ≤ 16 GiB`; `1 ≤ heads ≤ 32`; `1 ≤ queue ≤ 256`.
#[derive(Clone, Debug, PartialEq)]
pub struct Datasheet {
    /// Short name of the profile: lower-case letters, digits, hyphens and points.
    pub name: String,
    /// Vendor, model, capacity, for people.
    pub model: Option<String>,
    /// Capacity of the drive.
    pub capacity: Capacity,
    /// Sectors, logical and on the medium.
    pub sector: Option<SectorFormat>,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Mean seek between random sectors, reading.
    pub seek: Nanos,
    /// Mean seek between random sectors, writing.
    pub seek_write: Option<Nanos>,
    /// Seek to the next track, reading.
    pub track: Option<Nanos>,
    /// Seek to the next track, writing.
    pub track_write: Option<Nanos>,
    /// Seek over the whole stroke, reading.
    pub maximum: Option<Nanos>,
    /// Seek over the whole stroke, writing.
    pub maximum_write: Option<Nanos>,
    /// Sustained transfer at the outer edge, in bytes a second.
    pub rate: u64,
    /// Sustained transfer at the inner edge, in bytes a second.
    pub rate_inner: Option<u64>,
    /// Size of the buffer.
    pub cache: Bytes,
    /// Surfaces with data.
    pub heads: Option<u16>,
    /// Commands that the drive takes at a time.
    pub queue: Option<u32>,
    /// Rate between drive and host, in bytes a second.
    pub interface: Option<u64>,
}

/// Capacity of a drive, as a datasheet or a label gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Rounded number of bytes, as the drive is sold. See [`Capacity::sectors`].
    Nominal(Bytes),
    /// Logical sectors, which labels call LBA.
    Sectors(u64),
}

/// The sectors of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorFormat {
    /// 512 bytes.
    Native512,
    /// 512 bytes for the host, 4096 on the medium.
    Emulated512,
    /// 4096 bytes.
    Native4K,
}

impl SectorFormat {
    /// Bytes in a logical sector.
    pub const fn bytes(self) -> u32 {
        match self {
            SectorFormat::Native512 | SectorFormat::Emulated512 => 512,
            SectorFormat::Native4K => 4096,
        }
    }

    /// Bytes in a sector on the medium.
    pub const fn physical_bytes(self) -> u32 {
        match self {
            SectorFormat::Native512 => 512,
            SectorFormat::Emulated512 | SectorFormat::Native4K => 4096,
        }
    }
}

pub(super) const GB: u64 = 1_000_000_000;
/// More bytes than pass under one head in a turn: drives of 2024 have 2.4 million, drives with two actuators 4.4
/// million.
const TURN_MAX: f64 = 3.5e6;

impl Capacity {
    /// Logical sectors of `sector_bytes`.
    ///
    /// Vendors agreed on the number of sectors for a nominal capacity. From 50 GB on, this number is 97,696,368 sectors
    /// of 512 bytes, plus 1,953,504 for each GB above 50 (IDEMA LBA1-03). From 8 TB on, the number of sectors is
    /// rounded up to a multiple of 2^21, as drives report.
    ///
    /// Two kinds of capacity are taken literally: a capacity below 50 GB, and a capacity that is no whole number of GB.
    /// A last sector that such a number of bytes does not fill does not count.
    pub fn sectors(self, sector_bytes: u32) -> u64 {
        let bytes = match self {
            Capacity::Sectors(sectors) => return sectors,
            Capacity::Nominal(Bytes(bytes)) => bytes,
        };
        let gb = bytes / GB;
        let in_512 = if !bytes.is_multiple_of(GB) || gb < 50 {
            bytes / 512
        } else if gb < 8_000 {
            97_696_368 + 1_953_504 * (gb - 50)
        } else {
            (bytes / 512).next_multiple_of(1 << 21)
        };
        in_512 / u64::from(sector_bytes / 512)
    }
}

/// A value of a sheet that no drive has, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{item}: {value} is not allowed; allowed is {allowed}")]
pub struct SheetError {
    /// The name of the item, as an option of a command has it.
    pub item: &'static str,
    /// The value in the sheet.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

impl SheetError {
    pub(super) fn new(
        item: &'static str,
        value: impl Display,
        allowed: impl Display,
    ) -> SheetError {
        SheetError {
            item,
            value: value.to_string(),
            allowed: allowed.to_string(),
        }
    }
}

/// Age of a drive, told by the sectors on its outermost track. The age decides the values that a sheet leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Before2005,
    Desktop,
    Nearline,
}

impl Age {
    /// Age of a drive with this number of 512-byte sectors on the outermost track.
    ///
    /// The drives of 1999 have 334 at most. The Maxtor Atlas 10K V of 2004 has 1170, and the order of addresses of
    /// later drives. The desktop drives of 2006 to 2009 have up to 2340, nearline drives 3000 and more.
    pub(super) fn of(sectors: f64) -> Age {
        if sectors < 1000.0 {
            Age::Before2005
        } else if sectors < 2500.0 {
            Age::Desktop
        } else {
            Age::Nearline
        }
    }
}

/// A share of a time: factors of a rule.
pub(super) fn part(time: Nanos, part: f64) -> Nanos {
    Nanos::from_millis_f64(time.as_millis_f64() * part)
}

pub(super) fn megabytes(rate: u64) -> String {
    format!("{}MB/s", rate as f64 / 1e6)
}

impl Datasheet {
    /// The format of the sectors: 4 KiB on the medium from about 1 TB on, if the sheet gives none.
    pub(super) fn sector_format(&self) -> SectorFormat {
        self.sector.unwrap_or_else(|| {
            match self.capacity.sectors(512) > Capacity::Nominal(Bytes(1_000 * GB)).sectors(512) {
                true => SectorFormat::Emulated512,
                false => SectorFormat::Native512,
            }
        })
    }

    /// Rate of the interface. If the sheet gives none: the slowest disk interface that is twice as fast as the medium.
    pub(super) fn interface_rate(&self) -> u64 {
        const SPEEDS: [u64; 6] = [40, 80, 150, 300, 600, 1200];
        self.interface.unwrap_or_else(|| {
            let mut speeds = SPEEDS.iter().map(|speed| speed * 1_000_000);
            let fast = speeds.find(|&speed| speed >= 2 * self.rate);
            fast.unwrap_or(2 * self.rate)
        })
    }

    pub(super) fn inner(&self) -> u64 {
        self.rate_inner.unwrap_or(self.rate / 2)
    }

    /// Checks single items, and rates and times against each other.
    pub(super) fn check(&self) -> Result<(), SheetError> {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if self.name.is_empty() || !self.name.chars().all(named) {
            let allowed = "lower-case letters, digits, hyphens and points";
            return Err(SheetError::new("name", format!("`{}`", self.name), allowed));
        }
        if !(3_000.0..=20_000.0).contains(&self.rpm) {
            return Err(SheetError::new("rpm", self.rpm, "3000 to 20000"));
        }
        let least = Nanos::from_micros(500);
        let most = Nanos::from_millis(50);
        time("seek", self.seek, least, most, "")?;
        let of_seek = format!("the average seek of {}", self.seek);
        if let Some(write) = self.seek_write {
            let most = self.seek * 2;
            time(
                "seek-write",
                write,
                self.seek,
                most,
                &format!("1 to 2 times {of_seek}"),
            )?;
        }
        if let Some(track) = self.track {
            let (least, most) = (part(self.seek, 0.01), part(self.seek, 0.4));
            time(
                "seek-track",
                track,
                least,
                most,
                &format!("0.01 to 0.4 times {of_seek}"),
            )?;
        }
        if let Some(full) = self.maximum {
            let (least, most) = (part(self.seek, 1.3), self.seek * 4);
            time(
                "seek-maximum",
                full,
                least,
                most,
                &format!("1.3 to 4 times {of_seek}"),
            )?;
        }
        let least = 1_000_000;
        let most = GB.min((TURN_MAX * self.rpm / 60.0) as u64);
        if !(least..=most).contains(&self.rate) {
            let allowed = format!("{} to {}", megabytes(least), megabytes(most));
            let two = "; more comes of two actuators, which are not modelled: describe one of them, with half of the \
                       capacity, of the heads and of the rate, and the seeks as they are";
            let hint = if self.rate > most { two } else { "" };
            return Err(SheetError::new(
                "rate",
                megabytes(self.rate),
                allowed + hint,
            ));
        }
        // A third of the outer rate is less than any drive has; a half is usual.
        let least = self.rate.div_ceil(3);
        let inner = self.inner();
        if !(least..=self.rate).contains(&inner) {
            let allowed = format!(
                "{} to {}, a third to all of the outer rate",
                megabytes(least),
                megabytes(self.rate)
            );
            return Err(SheetError::new("rate-inner", megabytes(inner), allowed));
        }
        let buffer = [Bytes(64 << 10), Bytes(16 << 30)];
        if !(buffer[0]..=buffer[1]).contains(&self.cache) {
            let allowed = format!("{} to {}", buffer[0], buffer[1]);
            return Err(SheetError::new("cache", self.cache, allowed));
        }
        if let Some(heads) = self.heads.filter(|heads| !(1..=MOST_HEADS).contains(heads)) {
            let allowed = format!("1 to {}", MOST_HEADS);
            return Err(SheetError::new("heads", heads, allowed));
        }
        if let Some(depth) = self.queue.filter(|depth| !(1..=256).contains(depth)) {
            return Err(SheetError::new("queue", depth, "1 to 256"));
        }
        match self.interface {
            Some(rate) if !(self.rate..=100 * GB).contains(&rate) => {
                let allowed = format!("the outer rate of {} to 100000MB/s", megabytes(self.rate));
                Err(SheetError::new("interface", megabytes(rate), allowed))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a time of a sheet is from `least` to `most`. `why` names the origin of these bounds.
pub(super) fn time(
    item: &'static str,
    value: Nanos,
    least: Nanos,
    most: Nanos,
    why: &str,
) -> Result<(), SheetError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let why = match why {
        "" => String::new(),
        why => format!(", {why}"),
    };
    Err(SheetError::new(
        item,
        value,
        format!("{least} to {most}{why}"),
    ))
}
