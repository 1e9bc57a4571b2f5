//! The page for programs.

use super::super::tracks::group_cylinders;
use super::{Page, ProbeEnd};
use crate::object::object;
use headtime_lab::report::round;
use headtime_probe::extract::{KeyState, Worth};

impl Page<'_> {
    /// The whole page as JSON.
    pub fn json(&self) -> impl serde::Serialize {
        let extraction = self.extraction;
        let held = &extraction.held;
        let tracks = self.tracks.iter().map(|tracks| {
            object! {
                from_sector: tracks.from,
                to_sector: tracks.to,
                sectors_per_track: tracks.longest(),
                sectors_per_track_by_head: (tracks.lengths.len() > 1).then_some(&tracks.lengths),
                skews: tracks.skews.map(|skews| skews.map(|skew| round(skew, 9))),
                slipped: tracks.slips,
            }
        });
        let seeks = self.seek_tables().into_iter().map(|(name, points)| {
            let points = points.into_iter();
            object! {
                of: name,
                cylinders_and_ms: points.map(|(distance, ms)| (distance, round(ms, 6))).collect::<Vec<_>>(),
            }
        });
        let findings = self.verdict.findings.iter().map(|finding| {
            let (confidence, why) = match &finding.known {
                KeyState::Learned(confidence) => (Some(round(*confidence, 6)), None),
                KeyState::Unchecked => (None, Some("not checked")),
                KeyState::Not(why) => (None, Some(why.as_str())),
            };
            object! { key: finding.key, confidence: confidence, why: why }
        });
        let turns = extraction.turns.iter();
        let turns = turns.map(|(at, turn)| (round(at.as_secs_f64(), 3), round(turn / 1e6, 9)));
        let remapped = extraction.remaps.found.iter();
        let remapped = remapped.map(|remapped| (remapped.lba, round(remapped.angle, 6)));
        let combed = extraction.remaps.combing.as_ref();
        let combed = combed.map(|combing| combing.share(extraction.capacity().get()));
        let ended = match &self.end {
            ProbeEnd::Done => "done".to_owned(),
            ProbeEnd::Time => "time".to_owned(),
            ProbeEnd::Told => "told".to_owned(),
            ProbeEnd::Refused(why) => why.clone(),
        };
        object! {
            version: env!("CARGO_PKG_VERSION"),
            drive: extraction.name(),
            capacity_bytes: self.capacity(),
            sector_bytes: extraction.sector_bytes(),
            seed: extraction.seed(),
            commands: extraction.reads + extraction.in_vain.0,
            took_s: round((extraction.spent + extraction.in_vain.1).as_secs_f64(), 6),
            ended: ended,
            next: extraction.stage(),
            worth: word(self.verdict.worth),
            provisional: self.is_provisional(),
            turn_ms: extraction.spindle.as_ref().map(|spindle| round(spindle.turn / 1e6, 9)),
            drift_ppm: self.drift_ppm().map(|ppm| round(ppm, 3)),
            turns_s_ms: turns.collect::<Vec<_>>(),
            heads: self.profile.as_ref().map(|profile| profile.geometry.heads),
            cylinders: self.profile.as_ref().map(|profile| profile.geometry.cylinders),
            order: self.profile.as_ref().map(|profile| profile.layout.order_word()),
            group_cylinders: self.profile.as_ref().and_then(group_cylinders),
            tracks: tracks.collect::<Vec<_>>(),
            seeks: seeks.collect::<Vec<_>>(),
            zero_latency: extraction.zero_latency,
            cache: self.profile.as_ref().map(|profile| profile.cache),
            queue: self.profile.as_ref().map(|profile| profile.queue),
            queue_order: &extraction.electronics.queueing.orders_of,
            remaps: object! {
                sectors_and_angles: remapped.collect::<Vec<_>>(),
                read_share: round(combed.unwrap_or(0.0), 6),
                complete: extraction.remaps.is_complete(),
                unclear: extraction.remaps.unclear,
                unreadable: extraction.remaps.unreadable.clone(),
            },
            contradictions: &extraction.contradictions,
            check: object! {
                reads: held.reads,
                hits: held.hits,
                within_50_150_300_us: held.within,
                a_turn_late: held.late,
                a_turn_early: held.early,
            },
            known: findings.collect::<Vec<_>>(),
        }
    }
}

fn word(worth: Worth) -> &'static str {
    match worth {
        Worth::Nothing => "nothing",
        Worth::Wrong => "wrong",
        Worth::Unchecked => "unchecked",
        Worth::Rough => "rough",
        Worth::Predicts => "predicts",
    }
}
