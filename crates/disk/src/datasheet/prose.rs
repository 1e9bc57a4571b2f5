//! Prose about the origin of the values in a profile made from a datasheet.

use super::seeks::{SETTLE_MS, SHAPE, Seeks, TRACK_PART};
use super::sheet::{Age, Capacity, Datasheet, SectorFormat, megabytes};
use super::tracks::{LEAST_SKEW, LaidTracks, SKEW_EXCESS, SPARE_SHARE, TRACKS_PER_SURFACE, ZONES};
use crate::profile::{Trust, Zone};
use std::fmt::Display;

/// Model for people, if the sheet has none.
pub(super) fn model(sheet: &Datasheet) -> String {
    let sector = sheet.sector_format();
    let bytes = sheet.capacity.sectors(sector.bytes()) * u64::from(sector.bytes());
    let gb = bytes as f64 / 1e9;
    let size = match gb < 1000.0 {
        true => format!("{} GB", libm::round(gb)),
        false => format!("{} TB", libm::round(gb / 100.0) / 10.0),
    };
    format!("A disk of {size} at {} rpm, from its datasheet", sheet.rpm)
}

/// Trust marks: given values are published, values that follow from them are derived, and the rest
/// is assumed.
pub(super) fn trust(sheet: &Datasheet) -> Vec<(String, Trust)> {
    let given = |is_given: bool| match is_given {
        true => Trust::Published,
        false => Trust::Assumed,
    };
    let follows = |is_given: bool| match is_given {
        true => Trust::Derived,
        false => Trust::Assumed,
    };
    let marks = [
        ("geometry", Trust::Published),
        ("geometry.cylinders", Trust::Derived),
        ("geometry.heads", given(sheet.heads.is_some())),
        ("geometry.physical_sector", given(sheet.sector.is_some())),
        ("rotation", Trust::Published),
        ("layout", Trust::Derived),
        ("layout.order", Trust::Assumed),
        ("layout.zones", follows(sheet.rate_inner.is_some())),
        ("seek", Trust::Derived),
        ("seek.head_switch", Trust::Assumed),
        ("seek.write", follows(sheet.seek_write.is_some())),
        ("seek.write_settle", follows(sheet.track_write.is_some())),
        ("access", Trust::Assumed),
        ("cache", Trust::Assumed),
        ("cache.segment_sectors", Trust::Derived),
        ("overhead", Trust::Assumed),
        ("bus", given(sheet.interface.is_some())),
        ("queue", Trust::Assumed),
        ("queue.depth", given(sheet.queue.is_some())),
        ("noise", Trust::Assumed),
    ];
    marks.map(|(key, trust)| (key.to_owned(), trust)).to_vec()
}

/// Lines of the profile's own width.
struct Prose(String);

impl Prose {
    /// Adds a text, in lines of up to 116 letters.
    fn say(&mut self, text: &str) {
        let mut width = 0;
        for word in text.split_whitespace() {
            if width + word.len() > 115 {
                self.0.push('\n');
                width = 0;
            }
            if width > 0 {
                self.0.push(' ');
            }
            self.0.push_str(word);
            width += word.len() + 1;
        }
        self.0.push('\n');
    }
}

fn listed(values: impl Iterator<Item = impl Display>) -> String {
    let texts: Vec<String> = values.map(|value| value.to_string()).collect();
    texts.join(", ")
}

