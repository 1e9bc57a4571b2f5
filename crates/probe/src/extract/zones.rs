//! Conversion of rows of tracks, in the order of addresses, to the zones of a profile.
//!
//! A zone continues while the tracks match its parameters (track length and skews). The next zone starts at the first mismatch.

use super::shape::{Shape, Spared};
use super::strips::{Strip, strips};
use super::turns::{near, part};
use super::zone::FoundZone;
use headtime_disk::profile::{Skew, Zone};

/// Difference of equal angles, in sectors, at most.
const EQUAL_ANGLE_SECTORS: f64 = 0.3;
/// Difference of equal angles, in sectors, at most, on tracks of thousands of sectors.
const SAME_OF_MANY: f64 = 0.45;
/// Most slips before a track that rotate the track.
const MOST_TURNED: f64 = 64.0;

/// Zones of a profile with the given [`Shape`]. Angles in zones are the starts of sectors.
///
/// `gaps` are the known cylinders without data before each zone. `late` maps a track length to the delay from the start of a sector to its
/// answer, in turns.
pub(super) fn zones(
    found: &[FoundZone],
    shape: Shape,
    gaps: &[u32],
    coarse: f64,
    late: impl Fn(u64) -> f64,
) -> Vec<Zone> {
    let same = SAME_OF_MANY * coarse.max(1.0);
    let strips = strips(found, same, shape.group == 1);
    let mut taken = Taken {
        strips: &strips,
        next: 0,
        rest: None,
        tracks: 0,
    };
    let mut zones: Vec<Zone> = Vec::new();
    let mut cylinder = 0_u32;
    // Tracks outside of zones since the last zone.
    let mut between = 0;
    while taken.peek().is_some() {
        let tracks = taken.tracks;
        let (mut zone, addresses) = match shape.group {
            1 => by_cylinder(&mut taken, shape),
            _ => by_surface(&mut taken, shape, (same, coarse > 0.0), &late),
        };
        // Tracks without any address form no zone, but the arm passes them.
        if addresses == 0 {
            between += taken.tracks - tracks;
            continue;
        }
        let gap = gaps.get(zones.len()).copied().unwrap_or(0);
        let cylinders = zone.last_cylinder + 1;
        // A zone starts with a cylinder, even if the previous zone ends within its last cylinder. Only whole cylinders count as between.
        let whole = std::mem::take(&mut between) / shape.heads;
        zone.first_cylinder = cylinder + whole as u32 + gap;
        zone.last_cylinder = zone.first_cylinder + cylinders - 1;
        cylinder = zone.last_cylinder + 1;
        if let Skew::Turns(offset) = zone.offset {
            // The delay is the same for all heads. With track lengths by head, the first head's length counts.
            let first = zone
                .by_head
                .first()
                .copied()
                .unwrap_or(zone.sectors_per_track);
            zone.offset = Skew::Turns(part(offset - late(u64::from(first))));
        }
        zones.push(zone);
    }
    zones
}

/// A queue of strips of tracks.
struct Taken<'s> {
    strips: &'s [Strip],
    next: usize,
    /// Rest of the last strip that was taken in part.
    rest: Option<Strip>,
    /// Number of tracks taken so far.
    tracks: u64,
}

impl Taken<'_> {
    fn peek(&self) -> Option<&Strip> {
        self.rest.as_ref().or_else(|| self.strips.get(self.next))
    }

    /// Strip behind the next strip.
    fn second(&self) -> Option<&Strip> {
        match self.rest {
            Some(_) => self.strips.get(self.next),
            None => self.strips.get(self.next + 1),
        }
    }

    /// Takes up to `tracks` tracks of the next strip.
    fn take(&mut self, tracks: u64) -> Option<Strip> {
        let strip = self.peek()?.clone();
        if self.rest.take().is_none() {
            self.next += 1;
        }
        let (front, rest) = strip.split(tracks);
        self.rest = rest;
        self.tracks += front.row.tracks;
        Some(front)
    }
}

/// Addresses and slips of a zone so far.
struct Filled {
    start: u64,
    end: u64,
    /// Slipped places, counted as a zone counts them.
    slips: Vec<u64>,
}

impl Filled {
    fn of(strip: &Strip) -> Filled {
        Filled {
            start: strip.start,
            end: strip.start,
            slips: Vec::new(),
        }
    }

