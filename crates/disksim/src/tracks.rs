//! Layouts by tables of tracks: `dm_layout_g4`.

use crate::error::ImportError;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::syntax::{Block, Entry, Value};
use headtime_disk::profile::{LayoutSpec, MapPart, MapRemap, MapSpec, SpareTrack, Strip};

/// More places than any disk has.
const PLACES_MAX: i64 = 1 << 48;
/// Largest step in cylinders, up or down.
const CYLINDER_STEP_MAX: i64 = 1 << 24;

/// A track pattern: the first slot that holds a sector, the last one, and all there are.
#[derive(Clone, Copy)]
struct Pattern {
    low: u32,
    high: u32,
    slots: u32,
}

/// Reads a `dm_layout_g4`: patterns of tracks, lists, slips and remaps. A list has tracks and other lists, and the
/// last list is the disk.
///
/// The form follows DiskSim's code and files. The manual leaves out the angles and the head.
pub(crate) fn layout(block: &Block, found: &mut Findings) -> Result<LayoutSpec, ImportError> {
    let fields = Fields::new(block);
    let patterns = patterns(fields.required_list("TP")?)?;
    let lists = fields.required_list("IDX")?;
    let mut groups = Vec::with_capacity(lists.len());
    for list in lists {
        let Value::List(items) = &list.value else {
            return Err(list.error("IDX", "should be lists in brackets"));
        };
        groups.push(group(lists.len(), items, &patterns)?);
    }
    let mut groups = in_order(groups).map_err(|index| {
        lists[index].error("IDX", "holds itself, by way of the lists that it names")
    })?;
    if let Some(beyond) = cut_last(&mut groups) {
        found.note(format!(
            "{}: the last {beyond} sectors of `IDX` are on no track and were left out",
            block.file
        ));
    }
    let mut map = MapSpec {
        groups,
        ..MapSpec::default()
    };
    let slips = fields.required_list("Slips")?;
    for pair in slips.chunks(2) {
        let [place, count] = pair else {
            return Err(pair[0].error("Slips", "should be pairs of a place and a number of places"));
        };
        let (place, count) = (
            place.count("Slips", PLACES_MAX as u64)?,
            count.count("Slips", PLACES_MAX as u64)?,
        );
        if count > 0 {
            map.slips.push((place, count));
        }
    }
    map.slips.sort_unstable();
    for six in fields.required_list("Remaps")?.chunks(6) {
        let [address, count, cylinder, head, slot, slots] = six else {
            let message = "should be sixes of an address, a number of sectors, a cylinder, a head, a \
                           sector and the track's sectors";
            return Err(six[0].error("Remaps", message));
        };
        let remap = MapRemap {
            address: address.count("Remaps", PLACES_MAX as u64)?,
            count: count.integer("Remaps", 1, 65_535)? as u32,
            cylinder: cylinder.integer("Remaps", 0, CYLINDER_STEP_MAX - 1)? as u32,
            head: head.integer("Remaps", 0, 254)? as u16,
            slot: slot.integer("Remaps", 0, 65_534)? as u32,
        };
        map.remaps.push(remap);
        // Needed where the track is in no strip. DiskSim knows no angle there, either.
        map.spare_tracks.push(SpareTrack {
            cylinder: remap.cylinder,
            head: remap.head,
            sectors_per_track: slots.integer("Remaps", 1, 65_535)? as u32,
            offset: 0.0,
        });
    }
    map.remaps.sort_unstable_by_key(|remap| remap.address);
    fields.finish(found)?;
    Ok(LayoutSpec::mapped(map))
}

fn patterns(entries: &[Entry]) -> Result<Vec<Pattern>, ImportError> {
    let mut patterns = Vec::with_capacity(entries.len() / 3);
    for three in entries.chunks(3) {
        let [low, high, slots] = three else {
            let message =
                "should be threes of a lowest and a highest sector and the track's sectors";
            return Err(three[0].error("TP", message));
        };
        let slots = slots.integer("TP", 1, 65_535)?;
        let high = high.integer("TP", 0, slots - 1)?;
        patterns.push(Pattern {
            low: low.integer("TP", 0, high)? as u32,
            high: high as u32,
            slots: slots as u32,
        });
    }
    Ok(patterns)
}

