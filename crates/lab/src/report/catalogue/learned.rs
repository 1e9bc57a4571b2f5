//! Values of learning a run's drive from outside, compared with its profile.

use super::super::Run;
use super::super::field::Field;
use super::super::row::Row;
use super::measure::{Better, Measure, measures, whole};
use crate::accuracy::Learning::{self, Read, Remapped, Written};
use crate::accuracy::{Accuracy, SECTORS};

/// Share of the compared sectors, in %.
fn of_sectors(count: u32) -> f64 {
    100.0 * f64::from(count) / f64::from(SECTORS)
}

/// Share of the reads that check a learned profile, in %.
fn of_held(learned: &Accuracy, count: u64) -> f64 {
    100.0 * count as f64 / learned.held.reads.max(1) as f64
}

/// Takes a value of the profile that was learned in this way.
fn of(how: Learning, of: fn(&Accuracy) -> Option<f64>) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    whole(move |run: &Run| of(run.learned.get(&how)?))
}

/// All values of learned drives.
pub(super) fn learned() -> impl Iterator<Item = Measure> {
    let all = [(Read, reads()), (Written, writes()), (Remapped, remaps())];
    all.into_iter().flat_map(|(how, measures)| {
        let learned = measures.into_iter();
        learned.map(move |measure| Measure {
            learning: Some(how),
            ..measure
        })
    })
}

/// Values of learning by reads alone.
fn reads() -> Vec<Measure> {
    measures! {
        Less "probe_rotation_ppm", "ppm", "by how much the learned turn is off",
            of(Read, |learned| Some(learned.turn_ppm.abs()));
        More "probe_lengths", "% of sectors", "sectors of 10,000 whose track has the learned length",
            of(Read, |learned| Some(of_sectors(learned.lengths)));
        More "probe_borders", "% of borders", "borders of zones that are learned within a track",
            of(Read, |learned| Some(100.0 * learned.borders.0 as f64 / learned.borders.1.max(1) as f64));
        Less "probe_no_borders", "borders", "borders that are learned where no zone ends within a track",
            of(Read, |learned| Some(learned.no_borders as f64));
        More "probe_skews", "% of sectors", "sectors of 10,000 in whose zone all skews are learned within a sector",
            of(Read, |learned| Some(of_sectors(learned.skewed)));
        More "probe_angles", "% of sectors", "sectors of 10,000 within 20 us of their learned angle",
            of(Read, |learned| Some(of_sectors(learned.angles)));
        More "probe_surfaces", "learned over true", "surfaces",
            of(Read, |learned| Some(f64::from(learned.heads.0) / f64::from(learned.heads.1)));
        More "probe_order", "% of units", "units whose order of surfaces is learned: cylinder-first, serpentine, or by groups",
            of(Read, |learned| Some(if learned.order_is_right() { 100.0 } else { 0.0 }));
        More "probe_groups", "% of sectors", "sectors of 10,000 in whose zone as many tracks of a surface as are learned come before the next one's turn",
            of(Read, |learned| Some(of_sectors(learned.grouped)));
        Less "probe_seeks_us", "us", "processing and seek, root mean square of the error over the learned table",
            of(Read, |learned| Some(learned.seeks));
        Less "probe_minutes", "min", "time of the drive's that learning took",
            of(Read, |learned| Some(learned.spent.as_millis_f64() / 60_000.0));
        More "probe_held_50us", "% of reads", "5,000 reads that were not learned from, predicted within 50 us",
            of(Read, |learned| Some(of_held(learned, learned.held.within[0])));
        More "probe_held_150us", "% of reads", "5,000 reads that were not learned from, predicted within 150 us",
            of(Read, |learned| Some(of_held(learned, learned.held.within[1])));
        More "probe_held_300us", "% of reads", "5,000 reads that were not learned from, predicted within 300 us",
            of(Read, |learned| Some(of_held(learned, learned.held.within[2])));
        Less "probe_held_late", "% of reads", "5,000 reads that were not learned from, a turn later than predicted",
            of(Read, |learned| Some(of_held(learned, learned.held.late)));
        Less "probe_held_early", "% of reads", "5,000 reads that were not learned from, a turn earlier than predicted",
            of(Read, |learned| Some(of_held(learned, learned.held.early)));
    }
}

/// Values of learning by reads and writes.
fn writes() -> Vec<Measure> {
    measures! {
        Less "probe_write_seeks_us", "us", "processing and seek of writes, root mean square of the error over the learned table, where all of the disk may be written",
            of(Written, |learned| learned.write_seeks);
        Less "probe_settle_us", "us", "what the arm takes longer for a write than for a read, root mean square of the error over the learned table",
            of(Written, |learned| learned.settle);
        Less "probe_head_switch_us", "us", "switching heads, error",
            of(Written, |learned| Some(learned.head_switch));
    }
}

/// Values of reading a whole drive with a hundred remapped sectors.
fn remaps() -> Vec<Measure> {
    measures! {
        More "probe_remaps", "% of sectors", "sectors that are elsewhere, of a hundred and of those on the medium with them, that are found where all are read",
            of(Remapped, |learned| Some(100.0 * learned.remaps.0 as f64 / learned.remaps.1.max(1) as f64));
        Less "probe_remaps_wrong", "sectors", "sectors that are told to be elsewhere and are not",
            of(Remapped, |learned| Some(learned.not_remapped as f64));
        Less "probe_remaps_minutes", "min", "time of the drive's that learning it and reading all took",
            of(Remapped, |learned| Some(learned.spent.as_millis_f64() / 60_000.0));
    }
}
