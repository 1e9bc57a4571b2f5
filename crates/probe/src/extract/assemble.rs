//! Assembly of a profile from all results.

use super::error::ExtractError;
use super::jitter::Jitter;
use super::queueing::Leaves;
use super::shape::Spared;
use super::transfer::Transfer;
use super::turns::part;
use super::writes::Writes;
use super::zones;
use super::{Extraction, Stage};
use headtime_disk::profile::{
    AccessSpec, BusSpec, CacheSpec, Geometry, Interpolation, LayoutSpec, Order, OverheadSpec,
    QueueSpec, Rotation, SeekCurve, SeekSpec, Skew, Sparing, Spec, Trust, Zone,
};
use headtime_disk::{Layout, Profile};
use headtime_units::{Nanos, Sectors, SignedNanos};

/// Difference of write settling between distances, in nanoseconds, above which writes need a seek curve of their own.
const SETTLING_DIFFERENCE_NS: f64 = 60_000.0;
/// Most confidence in a layout that contradicts itself.
const DOUBTED_CONFIDENCE_MAX: f64 = 0.3;
/// Additional tolerance, as a share of the seek time.
const SEEK_TOLERANCE: f64 = 0.01;

/// Times of reads, split into processing and arm movement. Nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Apart {
    pub overhead: f64,
    /// Time behind the data before the arm may leave.
    pub completion: f64,
    pub head_switch: f64,
    /// Seek times by distance in cylinders.
    pub seeks: Vec<(u32, f64)>,
    pub by: Parting,
    pub writes: WritesApart,
}

/// Evidence for the split into processing and arm movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// Reads that waited in the drive. The processing of these reads is over when the arm leaves, and the time of
    /// leaving is known.
    Waiting,
    /// Reads that waited in the drive, but the time at which the arm leaves is unknown.
    Leaving,
    /// The least positioning time.
    Rule,
    /// The time of a hit.
    Hit,
}

/// Times of writes, split into processing and arm movement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WritesApart {
    /// Processing after a read and after a write.
    pub overhead: Option<[f64; 2]>,
    /// Processing of a read after a write.
    pub read_after: Option<f64>,
    pub settle: Option<f64>,
    /// Seek times of writes, if they differ from reads by more than a constant.
    pub seeks: Option<Vec<(u32, f64)>>,
}

/// Splits measured times into processing and arm movement.
///
/// From outside only the sum shows. Two facts tell more. First, a drive needs time to set up a read elsewhere: two thirds of a
/// single-cylinder seek. A shorter head switch is hidden in this time (see [`headtime_disk::Mechanics::set_up`]). The least time to the
/// next cylinder therefore exceeds the least time to another head by a third of a single-cylinder seek. If the head switch is longer, this
/// fails. Then the processing of a miss is assumed to equal the processing of a hit.
///
/// Second, a drive that already has the next command shows the movement alone: `sooner` is the number of nanoseconds by which the arm
/// arrives earlier than without waiting. This value is preferred, unless the arm arrives late enough to suggest other work in between. If
/// the arm is known to leave only after the data are sent, the time of sending is completion, not processing.
fn apart(
    seeks: &[(u32, f64)],
    switch: Option<f64>,
    transfer: Transfer,
    writes: Option<&Writes>,
    (sooner, leaves): (Option<f64>, Option<Leaves>),
    jitter: Option<Jitter>,
) -> Apart {
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
            // A single-cylinder seek takes a good part of a millisecond.
            (single - switch > 100e3 && overhead > -20e3).then_some(overhead.max(0.0))
        }
        _ => None,
    };
    let assumed = by_rule.unwrap_or(transfer.hit).min(least);
    let after = leaves.and_then(|leaves| leaves.after);
    let after = after.map_or(0.0, |after| (after - transfer.sector).max(0.0));
    // Sum of the processing before the movement and the completion behind the data.
    let both = sooner.map(|sooner| match leaves {
        Some(_) => assumed + sooner,
        // The arm is assumed to leave when the sector of the first read has crossed the bus.
        None => assumed + sooner + transfer.sector,
    });
    let both = both.filter(|both| (-50e3..least).contains(both));
    let (overhead, by) = match (both, by_rule) {
        (Some(both), _) if leaves.is_some() => ((both - after).max(0.0), Parting::Waiting),
        (Some(both), _) => (both.max(0.0), Parting::Leaving),
        (None, Some(_)) => (assumed, Parting::Rule),
        (None, None) => (assumed, Parting::Hit),
    };
    let overhead = jitter.map_or(overhead, |jitter| jitter.miss(overhead, transfer.hit));
    let completion = match by {
        Parting::Waiting => after,
        _ => 0.0,
    };
    // Answers show the start of a sector later than it is, by the completion.
    let late = |time: f64| (time - completion).max(0.0);
    let switch = switch.map(late);
    let seeks: Vec<(u32, f64)> = seeks
        .iter()
        .map(|&(distance, time)| (distance, (late(time) - overhead).max(0.0)))
        .collect();
    let writes = writes.map(|writes| Writes {
        after_read: writes.after_read.map(late),
        after_write: writes.after_write.map(late),
        switch: writes.switch.map(late),
        seeks: writes
            .seeks
            .iter()
            .map(|&(by, time)| (by, late(time)))
            .collect(),
        read_after: writes.read_after.map(|(by, time)| (by, late(time))),
        ..*writes
    });
    let head_switch = switch.map_or(0.0, |switch| (switch - overhead).max(0.0));
    let writes = writes.map(|writes| writes_apart(&writes, &seeks, transfer.sector));
    let (writes, settled_switch) = writes.unwrap_or_default();
    // A write hides no head switch.
    let head_switch = settled_switch.unwrap_or(head_switch);
    Apart {
        overhead,
        completion,
        head_switch,
        seeks,
        by,
        writes,
    }
}