/// The items that were given, and the rule of each key.
pub(super) fn provenance(sheet: &Datasheet, tracks: &LaidTracks, seeks: &Seeks) -> String {
    let mut prose = Prose(String::new());
    prose.say(&format!(
        "Made from a datasheet; nothing was measured. The sheet: {}.",
        items(sheet)
    ));
    let Zone {
        sectors_per_track, ..
    } = tracks.zones[0];
    prose.say(match sheet.capacity {
        Capacity::Nominal(_) => {
            "geometry.capacity_sectors: what vendors agreed on for the nominal capacity."
        }
        Capacity::Sectors(_) => "geometry.capacity_sectors: as given.",
    });
    if sheet.sector.is_none() {
        prose.say("geometry.physical_sector: 4 KiB above 1 TB, as almost all drives since 2011 have, else 512 bytes.");
    }
    prose.say(&match sheet.heads {
        Some(_) => format!(
            "geometry.cylinders: as many as give the capacity on {} surfaces, with {} % of spares.",
            tracks.heads,
            SPARE_SHARE * 100.0
        ),
        None => format!(
            "geometry.heads: at {sectors_per_track} sectors on the outermost track, surfaces have as many tracks as those \
             of seven drives of which both are known let expect (between them, along the logarithms); the number of \
             surfaces is the nearest. geometry.cylinders: as many as then give the capacity, with {} % of spares.",
            SPARE_SHARE * 100.0
        ),
    });
    let inner = match sheet.rate_inner {
        Some(_) => "",
        None => {
            " The sheet has no inner rate: half of the outer one, as drives of 3.5 inches have about."
        }
    };
    prose.say(&format!(
        "layout.zones: sectors per track at both ends are what passes under the head in a turn and the mean skew at the \
         sustained rate. {} zones of equal width between, {} (at most {ZONES}; assumed).{inner}",
        tracks.zones.len(),
        "each shorter by about as much",
    ));
    prose.say(&match tracks.age {
        Age::Before2005 => "layout.order: all heads of a cylinder, then the next; drives with fewer than 1000 \
                            sectors of 512 bytes on the outermost track are older than 2005."
            .to_owned(),
        Age::Desktop | Age::Nearline => format!(
            "layout.order: {TRACKS_PER_SURFACE} tracks on a surface, then as many back on the next, as on a drive of 4 TB \
             whose layout was published; drives with 1000 sectors of 512 bytes on the outermost track, and more, are of \
             2005 and later."
        ),
    });
    prose.say(&format!(
        "Skews: what just hides the way to the next track before a write, and {SKEW_EXCESS} turns more; at least {LEAST_SKEW} \
         turns, as the sustained and the media rates of drives with both have it."
    ));
    prose.say(&format!(
        "seek.read: the shape that eight measured curves share when scaled by stroke and mean seek (time over mean seek \
         {} at {} of the stroke), scaled so that the mean over random sectors is {}.{}",
        listed(SHAPE[1..].iter().map(|(_, time)| time)),
        listed(SHAPE[1..].iter().map(|(share, _)| libm::round(share * 1e4) / 1e4)),
        seeks.average,
        match sheet.maximum {
            Some(_) => " From a third of the stroke on it is bent so that the whole stroke takes the maximum of the sheet.",
            None => "",
        }
    ));
    if sheet.track.is_none() {
        prose.say(&format!(
            "A step to the next track: {TRACK_PART} times the mean seek, the same shape at one cylinder."
        ));
    }
    let [short, long] = SETTLE_MS;
    prose.say(&format!(
        "seek.head_switch: {TRACK_PART} times the mean seek. seek.write: the read curve, later by as much as gives a mean \
         of {}{}. seek.write_settle: {}.",
        seeks.average_write,
        match sheet.seek_write {
            Some(_) => String::new(),
            None => format!(" ({long} ms later, as drives of 2010 have about)"),
        },
        match sheet.track_write {
            Some(_) => "what writes take longer than reads to the next track".to_owned(),
            None => format!("{short} ms, as drives since 2005 have about, or less if the means differ by less"),
        }
    ));
    prose.say(
        "cache: 16 segments of up to 8 MiB, 32 of up to 64 MiB, else 64; half of them may be dirty; reading ahead goes on \
         for as many sectors as the outermost track has. overhead: 0.2 ms for what the arm serves, as drives of 1999 to 2013 have, 60 us for a read hit, 80 us for an accepted \
         write, after manuals and users' measurements. \
         noise: what measured drives have; the unit turns at its nominal speed; on nearline drives 1.5 % of reads are retried \
         and 0.05 % wait for 30 to 100 ms, assumed.",
    );
    if sheet.interface.is_none() {
        prose.say("bus: the slowest interface that is twice as fast as the medium.");
    }
    prose.say(match tracks.age {
        _ if sheet.queue == Some(1) => "queue: one command at a time.",
        Age::Before2005 if sheet.queue.is_none() => {
            "queue: one command at a time, as drives had that are older than 2005."
        }
        Age::Before2005 => {
            "queue: shortest positioning time first with a margin of 0.1 ms, as drives of 1999 have."
        }
        Age::Desktop => {
            "queue: shortest positioning time first with a margin of 1.3 ms, which is what the throughput of a desktop drive \
             of 2006 over its depth is fitted best by."
        }
        Age::Nearline => {
            "queue: shortest positioning time first with a margin of 0.15 ms, in the range of 0 to 0.3 ms that public \
             benchmarks of nearline drives at depth 16 leave; reads in sequence are preferred for 1 s at most."
        }
    });
    prose.0.trim_end().to_owned()
}

/// The sheet, item by item.
fn items(sheet: &Datasheet) -> String {
    let mut items = vec![match sheet.capacity {
        Capacity::Nominal(bytes) => format!("{bytes}"),
        Capacity::Sectors(sectors) => format!("{sectors} sectors"),
    }];
    if let Some(sector) = sheet.sector {
        let name = match sector {
            SectorFormat::Native512 => "512n",
            SectorFormat::Emulated512 => "512e",
            SectorFormat::Native4K => "4Kn",
        };
        items.push(name.to_owned());
    }
    items.push(format!("{} rpm", sheet.rpm));
    let times = [
        ("average seek", Some(sheet.seek)),
        ("average write seek", sheet.seek_write),
        ("track to track", sheet.track),
        ("the same writing", sheet.track_write),
        ("maximum seek", sheet.maximum),
        ("maximum write seek", sheet.maximum_write),
    ];
    let times = times.iter().filter_map(|(name, time)| {
        let time = (*time)?;
        Some(format!("{name} {time}"))
    });
    items.extend(times);
    items.push(format!("sustained {}", megabytes(sheet.rate)));
    let inner = sheet
        .rate_inner
        .map(|rate| format!("at the inner edge {}", megabytes(rate)));
    items.extend(inner);
    items.push(format!("buffer {}", sheet.cache));
    items.extend(sheet.heads.map(|heads| format!("{heads} heads")));
    items.extend(sheet.queue.map(|depth| format!("{depth} commands queued")));
    items.extend(
        sheet
            .interface
            .map(|rate| format!("interface {}", megabytes(rate))),
    );
    items.join(", ")
}
