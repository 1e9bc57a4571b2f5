//! Tracks, surfaces and zones from two rates and a capacity.

use super::seeks::Seeks;
use super::sheet::{Age, Capacity, Datasheet, GB, MOST_HEADS, SheetError, megabytes};
use crate::mechanics::evaluate_seek;
use crate::profile::{Order, SeekCurve, Skew, Zone};
use headtime_units::{Bytes, Nanos};

/// Largest factor between the tracks on a surface and the number that [`density`] gives.
const TRACKS_FACTOR_MAX: f64 = 4.0;
/// Tracks that a profile has room for, with spares.
const MOST_TRACKS: f64 = (1 << 23) as f64;
/// Number of zones, unless the tracks differ too little for this number.
pub(super) const ZONES: u32 = 30;
/// Tracks on a surface before the next surface's turn.
pub(super) const TRACKS_PER_SURFACE: u32 = 128;
/// Least skew between a track and its predecessor, in turns.
pub(super) const LEAST_SKEW: f64 = 0.12;
/// Excess of a skew over the movement that the skew hides, in turns.
pub(super) const SKEW_EXCESS: f64 = 0.005;
/// Spare sectors as a part of the capacity.
pub(super) const SPARE_SHARE: f64 = 0.001;
/// Sectors of the medium on a track at least: with fewer, rounding to one moves the rate by about 1 %.
const LEAST_SECTORS: u32 = 60;

/// Sectors of 512 bytes on an outermost track, and tracks on a surface. Both numbers are known of these drives: Cheetah
/// 9LP, Atlas 10K, Atlas 10K V, Barracuda 7200.10, WD5000AAKS, a WD drive of 4 TB, Exos X18.
const DENSITIES: [(f64, f64); 7] = [
    (254.0, 6_962.0),
    (334.0, 10_042.0),
    (1_170.0, 80_512.0),
    (1_450.0, 139_200.0),
    (1_750.0, 186_240.0),
    (3_072.0, 310_194.0),
    (4_920.0, 534_210.0),
];

/// Positions of the sectors, and the seek curves over the resulting number of cylinders.
#[derive(Debug)]
pub(super) struct LaidTracks {
    pub capacity: u64,
    pub heads: u16,
    pub cylinders: u32,
    pub order: Order,
    pub zones: Vec<Zone>,
    pub read: SeekCurve,
    pub write: SeekCurve,
    pub age: Age,
}

/// Skew of a track against its predecessor as a part of a turn, and the turns that pass from one track to the next.
#[derive(Clone, Copy, Debug)]
struct TrackTurn {
    skew: f64,
    turns: f64,
}

impl TrackTurn {
    /// The least turn that hides a movement of `step`.
    fn hiding(step: Nanos, turn: Nanos) -> TrackTurn {
        let turns = step.as_millis_f64() / turn.as_millis_f64() + SKEW_EXCESS;
        // Rounded up to thousandths. An excess of a rounding error over a thousandth does not
        // count.
        let thousandths = libm::ceil(turns.max(LEAST_SKEW) * 1e3 - 1e-6) as u32;
        TrackTurn {
            skew: f64::from(thousandths % 1000) / 1e3,
            turns: f64::from(thousandths) / 1e3,
        }
    }
}

/// The three kinds of step from a track to the next.
#[derive(Clone, Copy, Debug)]
struct HidingSkews {
    head: TrackTurn,
    cylinder: TrackTurn,
    group: TrackTurn,
}

impl HidingSkews {
    /// The turns that a track takes in a sequential read: the track's own, and the mean step to the
    /// next track.
    fn turns_per_track(&self, order: Order, heads: u16) -> f64 {
        let heads = f64::from(heads);
        let (switches, steps, groups) = match order {
            Order::SurfaceSerpentine { tracks } => {
                let tracks = f64::from(tracks);
                (heads - 1.0, heads * (tracks - 1.0), 1.0)
            }
            _ => (heads - 1.0, 1.0, 0.0),
        };
        let lost =
            switches * self.head.turns + steps * self.cylinder.turns + groups * self.group.turns;
        1.0 + lost / (switches + steps + groups)
    }
}