/// Splits the times of writes, given the seeks of reads and the bus time of a sector. Also returns the head switch, if it can be told. A
/// write on the current track shows its processing alone.
fn writes_apart(writes: &Writes, seeks: &[(u32, f64)], sector: f64) -> (WritesApart, Option<f64>) {
    let Some(after_read) = writes.after_read else {
        return Default::default();
    };
    // The first sector crosses the bus once the command is processed.
    let overhead = (after_read - sector).max(0.0);
    let after_write = writes
        .after_write
        .map_or(overhead, |time| (time - sector).max(0.0));
    let more = |&(distance, time): &(u32, f64)| {
        super::seeks::between(seeks, distance).map(|read| (distance, time - overhead - read))
    };
    let more: Vec<(u32, f64)> = writes.seeks.iter().filter_map(more).collect();
    let mut sorted: Vec<f64> = more.iter().map(|(_, more)| *more).collect();
    let middle = super::turns::median(&mut sorted);
    // An arm that varies by a hundredth of its time varies more on a long seek.
    let off = |at: usize| {
        let (distance, more) = more[at];
        let way = super::seeks::between(seeks, distance).unwrap_or(0.0);
        middle.map_or(0.0, |middle| (more - middle).abs()) - SEEK_TOLERANCE * way
    };
    // A few small deviations are noise.
    let far = (0..more.len())
        .filter(|at| off(*at) > SETTLING_DIFFERENCE_NS)
        .count();
    let uneven =
        far * 4 > more.len() || (0..more.len()).any(|at| off(at) > 2.0 * SETTLING_DIFFERENCE_NS);
    // The shortest seek shows pure settling. Any further excess of longer seeks belongs to these seeks.
    let settle = if uneven {
        more.first().map(|(_, more)| *more)
    } else {
        middle
    };
    let read_after = writes.read_after.and_then(|(distance, time)| {
        super::seeks::between(seeks, distance).map(|seek| (time - seek).max(0.0))
    });
    let apart = WritesApart {
        overhead: Some([overhead, after_write]),
        read_after,
        settle,
        seeks: uneven.then(|| {
            let longer = |&(distance, read): &(u32, f64)| {
                let more = super::seeks::between(&more, distance).unwrap_or(0.0);
                (distance, (read + more - settle.unwrap_or(0.0)).max(0.0))
            };
            seeks.iter().map(longer).collect()
        }),
    };
    let switch = writes.switch.zip(apart.settle);
    let switch = switch.map(|(switch, settle)| (switch - overhead - settle).max(0.0));
    (apart, switch)
}

fn nanos(time: f64) -> Nanos {
    Nanos::from_nanos(libm::round(time.max(0.0)) as u64)
}

