//! How well a simulated drive was learned: the learned profile beside the drive's own.

mod remapped;

use crate::extract::{Extraction, Held, UnlearnedModel, run_model, skews};
use crate::{Modelled, Probe};
use headtime_disk::profile::{Order, Profile, SeekCurve, Zone};
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos};
use remapped::moved;
pub use remapped::remapped;

/// How well a drive was learned.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// The turn, in parts per million.
    pub turn_ppm: f64,
    /// Surfaces, as learned and as they are.
    pub heads: (u16, u16),
    /// Cylinders, as learned and as they are.
    pub cylinders: (u32, u32),
    /// The order of addresses, as learned and as it is.
    pub order: (Order, Order),
    /// Sectors of 10,000 whose track has the right length.
    pub lengths: u32,
    /// Sectors of 10,000 within 20 µs of their angle.
    pub angles: u32,
    /// Sectors of 10,000 in whose zone all skews are right within a sector.
    pub skewed: u32,
    /// Sectors of 10,000 in whose zone as many tracks of a surface come before the next one's turn as are learned.
    pub grouped: u32,
    /// The largest error of a skew, in sectors, of these zones.
    pub skew: f64,
    /// Borders of zones that are learned within a track, and all.
    pub borders: (usize, usize),
    /// Borders that are learned where none is within a track: a zone is learned in pieces.
    pub no_borders: usize,
    /// Sectors whose data is elsewhere that were found, and all.
    pub remaps: (usize, usize),
    /// Those of them that the learned profile has within 20 µs of their angle.
    pub placed: usize,
    /// Sectors that were found to be elsewhere and are not.
    pub not_remapped: usize,
    /// Root mean square of the error of processing and seek, in microseconds, over the learned table.
    pub seeks: f64,
    /// The same of writes, if they were timed.
    pub write_seeks: Option<f64>,
    /// The error of what a write takes beyond a read until the arm has settled, if writes were timed: root mean square over the
    /// learned table, in microseconds.
    pub settle: Option<f64>,
    /// The error of what switching heads takes, in microseconds; 0 on a drive with one surface.
    pub head_switch: f64,
    pub held: Held,
    pub spent: Nanos,
    /// The time in which a drive of this size has to be learned.
    pub limit: Nanos,
}

impl Accuracy {
    /// What probing is to reach on every drive and did not, in a word each.
    pub fn missed(&self) -> Vec<&'static str> {
        let all = [
            (self.turn_ppm.abs() < 5.0, "rotation"),
            (self.lengths == SECTORS, "lengths"),
            (self.borders.0 == self.borders.1, "borders"),
            (self.skewed == SECTORS, "skews"),
            (self.angles >= 9_900, "angles"),
            (self.heads.0 == self.heads.1, "surfaces"),
            (self.order_is_right(), "order"),
            (self.grouped == SECTORS, "groups"),
            (self.seeks < 50.0, "seeks"),
            (
                self.write_seeks.is_none_or(|error| error < 50.0),
                "write seeks",
            ),
            (self.spent < self.limit, "time"),
        ];
        let missed = all.into_iter().filter(|(reached, _)| !reached);
        missed.map(|(_, word)| word).collect()
    }

    /// Whether the order of addresses is of the right kind. How long groups are is in [`Accuracy::grouped`].
    pub fn order_is_right(&self) -> bool {
        kind(self.order.0) == kind(self.order.1)
    }
}

/// Sectors of a drive that are compared.
pub const SECTORS: u32 = 10_000;

/// Time of the drive's after which a drive counts as not learned: twice what the largest may take.
const BUDGET: Nanos = Nanos::from_secs(180 * 60);

/// Sectors of the medium that are elsewhere on a unit with remaps.
const REMAPPED: usize = 100;
/// Reading all of a unit takes no longer.
const LONG: Nanos = Nanos::from_secs(24 * 3_600);

/// Of which unit of a drive what is learned, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Learning {
    /// By reading alone.
    Read,
    /// By reading and writing, all over the disk.
    Written,
    /// One of which a hundred sectors are elsewhere, by reading. All of it is read to find them.
    Remapped,
}

impl Learning {
    /// Learns a unit of a drive, as `seed` draws it, and compares what came out.
    ///
    /// # Errors
    ///
    /// If the unit cannot be learned, or not within three hours of its time, or within a day where all is read.
    pub fn of(self, truth: &Profile, seed: u64) -> Result<Accuracy, UnlearnedModel> {
        let moved = (self == Learning::Remapped).then(|| remapped(truth, REMAPPED, seed));
        let truth = moved.as_ref().unwrap_or(truth);
        let mut probe = Modelled::new(truth, seed);
        let extraction = Extraction::new(&probe, seed);
        let (extraction, budget) = match self {
            Learning::Read => (extraction, BUDGET),
            Learning::Written => {
                let all = Extent::at(0, probe.capacity().get());
                (extraction.with_scratch(all), BUDGET)
            }
            Learning::Remapped => (extraction.with_remaps(), LONG),
        };
        let extraction = run_model(extraction, &mut probe, budget)?;
        Ok(compare(truth, &extraction, &probe))
    }
}

