//! Words of the text form, for reading and writing.

use super::{Interpolation, Preseek, ReadAhead, RequestedData, Trust, WriteBack};

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
    SurfaceSerpentine,
}

pub(super) const ORDER: [(&str, OrderWord); 3] = [
    ("cylinder-first", OrderWord::CylinderFirst),
    ("serpentine", OrderWord::Serpentine),
    ("surface-serpentine", OrderWord::SurfaceSerpentine),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SparingWord {
    Tracks,
    Track,
    Disk,
    Range,
    Zone,
}

pub(super) const SPARING: [(&str, SparingWord); 5] = [
    ("tracks-at-zone-end", SparingWord::Tracks),
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