    /// Adds a strip whose first place is `base` in the zone. Tracks of the strip have `row.data` places with data and
    /// `row.slots` places in all.
    fn add(&mut self, strip: &Strip, base: u64) {
        let (data, slots) = (strip.row.data, strip.row.slots);
        self.end = strip.end;
        self.slips.extend(
            strip
                .slips
                .iter()
                .map(|slip| base + slip / data * slots + slip % data),
        );
    }
}

fn turns(angle: f64) -> Skew {
    Skew::Turns(part(angle))
}

/// Builds a zone whose addresses pass through all heads of a cylinder before the next cylinder. Returns the zone, with cylinders counted
/// from 0, and its number of addresses.
fn by_cylinder(taken: &mut Taken<'_>, shape: Shape) -> (Zone, u64) {
    let heads = shape.heads;
    let first = taken.peek().expect("looked").clone();
    let slots = first.row.slots;
    let same = |strip: &&Strip| strip.row.slots == slots;
    // The first long row gives the track skew, and the first consecutive rows give the cylinder skew.
    let ahead: Vec<&Strip> = (taken.rest.iter())
        .chain(&taken.strips[taken.next..])
        .take(3 * heads as usize + 24)
        .take_while(same)
        .collect();
    let skew = ahead.iter().filter(|strip| strip.row.tracks > 1);
    let skew = skew
        .max_by_key(|strip| strip.row.tracks)
        .map(|strip| strip.row.skew);
    // Start of each strip: number of tracks before the strip, and angle of its first place.
    let begins: Vec<(u64, f64, &Strip)> = {
        let mut tracks = 0;
        let begin = |strip: &&Strip| {
            let at = tracks;
            tracks += strip.row.tracks;
            (at, strip.angle)
        };
        let all: Vec<(u64, f64)> = ahead.iter().map(begin).collect();
        all.into_iter()
            .zip(&ahead)
            .map(|((at, angle), strip)| (at, angle, *strip))
            .collect()
    };
    // Number of tracks that are missing at the front of the first cylinder. Later cylinders start where the skew changes.
    let missing = match (&begins[..], skew) {
        ([(0, _, one), (at, ..), (next, ..), ..], Some(_))
            if *at < heads
                && (next - at) % heads == 0
                && one.row.data == slots
                && matches!(shape.spared, Spared::ZoneEnd) =>
        {
            heads - at
        }
        _ => 0,
    };
    let track_skew = skew.unwrap_or(0.0);
    // Rotations of the first track of each cylinder against the last track of the previous cylinder.
    let mut steps: Vec<f64> = begins
        .windows(2)
        .filter(|pair| (missing + pair[1].0) % heads == 0)
        .map(|pair| near(pair[1].1 - pair[0].1 - track_skew * (pair[1].0 - pair[0].0 - 1) as f64))
        .collect();
    if shape.spared == Spared::CylinderFront {
        // The first track of a cylinder is short at its front.
        steps = begins
            .windows(3)
            .filter(|three| (three[2].0 - three[0].0) == heads && three[0].2.row.data < slots)
            .map(|three| near(three[2].1 - three[0].1 - track_skew * (heads - 1) as f64))
            .collect();
    }
    let step = super::turns::median(&mut steps).unwrap_or(track_skew);
    let short = slots - first.row.data;
    // The first track is short at its front if the next track is rotated accordingly.
    let is_front = match (shape.spared, &begins[..]) {
        (Spared::CylinderFront, _) => short > 0,
        (Spared::ZoneEnd, [(_, angle, _), (1, next, _), ..]) => {
            let turned = near(next - angle - track_skew) * slots as f64;
            short > 0 && (turned + short as f64).abs() < EQUAL_ANGLE_SECTORS
        }
        _ => false,
    };
    let short = if is_front { short } else { 0 };
    let offset = first.angle - short as f64 / slots as f64 - track_skew * missing as f64;
    let expected = |track: u64| {
        let cylinders = track / heads;
        offset + step * cylinders as f64 + track_skew * (track - cylinders) as f64
    };
    let mut filled = Filled::of(&first);
    let mut track = missing;
    let mut spared = 0;
    let mut turned = 0;
    // Places of the last track up to its last address, and the number of places behind the last address of each range.
    let mut last_data = slots;
    let mut behind: Vec<f64> = Vec::new();
    let mut turns_seen: Vec<(u64, u64)> = Vec::new();
    while let Some(strip) = taken.peek() {
        if strip.row.slots != slots {
            break;
        }
        if let Spared::Range(range) = shape.spared {
            // The last tracks of a range may consist of spares only.
            let each = u64::from(range) * heads;
            let end = track.next_multiple_of(each);
            let is_at = |track| {
                near(strip.angle - expected(track)).abs() * (slots as f64) < EQUAL_ANGLE_SECTORS
            };
            let is_short = end - track < heads && !is_at(track) && is_at(end);
            let next = if is_short { end } else { track };
            if next > 0 && next % each == 0 && track > missing {
                behind.push(((next - track + 1) * slots - last_data) as f64);
            }
            track = next;
        }
        let front = match shape.spared {
            Spared::CylinderFront if track % heads == 0 => slots - strip.row.data,
            Spared::ZoneEnd if track == missing => short,
            _ => 0,
        };
        let off = near(strip.angle - expected(track)) * slots as f64 - front as f64 - turned as f64;
        let more = libm::round(off);
        let turns = matches!(
            shape.spared,
            Spared::TrackEnd | Spared::CylinderEnd | Spared::CylinderFront
        );
        let fits = (off - more).abs() < EQUAL_ANGLE_SECTORS
            && (more == 0.0 || turns && (0.0..MOST_TURNED).contains(&more));
        if track > missing && !fits {
            break;
        }
        if more > 0.0 {
            turns_seen.push((track, more as u64));
            turned += more as u64;
        }
        // A new zone may, by chance, start as a continuation of the old zone. Each cylinder is therefore checked separately.
        let tracks = match near(step - track_skew).abs() * (slots as f64) < EQUAL_ANGLE_SECTORS {
            true => strip.row.tracks,
            false => strip.row.tracks.min(heads - track % heads),
        };
        let strip = taken.take(tracks).expect("looked");
        filled.add(&strip, track * slots + front);
        track += tracks;
        last_data = strip.row.data;
        if matches!(shape.spared, Spared::ZoneEnd) && strip.row.data + front < slots {
            // A cut track is the last track of the zone.
            break;
        }
        match shape.spared {
            Spared::ZoneEnd => {}
            // At the end of the drive a track may be cut anywhere.
            _ if taken.peek().is_some() => spared = spared.max(slots - strip.row.data),
            _ => {}
        }
    }
    let addresses = filled.end - filled.start;
    let in_front = missing * slots
        + if shape.spared == Spared::ZoneEnd {
            short
        } else {
            0
        };
    let needed = in_front + addresses + filled.slips.len() as u64;
    let cylinders = track.div_ceil(heads).max(needed.div_ceil(heads * slots));
    let room = cylinders * heads * slots;
    let mut reserved = in_front;
    let mut begin = offset;
    let left = (room - reserved).saturating_sub(addresses);
    let is_last = taken.peek().is_none();
    let spares = match area(shape, slots) {
        None => left,
        Some((places, in_zone)) => {
            let areas = in_zone(cylinders);
            let first_slot = slots - first.row.data;
            if areas == 0 && !is_last && left % slots == first_slot && filled.slips.is_empty() {
                // Part of an area has no spares. Addresses fill the last places.
                begin += first.angle - first_slot as f64 / slots as f64 - expected(left / slots);
                reserved = left;
            }
            let areas = areas.max(1);
            // All areas have the same number of spares. The drive may end before its last zone does.
            let spares = match super::turns::median(&mut behind) {
                Some(spares) => spares as u64,
                None if is_last => spared,
                None => left / areas,
            };
            // If the first track is whole, nothing is reserved in front, and all remaining places are behind the areas.
            let spares = match first_slot == 0 && !is_last {
                true => spares.max(left / areas),
                false => spares,
            };
            if !is_last && reserved == in_front {
                reserved += left.saturating_sub(spares * areas);
            }
            filled.slips = fitting(&filled.slips, &turns_seen, slots, places, spares, room);
            spares
        }
    };
    filled.slips.sort_unstable();
    filled.slips.dedup();
    let zone = Zone {
        first_cylinder: 0,
        last_cylinder: cylinders as u32 - 1,
        sectors_per_track: slots as u32,
        by_head: Vec::new(),
        tracks_per_surface: None,
        offset: turns(begin),
        track_skew: turns(track_skew),
        cylinder_skew: turns(step),
        group_skew: None,
        reserved,
        spares,
        slips: filled.slips,
        remaps: Vec::new(),
    };
    (zone, addresses)
}