/// One of the lists of `IDX`.
fn group(lists: usize, items: &[Entry], patterns: &[Pattern]) -> Result<Vec<Strip>, ImportError> {
    const KEY: &str = "IDX";
    const FORM: &str = "should be lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen and then TRACK, a \
                        track pattern and a head, or IDX and a list";
    let mut strips: Vec<(u64, &Entry, Strip)> = Vec::new();
    let mut rest = items;
    while let Some(start) = rest.first() {
        let Some((common, after)) = rest.split_first_chunk::<8>() else {
            return Err(start.error(KEY, FORM));
        };
        let [lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen] = common;
        let first = lbn.count(KEY, PLACES_MAX as u64)?;
        let places = len.integer(KEY, 1, PLACES_MAX)? as u64;
        let step = cyllen.integer(KEY, -CYLINDER_STEP_MAX, CYLINDER_STEP_MAX)?;
        let inward = cylrunlen.integer(KEY, -CYLINDER_STEP_MAX, CYLINDER_STEP_MAX)? >= 0;
        let turns = |entry: &Entry| {
            let turns = entry.number(KEY, -65_535.0, 65_535.0)?;
            Ok::<_, ImportError>(turns - libm::floor(turns))
        };
        let kind = after.first().map(Entry::text).unwrap_or_default();
        let (of, used) = match (kind, after) {
            ("TRACK", [_, child, head, ..]) => {
                let most = patterns.len() as i64 - 1;
                let pattern = patterns[child.integer(KEY, 0, most)? as usize];
                let slots = u64::from(pattern.high - pattern.low + 1);
                if places > slots {
                    let message =
                        format!("{places} sectors on a track whose pattern has {slots} of them");
                    return Err(len.error(KEY, message));
                }
                let track = MapPart::Track {
                    head: head.integer(KEY, 0, 254)? as u16,
                    first_slot: pattern.low,
                    sectors_per_track: pattern.slots,
                };
                (track, 3)
            }
            ("IDX", [_, child, ..]) => {
                let part = child.integer(KEY, 0, lists as i64 - 1)? as usize;
                (MapPart::Group(part), 2)
            }
            _ => return Err(start.error(KEY, FORM)),
        };
        let strip = Strip {
            cylinder: cyl.integer(KEY, -CYLINDER_STEP_MAX, CYLINDER_STEP_MAX)? as i32,
            step: (if inward { step } else { -step }) as i32,
            offset: turns(off)?,
            skew: turns(alen)?,
            places,
            run: runlen.integer(KEY, 1, PLACES_MAX)? as u64,
            of,
        };
        strips.push((first, start, strip));
        rest = &after[used..];
    }
    strips.sort_by_key(|(first, ..)| *first);
    let mut end = 0;
    for (first, start, strip) in &strips {
        if *first != end {
            let message = format!("begins at lbn {first}, where the ones before it end at {end}");
            return Err(start.error(KEY, message));
        }
        end += strip.run;
    }
    Ok(strips.into_iter().map(|(.., strip)| strip).collect())
}

/// Ends the disk where the last of its lists ends; how many sectors that leaves out.
///
/// DiskSim's tools give the last list more sectors than it has, to make room for slips. No address is
/// there.
fn cut_last(groups: &mut [Vec<Strip>]) -> Option<u64> {
    let (disk, parts) = groups.split_last_mut()?;
    let last = disk.last_mut()?;
    let MapPart::Group(part) = last.of else {
        return None;
    };
    let size = parts[part].iter().map(|strip| strip.run).sum();
    if last.run > last.places || last.places <= size {
        return None;
    }
    let beyond = last.run.saturating_sub(size);
    last.places = size;
    last.run = last.run.min(size);
    (beyond > 0).then_some(beyond)
}

/// Groups of the last group, each after the groups that it names. The error is a group that contains itself.
fn in_order(groups: Vec<Vec<Strip>>) -> Result<Vec<Vec<Strip>>, usize> {
    let named = |group: usize| {
        groups[group].iter().filter_map(|strip| match strip.of {
            MapPart::Group(part) => Some(part),
            MapPart::Track { .. } => None,
        })
    };
    if (0..groups.len()).all(|group| named(group).all(|part| part < group)) {
        return Ok(groups);
    }
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done(usize),
    }
    let mut states = vec![State::New; groups.len()];
    let mut order: Vec<usize> = Vec::new();
    let mut open = vec![groups.len() - 1];
    while let Some(&group) = open.last() {
        if states[group] == State::New {
            states[group] = State::Open;
            if let Some(part) = named(group).find(|&part| states[part] == State::Open) {
                return Err(part);
            }
            open.extend(named(group).filter(|&part| states[part] == State::New));
            continue;
        }
        open.pop();
        if states[group] == State::Open {
            states[group] = State::Done(order.len());
            order.push(group);
        }
    }
    let place = |part: usize| match states[part] {
        State::Done(place) => place,
        State::New | State::Open => unreachable!("every group that is named was visited"),
    };
    let moved = |strip: &Strip| match strip.of {
        MapPart::Group(part) => Strip {
            of: MapPart::Group(place(part)),
            ..*strip
        },
        MapPart::Track { .. } => *strip,
    };
    let group = |&group: &usize| groups[group].iter().map(moved).collect();
    Ok(order.iter().map(group).collect())
}
