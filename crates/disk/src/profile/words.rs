//! Words of the text form, for reading and writing.

use super::{
    Destage, Interpolation, LayoutSpec, Order, Preseek, ReadAhead, RequestedData, Sparing, Trust,
    WriteBack,
};

pub(super) const TRUST: [(&str, Trust); 5] = [
    ("measured", Trust::Measured),
    ("published", Trust::Published),
    ("derived", Trust::Derived),
    ("calibrated", Trust::Calibrated),
    ("assumed", Trust::Assumed),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderWord {
    CylinderFirst,
    Serpentine,
    SerpentineThroughout,
    SurfaceSerpentine,
    Mapped,
}

pub(super) const ORDER: [(&str, OrderWord); 5] = [
    ("cylinder-first", OrderWord::CylinderFirst),
    ("serpentine", OrderWord::Serpentine),
    ("serpentine-throughout", OrderWord::SerpentineThroughout),
    ("surface-serpentine", OrderWord::SurfaceSerpentine),
    ("mapped", OrderWord::Mapped),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SparingWord {
    Tracks,
    Cylinder,
    CylinderFront,
    Track,
    Disk,
    Range,
    Zone,
}

pub(super) const SPARING: [(&str, SparingWord); 7] = [
    ("tracks-at-zone-end", SparingWord::Tracks),
    ("cylinder-end", SparingWord::Cylinder),
    ("cylinder-front", SparingWord::CylinderFront),
    ("track-end", SparingWord::Track),
    ("range-end", SparingWord::Range),
    ("zone-end", SparingWord::Zone),
    ("disk-end", SparingWord::Disk),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CurveWord {
    Table,
    Hpl,
    Curve,
    Linear,
    Constant,
}

pub(super) const CURVE: [(&str, CurveWord); 5] = [
    ("table", CurveWord::Table),
    ("hpl", CurveWord::Hpl),
    ("curve", CurveWord::Curve),
    ("linear", CurveWord::Linear),
    ("constant", CurveWord::Constant),
];

pub(super) const INTERPOLATION: [(&str, Interpolation); 2] = [
    ("linear", Interpolation::Linear),
    ("log", Interpolation::Log),
];

pub(super) const READ_AHEAD: [(&str, ReadAhead); 5] = [
    ("off", ReadAhead::Off),
    ("track-end", ReadAhead::TrackEnd),
    ("cylinder-end", ReadAhead::CylinderEnd),
    ("segment-full", ReadAhead::SegmentFull),
    ("next-track", ReadAhead::NextTrack),
];

pub(super) const REQUESTED_DATA: [(&str, RequestedData); 3] = [
    ("dropped", RequestedData::Dropped),
    ("kept", RequestedData::Kept),
    ("replaceable", RequestedData::Replaceable),
];

pub(super) const DESTAGE: [(&str, Destage); 2] =
    [("segment", Destage::Segment), ("sweep", Destage::Sweep)];

pub(super) const WRITE_BACK: [(&str, WriteBack); 4] = [
    ("off", WriteBack::Off),
    ("appending", WriteBack::Appending),
    ("flushed", WriteBack::Flushed),
    ("full", WriteBack::Full),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyWord {
    Fifo,
    Sptf,
}

pub(super) const POLICY: [(&str, PolicyWord); 2] =
    [("fifo", PolicyWord::Fifo), ("sptf", PolicyWord::Sptf)];

pub(super) const PRESEEK: [(&str, Preseek); 3] = [
    ("off", Preseek::Off),
    ("at-completion", Preseek::AtCompletion),
    ("at-media-end", Preseek::AtMediaEnd),
];

impl Order {
    /// The word for it in profiles, and how many tracks an order by surfaces has on each.
    pub(super) fn parts(self) -> (OrderWord, Option<u32>) {
        match self {
            Order::CylinderFirst => (OrderWord::CylinderFirst, None),
            Order::Serpentine => (OrderWord::Serpentine, None),
            Order::SerpentineThroughout => (OrderWord::SerpentineThroughout, None),
            Order::SurfaceSerpentine { tracks } => (OrderWord::SurfaceSerpentine, Some(tracks)),
        }
    }
}

impl LayoutSpec {
    /// What profiles call its order.
    pub fn order_word(&self) -> &'static str {
        let word = match &self.map {
            Some(_) => OrderWord::Mapped,
            None => self.order.parts().0,
        };
        word_of(&ORDER, &word)
    }

    /// What profiles call its sparing; a map has none.
    pub fn sparing_word(&self) -> Option<&'static str> {
        let word = self.sparing.parts().0;
        self.map.is_none().then(|| word_of(&SPARING, &word))
    }
}

impl Sparing {
    /// The word for it in profiles, and the cylinders of a range.
    pub(super) fn parts(self) -> (SparingWord, Option<u32>) {
        match self {
            Sparing::TracksAtZoneEnd => (SparingWord::Tracks, None),
            Sparing::CylinderEnd => (SparingWord::Cylinder, None),
            Sparing::CylinderFront => (SparingWord::CylinderFront, None),
            Sparing::TrackEnd => (SparingWord::Track, None),
            Sparing::DiskEnd => (SparingWord::Disk, None),
            Sparing::RangeEnd { cylinders } => (SparingWord::Range, Some(cylinders)),
            Sparing::ZoneEnd => (SparingWord::Zone, None),
        }
    }
}

/// The word of a value.
pub(super) fn word_of<T: PartialEq>(
    words: &'static [(&'static str, T)],
    value: &T,
) -> &'static str {
    words
        .iter()
        .find(|(_, candidate)| candidate == value)
        .map(|(word, _)| *word)
        .expect("every value has a word")
}
