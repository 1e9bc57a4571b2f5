//! Layouts by a list of extents, as a drive itself reports them: `dm_layout_g2` and its file.
//!
//! ```text
//! two lines that say what was read
//! 2000 cylinders, 7200 rot, 4 heads
//! lbn 0 --> cyl 0, head 0, sect 2, seqcnt 117      (so many more behind it)
//! lbn 118 --> cyl 9, head 3, sect 0, count 1       (so many)
//! Defect at cyl 0, head 0, sect 120
//! ```

use crate::error::ImportError;
use crate::fields::Fields;
use crate::run::Run;
use crate::syntax::{Block, Value};
use crate::zones::{skew, skew_units};
use headtime_disk::profile::{LayoutSpec, MapPart, MapRemap, MapSpec, Skew, SpareTrack, Strip};
use std::collections::BTreeSet;

/// Number of extents elsewhere after which a track may still go on: as many as real tracks have bad sectors.
const DETOUR_EXTENTS_MAX: usize = 16;

struct Zone {
    cylinders: [u32; 2],
    sectors_per_track: u32,
    /// In turns.
    offset: f64,
    track_skew: f64,
    cylinder_skew: f64,
}

/// Consecutive addresses in consecutive slots.
#[derive(Clone, Copy)]
struct Extent {
    line: usize,
    address: u64,
    /// Cylinder and head.
    track: (u32, u16),
    slot: u32,
    len: u32,
}

/// Reads a `dm_layout_g2`.
pub(crate) fn layout(run: &mut Run, block: &Block) -> Result<LayoutSpec, ImportError> {
    let fields = Fields::new(block);
    let mut zones = Vec::new();
    for entry in fields.required_list("Zones")? {
        match &entry.value {
            Value::Block(block) if block.kind == "dm_layout_g2_zone" => {
                zones.push(zone(run, block)?);
            }
            _ => {
                let message = "each item should be a dm_layout_g2_zone block";
                return Err(entry.error("Zones", message));
            }
        }
    }
    let name = fields.required_text("Layout Map File")?;
    let text = run.read(name, &block.file, fields.line_of("Layout Map File"))?;
    fields.finish(&mut run.found)?;
    let extents = extents(name, &text)?;
    let mut builder = Builder {
        file: name,
        zones: &zones,
        map: MapSpec::default(),
        strips: Vec::new(),
        homes: BTreeSet::new(),
        turned: 0.0,
        places: 0,
        last: None,
    };
    builder.build(&extents)?;
    let mut map = builder.map;
    map.groups = vec![builder.strips];
    Ok(LayoutSpec::mapped(map))
}

fn zone(run: &mut Run, block: &Block) -> Result<Zone, ImportError> {
    let fields = Fields::new(block);
    let first = fields.count("First cylinder number", 0, (1 << 24) - 1)?;
    let last = fields.count("Last cylinder number", first, (1 << 24) - 1)?;
    let sectors_per_track = fields.count("Blocks per track", 1, 65_535)?;
    // The extents say which addresses are in the zone.
    fields.ignore(&["First LBN", "Last LBN"]);
    let in_turns = skew_units(&fields)?.unwrap_or(false);
    let turns = |key| {
        Ok::<_, ImportError>(match skew(&fields, key, in_turns, sectors_per_track)? {
            Skew::Turns(turns) => turns,
            Skew::Sectors(sectors) => {
                f64::from(sectors % sectors_per_track) / f64::from(sectors_per_track)
            }
        })
    };
    let zone = Zone {
        cylinders: [first, last],
        sectors_per_track,
        offset: turns("Zone Skew")?,
        track_skew: turns("Skew for track switch")?,
        cylinder_skew: turns("Skew for cylinder switch")?,
    };
    fields.finish(&mut run.found)?;
    Ok(zone)
}