impl LaidTracks {
    pub fn lay(sheet: &Datasheet, seeks: &Seeks) -> Result<LaidTracks, SheetError> {
        let turn = Nanos::from_millis_f64(60_000.0 / sheet.rpm);
        let sector = sheet.sector_format();
        let mut skews = HidingSkews {
            head: TrackTurn::hiding(seeks.switch(), turn),
            cylinder: TrackTurn::hiding(seeks.step(), turn),
            group: TrackTurn::hiding(seeks.step(), turn),
        };
        // Sectors of the medium that come at `rate` in a number of turns.
        let per_track = |rate: u64, turns: f64| {
            let bytes = rate as f64 * turn.as_secs_f64() * turns;
            libm::round(bytes / f64::from(sector.physical_bytes()))
        };
        let alone = 1.0 + skews.cylinder.turns;
        let outer = per_track(sheet.rate, alone) * f64::from(sector.physical_bytes()) / 512.0;
        let age = Age::of(outer);
        let order = match age {
            Age::Before2005 => Order::CylinderFirst,
            Age::Desktop | Age::Nearline => Order::SurfaceSerpentine {
                tracks: TRACKS_PER_SURFACE,
            },
        };
        let mean =
            f64::midpoint(sheet.rate as f64, sheet.inner() as f64) * turn.as_secs_f64() * alone;
        let heads = heads(sheet, mean, outer)?;
        let capacity = sheet.capacity.sectors(sector.bytes());
        let per_physical = sector.physical_bytes() / sector.bytes();
        // The step to the next group depends on the seek curve, the curve on the cylinders, and the cylinders on the
        // tracks. The tracks depend on that step, by one track of thousands. After the second pass nothing changes any
        // more.
        let mut laid: Option<LaidTracks> = None;
        for _ in 0..3 {
            let turns = skews.turns_per_track(order, heads);
            let sectors_at = |item, rate: u64, of_rate: f64| {
                let sectors = per_track(rate, turns);
                let (least, most) = (LEAST_SECTORS, 65_535 / per_physical);
                let rate_of = |sectors: f64| {
                    let bytes = sectors * f64::from(sector.physical_bytes());
                    of_rate * bytes / turns / turn.as_secs_f64() / 1e4
                };
                let allowed = if sectors < f64::from(least) {
                    let rate = libm::ceil(rate_of(f64::from(least))) as u64 * 10_000;
                    format!(
                        "{} and more, at which a track has {least} sectors",
                        megabytes(rate)
                    )
                } else if sectors > f64::from(most) {
                    let rate = libm::floor(rate_of(f64::from(most))) as u64 * 10_000;
                    format!(
                        "up to {}, at which a track has {most} sectors",
                        megabytes(rate)
                    )
                } else {
                    return Ok(sectors as u32 * per_physical);
                };
                let given = (rate as f64 * of_rate) as u64;
                Err(SheetError::new(item, megabytes(given), allowed))
            };
            let outer = sectors_at("rate", sheet.rate, 1.0)?;
            let inner = match sheet.rate_inner {
                Some(rate) => sectors_at("rate-inner", rate, 1.0)?,
                // The sheet gives no inner rate, so an error names the outer rate.
                None => sectors_at("rate", sheet.inner(), 2.0)?,
            };
            let ends = [outer, inner];
            let (cylinders, zones) = zones(capacity, heads, ends, per_physical, &skews, order);
            let (read, write) = seeks.curves(&zones, cylinders);
            if let Order::SurfaceSerpentine { tracks } = order {
                // With an even number of heads the arm returns to the cylinder where the group
                // began.
                let distance = if heads % 2 == 0 { tracks } else { 1 };
                let distance = distance.min(cylinders - 1);
                let way = evaluate_seek(&write, cylinders, distance);
                let way = Nanos::from_nanos(u64::from(way)) + seeks.settle;
                skews.group = TrackTurn::hiding(way.max(seeks.step()), turn);
            }
            laid = Some(LaidTracks {
                capacity,
                heads,
                cylinders,
                order,
                zones,
                read,
                write,
                age,
            });
        }
        Ok(laid.expect("laid three times"))
    }
}

