//! A layout as a table of tracks.

use headtime_config::{number, whole};
use serde::{Deserialize, Serialize};

/// Where tracks are, for a drive whose addresses run over them in no simple order: one whose heads have
/// tracks of different lengths, or whose layout was measured track by track (DiskSim's `dm_layout_g4`
/// and `dm_layout_g2`).
///
/// Places are counted along the strips of the last group. Addresses fill them, less what is slipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapSpec {
    /// Strips, by groups. A strip may repeat an earlier group; the last group is the disk.
    pub groups: Vec<Vec<Strip>>,
    /// Bad places that addresses pass over: the first, and how many in a row; ascending.
    pub slips: Vec<(u64, u64)>,
    /// Addresses whose data is elsewhere, ascending.
    pub remaps: Vec<MapRemap>,
    /// Tracks that hold nothing but what is moved there, in the order of cylinders and heads.
    pub spare_tracks: Vec<SpareTrack>,
}

/// Repetitions of a track, or of a group of strips, side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip {
    /// The cylinder of the first repetition, counted from that of the group's.
    pub cylinder: i32,
    /// Cylinders from one repetition to the next; negative toward the outside.
    pub step: i32,
    /// Where the first repetition begins, in turns from where the group begins.
    pub offset: f64,
    /// By how much each repetition is turned against the one before it, in turns.
    pub skew: f64,
    /// Places in a repetition.
    pub places: u64,
    /// Places in all of them; the last repetition may be cut short.
    pub run: u64,
    /// What is repeated.
    pub of: MapPart,
}

/// The track or group that a strip repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapPart {
    /// Consecutive slots of a track, as many as a repetition has places. What the strip's `offset` says
    /// is where the first of them begins.
    Track {
        /// The surface.
        head: u16,
        /// The first slot that holds a place.
        first_slot: u32,
        /// Slots on the track, used or not. 1 to 65,535.
        sectors_per_track: u32,
    },
    /// An earlier group, by its index; the rest of one with more places stays out.
    Group(usize),
}

/// Consecutive addresses whose data is elsewhere, in consecutive slots of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename = "[]", expecting = "[address, count, cylinder, head, slot]")]
pub struct MapRemap {
    /// The first address.
    #[serde(deserialize_with = "whole::<_, _, 0, 0x1_0000_0000_0000>")]
    pub address: u64,
    /// How many.
    #[serde(deserialize_with = "whole::<_, _, 0, 65535>")]
    pub count: u32,
    /// The track.
    #[serde(deserialize_with = "whole::<_, _, 0, 0xff_ffff>")]
    pub cylinder: u32,
    /// The track.
    #[serde(deserialize_with = "whole::<_, _, 0, 254>")]
    pub head: u16,
    /// The slot of the first address: one that holds nothing, or a slipped place.
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
    /// Where it is.
    #[serde(deserialize_with = "whole::<_, _, 0, 0xff_ffff>")]
    pub cylinder: u32,
    /// Where it is.
    #[serde(deserialize_with = "whole::<_, _, 0, 254>")]
    pub head: u16,
    /// Its slots. 1 to 65,535.
    #[serde(deserialize_with = "whole::<_, _, 0, 65535>")]
    pub sectors_per_track: u32,
    /// Where slot 0 begins, in turns.
    #[serde(deserialize_with = "number::<_, _, 0, 1>")]
    pub offset: f64,
}
