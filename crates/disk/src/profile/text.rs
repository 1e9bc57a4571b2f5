//! A profile as text: reading, writing, and the tables whose keys differ from the fields.

use super::{
    Destage, EarlyDisconnect, FirmwarePolicy, LayoutSpec, MapPart, MapRemap, MapSpec, Order,
    OverheadSpec, Preseek, Profile, ProfileError, QueueSpec, Skew, SpareTrack, Sparing, Spec,
    Strip, Zone,
};
use headtime_config::{KeyError, OneOrList, Place, Table, read, rows, to_text_with, word};
use headtime_units::Nanos;
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

impl Profile {
    /// Reads a profile. `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// The first key that is unknown, missing, of the wrong kind or outside its range, with its
    /// line. Keys that do not fit together are errors too, such as zones that overlap.
    pub fn from_toml(file: &str, text: &str) -> Result<Profile, ProfileError> {
        Profile::from_table(&Table::parse(file, text)?, &Place::line(file, 1))
    }

    /// Reads a profile out of a table; `place` stands for the table as a whole in errors.
    ///
    /// # Errors
    ///
    /// As [`Profile::from_toml`].
    pub fn from_table(table: &Table, place: &Place) -> Result<Profile, ProfileError> {
        let mut spec: Spec = read(table, place)?;
        let within = |error: ProfileError| error.within(table, place);
        let missing = |key: &str, what: &str| {
            let problem = format!("missing; give a whole number from 1 to {what}");
            Err(within(ProfileError::new(Place::NoText, key, problem)))
        };
        let (geometry, cache) = (&mut spec.geometry, &mut spec.cache);
        if geometry.physical_sector_bytes == 0 {
            geometry.physical_sector_bytes = geometry.sector_bytes;
        }
        if cache.segments == 0 {
            return missing("cache.segments", "65535");
        }
        if cache.segment_sectors == 0 {
            return missing("cache.segment_sectors", "the capacity");
        }
        if cache.read_ahead_max == u32::MAX {
            cache.read_ahead_max = match cache.read_ahead {
                super::ReadAhead::Off => 0,
                _ => cache.segment_sectors,
            };
        }
        spec.check().map_err(within)
    }

    /// The profile as text that [`Profile::from_toml`] reads back to an equal profile.
    pub fn to_toml(&self) -> String {
        const SWEEP: [&str; 3] = ["cache.destage", "cache.destage_runs", "cache.destage_age"];
        let skip: &[&str] = match self.cache.destage {
            Destage::Segment => &SWEEP,
            Destage::Sweep => &[],
        };
        to_text_with::<Spec>(self, &[], skip)
    }
}

/// Words of profiles for an [`Order`].
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum OrderWord {
    CylinderFirst,
    Serpentine,
    SerpentineThroughout,
    SurfaceSerpentine,
    Mapped,
}

/// Words of profiles for a [`Sparing`].
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SparingWord {
    TracksAtZoneEnd,
    CylinderEnd,
    CylinderFront,
    TrackEnd,
    RangeEnd,
    ZoneEnd,
    DiskEnd,
}

impl LayoutSpec {
    /// The word of profiles for the layout's order.
    pub fn order_word(&self) -> String {
        word(&match (&self.map, self.order) {
            (Some(_), _) => OrderWord::Mapped,
            (None, Order::CylinderFirst) => OrderWord::CylinderFirst,
            (None, Order::Serpentine) => OrderWord::Serpentine,
            (None, Order::SerpentineThroughout) => OrderWord::SerpentineThroughout,
            (None, Order::SurfaceSerpentine { .. }) => OrderWord::SurfaceSerpentine,
        })
    }

    /// The word of profiles for the layout's sparing. A map has none.
    pub fn sparing_word(&self) -> Option<String> {
        let sparing = match self.sparing {
            Sparing::TracksAtZoneEnd => SparingWord::TracksAtZoneEnd,
            Sparing::CylinderEnd => SparingWord::CylinderEnd,
            Sparing::CylinderFront => SparingWord::CylinderFront,
            Sparing::TrackEnd => SparingWord::TrackEnd,
            Sparing::DiskEnd => SparingWord::DiskEnd,
            Sparing::RangeEnd { .. } => SparingWord::RangeEnd,
            Sparing::ZoneEnd => SparingWord::ZoneEnd,
        };
        self.map.is_none().then(|| word(&sparing))
    }
}

