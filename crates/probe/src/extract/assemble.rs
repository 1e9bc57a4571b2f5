//! A profile of what was learned.

use super::shape;
use super::turns::part;
use super::{ExtractError, Extraction};
use headtime_disk::profile::{
    AccessSpec, BusSpec, CacheSpec, Geometry, Interpolation, LayoutSpec, Order, OverheadSpec,
    QueueSpec, Rotation, SeekCurve, SeekSpec, Skew, Sparing, Spec, Trust, Zone,
};
use headtime_disk::{Layout, Profile};
use headtime_units::{Nanos, Sectors, SignedNanos};

/// What a read costs before the arm moves, and what its ways take, taken apart. Nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Apart {
    pub overhead: f64,
    pub head_switch: f64,
    /// By distance.
    pub seeks: Vec<(u32, f64)>,
    /// The rule of the least positioning time told them apart; else the time of a hit did.
    pub by_rule: bool,
}

/// Takes overhead and ways apart.
///
/// From outside only their sum is seen. Two things tell more. A drive needs time to set up a read
/// elsewhere, two thirds of a single-cylinder seek, which a switch of heads that is shorter hides in
/// (see [`headtime_disk::Mechanics::set_up`]). So the difference between the least time to the next
/// cylinder and that to another head is a third of the former. Where the head switch is longer, that
/// is no answer; then the processing of a miss is taken to be that of a hit.
pub(super) fn apart(seeks: &[(u32, f64)], switch: Option<f64>, hit: f64) -> Apart {
    let single = seeks
        .iter()
        .find(|(distance, _)| *distance == 1)
        .map(|(_, time)| *time);
    let least = seeks
        .iter()
        .map(|(_, time)| *time)
        .fold(f64::INFINITY, f64::min);
    let by_rule = match (single, switch) {
        (Some(single), Some(switch)) => {
            let overhead = single - 3.0 * (single - switch);
            // A seek of one cylinder takes a good part of a millisecond.
            (single - switch > 100e3 && overhead > -20e3).then_some(overhead.max(0.0))
        }
        _ => None,
    };
    let overhead = by_rule.unwrap_or(hit).min(least);
    let seeks: Vec<(u32, f64)> = seeks
        .iter()
        .map(|&(distance, time)| (distance, time - overhead))
        .collect();
    let head_switch = switch.map_or(0.0, |switch| (switch - overhead).max(0.0));
    Apart {
        overhead,
        head_switch,
        seeks,
        by_rule: by_rule.is_some(),
    }
}

fn nanos(time: f64) -> Nanos {
    Nanos::from_nanos(libm::round(time.max(0.0)) as u64)
}

impl Extraction {
    /// The layout with whatever else is known so far.
    pub(super) fn draft(&self) -> Result<Profile, ExtractError> {
        let (Some(spindle), Some(shape)) = (&self.spindle, self.shape) else {
            return Err(ExtractError::TooEarly);
        };
        let turn = spindle.turn;
        let tail = self.transfer.map_or(0.0, |transfer| transfer.sector);
        let late = |per_track: u64| 1.0 / per_track as f64 + tail / turn;
        let zones = shape::zones(&self.walked.zones, shape, late);
        let cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
        let hit = self.transfer.map_or(0.0, |transfer| transfer.hit);
        let apart = apart(&self.seeks, self.switch, hit);
        let points: Vec<(u32, Nanos)> = apart
            .seeks
            .iter()
            .map(|&(distance, time)| (distance, nanos(time)))
            .collect();
        let read = if points.is_empty() {
            SeekCurve::Constant(nanos(turn / 2.0))
        } else {
            let small = cylinders <= 16_384;
            let interpolation = if small {
                Interpolation::Linear
            } else {
                Interpolation::Log
            };
            SeekCurve::Table {
                interpolation,
                points,
            }
        };
        let overhead = nanos(apart.overhead);
        let spec = Spec {
            name: self.name.clone(),
            model: format!("{}, learned by timing", self.name),
            provenance: self.provenance(&apart),
            trust: trust(&read),
            geometry: Geometry {
                capacity: Sectors::new(self.capacity),
                cylinders,
                heads: shape.heads as u16,
                sector_bytes: self.sector_bytes,
                physical_sector_bytes: self.sector_bytes,
            },
            rotation: Rotation { rpm: 60e9 / turn },
            layout: LayoutSpec {
                order: match shape.group {
                    1 => Order::CylinderFirst,
                    tracks => Order::SurfaceSerpentine {
                        tracks: tracks as u32,
                    },
                },
                sparing: Sparing::ZoneEnd,
                slips_use_spares: true,
                zones,
                map: None,
            },
            seek: SeekSpec {
                read,
                write: None,
                head_switch: nanos(apart.head_switch),
                write_settle: SignedNanos::default(),
            },
            access: AccessSpec {
                zero_latency_read: self.zero_latency.unwrap_or(false),
                zero_latency_write: self.zero_latency.unwrap_or(false),
            },
            cache: CacheSpec::default(),
            overhead: OverheadSpec {
                read_hit_after_read: nanos(hit),
                read_hit_after_write: nanos(hit),
                read_miss_after_read: overhead,
                read_miss_after_write: overhead,
                write_miss_after_read: overhead,
                write_miss_after_write: overhead,
                ..OverheadSpec::default()
            },
            bus: BusSpec {
                interface_sector: nanos(tail),
                ..BusSpec::default()
            },
            queue: QueueSpec::default(),
            noise: Default::default(),
        };
        let profile = spec.check()?;
        // The zones must have exactly the addresses that were walked.
        let layout = Layout::new(&profile);
        for (zone, found) in layout.zones().zip(profile.layout.zones.iter()) {
            debug_assert_eq!(zone.sectors_per_track, found.sectors_per_track);
        }
        Ok(profile)
    }

