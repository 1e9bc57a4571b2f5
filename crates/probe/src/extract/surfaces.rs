//! Number of surfaces, and number of consecutive tracks on a surface.
//!
//! On an old drive rows of tracks repeat after each cylinder. On a new drive they repeat after the tracks of a surface in a group of
//! cylinders, or after the whole group. In a group, addresses run along a surface and back on the next surface. After two surfaces the arm
//! is back at its start, and the movement there is only a head switch. Every other far track of the group needs a seek (Wong: the minima of
//! the seek time count the surfaces).

use super::bench::Bench;
use super::error::ExtractError;
use super::reach::{Aim, Reach};
use super::shape::{Pattern, Shape, Spared, pattern};
use super::turns::part;
use super::zone::FoundZone;
use headtime_sched::Op;
use headtime_units::Extent;

/// Most surfaces that are looked for.
const MOST_HEADS: u64 = 32;
/// Fewest consecutive tracks on a surface of a group. Shorter rows are the surfaces of a cylinder.
const LEAST_GROUP: u64 = 8;
/// Fewest sectors per track, in units of 512 bytes, for addresses that run along surfaces. Older drives pass through all heads of a
/// cylinder first (Wong: until about 2000).
const LEAST_BY_SURFACE: u64 = 600;
/// Difference of times, in nanoseconds, that counts as equal.
const EQUAL_TIME_NS: f64 = 120_000.0;

/// Finds the shape of a drive with known tracks.
pub(super) fn shape(bench: &mut Bench<'_>, zones: &[FoundZone]) -> Result<Shape, ExtractError> {
    let row = match pattern(zones) {
        Pattern::Known(shape) if shape.group > 1 => return Ok(shape),
        Pattern::Known(shape) => return Ways { bench, zones }.cylinders(shape),
        Pattern::Rows(row) => row,
        Pattern::Even => 0,
    };
    let of = |heads: u64, group: u64| Shape {
        row,
        heads,
        group,
        backward: false,
        spared: Spared::ZoneEnd,
    };
    let mut ways = Ways { bench, zones };
    if row == 0 {
        return Ok(of(1, 1));
    }
    let slots = zones.iter().map(FoundZone::sectors_per_track).max();
    let longest = slots.unwrap_or(0) * u64::from(ways.bench.probe.sector_bytes()) / 512;
    if row <= MOST_HEADS && longest < LEAST_BY_SURFACE {
        return ways.cylinders(of(row, 1));
    }
    if row < 2 * LEAST_GROUP {
        // A group has at least this number of tracks on a surface. In a cylinder every track is a head switch away.
        let far = ways.least(row, row - 1)?;
        let near = ways.least(row, 1)?;
        if row < LEAST_GROUP || !is_longer(far, near) {
            return ways.cylinders(of(row, 1));
        }
    } else if row <= MOST_HEADS {
        let [near, middle, far] = [1, row / 2, row - 1].map(|there| ways.least(row, there));
        let near = near?;
        if !is_longer(middle?, near) && !is_longer(far?, near) {
            return ways.cylinders(of(row, 1));
        }
    }
    // Each row is on a surface of its own: the arm is back at its start at the end of the second row.
    let last = ways.least(row, row - 1)?;
    let back = ways.first(row, 2 * row - 1)?;
    if is_longer(last, back) {
        let mut heads = 2;
        while heads < MOST_HEADS {
            let there = if heads % 2 == 0 {
                heads * row
            } else {
                (heads + 1) * row - 1
            };
            if is_longer(ways.first(row, there)?, back) {
                break;
            }
            heads += 1;
        }
        return Ok(of(heads, row));
    }
    // All surfaces of a group form a single row. Candidates go from the longest stay on a surface down. Multiples of the true stay have
    // equal times, so the shortest candidate counts.
    let mut best: Option<(f64, u64)> = None;
    for heads in 1..=MOST_HEADS {
        let group = row / heads;
        if !row.is_multiple_of(heads) || group < LEAST_GROUP {
            continue;
        }
        // With a single surface the arm never comes back.
        let there = if heads == 1 { group / 2 } else { 2 * group - 1 };
        let Some(time) = ways.least(row, there)? else {
            continue;
        };
        if best.is_none_or(|(least, _)| time < least + EQUAL_TIME_NS) {
            best = Some((best.map_or(time, |(least, _)| least.min(time)), heads));
        }
    }
    let Some((back, heads)) = best.filter(|(_, heads)| *heads > 1) else {
        return Ok(of(1, row));
    };
    // With a single surface the arm never comes back, and a nearer track then takes less time.
    let group = row / heads;
    let near = ways.least(row, group - 1)?;
    let heads = match is_longer(near, Some(back)) {
        true => heads,
        false => 1,
    };
    Ok(of(heads, row / heads))
}

