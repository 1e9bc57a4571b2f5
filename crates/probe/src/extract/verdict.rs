//! What came of it: which keys of the profile are learned and how surely, which are not and why, and
//! whether the whole predicts reads that were not used to learn it.

use super::electronics::Electronics;
use super::holdout::Held;
use super::{Extraction, Stage};

/// What is known of a key of the profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub key: &'static str,
    pub known: Known,
}

/// Whether a key was learned.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// With this confidence, 0 to 1.
    Learned(f64),
    /// But no read that was not used to learn it was held against it.
    Unchecked,
    /// Its value in the profile, if there is one, is assumed. Why.
    Not(String),
}

/// What a profile is good for, by reads that were not used to learn it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// There is no profile.
    Nothing,
    /// Less than half of the reads took what it says.
    Wrong,
    /// It was not held against enough reads.
    Unchecked,
    /// Most reads took what it says, but fewer than a scheduler by position lives on.
    Rough,
    /// Reads take what it says.
    Predicts,
}

/// What came of an extraction.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub findings: Vec<Finding>,
    pub worth: Worth,
}

/// Reads below which a share says little.
const ENOUGH: u64 = 200;
/// Shares of reads that were within 300 us, below which a profile is wrong, and rough.
const WRONG: f64 = 0.5;
const ROUGH: f64 = 0.9;

impl Held {
    /// Reads that came from the medium.
    pub fn compared(&self) -> u64 {
        self.reads.saturating_sub(self.hits)
    }

    /// The part of them that took as long as predicted, within 50, 150 and 300 us.
    pub fn shares(&self) -> [f64; 3] {
        let compared = self.compared().max(1) as f64;
        self.within.map(|within| within as f64 / compared)
    }
}

impl Verdict {
    /// Those that are not learned, and why.
    pub fn missing(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.findings
            .iter()
            .filter_map(|finding| match &finding.known {
                Known::Learned(_) | Known::Unchecked => None,
                Known::Not(why) => Some((finding.key, why.as_str())),
            })
    }
}

impl Extraction {
    /// What came of it so far.
    pub fn verdict(&self) -> Verdict {
        let learned = self.confidence();
        let finding = |key: &'static str, stage: Stage, why: &str| {
            let confidence = learned.iter().find(|(known, _)| known == key);
            let known = match confidence {
                // What nothing speaks for is an assumption.
                Some(&(_, confidence)) if confidence > 0.0 => Known::Learned(confidence),
                _ if self.held.reads == 0 && self.has_whole(key) => Known::Unchecked,
                _ if self.stage <= stage => Known::Not("not looked at yet".to_owned()),
                _ => Known::Not(why.to_owned()),
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
            // Both are checked by reads that were held out.
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

    /// Whether it has all of what only the hold-out tells the worth of.
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
            _ if self.held.compared() < ENOUGH => Worth::Unchecked,
            near if near < WRONG => Worth::Wrong,
            near if near < ROUGH => Worth::Rough,
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
        assert_eq!(zones.unwrap().known, Known::Unchecked);
        let long = Nanos::from_secs(3_600);
        extraction.run(&mut probe, long).unwrap();
        let verdict = extraction.verdict();
        assert_eq!(verdict.worth, Worth::Predicts);
        let why = not(&verdict, "seek.write_settle").unwrap();
        assert_eq!(why, "nothing may be written without a scratch range");
        assert_eq!(not(&verdict, "seek.read"), None);
        // The profile says so, too.
        let profile = extraction.profile().unwrap();
        let again = Profile::from_toml("learned", &profile.to_toml()).unwrap();
        assert_eq!(again.layout, profile.layout);
        let of = |key: &str| profile.trust.iter().find(|(marked, _)| marked == key);
        let section = |key: &str| key.split('.').next().and_then(of);
        for finding in &verdict.findings {
            let (_, mark) = of(finding.key).or_else(|| section(finding.key)).unwrap();
            let is_learned = !matches!(finding.known, Known::Not(_));
            assert_eq!(*mark != Trust::Assumed, is_learned, "{finding:?}");
        }
        // Reads alone give a bound.
        assert_eq!(of("seek.head_switch").unwrap().1, Trust::Derived);
        assert_eq!(of("seek").unwrap().1, Trust::Learned);
        let order = not(&verdict, "layout.order").unwrap();
        assert!(order.contains("cylinder-first is assumed"), "{order}");
        // The same profile, had the reads come otherwise.
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
