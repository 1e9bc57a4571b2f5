//! Accuracy of learning a simulated drive: the learned profile against the drive's own.

mod remapped;

use headtime_disk::profile::{Order, Profile, SeekCurve, Zone};
use headtime_disk::{Layout, Mechanics};
use headtime_probe::extract::{Extraction, Held, UnlearnedModel, run_model, skews};
use headtime_probe::{Modelled, Probe};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos};
use remapped::moved;
pub use remapped::remapped;

/// Differences between a learned profile and the drive's own.
///
/// Invariants:
///
/// - `lengths`, `angles`, `skewed` and `grouped` are at most [`SECTORS`].
/// - `borders.0 ≤ borders.1`; `placed ≤ remaps.0 ≤ remaps.1`.
/// - `write_seeks.is_some()` ⇔ `settle.is_some()`.
/// - `heads.1 = 1` ⇒ `head_switch = 0`.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// Error of the turn, in parts per million.
    pub turn_ppm: f64,
    /// Number of surfaces, learned and true.
    pub heads: (u16, u16),
    /// Number of cylinders, learned and true.
    pub cylinders: (u32, u32),
    /// Order of addresses, learned and true.
    pub order: (Order, Order),
    /// Sectors of 10,000 whose track has the right length.
    pub lengths: u32,
    /// Sectors of 10,000 within 20 µs of their angle.
    pub angles: u32,
    /// Sectors of 10,000 in zones where all skews are right within a sector.
    pub skewed: u32,
    /// Sectors of 10,000 in zones where the number of consecutive tracks on a surface is right.
    pub grouped: u32,
    /// Largest error of a skew, in sectors, in the zones of these sectors.
    pub skew: f64,
    /// Zone borders that are learned within a track, and all borders.
    pub borders: (usize, usize),
    /// Learned borders without a true border within a track: these zones were learned in pieces.
    pub no_borders: usize,
    /// Remapped sectors that were found, and all remapped sectors.
    pub remaps: (usize, usize),
    /// Remapped sectors that were found and are within 20 µs of their angle in the learned profile.
    pub placed: usize,
    /// Sectors that were reported as remapped and are not.
    pub not_remapped: usize,
    /// Root mean square error of processing plus seek, in microseconds, over the learned table.
    pub seeks: f64,
    /// Root mean square error of processing plus seek for writes, in microseconds, if writes were timed.
    pub write_seeks: Option<f64>,
    /// Root mean square error of a write's settling beyond a read's, in microseconds, over the learned table, if writes were timed.
    pub settle: Option<f64>,
    /// Error of the head switch time, in microseconds; 0 on a drive with one surface.
    pub head_switch: f64,
    pub held: Held,
    pub spent: Nanos,
    /// Time in which a drive of this size must be learned.
    pub limit: Nanos,
}

impl Accuracy {
    /// Goals for every drive that were missed, each in a word.
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

    /// Returns true if the order of addresses is of the right kind. [`Accuracy::grouped`] has the lengths of groups.
    pub fn order_is_right(&self) -> bool {
        kind(self.order.0) == kind(self.order.1)
    }
}

/// Number of sectors that are compared.
pub const SECTORS: u32 = 10_000;

/// Drive time after which a drive counts as not learned: twice the limit of the largest drives.
const BUDGET: Nanos = Nanos::from_secs(180 * 60);

/// Physical sectors that are remapped on a unit with remaps.
const REMAPPED: usize = 100;
/// Most drive time for reading all of a unit.
const LONG: Nanos = Nanos::from_secs(24 * 3_600);

/// Kind of unit to learn, and the permitted commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Learning {
    /// By reads alone.
    Read,
    /// By reads, and by writes all over the disk.
    Written,
    /// By reads, on a unit with a hundred remapped sectors. All of the unit is read to find them.
    Remapped,
}

impl Learning {
    /// Learns a unit of a drive, drawn by `seed`, and compares the results with the truth.
    ///
    /// # Errors
    ///
    /// If the unit cannot be learned within three hours of its time. With a scan of the whole unit the limit is a day.
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

/// Kind of an order. Orders that differ only in the length of groups, or in which cylinders run backward, are of the same kind. Group
/// lengths may differ by zone, and reads do not show where the count of cylinders starts.
fn kind(order: Order) -> std::mem::Discriminant<Order> {
    std::mem::discriminant(&match order {
        Order::SerpentineThroughout => Order::Serpentine,
        order => order,
    })
}

/// 10 minutes for drives below 40 GB, 90 minutes for larger drives.
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

/// Zone of an address in a profile; `None` if the profile is a map.
fn zone_of<'p>(profile: &'p Profile, layout: &Layout, lba: Lba) -> Option<&'p Zone> {
    let track = layout.locate(lba).track;
    let zones = &profile.layout.zones;
    zones
        .iter()
        .find(|zone| zone.last_cylinder >= track.cylinder.0)
}

/// Number of consecutive tracks on a surface before the next surface.
fn group(profile: &Profile, zone: &Zone) -> u32 {
    match profile.layout.order {
        Order::SurfaceSerpentine { tracks } => zone.tracks_per_surface.unwrap_or(tracks),
        Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => 1,
    }
}

/// Compares a learned profile with the profile of the drive behind the probe.
///
/// # Panics
///
/// If there is no learned profile yet, or if it belongs to a drive of another size.
pub fn compare(truth: &Profile, extraction: &Extraction, probe: &Modelled) -> Accuracy {
    let learned = extraction.profile().expect("a profile was learned");
    let (ours, theirs) = (Layout::new(&learned), Layout::new(truth));
    assert_eq!(ours.capacity(), theirs.capacity());
    let capacity = probe.capacity().get();
    let unit = probe.drive().turn().as_nanos() as f64;
    let (mut lengths, mut angles, mut grouped, mut skewed, mut skew) = (0, 0, 0, 0, 0.0);
    // Angle zero is the start of the probe, so the median difference is no error.
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

/// Root mean square error of processing plus seek, in microseconds, at the distances of the learned table.
fn seeks(truth: &Profile, learned: &Profile, op: Op) -> f64 {
    error(truth, learned, |profile, mechanics, distance| {
        mechanics.seek(distance, op).as_nanos() as f64 + fixed(profile, op)
    })
}

/// Root mean square error of a write's settling beyond a read's, in microseconds, at the distances of the learned table.
fn settle(truth: &Profile, learned: &Profile) -> f64 {
    error(truth, learned, |profile, mechanics, distance| {
        let [read, write] =
            [Op::Read, Op::Write].map(|op| mechanics.seek(distance, op).as_nanos() as f64);
        write - read + profile.seek.write_settle.as_nanos() as f64
    })
}

/// Root mean square error of a time, in microseconds, at the distances of the learned table.
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

/// Time before the arm moves plus time behind the last sector, in nanoseconds. Both have the same effect. Angles are defined by the answers
/// of reads, so writes also use the completion of a read.
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