impl Extraction {
    /// Times of reads and writes, split into processing and arm movement.
    pub(super) fn apart(&self) -> Apart {
        let transfer = self.transfer.unwrap_or_default();
        // The reads that waited were compared with a split that did not use them. This split must stay the same until all comparisons are
        // made.
        let queueing = &self.electronics.queueing;
        let waiting = match self.stage {
            Stage::Remaps | Stage::Done => (queueing.sooner, queueing.leaves),
            _ => (None, None),
        };
        let writes = self.writes.as_ref();
        let mut apart = apart(
            &self.seeks,
            self.switch,
            transfer,
            writes,
            waiting,
            self.electronics.jitter,
        );
        let most = self.crossing.unwrap_or(f64::INFINITY);
        apart.head_switch = apart.head_switch.min(most);
        apart
    }

    /// The profile with its remapped sectors.
    pub(super) fn with_remapped(&self, plain: Profile) -> Result<Profile, ExtractError> {
        let transfer = super::transfer::Transfer::of(&plain);
        let behind =
            transfer.sector + transfer.reconnect + plain.overhead.read_completion.as_nanos() as f64;
        let turn = plain.rotation.turn().as_nanos() as f64;
        let late = |per_track: u64| 1.0 / per_track as f64 + behind / turn;
        let mut left = Vec::new();
        let placed = plain.with(|spec| left = self.remaps.place(spec, &plain, late))?;
        let lines = self.remaps.lines(self.capacity, &left);
        Ok(placed.with(|spec| spec.provenance += &lines)?)
    }