/// The extents of a file, in the order of addresses.
fn extents(file: &str, text: &str) -> Result<Vec<Extent>, ImportError> {
    let mut extents = Vec::new();
    let error = |line: usize, message: String| ImportError::Syntax {
        file: file.to_string(),
        line,
        message,
    };
    for (index, line) in text.lines().enumerate().skip(2) {
        let line = line.trim();
        let error = |message: String| error(index + 1, message);
        // A line on the geometry comes first, and bad sectors last. The latter are the ones that no
        // extent has.
        let is_other = line.is_empty() || index == 2 || !extents.is_empty();
        if is_other && !line.contains("-->") {
            continue;
        }
        let form = || {
            error(format!(
                "`{line}` should be `lbn N --> cyl C, head H, sect S, seqcnt N` or `.. count N`"
            ))
        };
        let words: Vec<&str> = line
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let [
            "lbn",
            address,
            "-->",
            "cyl",
            cylinder,
            "head",
            head,
            "sect",
            slot,
            kind,
            count,
        ] = words[..]
        else {
            return Err(form());
        };
        let number = |text: &str, most: u64| match text.parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            _ => Err(error(format!(
                "{text} is not allowed; allowed is an integer from 0 to {most}"
            ))),
        };
        let len = number(count, 65_534)? as u32 + u32::from(kind == "seqcnt");
        if len == 0 {
            return Err(form());
        }
        extents.push(Extent {
            line: index + 1,
            address: number(address, 1 << 40)?,
            track: (
                number(cylinder, (1 << 24) - 1)? as u32,
                number(head, 254)? as u16,
            ),
            slot: number(slot, 65_534)? as u32,
            len,
        });
    }
    extents.sort_unstable_by_key(|extent| (extent.address, extent.line));
    let mut next = 0;
    for extent in &extents {
        if extent.address != next {
            let message = format!("lbn {} where {next} is next", extent.address);
            return Err(error(extent.line, message));
        }
        next += u64::from(extent.len);
    }
    Ok(extents)
}

/// A track that addresses run over. Other tracks hold moved sectors.
struct Home {
    track: (u32, u16),
    /// Number of places on earlier tracks.
    places: u64,
    first_slot: u32,
    /// The slot after the last slot with a place.
    next: u32,
    slots: u32,
    offset: f64,
}

impl Home {
    fn goes_on_with(&self, extent: &Extent) -> bool {
        extent.track == self.track && extent.slot >= self.next
    }
}

/// Number of sectors on the track of the first extent ahead, among the next [`DETOUR_EXTENTS_MAX`] extents.
fn sectors_near(ahead: &[Extent]) -> u32 {
    let near = ahead.iter().take(DETOUR_EXTENTS_MAX);
    let here = near.filter(|extent| extent.track == ahead[0].track);
    here.map(|extent| extent.len).sum()
}

struct Builder<'f> {
    file: &'f str,
    zones: &'f [Zone],
    map: MapSpec,
    strips: Vec<Strip>,
    /// Tracks that have been homes.
    homes: BTreeSet<(u32, u16)>,
    /// Where the last home's slot 0 begins, in turns.
    turned: f64,
    places: u64,
    last: Option<(u32, u16)>,
}

