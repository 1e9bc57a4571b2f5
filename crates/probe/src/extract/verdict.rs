//! Result of an extraction: learned keys with their confidence, missing keys with the reason, and the quality of predictions for reads that
//! were not used to learn.

use super::electronics::Electronics;
use super::holdout::Held;
use super::{Extraction, Stage};

/// A key of the profile, and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub key: &'static str,
    pub known: KeyState,
}

/// State of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyState {
    /// Learned, with this confidence, 0 to 1.
    Learned(f64),
    /// Learned, but not yet checked by reads outside the training set.
    Unchecked,
    /// Not learned, for this reason. If the profile has a value, the value is assumed.
    Not(String),
}

/// Usefulness of a profile, judged by reads that were not used to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// There is no profile.
    Nothing,
    /// Less than half of the reads took the predicted time.
    Wrong,
    /// Too few reads were compared with the profile.
    Unchecked,
    /// Most reads took the predicted time, but too few for a scheduler by position.
    Rough,
    /// Reads take the predicted time.
    Predicts,
}

/// Result of an extraction.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub findings: Vec<Finding>,
    pub worth: Worth,
}

/// Fewest reads that make a share meaningful.
const READS_MIN: u64 = 200;
/// Shares of reads within 300 us, below which a profile is wrong or rough.
const WRONG_SHARE: f64 = 0.5;
const ROUGH_SHARE: f64 = 0.9;

impl Held {
    /// Reads that came from the medium.
    pub fn compared(&self) -> u64 {
        self.reads.saturating_sub(self.hits)
    }

    /// Shares of these reads that took the predicted time, within 50, 150 and 300 us.
    pub fn shares(&self) -> [f64; 3] {
        let compared = self.compared().max(1) as f64;
        self.within.map(|within| within as f64 / compared)
    }
}

impl Verdict {
    /// Keys that are not learned, with the reasons.
    pub fn missing(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.findings
            .iter()
            .filter_map(|finding| match &finding.known {
                KeyState::Learned(_) | KeyState::Unchecked => None,
                KeyState::Not(why) => Some((finding.key, why.as_str())),
            })
    }
}