/// Places per spare area, and a function from a number of cylinders to the number of areas. `None` if the zone has its spares at the end.
#[allow(clippy::type_complexity)]
fn area(shape: Shape, slots: u64) -> Option<(u64, Box<dyn Fn(u64) -> u64>)> {
    let heads = shape.heads;
    match shape.spared {
        Spared::ZoneEnd => None,
        Spared::TrackEnd => Some((slots, Box::new(move |cylinders| cylinders * heads))),
        Spared::CylinderEnd | Spared::CylinderFront => {
            Some((heads * slots, Box::new(|cylinders| cylinders)))
        }
        Spared::Range(range) => {
            let range = u64::from(range);
            Some((
                range * heads * slots,
                Box::new(move |cylinders| cylinders / range),
            ))
        }
    }
}

/// Slips that the spares of their areas can take. Adds the slips that rotated tracks unseen, among the spares of the areas before these
/// tracks.
fn fitting(
    slips: &[u64],
    turned: &[(u64, u64)],
    slots: u64,
    places: u64,
    spares: u64,
    room: u64,
) -> Vec<u64> {
    let mut used: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let mut fitting = Vec::new();
    for slip in slips {
        let area = slip / places;
        let used = used.entry(area).or_default();
        let is_spare = slip % places >= places - spares.min(places);
        if *used < spares && !is_spare && (area + 1) * places <= room {
            *used += 1;
            fitting.push(*slip);
        }
    }
    // Visible slips account for part of the rotation behind them.
    let mut known = 0;
    let mut at = 0;
    fitting.sort_unstable();
    let seen = fitting.clone();
    let mut all = 0;
    for &(track, more) in turned {
        all += more;
        while at < seen.len() && seen[at] < track * slots {
            at += 1;
            known += 1;
        }
        let mut area = track * slots / places;
        while known < all && area > 0 {
            area -= 1;
            let used = used.entry(area).or_default();
            while *used < spares && known < all {
                *used += 1;
                known += 1;
                fitting.push((area + 1) * places - *used);
            }
        }
    }
    fitting
}