fn is_longer(one: Option<f64>, other: Option<f64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one > other + EQUAL_TIME_NS)
}

/// Least times between tracks at a distance in tracks.
struct Ways<'w, 'a> {
    bench: &'w mut Bench<'a>,
    zones: &'w [FoundZone],
}

impl Ways<'_, '_> {
    /// Sets `backward` if every other cylinder runs backward. Then the step to the next cylinder needs no head switch, which shows if a
    /// head switch takes longer than the step.
    fn cylinders(&mut self, shape: Shape) -> Result<Shape, ExtractError> {
        let heads = shape.heads;
        if heads < 2 || shape.spared != Spared::ZoneEnd {
            return Ok(shape);
        }
        let switch = self.between(heads, heads - 2, 1)?;
        let step = self.between(heads, heads - 1, 1)?;
        let backward = is_longer(switch, step);
        Ok(Shape { backward, ..shape })
    }

    /// Least time from the first track of a row to the track `there` tracks later.
    fn least(&mut self, row: u64, there: u64) -> Result<Option<f64>, ExtractError> {
        self.between(row, 0, there)
    }

    /// Least time from track `from` of a row, counted from 0, to the track `there` tracks later.
    fn between(&mut self, row: u64, from: u64, there: u64) -> Result<Option<f64>, ExtractError> {
        let zones = self.zones;
        // Rows that repeat, with enough room behind them.
        let rows = |zone: &FoundZone| -> Option<(u64, u64, u64)> {
            let first: u64 = zone.rows[..zone.once()]
                .iter()
                .map(|row| row.tracks * row.data)
                .sum();
            let data = zone.rows.last()?.data;
            let fits = zone.cycle > 0 && zone.rows.last()?.tracks == row;
            let last = zone.place(zone.end - 1).0;
            let count = last.checked_sub(first + (from + there) * data)? / (row * data);
            (fits && count > 0).then_some((first, row * data, count))
        };
        let longest = zones
            .iter()
            .max_by_key(|zone| rows(zone).map_or(0, |rows| rows.2));
        let Some(zone) = longest else { return Ok(None) };
        let Some((first, each, count)) = rows(zone) else {
            return Ok(None);
        };
        let data = each / row;
        self.way(
            move |random| (zone, first + random.up_to(count - 1) * each + from * data),
            there,
        )
    }

    /// Least time from the first track of a group to the track `there` tracks later. A change of track length marks such a first track.
    fn first(&mut self, row: u64, there: u64) -> Result<Option<f64>, ExtractError> {
        let mut begins: Vec<(&FoundZone, u64)> = Vec::new();
        for zone in self.zones {
            let mut place = 0;
            for (index, one) in zone.rows.iter().enumerate() {
                let changes = match index {
                    0 => true,
                    _ => zone.rows[index - 1].slots != one.slots,
                };
                let room = zone.place(zone.end - 1).0 > place + (there + 1) * one.data;
                if changes && one.tracks == row && room {
                    begins.push((zone, place));
                }
                place += one.tracks * one.data;
            }
        }
        if begins.is_empty() {
            return Ok(None);
        }
        let last = begins.len() as u64 - 1;
        self.way(move |random| begins[random.up_to(last) as usize], there)
    }

    /// Least time from a track whose first place `from` draws.
    fn way<'z>(
        &mut self,
        from: impl Fn(&mut crate::random::Random) -> (&'z FoundZone, u64),
        there: u64,
    ) -> Result<Option<f64>, ExtractError> {
        let turn = self.bench.turn();
        Reach { bench: self.bench }.search(1_500_000.0, |reach, guess| {
            let (zone, first) = from(&mut reach.bench.random);
            let row = zone.rows[zone.spot(first).row];
            // A random place on the track, which the buffer probably does not hold.
            let source = first + reach.bench.random.up_to(row.data - 1);
            let Some(source) = zone.address(source) else {
                return Ok(None);
            };
            let source = (Op::Read, Extent::at(source, 1));
            let aim = |angle: f64| {
                let begin = first + there * row.data;
                let spot = zone.spot(begin);
                let row = zone.rows[spot.row];
                let slots = row.slots as f64;
                let zero = zone.angle_of(zone.address(begin)?);
                let slot = libm::ceil(part(angle - zero + 1.0 / slots) * slots) as u64 % row.slots;
                if slot >= row.data {
                    return None;
                }
                let lba = zone.address(begin + slot)?;
                Some(Aim {
                    lba,
                    answered: zone.angle_of(lba),
                    lead: turn / slots,
                })
            };
            reach.trial(source, (Op::Read, 1), aim, guess)
        })
    }
}
