//! A map with its repetitions written out.

use crate::layout::place::{fraction, step_of};
use crate::profile::{MapPart, MapSpec, Strip};
use headtime_units::{Angle, Cylinder, Head, Track};

/// Strips that a map may have when its repetitions are written out: as many as a large drive has tracks.
const MOST_STRIPS: usize = 1 << 21;
/// Most levels of groups within groups; real maps have three.
const GROUP_LEVELS_MAX: usize = 16;
/// Places that a map may have; keeps products in 64 bits.
const MOST_PLACES: u64 = 1 << 40;

/// Adjacent tracks of one head. All have the same number of places, except perhaps the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flat {
    /// The first place.
    pub(super) first: u64,
    /// Places in all.
    pub(super) run: u64,
    /// Places on a track.
    pub(super) places: u32,
    pub(super) tracks: u32,
    /// The first track's cylinder. `descends` is true if the next tracks are on lower cylinders.
    cylinder: u32,
    pub(super) descends: bool,
    pub(super) head: u16,
    /// The slot of the first place of each track.
    pub(super) first_slot: u32,
    pub(super) sectors_per_track: u32,
    /// Angle of the first place of the first track, and the skew of each track against its predecessor, in 2^64ths of a
    /// turn.
    zero: u64,
    skew: u64,
    /// 2^64 / `sectors_per_track`, rounded down.
    pub(super) step: u64,
}

impl Flat {
    pub(super) fn low(&self) -> u32 {
        if self.descends {
            self.cylinder - (self.tracks - 1)
        } else {
            self.cylinder
        }
    }

    pub(super) fn high(&self) -> u32 {
        self.low() + (self.tracks - 1)
    }

    pub(super) fn end(&self) -> u64 {
        self.first + self.run
    }

    pub(super) fn track(&self, along: u32) -> Track {
        let cylinder = if self.descends {
            self.cylinder - along
        } else {
            self.cylinder + along
        };
        Track {
            cylinder: Cylinder(cylinder),
            head: Head(self.head),
        }
    }

    /// The track on a cylinder that the strip covers.
    pub(super) fn along(&self, cylinder: u32) -> u32 {
        cylinder.abs_diff(self.cylinder)
    }

    /// The first place of a track, and the number of its places.
    pub(super) fn places_of(&self, along: u32) -> (u64, u32) {
        let before = u64::from(along) * u64::from(self.places);
        let rest = (self.run - before).min(u64::from(self.places));
        (self.first + before, rest as u32)
    }

    /// Angle at which the first place of a track begins.
    pub(super) fn zero_of(&self, along: u32) -> Angle {
        let turned = self.skew.wrapping_mul(u64::from(along));
        Angle::from_bits((self.zero.wrapping_add(turned) >> 32) as u32)
    }
}

/// Why a part of a map does not fit.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The key in the map: `groups[1].strips[7]`.
    pub(crate) key: String,
    /// The fault, and the allowed values.
    pub(crate) why: String,
}

impl Misfit {
    pub(super) fn new(key: impl Into<String>, why: impl Into<String>) -> Misfit {
        Misfit {
            key: key.into(),
            why: why.into(),
        }
    }

    fn strip(group: usize, strip: usize, why: impl Into<String>) -> Misfit {
        Misfit::new(format!("groups[{group}].strips[{strip}]"), why)
    }
}

/// Writes out a map's repetitions.
struct Writer<'m> {
    map: &'m MapSpec,
    cylinders: u32,
    heads: u16,
    flats: Vec<Flat>,
    first: u64,
}

