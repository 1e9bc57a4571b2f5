//! A profile as a scheduler's belief: what it predicts is what the mechanics do.

use headtime_disk::{Model, profile};
use headtime_sched::{Op, Positioning};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::OnceLock;

fn models() -> &'static [Model] {
    static MODELS: OnceLock<Vec<Model>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let model = |one: &profile::Shipped| Model::new(&one.profile());
        profile::shipped().iter().map(model).collect()
    })
}

fn extent(model: &Model, at: Index, len: u64) -> Extent {
    let room = model.layout().capacity().get() - len;
    Extent::at(at.index(room as usize) as u64, len)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Predicted seek and rotation are those of the access that follows.
    #[test]
    fn predicts_the_access(
        drive in 0..7_usize,
        [from, to] in any::<[Index; 2]>(),
        now in any::<u32>(),
        len in 1_u64..600,
        write in any::<bool>(),
    ) {
        let model = &models()[drive];
        let (from, to) = (extent(model, from, len), extent(model, to, len));
        let op = if write { Op::Write } else { Op::Read };
        let now = Time::from_nanos(u64::from(now));
        let mechanics = model.mechanics();
        let before = mechanics.access(model.layout(), model.layout().home(), now, from, op, false);
        let free = now + before.total();
        let end = model.end(from);
        prop_assert_eq!(end.track, before.track);
        // The head is left where the place says, when the access has ended.
        prop_assert_eq!(mechanics.phase_at(free), end.phase);
        let predicted = model.predict(free, end, model.start(to), op);
        let first = mechanics.walk(model.layout(), end.track, free, to, op, false).next().unwrap();
        prop_assert_eq!(predicted.seek, first.seek + first.switch);
        prop_assert_eq!(predicted.rotation, first.rotation);
        prop_assert!(predicted.rotation < mechanics.turn());
        prop_assert_eq!(model.seek(end, model.start(to), op), predicted.seek);
    }

    /// No request at least as far on the same side is reached in less than the bound.
    #[test]
    fn seek_bounds_hold(drive in 0..7_usize, at in any::<[Index; 3]>(), write in any::<bool>()) {
        let model = &models()[drive];
        let mut at = at.map(|at| extent(model, at, 1));
        at.sort_by_key(|extent| extent.start);
        let [a, b, c] = at;
        let op = if write { Op::Write } else { Op::Read };
        for (from, near, far) in [(a, b, c), (c, b, a)] {
            let from = model.end(from);
            let bound = model.seek_at_least(from, near.start);
            prop_assert!(bound <= model.seek(from, model.start(far), op));
            prop_assert!(bound <= model.seek(from, model.start(near), op));
        }
    }
}

/// A policy may ask for more than there is; it gets the last sector.
#[test]
fn places_past_the_end_are_the_last_sector() {
    let model = &models()[0];
    let end = Lba::ZERO + model.layout().capacity();
    let last = model.start(Extent::new(end - Sectors::new(1), Sectors::new(1)));
    assert_eq!(
        model.start(Extent::new(end + Sectors::new(77), Sectors::new(8))),
        last
    );
    assert_eq!(
        model
            .end(Extent::new(end + Sectors::new(77), Sectors::new(8)))
            .track,
        last.track
    );
    assert_eq!(
        model.seek_at_least(last, end + Sectors::new(5)),
        Nanos::ZERO
    );
    // No sectors end where they start.
    assert_eq!(
        model.end(Extent::at(0, 0)).track,
        model.start(Extent::at(0, 1)).track
    );
}