/// `[layout]`, each of whose keys means something with some orders only.
#[derive(Deserialize)]
struct LayoutText {
    order: OrderWord,
    tracks_per_surface: Option<u32>,
    sparing: Option<SparingWord>,
    sparing_cylinders: Option<u32>,
    slips_use_spares: Option<bool>,
    zones: Option<Vec<Zone>>,
    slips: Option<Vec<(u64, u64)>>,
    remaps: Option<Vec<MapRemap>>,
    spare_tracks: Option<Vec<SpareTrack>>,
    groups: Option<Vec<Group>>,
}

#[derive(Deserialize, Serialize)]
struct Group {
    #[serde(serialize_with = "rows")]
    strips: Vec<Strip>,
}

/// Refuses the first key that is there and has no meaning.
fn unused(keys: &[(&str, bool)], with: &str) -> Result<(), KeyError> {
    match keys.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(KeyError::new(*key, with)),
        None => Ok(()),
    }
}

fn missing<T>(value: Option<T>, key: &str, what: &str) -> Result<T, KeyError> {
    value.ok_or_else(|| KeyError::new(key, format!("missing; give {what}")))
}

impl TryFrom<LayoutText> for LayoutSpec {
    type Error = KeyError;

    fn try_from(text: LayoutText) -> Result<LayoutSpec, KeyError> {
        let of_map = [
            ("groups", text.groups.is_some()),
            ("slips", text.slips.is_some()),
            ("remaps", text.remaps.is_some()),
            ("spare_tracks", text.spare_tracks.is_some()),
        ];
        let of_zones = [
            ("zones", text.zones.is_some()),
            ("sparing", text.sparing.is_some()),
            ("sparing_cylinders", text.sparing_cylinders.is_some()),
            ("slips_use_spares", text.slips_use_spares.is_some()),
            ("tracks_per_surface", text.tracks_per_surface.is_some()),
        ];
        let order = match (text.order, text.tracks_per_surface) {
            (OrderWord::Mapped, _) => {
                let with = "means nothing with order = \"mapped\", which says where every track is";
                unused(&of_zones, with)?;
                let groups = missing(text.groups, "groups", "a list of tables")?;
                return Ok(LayoutSpec::mapped(MapSpec {
                    groups: groups.into_iter().map(|group| group.strips).collect(),
                    slips: text.slips.unwrap_or_default(),
                    remaps: text.remaps.unwrap_or_default(),
                    spare_tracks: text.spare_tracks.unwrap_or_default(),
                }));
            }
            (OrderWord::SurfaceSerpentine, tracks) => Order::SurfaceSerpentine {
                tracks: missing(
                    tracks,
                    "tracks_per_surface",
                    "a whole number from 1 to 1048576",
                )?,
            },
            (_, Some(_)) => {
                let with = "means something with order = \"surface-serpentine\" only";
                return Err(KeyError::new("tracks_per_surface", with));
            }
            (OrderWord::CylinderFirst, None) => Order::CylinderFirst,
            (OrderWord::Serpentine, None) => Order::Serpentine,
            (OrderWord::SerpentineThroughout, None) => Order::SerpentineThroughout,
        };
        unused(&of_map, "means something with order = \"mapped\" only")?;
        let sparing = missing(text.sparing, "sparing", "for example \"cylinder-end\"")?;
        let sparing = match (sparing, text.sparing_cylinders) {
            (SparingWord::RangeEnd, cylinders) => {
                let what = "a whole number from 1 to 16777216";
                let cylinders = missing(cylinders, "sparing_cylinders", what)?;
                Sparing::RangeEnd { cylinders }
            }
            (_, Some(_)) => {
                let with = "means something with sparing = \"range-end\" only";
                return Err(KeyError::new("sparing_cylinders", with));
            }
            (SparingWord::TracksAtZoneEnd, None) => Sparing::TracksAtZoneEnd,
            (SparingWord::CylinderEnd, None) => Sparing::CylinderEnd,
            (SparingWord::CylinderFront, None) => Sparing::CylinderFront,
            (SparingWord::TrackEnd, None) => Sparing::TrackEnd,
            (SparingWord::DiskEnd, None) => Sparing::DiskEnd,
            (SparingWord::ZoneEnd, None) => Sparing::ZoneEnd,
        };
        Ok(LayoutSpec {
            order,
            sparing,
            slips_use_spares: text.slips_use_spares.unwrap_or(true),
            zones: missing(text.zones, "zones", "a list of tables")?,
            map: None,
        })
    }
}