/// Builds a zone whose addresses pass along a surface of a group of cylinders, then back on the next surface. Returns the zone, with
/// cylinders counted from 0, and its number of addresses.
fn by_surface(
    taken: &mut Taken<'_>,
    shape: Shape,
    (same, varies): (f64, bool),
    late: impl Fn(u64) -> f64,
) -> (Zone, u64) {
    let heads = shape.heads;
    let first = taken.peek().expect("looked").clone();
    // All surfaces of a group form a single row if all steps have the same skew.
    let merged = shape.row == shape.group * heads && heads > 1;
    let mut group = match merged {
        true => first.row.tracks.div_ceil(heads),
        false => first.row.tracks,
    };
    let mut missing = 0;
    // The drive may reserve the first tracks of its first group.
    if let (0, Some(second)) = (first.start, taken.second())
        && second.row.slots == first.row.slots
        && second.row.tracks > first.row.tracks
        && second.row.data == second.row.slots
    {
        missing = second.row.tracks - first.row.tracks;
        group = match merged {
            true => second.row.tracks.div_ceil(heads),
            false => second.row.tracks,
        };
    }
    let mut by_head: Vec<u64> = Vec::new();
    let mut filled = Filled::of(&first);
    let mut skews = Skews::default();
    let (mut groups, mut rest) = (0, 0);
    let mut base = missing * first.row.slots;
    let mut last: Option<Strip> = None;
    'groups: loop {
        let mut length = group;
        // Every other group runs from the last surface to the first.
        let is_forward = groups % 2 == 0;
        for surface in 0..heads {
            let head = match is_forward {
                true => surface,
                false => heads - 1 - surface,
            };
            let known = by_head.get(head as usize).copied();
            let Some(strip) = taken.peek() else {
                break 'groups;
            };
            // A short group is the remainder of the zone. The strip at its front gives its length.
            if surface == 0 && groups > 0 {
                let here = if merged {
                    strip.row.tracks.div_ceil(heads)
                } else {
                    strip.row.tracks
                };
                if here < group {
                    length = here;
                }
            }
            let slots = strip.row.slots;
            if known.is_some_and(|known| known != slots) {
                break 'groups;
            }
            if let Some(last) = &last {
                // On longer tracks the answer comes sooner after the start of a sector.
                let later = late(slots) - late(last.row.slots);
                let turned = near(strip.angle - last.last_angle() - later);
                let way = match surface {
                    0 => Way::Group,
                    _ => Way::Track,
                };
                if !skews.fits(way, turned, same / slots as f64) {
                    break 'groups;
                }
                skews.note(way, turned);
                skews.passed[way as usize] += 1;
                skews.later += later;
            }
            if known.is_none() {
                by_head.push(slots);
            }
            if surface == 0 && groups > 0 && length < group {
                rest = length;
            } else if surface == 0 {
                groups += 1;
            }
            // Take the tracks along the surface. A cut track is the last track of the zone.
            let wanted = match (groups, surface) {
                (1, 0) => length - missing.min(length),
                _ => length,
            };
            let mut left = wanted;
            while left > 0 {
                let Some(strip) = taken.peek() else { break };
                if strip.row.slots != slots {
                    break;
                }
                if left < wanted {
                    let turned = last
                        .as_ref()
                        .map_or(0.0, |last| strip.angle - last.last_angle());
                    if !skews.fits(Way::Cylinder, near(turned), same / slots as f64) {
                        break;
                    }
                }
                let strip = taken.take(left).expect("looked");
                if strip.row.tracks > 1 {
                    skews.note(Way::Cylinder, strip.row.skew);
                }
                filled.add(&strip, base);
                base += strip.row.tracks * slots;
                skews.passed[Way::Cylinder as usize] += match left < wanted {
                    true => strip.row.tracks,
                    false => strip.row.tracks - 1,
                };
                left -= strip.row.tracks;
                let cut = strip.row.data < slots;
                last = Some(strip);
                if cut {
                    break 'groups;
                }
            }
            base += left * slots;
        }
        if rest > 0 {
            break;
        }
    }
    by_head.resize(heads as usize, first.row.slots);
    let per_cylinder: u64 = by_head.iter().sum();
    let addresses = filled.end - filled.start;
    let needed = missing * first.row.slots + addresses + filled.slips.len() as u64;
    // The zone needs room for all its addresses, even where the layout was not understood.
    let cylinders = (groups * group + rest)
        .max(1)
        .max(needed.div_ceil(per_cylinder));
    let most = by_head.iter().copied().max().expect("a head");
    let uneven = by_head.iter().any(|slots| *slots != most);
    let room = per_cylinder * cylinders;
    let reserved = missing * first.row.slots;
    let [track, mut cylinder, group_skew] = skews.turns();
    if varies && let Some(last) = &last {
        cylinder += skews.drift(
            [track, cylinder, group_skew],
            last.last_angle() - first.angle,
        );
    }
    let zone = Zone {
        first_cylinder: 0,
        last_cylinder: cylinders as u32 - 1,
        sectors_per_track: most as u32,
        by_head: match uneven {
            true => by_head.iter().map(|slots| *slots as u32).collect(),
            false => Vec::new(),
        },
        tracks_per_surface: (group != shape.group).then_some(group as u32),
        offset: turns(first.angle - cylinder * missing as f64),
        track_skew: turns(track),
        cylinder_skew: turns(cylinder),
        group_skew: Some(turns(group_skew)),
        reserved,
        spares: (room - reserved.min(room)).saturating_sub(addresses),
        slips: filled.slips,
        remaps: Vec::new(),
    };
    (zone, addresses)
}