    fn provenance(&self, apart: &Apart) -> String {
        let mut text = String::from(
            "Learned by timing reads from outside. Angles count from where the probe began.\n",
        );
        text += match apart.by_rule {
            true => {
                "Processing and seeks were told apart by the least positioning time of the model; the head switch is an upper bound.\n"
            }
            false => {
                "From outside only the sum of processing and seek is seen; processing is taken to be that of a hit.\n"
            }
        };
        if self.shape.is_some_and(|shape| shape.group == 1) {
            text += "Whether every other cylinder runs backward does not show in the times of reads: cylinder-first is assumed.\n";
        }
        text += "Nothing was written: the times of writes are those of reads.\n";
        for (key, confidence) in self.confidence() {
            text += &format!("Confidence in {key}: {:.0} %.\n", 100.0 * confidence);
        }
        text
    }

    /// How far each key can be relied on, 0 to 1: the part of the checks that agreed with it.
    pub fn confidence(&self) -> Vec<(String, f64)> {
        let mut keys: Vec<(&str, f64)> = Vec::new();
        let held = self.held;
        let compared = (held.reads - held.hits).max(1) as f64;
        let at_angle = (held.within[2] + held.late + held.early) as f64;
        if let Some(spindle) = &self.spindle {
            keys.push(("rotation", 1.0 - spindle.astray));
        }
        if held.reads > 0 {
            keys.push(("layout.zones", at_angle / compared));
            keys.push(("seek.read", held.within[2] as f64 / at_angle.max(1.0)));
        }
        if let Some(shape) = self.shape {
            // A period in skews is a cylinder or a group of them; nothing tells the two ways through
            // the cylinders apart.
            keys.push(("geometry.heads", 0.9));
            keys.push(("layout.order", if shape.group == 1 { 0.5 } else { 0.9 }));
            let by_rule = apart(&self.seeks, self.switch, 0.0).by_rule;
            keys.push(("overhead", if by_rule { 0.7 } else { 0.4 }));
            keys.push(("seek.head_switch", if by_rule { 0.3 } else { 0.6 }));
            keys.push(("seek.write_settle", 0.0));
        }
        if self.transfer.is_some_and(|transfer| transfer.hit > 0.0) {
            keys.push(("bus.interface_sector", 0.8));
        }
        if self.zero_latency.is_some() {
            keys.push(("access.zero_latency_read", 0.9));
        }
        keys.into_iter()
            .map(|(key, confidence)| (key.to_owned(), confidence))
            .collect()
    }
}

fn trust(read: &SeekCurve) -> Vec<(String, Trust)> {
    let seek = match read {
        SeekCurve::Table { .. } => Trust::Learned,
        _ => Trust::Assumed,
    };
    [
        ("geometry", Trust::Learned),
        ("geometry.physical_sector", Trust::Assumed),
        ("rotation", Trust::Learned),
        ("layout", Trust::Learned),
        ("seek", seek),
        ("seek.write_settle", Trust::Assumed),
        ("access", Trust::Learned),
        ("cache", Trust::Assumed),
        ("overhead", Trust::Learned),
        ("bus", Trust::Learned),
        ("queue", Trust::Assumed),
    ]
    .map(|(key, trust)| (key.to_owned(), trust))
    .to_vec()
}

/// Skews of a zone as parts of a turn, for comparisons.
pub fn skews(zone: &Zone) -> [f64; 3] {
    let turns = |skew: Skew| match skew {
        Skew::Turns(turns) => part(turns),
        Skew::Sectors(sectors) => part(f64::from(sectors) / f64::from(zone.sectors_per_track)),
    };
    [
        turns(zone.track_skew),
        turns(zone.cylinder_skew),
        turns(zone.group_skew.unwrap_or(zone.cylinder_skew)),
    ]
}