    /// Profile of the layout with all other results so far.
    pub(super) fn draft(&self) -> Result<Profile, ExtractError> {
        let (Some(spindle), Some(shape)) = (&self.spindle, self.shape) else {
            return Err(ExtractError::TooEarly);
        };
        let turn = spindle.turn;
        let transfer = self.transfer.unwrap_or_default();
        // The split of processing used the first bus times, and keeps them.
        let transfer = self
            .electronics
            .jitter
            .map_or(transfer, |jitter| jitter.steady(transfer));
        let tail = transfer.sector;
        let apart = self.apart();
        let behind = tail + transfer.reconnect + apart.completion;
        let late = |per_track: u64| 1.0 / per_track as f64 + behind / turn;
        let zones = zones::zones(
            &self.walked.zones,
            shape,
            &self.gaps,
            self.walked.coarse,
            late,
        );
        let cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
        let hit = transfer.hit - apart.completion;
        let small = cylinders <= 16_384;
        let interpolation = if small {
            Interpolation::Linear
        } else {
            Interpolation::Log
        };
        let table = |times: &[(u32, f64)]| SeekCurve::Table {
            interpolation,
            points: times
                .iter()
                .map(|&(distance, time)| (distance, nanos(time)))
                .collect(),
        };
        let read = match apart.seeks.as_slice() {
            [] => SeekCurve::Constant(nanos(turn / 2.0)),
            times => {
                // While only short seeks are known, the slope of the last two points has no meaning.
                let mut times = times.to_vec();
                let last = times[times.len() - 1];
                if last.0 < cylinders / 2 {
                    times.push((cylinders - 1, last.1));
                }
                table(&times)
            }
        };
        let overhead = nanos(apart.overhead);
        let write = apart
            .writes
            .overhead
            .map_or([overhead; 2], |times| times.map(nanos));
        let unit = self.writes.as_ref().map_or(1, |writes| writes.unit.max(1)) as u32;
        let zero_latency = self.zero_latency.or(self.electronics.ahead.around);
        let completion = self
            .writes
            .as_ref()
            .map_or(0.0, |writes| writes.tail - transfer.reconnect)
            + apart.completion;
        // If no such write was timed, the time of a read hit is assumed.
        let accepted = match self.electronics.write_cache.accepted {
            Some((sectors, times)) => times.map(|time| time - sectors as f64 * tail - completion),
            None => [hit; 2],
        };
        let mut spec = Spec {
            name: self.name.clone(),
            model: format!("{}, learned by timing", self.name),
            provenance: self.provenance(&apart),
            trust: self.trust(&read),
            geometry: Geometry {
                capacity: Sectors::new(self.capacity),
                cylinders,
                heads: shape.heads as u16,
                sector_bytes: self.sector_bytes,
                physical_sector_bytes: self.sector_bytes * unit,
            },
            rotation: Rotation { rpm: 60e9 / turn },
            layout: LayoutSpec {
                order: match shape.group {
                    1 if shape.backward => Order::Serpentine,
                    1 => Order::CylinderFirst,
                    tracks => Order::SurfaceSerpentine {
                        tracks: tracks as u32,
                    },
                },
                sparing: match shape.spared {
                    Spared::ZoneEnd => Sparing::ZoneEnd,
                    Spared::TrackEnd => Sparing::TrackEnd,
                    Spared::CylinderEnd => Sparing::CylinderEnd,
                    Spared::CylinderFront => Sparing::CylinderFront,
                    Spared::Range(cylinders) => Sparing::RangeEnd { cylinders },
                },
                slips_use_spares: true,
                zones,
                map: None,
            },
            seek: SeekSpec {
                read,
                write: apart.writes.seeks.as_deref().map(table),
                head_switch: nanos(apart.head_switch),
                write_settle: signed(apart.writes.settle.unwrap_or(0.0)),
            },
            access: AccessSpec {
                zero_latency_read: zero_latency.unwrap_or(false),
                zero_latency_write: zero_latency.unwrap_or(false),
                ..AccessSpec::default()
            },
            cache: CacheSpec::default(),
            overhead: OverheadSpec {
                read_hit_after_read: nanos(hit),
                read_hit_after_write: nanos(hit),
                read_miss_after_read: overhead,
                read_miss_after_write: apart.writes.read_after.map_or(overhead, nanos),
                first_reselect: nanos(transfer.reconnect),
                write_miss_after_read: write[0],
                write_miss_after_write: write[1],
                write_hit_after_read: nanos(accepted[0]),
                write_hit_after_write: nanos(accepted[1]),
                write_completion: nanos(completion),
                read_completion: nanos(apart.completion),
                ..OverheadSpec::default()
            },
            bus: BusSpec {
                interface_sector: nanos(tail),
                // A drive that requests the bus late occupies the bus until all data are sent.
                hold_for_read: transfer.water > 0.0 || transfer.reconnect > 0.0,
                ..BusSpec::default()
            },
            queue: QueueSpec::default(),
            noise: Default::default(),
        };
        self.electronics.apply(&mut spec);
        if let Some(jitter) = self.electronics.jitter {
            jitter.part(&mut spec.overhead);
        }
        spec.cache.read_high_water = transfer.water;
        let profile = spec.check()?;
        // The zones must have exactly the addresses of the walk.
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
        text += match apart.by {
            Parting::Waiting => {
                "Processing, seeks and what comes behind the data were told apart by reads that waited in the drive.\n"
            }
            Parting::Leaving => {
                "Processing and seeks were told apart by reads that waited in the drive; when the arm leaves for them is not known, and what it does before counts as a seek.\n"
            }
            Parting::Rule => {
                "Processing and seeks were told apart by the least positioning time of the model.\n"
            }
            Parting::Hit => {
                "From outside only the sum of processing and seek is seen; processing is taken to be that of a hit.\n"
            }
        };
        if self.shape.is_some_and(|shape| !shape.shows_order()) {
            text += "Whether every other cylinder runs backward does not show in the times of reads: cylinder-first is assumed.\n";
        }
        text += match (&self.scratch, &self.writes) {
            (None, _) => {
                "Nothing was written: the times of writes are those of reads, and the head switch is an upper bound.\n"
            }
            (Some(_), None) => {
                "Writes were answered before they were on the medium: their times are those of reads, and the head switch is an upper bound.\n"
            }
            (Some(_), Some(_)) => "Writes were timed in the scratch range.\n",
        };
        text += &self.electronics.lines();
        for what in &self.contradictions {
            text += &format!("Contradiction: {what}.\n");
        }
        for (key, confidence) in self.confidence() {
            text += &format!("Confidence in {key}: {:.0} %.\n", 100.0 * confidence);
        }
        text
    }