/// Kind of step from a track to the next track.
#[derive(Clone, Copy)]
enum Way {
    Track,
    Cylinder,
    Group,
}

/// Skews of a zone's tracks, by kind of step.
#[derive(Default)]
struct Skews {
    /// All measured skews, minus the first skew of each kind.
    seen: [Vec<f64>; 3],
    first: [f64; 3],
    /// Number of steps of each kind, and the total change of the answer delay by track lengths, in turns.
    passed: [u64; 3],
    later: f64,
}

impl Skews {
    fn fits(&self, way: Way, turned: f64, same: f64) -> bool {
        let last = self.seen[way as usize].last();
        last.is_none_or(|last| {
            let known = self.first[way as usize] + last;
            near(turned - known).abs() < same
        })
    }

    fn note(&mut self, way: Way, turned: f64) {
        let seen = &mut self.seen[way as usize];
        if seen.is_empty() {
            self.first[way as usize] = turned;
        }
        seen.push(near(turned - self.first[way as usize]));
    }

    /// Median skew of a kind of step. Many repetitions make it more exact than the rows that first showed the rule.
    fn known(&mut self, way: Way) -> Option<f64> {
        let middle = super::turns::median(&mut self.seen[way as usize]);
        middle.map(|middle| self.first[way as usize] + middle)
    }

