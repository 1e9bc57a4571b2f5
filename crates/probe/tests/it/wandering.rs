//! A spindle whose speed wanders.

use headtime_disk::Layout;
use headtime_disk::profile::by_name;
use headtime_probe::extract::{Extraction, Stage};
use headtime_probe::{Answer, Modelled, Probe, ProbeError};
use headtime_units::{Lba, Nanos, Time};

/// A drive seen with a wandering clock. By this clock the drive turns up to 100 parts per million too fast or too
/// slow, with a period of two minutes. In an hour the clock drifts by as much.
struct Wandering(Modelled);

impl Wandering {
    fn shown(time: Time) -> Time {
        let nanos = time.as_nanos() as f64;
        let period = 120e9;
        let wander = 100e-6 * period / std::f64::consts::TAU
            * (std::f64::consts::TAU * nanos / period).sin();
        let drift = 100e-6 * nanos * nanos / 3_600e9 / 2.0;
        Time::from_nanos((nanos + wander + drift) as u64)
    }
}

impl headtime_probe::Layer for Wandering {
    fn under(&self) -> &dyn Probe {
        &self.0
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.0
    }

    fn depth(&self) -> u16 {
        1
    }

    fn now(&mut self) -> Time {
        Wandering::shown(self.0.now())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let answer = self.0.answer()?;
        let [sent, at] = [answer.sent, answer.at].map(Wandering::shown);
        Ok(Answer { sent, at, ..answer })
    }
}

#[test]
fn a_spindle_that_wanders_is_followed() {
    for name in ["atlas10k", "exos-x18"] {
        // Reads that come turns late cost borders besides.
        let truth = by_name(name).unwrap().with(|spec| {
            (spec.noise.retried_reads, spec.noise.long_waits) = (0.0, 0.0);
        });
        let truth = truth.unwrap();
        let mut probe = Wandering(Modelled::new(&truth, 9));
        let mut extraction = Extraction::new(&probe, 9);
        extraction
            .run(&mut probe, Nanos::from_millis(90 * 60_000))
            .unwrap();
        assert_eq!(extraction.stage(), Stage::Done);
        let learned = extraction.profile().unwrap();
        let lengths = |profile: &headtime_disk::Profile| -> Vec<u32> {
            profile
                .layout
                .zones
                .iter()
                .map(|zone| zone.sectors_per_track)
                .collect()
        };
        assert_eq!(lengths(&learned), lengths(&truth), "{name}");
        // The turn at each time, as the clock shows it.
        let turn = truth.rotation.turn().as_nanos() as f64;
        let (fast, slow) = extraction
            .turns
            .iter()
            .fold((f64::MAX, f64::MIN), |(fast, slow), (_, turn)| {
                (fast.min(*turn), slow.max(*turn))
            });
        assert!(
            (slow - fast) / turn > 150e-6 && (slow - fast) / turn < 320e-6,
            "{name}"
        );
        let held = extraction.held;
        assert!(held.within[0] * 100 >= held.reads * 95, "{name}: {held:?}");
        let (ours, theirs) = (Layout::new(&learned), Layout::new(&truth));
        let capacity = probe.capacity().get();
        let mut offsets: Vec<f64> = (0..10_000_u64)
            .map(|index| {
                let lba = Lba::new((index * 7_919_993 + 17) % capacity);
                let bits = |layout: &Layout| layout.locate(lba).angle.to_bits();
                f64::from(bits(&ours).wrapping_sub(bits(&theirs)) as i32) / 4_294_967_296.0 * turn
            })
            .collect();
        offsets.sort_by(f64::total_cmp);
        let middle = offsets[offsets.len() / 2];
        let near = offsets
            .iter()
            .filter(|offset| (*offset - middle).abs() < 20_000.0)
            .count();
        assert!(near >= 9_900, "{name}: {near}");
    }
}