    /// Confidence in each learned key, 0 to 1. For rotation, zones and read seeks this is a share of checks that agreed. Other keys have a
    /// fixed value for the method that determined them.
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
            // A period in skews is a cylinder or a group of cylinders. Reads cannot show in which order addresses pass through them.
            keys.push(("geometry.heads", 0.9));
            if shape.shows_order() {
                keys.push(("layout.order", 0.9));
            }
            let apart = self.apart();
            let overhead = match apart.by {
                Parting::Waiting => 0.9,
                Parting::Leaving => 0.5,
                Parting::Rule => 0.7,
                Parting::Hit => 0.4,
            };
            keys.push(("overhead", overhead));
            let written = apart.writes.settle.is_some();
            let switch: f64 = match (apart.by, written) {
                (Parting::Rule, false) => 0.3,
                (_, false) => 0.6,
                (_, true) => 0.8,
            };
            // The head switch is a measured sum minus the overhead, and therefore no surer than the overhead.
            keys.push(("seek.head_switch", switch.min(overhead)));
            let settle = if written { overhead.min(0.8) } else { 0.0 };
            keys.push(("seek.write_settle", settle));
        }
        if self.transfer.is_some_and(|transfer| transfer.hit > 0.0) {
            let jitter = self.electronics.jitter;
            let is_steady = jitter.is_some_and(|jitter| jitter.long.is_some());
            keys.push(("bus.interface_sector", if is_steady { 0.9 } else { 0.8 }));
        }
        if self.remaps.is_complete() {
            keys.push(("layout.remaps", 0.9));
        }
        if self
            .zero_latency
            .or(self.electronics.ahead.around)
            .is_some()
        {
            keys.push(("access.zero_latency_read", 0.9));
        }
        if !self.contradictions.is_empty() {
            let doubted = ["layout.zones", "layout.order", "geometry.heads"];
            let keys = keys.iter_mut().filter(|(key, _)| doubted.contains(key));
            keys.for_each(|(_, confidence)| *confidence = confidence.min(DOUBTED_CONFIDENCE_MAX));
        }
        let told = &self.electronics.told;
        keys.extend(
            told.known
                .iter()
                .map(|(key, confidence)| (key.as_str(), *confidence)),
        );
        keys.into_iter()
            .map(|(key, confidence)| (key.to_owned(), confidence))
            .collect()
    }

    /// Trust in each section and key of the profile, before [`Electronics`](super::electronics::Electronics) adds its own.
    fn trust(&self, read: &SeekCurve) -> Vec<(String, Trust)> {
        let confidence = self.confidence();
        let learned = |key: &str| {
            let mut known = confidence.iter();
            known.any(|(known, confidence)| known == key && *confidence > 0.0)
        };
        let sections = [
            ("geometry", true),
            ("geometry.physical_sector", self.writes.is_some()),
            ("rotation", true),
            ("layout", true),
            ("seek", matches!(read, SeekCurve::Table { .. })),
            ("access", false),
            ("cache", false),
            ("overhead", true),
            ("bus", true),
            ("queue", false),
            ("noise", false),
        ];
        let keys = KEYS.map(|key| (key, learned(key)));
        let marked = sections.into_iter().chain(keys);
        let is_derived = self.derived();
        let marked = marked.map(|(key, is_learned)| {
            let trust = match is_learned {
                true if is_derived.contains(&key) => Trust::Derived,
                true => Trust::Learned,
                false => Trust::Assumed,
            };
            (key.to_owned(), trust)
        });
        marked.collect()
    }

    /// Keys that follow from other results: processing that is assumed to equal a hit, and an upper bound of the head switch.
    fn derived(&self) -> Vec<&'static str> {
        let apart = self.apart();
        let mut derived = Vec::new();
        if apart.by == Parting::Hit {
            derived.push("overhead");
        }
        if apart.writes.settle.is_none() {
            derived.push("seek.head_switch");
        }
        derived
    }
}

fn signed(time: f64) -> SignedNanos {
    SignedNanos::from_nanos(libm::round(time) as i64)
}

/// Keys with a trust of their own within a section; assumed unless there is evidence.
const KEYS: [&str; 6] = [
    "layout.order",
    "layout.remaps",
    "bus.interface_sector",
    "access.zero_latency_read",
    "seek.head_switch",
    "seek.write_settle",
];

/// Skews of a zone in turns, for comparisons.
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