impl Builder<'_> {
    fn error(&self, extent: &Extent, message: String) -> ImportError {
        ImportError::Syntax {
            file: self.file.to_string(),
            line: extent.line,
            message,
        }
    }

    /// Separates tracks that addresses run over, in their order, from slots that hold moved sectors.
    fn build(&mut self, extents: &[Extent]) -> Result<(), ImportError> {
        let mut home: Option<Home> = None;
        let mut ahead = extents;
        while let Some(extent) = ahead.first() {
            let used = match &mut home {
                Some(home) if home.goes_on_with(extent) => {
                    self.go_on(home, extent)?;
                    1
                }
                Some(home) => self.move_from(home, ahead)?,
                None => 0,
            };
            ahead = &ahead[used..];
            if used > 0 {
                continue;
            }
            if let Some(home) = home.take() {
                self.close(&home);
            }
            let moved = self.moved_in_front(ahead);
            let mut opened = self.open(&ahead[moved], moved > 0)?;
            for extent in &ahead[..moved] {
                self.move_to(extent)?;
                opened.next += extent.len;
            }
            ahead = &ahead[moved..];
            home = Some(opened);
        }
        if let Some(home) = home {
            self.close(&home);
        }
        Ok(())
    }

    /// Moves the sectors that were due next on a track, if the extents ahead hold them. Returns the number of these
    /// extents.
    fn move_from(&mut self, home: &mut Home, ahead: &[Extent]) -> Result<usize, ImportError> {
        let mut near = ahead.iter().take(DETOUR_EXTENTS_MAX);
        let back = near.position(|extent| home.goes_on_with(extent));
        let (moved, until) = match back {
            Some(moved) => (moved, ahead[moved].slot),
            None => {
                let moved = self.is_moved(home, ahead);
                (usize::from(moved), home.slots)
            }
        };
        let moved = &ahead[..moved];
        let places: u32 = moved.iter().map(|extent| extent.len).sum();
        if places > until - home.next {
            return Ok(0);
        }
        for extent in moved {
            self.move_to(extent)?;
        }
        home.next += places;
        Ok(moved.len())
    }

    /// Number of extents that hold sectors from the front of a track. The track goes on at the end of these extents
    /// and has more sectors than they have.
    fn moved_in_front(&self, ahead: &[Extent]) -> usize {
        let mut places = 0;
        for (moved, extent) in ahead.iter().take(DETOUR_EXTENTS_MAX).enumerate() {
            let (before, rest) = ahead.split_at(moved);
            if moved > 0
                && extent.slot == places
                && !self.homes.contains(&extent.track)
                && before.iter().all(|other| other.track != extent.track)
                && sectors_near(rest) > places
            {
                return moved;
            }
            places += extent.len;
        }
        0
    }

    /// Returns true if the extent ahead holds sectors from the end of a track. There are few of these, on a track
    /// that the next addresses are not on either.
    fn is_moved(&self, home: &Home, ahead: &[Extent]) -> bool {
        let is_short = sectors_near(ahead) < home.slots / 2;
        self.homes.contains(&ahead[0].track) || is_short && self.moved_in_front(ahead) == 0
    }

    fn slots(&self, extent: &Extent) -> Result<(&Zone, u32), ImportError> {
        let (cylinder, _) = extent.track;
        let has = |zone: &&Zone| zone.cylinders[0] <= cylinder && cylinder <= zone.cylinders[1];
        let Some(zone) = self.zones.iter().find(has) else {
            let message = format!("cylinder {cylinder} is in no zone");
            return Err(self.error(extent, message));
        };
        let slots = zone.sectors_per_track;
        if extent.slot + extent.len > slots {
            let message = format!(
                "sectors {} to {} of a track, which has {slots}",
                extent.slot,
                extent.slot + extent.len - 1
            );
            return Err(self.error(extent, message));
        }
        Ok((zone, slots))
    }

    /// Begins a track: the one of an extent, from that or `at_front` from slot 0 on.
    fn open(&mut self, extent: &Extent, at_front: bool) -> Result<Home, ImportError> {
        let (zone, slots) = self.slots(extent)?;
        let (cylinder, head) = extent.track;
        let is_first = match self.last {
            Some((last, _)) => !(zone.cylinders[0]..=zone.cylinders[1]).contains(&last),
            None => true,
        };
        let turned = if is_first {
            zone.offset
        } else if self.last.is_some_and(|(last, _)| last != cylinder) {
            self.turned + zone.cylinder_skew
        } else {
            self.turned + zone.track_skew
        };
        self.turned = turned - libm::floor(turned);
        self.last = Some((cylinder, head));
        if !self.homes.insert(extent.track) {
            let message = format!("head {head} of cylinder {cylinder} has other addresses, too");
            return Err(self.error(extent, message));
        }
        let width = 1.0 / f64::from(slots);
        let first_slot = if at_front { 0 } else { extent.slot };
        let offset = self.turned + f64::from(first_slot) * width;
        Ok(Home {
            track: extent.track,
            places: self.places,
            first_slot,
            next: first_slot,
            slots,
            offset: offset - libm::floor(offset),
        })
    }

    /// Continues on a track, over slipped slots.
    fn go_on(&mut self, home: &mut Home, extent: &Extent) -> Result<(), ImportError> {
        self.slots(extent)?;
        let slipped = extent.slot - home.next;
        if slipped > 0 {
            let place = home.places + u64::from(home.next - home.first_slot);
            self.map.slips.push((place, u64::from(slipped)));
        }
        home.next = extent.slot + extent.len;
        Ok(())
    }

    fn move_to(&mut self, extent: &Extent) -> Result<(), ImportError> {
        let (_, slots) = self.slots(extent)?;
        let (cylinder, head) = extent.track;
        self.map.remaps.push(MapRemap {
            address: extent.address,
            count: extent.len,
            cylinder,
            head,
            slot: extent.slot,
        });
        // Needed where no address runs over that track; the file does not say how it is turned.
        self.map.spare_tracks.push(SpareTrack {
            cylinder,
            head,
            sectors_per_track: slots,
            offset: 0.0,
        });
        Ok(())
    }

    fn close(&mut self, home: &Home) {
        let places = u64::from(home.next - home.first_slot);
        self.places = home.places + places;
        self.strips.push(Strip {
            cylinder: home.track.0 as i32,
            step: 1,
            offset: home.offset,
            skew: 0.0,
            places,
            run: places,
            of: MapPart::Track {
                head: home.track.1,
                first_slot: home.first_slot,
                sectors_per_track: home.slots,
            },
        });
    }
}