impl Extraction {
    /// Result of the extraction so far.
    pub fn verdict(&self) -> Verdict {
        let learned = self.confidence();
        let finding = |key: &'static str, stage: Stage, why: &str| {
            let confidence = learned.iter().find(|(known, _)| known == key);
            let known = match confidence {
                // A key without evidence is an assumption.
                Some(&(_, confidence)) if confidence > 0.0 => KeyState::Learned(confidence),
                _ if self.held.reads == 0 && self.has_whole(key) => KeyState::Unchecked,
                _ if self.stage <= stage => KeyState::Not("not looked at yet".to_owned()),
                _ => KeyState::Not(why.to_owned()),
            };
            Finding { key, known }
        };
        let written = match (self.scratch, &self.writes) {
            (None, _) => "nothing may be written without a scratch range",
            (Some(_), None) => "writes are answered before they are on the medium",
            (Some(_), Some(_)) => "no write came to where it could be timed",
        };
        let order = match self.shape {
            Some(shape) if !shape.shows_order() => {
                "whether every other cylinder runs backward does not show in the times of reads; cylinder-first is assumed"
            }
            _ => "no rule was found",
        };
        let mut findings = vec![
            finding("rotation", Stage::Rotation, "nothing turns"),
            // Both keys are checked by the hold-out reads.
            finding("layout.zones", Stage::HoldOut, "no read came as predicted"),
            finding("geometry.heads", Stage::Surfaces, "no rule was found"),
            finding("layout.order", Stage::Surfaces, order),
            finding(
                "bus.interface_sector",
                Stage::Bus,
                "nothing came from the buffer",
            ),
            finding("seek.read", Stage::HoldOut, "no read came as predicted"),
            finding("seek.head_switch", Stage::Gaps, "no surfaces were found"),
            finding("overhead", Stage::Seeks, "no seek could be timed"),
            finding("seek.write_settle", Stage::Writes, written),
            finding(
                "access.zero_latency_read",
                Stage::Access,
                "too few reads took another time with it than without",
            ),
        ];
        let all = "it takes reading all sectors";
        findings.insert(2, finding("layout.remaps", Stage::Remaps, all));
        let unknown = &self.electronics.told.unknown;
        for key in Electronics::keys() {
            let why = unknown.iter().find(|(other, _)| other == key);
            let why = why.map_or("it was not asked for", |(_, why)| why);
            findings.push(finding(key, Stage::Electronics, why));
        }
        Verdict {
            findings,
            worth: self.worth(),
        }
    }

    /// Returns true if a key has its value already, and only the hold-out reads can confirm this value.
    fn has_whole(&self, key: &str) -> bool {
        match key {
            "layout.zones" => self.stage > Stage::Tracks,
            "seek.read" => self.stage > Stage::Seeks,
            _ => false,
        }
    }

    fn worth(&self) -> Worth {
        if self.profile().is_err() {
            return Worth::Nothing;
        }
        let [_, _, near] = self.held.shares();
        match near {
            _ if self.held.compared() < READS_MIN => Worth::Unchecked,
            near if near < WRONG_SHARE => Worth::Wrong,
            near if near < ROUGH_SHARE => Worth::Rough,
            _ => Worth::Predicts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Modelled;
    use headtime_disk::profile::{Profile, Trust, by_name};
    use headtime_units::Nanos;

    fn not(verdict: &Verdict, key: &str) -> Option<String> {
        let found = verdict.missing().find(|(missing, _)| *missing == key);
        found.map(|(_, why)| why.to_owned())
    }

    #[test]
    fn the_verdict_grows_with_what_is_known() {
        let mut probe = Modelled::new(&by_name("atlas10k").unwrap(), 1);
        let mut extraction = Extraction::new(&probe, 1);
        let verdict = extraction.verdict();
        assert_eq!(verdict.worth, Worth::Nothing);
        assert_eq!(verdict.missing().count(), verdict.findings.len());
        assert_eq!(not(&verdict, "rotation").unwrap(), "not looked at yet");
        extraction.step(&mut probe).unwrap();
        let verdict = extraction.verdict();
        assert_eq!(not(&verdict, "rotation"), None);
        assert_eq!(not(&verdict, "layout.zones").unwrap(), "not looked at yet");
        while extraction.stage() != Stage::HoldOut {
            extraction.step(&mut probe).unwrap();
        }
        let verdict = extraction.verdict();
        assert_eq!(verdict.worth, Worth::Unchecked);
        let zones = verdict
            .findings
            .iter()
            .find(|found| found.key == "layout.zones");
        assert_eq!(zones.unwrap().known, KeyState::Unchecked);
        let long = Nanos::from_secs(3_600);
        extraction.run(&mut probe, long).unwrap();
        let verdict = extraction.verdict();
        assert_eq!(verdict.worth, Worth::Predicts);
        let why = not(&verdict, "seek.write_settle").unwrap();
        assert_eq!(why, "nothing may be written without a scratch range");
        assert_eq!(not(&verdict, "seek.read"), None);
        // The profile has the same marks.
        let profile = extraction.profile().unwrap();
        let again = Profile::from_toml("learned", &profile.to_toml()).unwrap();
        assert_eq!(again.layout, profile.layout);
        let of = |key: &str| profile.trust.iter().find(|(marked, _)| marked == key);
        let section = |key: &str| key.split('.').next().and_then(of);
        for finding in &verdict.findings {
            let (_, mark) = of(finding.key).or_else(|| section(finding.key)).unwrap();
            let is_learned = !matches!(finding.known, KeyState::Not(_));
            assert_eq!(*mark != Trust::Assumed, is_learned, "{finding:?}");
        }
        // Reads alone give an upper bound.
        assert_eq!(of("seek.head_switch").unwrap().1, Trust::Derived);
        assert_eq!(of("seek").unwrap().1, Trust::Learned);
        let order = not(&verdict, "layout.order").unwrap();
        assert!(order.contains("cylinder-first is assumed"), "{order}");
        // Other results of the hold-out reads for this profile.
        for (within, worth) in [(4_499, Worth::Rough), (2_499, Worth::Wrong)] {
            extraction.held = Held {
                reads: 5_010,
                hits: 10,
                within: [0, 0, within],
                ..Held::default()
            };
            assert_eq!(extraction.verdict().worth, worth);
        }
    }
}