/// Orders that differ in how long groups are, or in which cylinders run backward, are of one kind: groups may be
/// others in each zone, and where cylinders are counted from is not seen.
fn kind(order: Order) -> std::mem::Discriminant<Order> {
    std::mem::discriminant(&match order {
        Order::SerpentineThroughout => Order::Serpentine,
        order => order,
    })
}

/// 10 minutes for drives of up to 40 GB, 90 for larger ones.
fn limit(bytes: u64) -> Nanos {
    let minutes = if bytes < 40_000_000_000 { 10 } else { 90 };
    Nanos::from_secs(minutes * 60)
}

/// Addresses from all over a drive.
fn addresses(capacity: u64) -> impl Iterator<Item = Lba> {
    let step = (capacity as f64 * 0.618_033_988_7) as u64 | 1;
    (0..SECTORS).scan(capacity / 3, move |at, _| {
        *at = (*at + step) % capacity;
        Some(Lba::new(*at))
    })
}

/// The zone of a profile in which an address is; `None` of a profile that is a map.
fn zone_of<'p>(profile: &'p Profile, layout: &Layout, lba: Lba) -> Option<&'p Zone> {
    let track = layout.locate(lba).track;
    let zones = &profile.layout.zones;
    zones
        .iter()
        .find(|zone| zone.last_cylinder >= track.cylinder.0)
}

/// How many tracks of a surface come before the next one's turn.
fn group(profile: &Profile, zone: &Zone) -> u32 {
    match profile.layout.order {
        Order::SurfaceSerpentine { tracks } => zone.tracks_per_surface.unwrap_or(tracks),
        Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => 1,
    }
}

/// Compares what was learned through a probe with the profile of the drive behind it.
///
/// # Panics
///
/// If there is no learned profile yet, or it is of a drive of another size.
pub fn compare(truth: &Profile, extraction: &Extraction, probe: &Modelled) -> Accuracy {
    let learned = extraction.profile().expect("a profile was learned");
    let (ours, theirs) = (Layout::new(&learned), Layout::new(truth));
    assert_eq!(ours.capacity(), theirs.capacity());
    let capacity = probe.capacity().get();
    let unit = probe.drive().turn().as_nanos() as f64;
    let (mut lengths, mut angles, mut grouped, mut skewed, mut skew) = (0, 0, 0, 0, 0.0);
    // Angle zero is where the probe began: the middle difference is no error.
    let offset = |lba: Lba| {
        let bits = |layout: &Layout| layout.locate(lba).angle.to_bits();
        bits(&ours).wrapping_sub(bits(&theirs)) as i32
    };
    let mut offsets: Vec<i32> = addresses(capacity).map(offset).collect();
    let first = offsets[0];
    offsets
        .iter_mut()
        .for_each(|offset| *offset = offset.wrapping_sub(first));
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    let middle = sorted[sorted.len() / 2];
    let is_there = |offset: i32| {
        let off = f64::from(offset.wrapping_sub(middle)) / 4_294_967_296.0;
        (off * unit).abs() < 20_000.0
    };
    for (index, lba) in addresses(capacity).enumerate() {
        let of = |layout: &Layout| layout.sectors_per_track(layout.locate(lba).track).unwrap();
        let per_track = of(&theirs);
        lengths += u32::from(of(&ours) == per_track);
        angles += u32::from(is_there(offsets[index]));
        let zones = [(&learned, &ours), (truth, &theirs)];
        let [Some(one), Some(other)] = zones.map(|(profile, layout)| zone_of(profile, layout, lba))
        else {
            continue;
        };
        grouped += u32::from(group(&learned, one) == group(truth, other));
        let skews = skews(one).into_iter().zip(skews(other));
        let off = skews.map(|(one, other)| {
            let off = (one - other) - (one - other).round();
            off.abs() * f64::from(per_track)
        });
        let off = off.fold(0.0, f64::max);
        skewed += u32::from(off < 1.0);
        skew = f64::max(skew, off);
    }
    let begins = |layout: &Layout| -> Vec<u64> {
        layout.zones().map(|zone| zone.extent.start.get()).collect()
    };
    let [learned_begins, all] = [&ours, &theirs].map(|layout| {
        let mut begins = begins(layout);
        begins.retain(|begin| *begin < capacity);
        begins
    });
    let is_near = |begin: u64, others: &[u64]| {
        let per_track = theirs.zone_of(Lba::new(begin)).sectors_per_track;
        let mut others = others.iter();
        others.any(|other| other.abs_diff(begin) <= u64::from(per_track))
    };
    let found = all.iter().filter(|begin| is_near(**begin, &learned_begins));
    let borders = (found.count(), all.len());
    let invented = learned_begins
        .iter()
        .filter(|begin| !is_near(**begin, &all));
    let no_borders = invented.count();
    let moved = moved(truth, &theirs);
    let found = extraction.remaps.found.iter();
    let found: Vec<Lba> = found.map(|remapped| Lba::new(remapped.lba)).collect();
    let is_found = |lba: &&Lba| found.binary_search(lba).is_ok();
    let right: Vec<Lba> = moved.iter().filter(is_found).copied().collect();
    let placed = right.iter();
    let placed = placed.filter(|lba| is_there(offset(**lba).wrapping_sub(first)));
    let turn = extraction.spindle.as_ref().unwrap().turn;
    Accuracy {
        turn_ppm: (turn / unit - 1.0) * 1e6,
        heads: (learned.geometry.heads, truth.geometry.heads),
        cylinders: (learned.geometry.cylinders, truth.geometry.cylinders),
        order: (learned.layout.order, truth.layout.order),
        lengths,
        angles,
        grouped,
        skewed,
        skew,
        borders,
        no_borders,
        remaps: (right.len(), moved.len()),
        placed: placed.count(),
        not_remapped: found.len() - right.len(),
        seeks: seeks(truth, &learned, Op::Read),
        write_seeks: (extraction.writes.as_ref()).map(|_| seeks(truth, &learned, Op::Write)),
        settle: (extraction.writes.as_ref()).map(|_| settle(truth, &learned)),
        head_switch: match truth.geometry.heads {
            1 => 0.0,
            _ => {
                let [said, is] = [&learned, truth].map(|of| of.seek.head_switch.as_micros_f64());
                (said - is).abs()
            }
        },
        held: extraction.held,
        spent: extraction.spent,
        limit: limit(probe.capacity().bytes(probe.sector_bytes())),
    }
}