impl<'de> Deserialize<'de> for LayoutSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LayoutSpec, D::Error> {
        LayoutText::deserialize(from)?
            .try_into()
            .map_err(de::Error::custom)
    }
}

impl Serialize for LayoutSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = to.serialize_map(None)?;
        text.serialize_entry("order", &self.order_word())?;
        if let Some(map) = &self.map {
            if !map.slips.is_empty() {
                text.serialize_entry("slips", &map.slips)?;
            }
            if !map.remaps.is_empty() {
                text.serialize_entry("remaps", &map.remaps)?;
            }
            if !map.spare_tracks.is_empty() {
                text.serialize_entry("spare_tracks", &map.spare_tracks)?;
            }
            let group = |strips: &Vec<Strip>| Group {
                strips: strips.clone(),
            };
            let groups: Vec<Group> = map.groups.iter().map(group).collect();
            text.serialize_entry("groups", &groups)?;
            return text.end();
        }
        if let Order::SurfaceSerpentine { tracks } = self.order {
            text.serialize_entry("tracks_per_surface", &tracks)?;
        }
        text.serialize_entry("sparing", &self.sparing_word())?;
        if let Sparing::RangeEnd { cylinders } = self.sparing {
            text.serialize_entry("sparing_cylinders", &cylinders)?;
        }
        if !self.slips_use_spares {
            text.serialize_entry("slips_use_spares", &false)?;
        }
        text.serialize_entry("zones", &self.zones)?;
        text.end()
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename = "[]", expecting = "[first, last], two cylinders")]
struct Cylinders {
    first: u32,
    last: u32,
}

/// `[[layout.zones]]`
#[derive(Deserialize, Serialize)]
struct ZoneText {
    cylinders: Cylinders,
    sectors_per_track: OneOrList<u32>,
    tracks_per_surface: Option<u32>,
    #[serde(default = "no_skew", skip_serializing_if = "is_no_skew")]
    offset: Skew,
    #[serde(default = "no_skew")]
    track_skew: Skew,
    #[serde(default = "no_skew")]
    cylinder_skew: Skew,
    group_skew: Option<Skew>,
    #[serde(default, skip_serializing_if = "is_none")]
    reserved: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    spares: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slips: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    remaps: Vec<(u64, u64)>,
}

fn no_skew() -> Skew {
    Skew::Sectors(0)
}

fn is_no_skew(skew: &Skew) -> bool {
    *skew == Skew::Sectors(0)
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Zone, D::Error> {
        let text = ZoneText::deserialize(from)?;
        let OneOrList(mut tracks) = text.sectors_per_track;
        let longest = tracks.iter().copied().max().unwrap_or_default();
        if tracks.len() == 1 {
            tracks.clear();
        }
        Ok(Zone {
            first_cylinder: text.cylinders.first,
            last_cylinder: text.cylinders.last,
            sectors_per_track: longest,
            by_head: tracks,
            tracks_per_surface: text.tracks_per_surface,
            offset: text.offset,
            track_skew: text.track_skew,
            cylinder_skew: text.cylinder_skew,
            group_skew: text.group_skew,
            reserved: text.reserved,
            spares: text.spares,
            slips: text.slips,
            remaps: text.remaps,
        })
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let zone = self.clone();
        let text = ZoneText {
            cylinders: Cylinders {
                first: zone.first_cylinder,
                last: zone.last_cylinder,
            },
            sectors_per_track: OneOrList(match zone.by_head.is_empty() {
                true => vec![zone.sectors_per_track],
                false => zone.by_head,
            }),
            tracks_per_surface: zone.tracks_per_surface,
            offset: zone.offset,
            track_skew: zone.track_skew,
            cylinder_skew: zone.cylinder_skew,
            group_skew: zone.group_skew,
            reserved: zone.reserved,
            spares: zone.spares,
            slips: zone.slips,
            remaps: zone.remaps,
        };
        text.serialize(to)
    }
}