    /// Correction of the cylinder skew that makes all steps together rotate by `turned`. Where answers vary, the errors of the medians
    /// would add up over thousands of tracks.
    fn drift(&self, skews: [f64; 3], turned: f64) -> f64 {
        let of = |(skew, passed): (f64, u64)| skew * passed as f64;
        let said: f64 = skews.into_iter().zip(self.passed).map(of).sum();
        near(turned - said - self.later) / self.passed[Way::Cylinder as usize].max(1) as f64
    }

    /// Skews to the next head, the next cylinder, and the next group.
    fn turns(&mut self) -> [f64; 3] {
        let [track, cylinder, group] =
            [Way::Track, Way::Cylinder, Way::Group].map(|way| self.known(way));
        let cylinder = cylinder.or(track).unwrap_or(0.0);
        [
            track.unwrap_or(cylinder),
            cylinder,
            group.unwrap_or(cylinder),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone::{Fault, Row};
    use super::*;

    #[test]
    fn all_tracks_together_are_turned_as_they_were() {
        let skews = Skews {
            passed: [3, 70_000, 1],
            later: 0.01,
            ..Skews::default()
        };
        // The rotation per cylinder exceeds the median by a ten-millionth of a turn.
        let turned = 3.0 * 0.1 + 70_000.0 * (0.02 + 1e-7) + 0.3 + 0.01;
        let more = skews.drift([0.1, 0.02, 0.3], part(turned));
        assert!((more - 1e-7).abs() < 1e-12, "{more}");
        let none = Skews::default().drift([0.1, 0.02, 0.3], 0.0);
        assert_eq!(none, 0.0);
    }

    #[test]
    fn tracks_of_which_each_place_is_slipped_are_no_zone() {
        // The slipped places: the last two of the first row, all of the second row, and one of the third row.
        let row = |(tracks, slots): (u64, u64)| Row {
            tracks,
            slots,
            data: slots,
            enter: 0.05,
            skew: 0.05,
        };
        let fault = Fault {
            at: 1_018,
            places: 15,
            turned: 0.0,
        };
        let found = FoundZone {
            start: 1_000,
            end: 1_047,
            angle: 0.0,
            rows: [(2, 10), (1, 12), (3, 10)].map(row).to_vec(),
            cycle: 0,
            faults: vec![fault],
        };
        let shape = Shape {
            row: 1,
            heads: 1,
            group: 1,
            backward: false,
            spared: Spared::ZoneEnd,
        };
        let zones = zones(&[found], shape, &[], 0.0, |_| 0.0);
        let addresses = |zone: &Zone| {
            let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
            let places = tracks * u64::from(zone.sectors_per_track);
            // Slips use spares.
            places - zone.spares - zone.reserved
        };
        let each: Vec<u64> = zones.iter().map(addresses).collect();
        assert!(each.iter().all(|addresses| *addresses > 0), "{each:?}");
        assert_eq!(each.iter().sum::<u64>(), 47);
        // Two cylinders, then the slipped cylinder, then three.
        let cylinders: Vec<(u32, u32)> = zones
            .iter()
            .map(|zone| (zone.first_cylinder, zone.last_cylinder))
            .collect();
        assert_eq!(cylinders, [(0, 1), (3, 5)]);
    }
}