/// Number of surfaces: from the sheet, else from the capacity and the usual density of such tracks. `mean` is the mean
/// capacity of a track in bytes. `outer` is the capacity of the outermost track in sectors of 512 bytes.
fn heads(sheet: &Datasheet, mean: f64, outer: f64) -> Result<u16, SheetError> {
    let sector_bytes = sheet.sector_format().bytes();
    let bytes = sheet.capacity.sectors(sector_bytes) as f64 * f64::from(sector_bytes);
    let expected = density(outer);
    let heads = sheet.heads.unwrap_or_else(|| {
        let heads = libm::round(bytes / (mean * expected));
        heads.clamp(1.0, f64::from(MOST_HEADS)) as u16
    });
    let [few, many] = [expected / TRACKS_FACTOR_MAX, expected * TRACKS_FACTOR_MAX]
        .map(|tracks| libm::round(tracks.min(MOST_TRACKS) / 100.0) * 100.0);
    let tracks = bytes / (f64::from(heads) * mean);
    if (few..=many).contains(&tracks) {
        return Ok(heads);
    }
    let surfaces = |tracks: f64| bytes / (tracks * mean);
    if let Some(heads) = sheet.heads {
        let least = libm::ceil(surfaces(many)).max(1.0);
        let most = libm::floor(surfaces(few)).min(f64::from(MOST_HEADS));
        if least <= most {
            let allowed = format!(
                "{least} to {most}, since at these rates a surface has {few} to {many} tracks"
            );
            return Err(SheetError::new("heads", heads, allowed));
        }
    }
    let (least, most) = (few * mean, f64::from(MOST_HEADS) * many * mean);
    let why =
        format!("which at these rates 1 to {MOST_HEADS} surfaces of {few} to {many} tracks hold");
    Err(match sheet.capacity {
        Capacity::Sectors(sectors) => {
            let [least, most] = [least, most].map(|bytes| (bytes / f64::from(sector_bytes)) as u64);
            SheetError::new(
                "sectors",
                sectors,
                format!("{} to {most}, {why}", least + 1),
            )
        }
        Capacity::Nominal(bytes) => {
            let [least, most] = [least, most].map(|bytes| (bytes / 1e6) as u64);
            let (least, most) = (Bytes((least + 1) * 1_000_000), Bytes(most / 1_000 * GB));
            SheetError::new("capacity", bytes, format!("{least} to {most}, {why}"))
        }
    })
}

/// Tracks on a surface of a drive with `outer` sectors on the outermost track. Interpolates linearly between the
/// logarithms of [`DENSITIES`], and extrapolates beyond them.
fn density(outer: f64) -> f64 {
    let after = DENSITIES.partition_point(|&(sectors, _)| sectors < outer);
    let high = after.clamp(1, DENSITIES.len() - 1);
    let ((s1, t1), (s2, t2)) = (DENSITIES[high - 1], DENSITIES[high]);
    let part = libm::log(outer / s1) / libm::log(s2 / s1);
    t1 * libm::pow(t2 / t1, part)
}

/// Zones of equal width with room for the capacity. The tracks become shorter toward the inner edge. Each zone ends
/// with spares.
fn zones(
    capacity: u64,
    heads: u16,
    [outer, inner]: [u32; 2],
    per_physical: u32,
    skews: &HidingSkews,
    order: Order,
) -> (u32, Vec<Zone>) {
    let steps = (outer - inner) / per_physical;
    let count = ZONES.min(steps + 1);
    let sectors: Vec<u32> = (0..count)
        .map(|zone| {
            let gone = u64::from(steps) * u64::from(zone);
            let gone = (2 * gone + u64::from(count - 1)) / u64::from(2 * count.max(2) - 2);
            outer - gone as u32 * per_physical
        })
        .collect();
    // The last cylinders go to the outer zones, one each.
    let widths = |cylinders: u32| {
        let (width, rest) = (cylinders / count, cylinders % count);
        (0..count).map(move |zone| width + u32::from(zone < rest))
    };
    let room = |cylinders: u32| -> u64 {
        let rows = widths(cylinders).zip(&sectors);
        rows.map(|(width, &per_track)| u64::from(width) * u64::from(heads) * u64::from(per_track))
            .sum()
    };
    let wanted = capacity + libm::ceil(capacity as f64 * SPARE_SHARE) as u64;
    // The fewest cylinders with that room, and not fewer than zones.
    let (mut low, mut high) = (count, 1 << 24);
    while low < high {
        let middle = low + (high - low) / 2;
        if room(middle) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let cylinders = low;
    let quantum = u64::from(per_physical);
    let spares = (room(cylinders) - capacity) / u64::from(count) / quantum * quantum;
    let mut first = 0;
    let zones = widths(cylinders).zip(&sectors).map(|(width, &per_track)| {
        let zone = Zone {
            first_cylinder: first,
            last_cylinder: first + width - 1,
            sectors_per_track: per_track,
            by_head: Vec::new(),
            tracks_per_surface: None,
            offset: Skew::Sectors(0),
            track_skew: Skew::Turns(skews.head.skew),
            cylinder_skew: Skew::Turns(skews.cylinder.skew),
            group_skew: match order {
                Order::SurfaceSerpentine { .. } => Some(Skew::Turns(skews.group.skew)),
                _ => None,
            },
            reserved: 0,
            spares,
            slips: Vec::new(),
            remaps: Vec::new(),
        };
        first += width;
        zone
    });
    (cylinders, zones.collect())
}