impl Writer<'_> {
    /// Writes out a repetition of a group, as far as there is `room`.
    fn group(
        &mut self,
        group: usize,
        cylinder: i64,
        turned: u64,
        mut room: u64,
        depth: usize,
    ) -> Result<(), Misfit> {
        if depth > GROUP_LEVELS_MAX {
            let why = format!("groups in groups more than {GROUP_LEVELS_MAX} deep");
            return Err(Misfit::new(format!("groups[{group}]"), why));
        }
        for (index, strip) in self.map.groups[group].iter().enumerate() {
            let run = strip.run.min(room);
            room -= run;
            if run == 0 {
                break;
            }
            let cylinder = cylinder + i64::from(strip.cylinder);
            let turned = turned.wrapping_add(fraction(strip.offset));
            match strip.of {
                MapPart::Track { .. } => self.tracks(group, index, cylinder, turned, run)?,
                MapPart::Group(part) => {
                    let skew = fraction(strip.skew);
                    for repetition in 0..run.div_ceil(strip.places) {
                        let before = repetition * strip.places;
                        let steps = repetition as i64 * i64::from(strip.step);
                        self.group(
                            part,
                            cylinder + steps,
                            turned.wrapping_add(skew.wrapping_mul(repetition)),
                            strip.places.min(run - before),
                            depth + 1,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes out tracks.
    fn tracks(
        &mut self,
        group: usize,
        index: usize,
        cylinder: i64,
        turned: u64,
        run: u64,
    ) -> Result<(), Misfit> {
        let strip: &Strip = &self.map.groups[group][index];
        let MapPart::Track {
            head,
            first_slot,
            sectors_per_track,
        } = strip.of
        else {
            return Ok(());
        };
        let tracks = run.div_ceil(strip.places);
        let last = i64::try_from(tracks - 1)
            .ok()
            .and_then(|steps| steps.checked_mul(i64::from(strip.step)))
            .and_then(|way| way.checked_add(cylinder));
        let on_disk = |at: i64| (0..i64::from(self.cylinders)).contains(&at);
        if !on_disk(cylinder) || !last.is_some_and(on_disk) || head >= self.heads {
            let why = format!(
                "head {head}, cylinders {cylinder} to {}; the disk has heads below {} and cylinders \
                 below {}",
                last.map_or("beyond all numbers".to_string(), |last| last.to_string()),
                self.heads,
                self.cylinders
            );
            return Err(Misfit::strip(group, index, why));
        }
        let whole = Flat {
            first: self.first,
            run,
            places: strip.places as u32,
            tracks: tracks as u32,
            cylinder: cylinder as u32,
            descends: strip.step < 0,
            head,
            first_slot,
            sectors_per_track,
            zero: turned,
            skew: fraction(strip.skew),
            step: step_of(sectors_per_track),
        };
        self.first += run;
        if tracks == 1 || strip.step.abs() == 1 {
            return self.push(whole);
        }
        // The tracks are not adjacent, so each becomes a strip.
        for along in 0..tracks {
            let (first, run) = whole.places_of(along as u32);
            self.push(Flat {
                first,
                run: u64::from(run),
                tracks: 1,
                cylinder: (cylinder + along as i64 * i64::from(strip.step)) as u32,
                descends: false,
                zero: turned.wrapping_add(whole.skew.wrapping_mul(along)),
                ..whole
            })?;
        }
        Ok(())
    }

    fn push(&mut self, flat: Flat) -> Result<(), Misfit> {
        if self.flats.len() == MOST_STRIPS {
            let why = format!("more than {MOST_STRIPS} strips with all repetitions");
            return Err(Misfit::new("groups", why));
        }
        self.flats.push(flat);
        Ok(())
    }
}

/// The strips of a map with its repetitions written out, in the order of places.
pub(super) fn flatten(map: &MapSpec, cylinders: u32, heads: u16) -> Result<Vec<Flat>, Misfit> {
    let mut sizes: Vec<u64> = Vec::new();
    for (group, strips) in map.groups.iter().enumerate() {
        if strips.is_empty() {
            let key = format!("groups[{group}].strips");
            return Err(Misfit::new(key, "a group has at least one strip"));
        }
        let mut size = 0_u64;
        for (index, strip) in strips.iter().enumerate() {
            check_strip(strip, &sizes).map_err(|why| Misfit::strip(group, index, why))?;
            size = size.saturating_add(strip.run);
        }
        if size > MOST_PLACES {
            let why = format!("{size} places; there can be {MOST_PLACES}");
            return Err(Misfit::new(format!("groups[{group}]"), why));
        }
        sizes.push(size);
    }
    let Some(&size) = sizes.last() else {
        return Err(Misfit::new("groups", "a map has at least one group"));
    };
    let mut writer = Writer {
        map,
        cylinders,
        heads,
        flats: Vec::new(),
        first: 0,
    };
    writer.group(sizes.len() - 1, 0, 0, size, 0)?;
    Ok(writer.flats)
}

/// Checks a strip on its own. `sizes` has the sizes of the earlier groups.
fn check_strip(strip: &Strip, sizes: &[u64]) -> Result<(), String> {
    if strip.places == 0 || strip.run == 0 {
        return Err("0 places; a strip has at least one".to_string());
    }
    match strip.of {
        MapPart::Group(part) => match sizes.get(part) {
            None => Err(format!(
                "group {part} is not an earlier one; there are {} before this",
                sizes.len()
            )),
            Some(&size) if size < strip.places => Err(format!(
                "repetitions of {} places of group {part}, which has {size}",
                strip.places
            )),
            Some(_) => Ok(()),
        },
        MapPart::Track {
            first_slot,
            sectors_per_track,
            ..
        } => {
            if !(1..=65_535).contains(&sectors_per_track) {
                return Err(format!("{sectors_per_track} slots; a track has 1 to 65535"));
            }
            let slots = sectors_per_track.saturating_sub(first_slot);
            if strip.places > u64::from(slots) {
                return Err(format!(
                    "{} places from slot {first_slot} on; the track has {sectors_per_track} slots",
                    strip.places
                ));
            }
            Ok(())
        }
    }
}