/// Reads a number of sectors, or text such as `0.14 turns`.
impl<'de> Deserialize<'de> for Skew {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Skew, D::Error> {
        struct SkewVisitor;

        impl Visitor<'_> for SkewVisitor {
            type Value = Skew;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of sectors, or a part of a turn in quotes, as \"0.14 turns\"")
            }

            fn visit_i64<E: de::Error>(self, sectors: i64) -> Result<Skew, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(sectors), &self);
                u32::try_from(sectors).map(Skew::Sectors).map_err(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Skew, E> {
                let turns = text.trim_end().strip_suffix("turns");
                let turns = turns.and_then(|number| number.trim().parse().ok());
                let wrong = || E::invalid_type(de::Unexpected::Str(text), &self);
                turns.map(Skew::Turns).ok_or_else(wrong)
            }
        }

        from.deserialize_any(SkewVisitor)
    }
}

impl Serialize for Skew {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Skew::Sectors(sectors) => sectors.serialize(to),
            Skew::Turns(turns) => to.collect_str(&format_args!("{turns} turns")),
        }
    }
}

/// Nine numbers, or seven if a group is repeated.
impl<'de> Deserialize<'de> for Strip {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Strip, D::Error> {
        struct StripVisitor;

        /// A value of the list, within a range.
        fn next<'de, A, T>(seq: &mut A, number: usize, low: T, high: T) -> Result<T, A::Error>
        where
            A: SeqAccess<'de>,
            T: Deserialize<'de> + PartialOrd + fmt::Display,
        {
            let value = seq.next_element::<T>()?;
            let value = value.ok_or_else(|| de::Error::invalid_length(number, &StripVisitor))?;
            match low <= value && value <= high {
                true => Ok(value),
                false => Err(de::Error::custom(format_args!(
                    "the value {value} in place {} is out of range; allowed is {low} to {high}",
                    number + 1
                ))),
            }
        }

        impl<'de> Visitor<'de> for StripVisitor {
            type Value = Strip;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "9 numbers, [cylinder, step, offset, skew, places, run, head, first slot, sectors \
                     per track], or 7, the last of which is a group in place of the track's",
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strip, A::Error> {
                let count = seq.size_hint().unwrap_or_default();
                if !matches!(count, 7 | 9) {
                    return Err(de::Error::invalid_length(count, &self));
                }
                let far = 1 << 24;
                Ok(Strip {
                    cylinder: next(&mut seq, 0, -far, far)?,
                    step: next(&mut seq, 1, -far, far)?,
                    offset: next(&mut seq, 2, 0.0, 1.0)?,
                    skew: next(&mut seq, 3, 0.0, 1.0)?,
                    places: next(&mut seq, 4, 0, 1 << 48)?,
                    run: next(&mut seq, 5, 0, 1 << 48)?,
                    of: match count {
                        7 => MapPart::Group(next(&mut seq, 6, 0, 1_u64 << 32)? as usize),
                        _ => MapPart::Track {
                            head: next(&mut seq, 6, 0, 254)?,
                            first_slot: next(&mut seq, 7, 0, 65_534)?,
                            sectors_per_track: next(&mut seq, 8, 0, 65_535)?,
                        },
                    },
                })
            }
        }

        from.deserialize_seq(StripVisitor)
    }
}