/// Root mean square of the error of processing and seek, in microseconds, at the distances of the learned table.
fn seeks(truth: &Profile, learned: &Profile, op: Op) -> f64 {
    error(truth, learned, |profile, mechanics, distance| {
        mechanics.seek(distance, op).as_nanos() as f64 + fixed(profile, op)
    })
}

/// The same of what the arm takes longer for a write than for a read.
fn settle(truth: &Profile, learned: &Profile) -> f64 {
    error(truth, learned, |profile, mechanics, distance| {
        let [read, write] =
            [Op::Read, Op::Write].map(|op| mechanics.seek(distance, op).as_nanos() as f64);
        write - read + profile.seek.write_settle.as_nanos() as f64
    })
}

/// Root mean square of the error of a time, in microseconds, at the distances of the learned table.
fn error(
    truth: &Profile,
    learned: &Profile,
    time: impl Fn(&Profile, &Mechanics, u32) -> f64,
) -> f64 {
    let SeekCurve::Table { points, .. } = &learned.seek.read else {
        return f64::NAN;
    };
    let profiles = [learned, truth];
    let mechanics = profiles.map(Mechanics::new);
    let points = points.iter().map(|(distance, _)| *distance);
    let distances = points.filter(|distance| *distance < truth.geometry.cylinders);
    let (mut squares, mut count) = (0.0, 0);
    for distance in distances {
        let [said, is] = [0, 1].map(|of| time(profiles[of], &mechanics[of], distance));
        squares += (said - is) * (said - is);
        count += 1;
    }
    (squares / f64::from(count)).sqrt() / 1_000.0
}

/// What comes before the arm moves and what comes after the last sector, in nanoseconds: both have the same effect. Angles
/// are those at which reads are answered, so that what comes after the last sector is that of a read for writes, too.
fn fixed(profile: &Profile, op: Op) -> f64 {
    let overhead = &profile.overhead;
    let (before, settle) = match op {
        Op::Write => (
            overhead.write_miss_after_read,
            profile.seek.write_settle.as_nanos(),
        ),
        _ => (overhead.read_miss_after_read, 0),
    };
    let bus = overhead.first_reselect + overhead.data_preparation + profile.bus.arbitration;
    let all = overhead.per_command + before + bus + overhead.read_completion;
    (all.as_nanos() as i64 + settle) as f64
}
