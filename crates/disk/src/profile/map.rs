//! A layout as a table of tracks.

use headtime_config::{number, whole};
use serde::{Deserialize, Serialize};

/// Table of tracks, for a drive whose addresses run over its tracks in no simple order. The heads of such a drive have
/// tracks of different lengths, or its layout was measured track by track (DiskSim's `dm_layout_g4` and
/// `dm_layout_g2`).
///
/// Places are counted along the strips of the last group. Addresses fill the places in order and pass over slipped
/// places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapSpec {
    /// Strips, by groups. A strip may repeat an earlier group; the last group is the disk.
    pub groups: Vec<Vec<Strip>>,
    /// Bad places that addresses pass over, ascending: the first place and the number of places in
    /// a row.
    pub slips: Vec<(u64, u64)>,
    /// Addresses whose data is elsewhere, ascending.
    pub remaps: Vec<MapRemap>,
    /// Tracks that hold only remapped data, in the order of cylinders and heads.
    pub spare_tracks: Vec<SpareTrack>,
}

/// Repetitions of a track, or of a group of strips, side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip {
    /// Cylinder of the first repetition, counted from the cylinder where the group begins.
    pub cylinder: i32,
    /// Cylinders from one repetition to the next; negative toward the outside.
    pub step: i32,
    /// Angle at which the first repetition begins, in turns from the beginning of the group.
    pub offset: f64,
    /// Skew of each repetition against its predecessor, in turns.
    pub skew: f64,
    /// Places in a repetition.
    pub places: u64,
    /// Places in all repetitions. The last repetition may be cut short.
    pub run: u64,
    /// The track or group that is repeated.
    pub of: MapPart,
}

/// The track or group that a strip repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapPart {
    /// Consecutive slots of a track, as many as a repetition has places. The strip's `offset` says where the first of
    /// these slots begins.
    Track {
        /// The surface.
        head: u16,
        /// The first slot that holds a place.
        first_slot: u32,
        /// Slots on the track, used or not. 1 to 65,535.
        sectors_per_track: u32,
    },
    /// An earlier group, by its index. If the group has more places than a repetition, the rest of
    /// the group stays out.
    Group(usize),
}

/// Consecutive addresses whose data is elsewhere, in consecutive slots of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename = "[]", expecting = "[address, count, cylinder, head, slot]")]
pub struct MapRemap {
    /// The first address.
    #[serde(deserialize_with = "whole::<_, _, 0, 0x1_0000_0000_0000>")]
    pub address: u64,
    /// The number of addresses.
    #[serde(deserialize_with = "whole::<_, _, 0, 65535>")]
    pub count: u32,
    /// Cylinder of the track.
    #[serde(deserialize_with = "whole::<_, _, 0, 0xff_ffff>")]
    pub cylinder: u32,
    /// Head of the track.
    #[serde(deserialize_with = "whole::<_, _, 0, 254>")]
    pub head: u16,
    /// Slot of the first address: an unused slot, or a slipped place.
    #[serde(deserialize_with = "whole::<_, _, 0, 65534>")]
    pub slot: u32,
}

/// A track that is in no strip.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(
    rename = "[]",
    expecting = "[cylinder, head, sectors per track, offset]"
)]
pub struct SpareTrack {
    /// Cylinder of the track.
    #[serde(deserialize_with = "whole::<_, _, 0, 0xff_ffff>")]
    pub cylinder: u32,
    /// Head of the track.
    #[serde(deserialize_with = "whole::<_, _, 0, 254>")]
    pub head: u16,
    /// Slots on the track. 1 to 65,535.
    #[serde(deserialize_with = "whole::<_, _, 0, 65535>")]
    pub sectors_per_track: u32,
    /// Angle at which slot 0 begins, in turns.
    #[serde(deserialize_with = "number::<_, _, 0, 1>")]
    pub offset: f64,
}