impl Serialize for Strip {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let place = (self.cylinder, self.step, self.offset, self.skew);
        let (cylinder, step, offset, skew) = place;
        let (places, run) = (self.places, self.run);
        match self.of {
            MapPart::Group(group) => {
                (cylinder, step, offset, skew, places, run, group).serialize(to)
            }
            MapPart::Track {
                head,
                first_slot,
                sectors_per_track: slots,
            } => (
                cylinder, step, offset, skew, places, run, head, first_slot, slots,
            )
                .serialize(to),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PolicyWord {
    #[default]
    Fifo,
    Sptf,
}

/// `[queue]`
#[derive(Deserialize, Serialize)]
struct QueueText {
    #[serde(default = "one")]
    depth: u32,
    #[serde(default)]
    policy: PolicyWord,
    margin: Option<Nanos>,
    age_cap: Option<Nanos>,
    stream_cap: Option<Nanos>,
    stream_hold: Option<Nanos>,
    ncq_prio: Option<bool>,
    oldest_every: Option<u32>,
    oldest_age: Option<Nanos>,
    #[serde(default = "off")]
    preseek: Preseek,
}

fn one() -> u32 {
    1
}

fn off() -> Preseek {
    Preseek::Off
}

impl TryFrom<QueueText> for QueueSpec {
    type Error = KeyError;

    fn try_from(text: QueueText) -> Result<QueueSpec, KeyError> {
        let of_sptf = [
            ("margin", text.margin.is_some()),
            ("age_cap", text.age_cap.is_some()),
            ("stream_cap", text.stream_cap.is_some()),
            ("stream_hold", text.stream_hold.is_some()),
            ("ncq_prio", text.ncq_prio.is_some()),
            ("oldest_every", text.oldest_every.is_some()),
            ("oldest_age", text.oldest_age.is_some()),
        ];
        let policy = match text.policy {
            PolicyWord::Sptf => FirmwarePolicy::Sptf {
                margin: text.margin.unwrap_or(Nanos::ZERO),
                age_cap: text.age_cap,
            },
            PolicyWord::Fifo => {
                unused(&of_sptf, "means something with policy = \"sptf\" only")?;
                FirmwarePolicy::Fifo
            }
        };
        Ok(QueueSpec {
            depth: text.depth,
            policy,
            preseek: text.preseek,
            stream_cap: text.stream_cap.unwrap_or(QueueSpec::STREAM_CAP),
            stream_hold: text.stream_hold.unwrap_or(Nanos::ZERO),
            ncq_prio: text.ncq_prio.unwrap_or(false),
            oldest_every: text.oldest_every.unwrap_or(0),
            oldest_age: text.oldest_age.unwrap_or(Nanos::ZERO),
        })
    }
}

impl<'de> Deserialize<'de> for QueueSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<QueueSpec, D::Error> {
        QueueText::deserialize(from)?
            .try_into()
            .map_err(de::Error::custom)
    }
}

impl Serialize for QueueSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (policy, margin, age_cap, stream_cap) = match self.policy {
            FirmwarePolicy::Fifo => (PolicyWord::Fifo, None, None, None),
            FirmwarePolicy::Sptf { margin, age_cap } => {
                let margin = Some(margin).filter(|margin| !margin.is_zero());
                (PolicyWord::Sptf, margin, age_cap, Some(self.stream_cap))
            }
        };
        let by_position = policy == PolicyWord::Sptf;
        let text = QueueText {
            depth: self.depth,
            policy,
            margin,
            age_cap,
            stream_cap,
            stream_hold: Some(self.stream_hold).filter(|hold| by_position && !hold.is_zero()),
            ncq_prio: Some(true).filter(|_| by_position && self.ncq_prio),
            oldest_every: Some(self.oldest_every).filter(|every| by_position && *every > 0),
            oldest_age: Some(self.oldest_age).filter(|age| by_position && !age.is_zero()),
            preseek: self.preseek,
        };
        text.serialize(to)
    }
}

fn durations<M: SerializeMap>(
    map: &mut M,
    durations: impl IntoIterator<Item = (&'static str, Nanos)>,
) -> Result<(), M::Error> {
    let mut given = durations.into_iter().filter(|(_, time)| !time.is_zero());
    given.try_for_each(|(key, time)| map.serialize_entry(key, &time))
}

/// Leaves out durations of zero.
impl Serialize for OverheadSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        durations(&mut map, OverheadSpec::durations(self))?;
        if let Some(early) = &self.early_write_disconnect {
            map.serialize_entry("early_write_disconnect", early)?;
        }
        map.end()
    }
}

impl Serialize for EarlyDisconnect {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        durations(&mut map, EarlyDisconnect::durations(self))?;
        map.end()
    }
}
