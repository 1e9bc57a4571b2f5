//! The page of a whole probe: the disk in words, tables and pictures, and the reason for each unknown fact.

mod json;
mod picture;

use super::super::curve::size;
use super::inside;
use super::sparse::sparse;
use super::tracks::{self, Tracks, group_cylinders};
use headtime_disk::profile::SeekCurve;
use headtime_disk::{Mechanics, Profile};
use headtime_lab::fault::{Fault, name};
use headtime_lab::output::{TableColumn, Terminal, table};
use headtime_probe::extract::{Extraction, KeyState, Stage, Verdict, Worth};
use headtime_sched::Op;
use std::path::Path;

/// Largest number of unreadable places that are named.
const MOST_NAMED: usize = 8;

/// Reason why a probe has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProbeEnd {
    /// Every part of the probe is finished.
    Done,
    /// The time is over.
    Time,
    /// A signal asked for the end.
    Told,
    /// The disk cannot be learned, at least at present.
    Refused(String),
}

/// Knowledge of a disk when a probe has ended.
pub(super) struct Page<'a> {
    extraction: &'a Extraction,
    end: ProbeEnd,
    profile: Option<Profile>,
    verdict: Verdict,
    /// Tracks in the pieces of the profile.
    tracks: Vec<Tracks>,
    /// Zones for readers: pieces joined.
    zones: Vec<Tracks>,
}

impl<'a> Page<'a> {
    pub fn new(extraction: &'a Extraction, end: ProbeEnd) -> Page<'a> {
        let profile = extraction.profile().ok();
        let tracks = match &profile {
            Some(profile) => tracks::of_profile(profile),
            None => tracks::of_walk(extraction),
        };
        let zones = tracks::zones(&tracks);
        Page {
            extraction,
            end,
            profile,
            verdict: extraction.verdict(),
            tracks,
            zones,
        }
    }

    /// The profile, if there is one.
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// Returns the result of the command.
    pub fn result(&self, out: Option<&Path>, state: Option<&Path>) -> Result<(), Fault> {
        let disk = self.extraction.name();
        let kept = match (out, &self.profile, state) {
            (Some(out), Some(_), _) => format!("; what is known stands in {}", name(out)),
            (Some(out), None, _) => format!("; {} was not written", name(out)),
            _ => String::new(),
        };
        let on = match state {
            Some(state) => format!("; the same command goes on with {}", name(state)),
            None => "; with --state it could be gone on with".to_owned(),
        };
        match &self.end {
            ProbeEnd::Refused(why) => {
                Err(Fault::Check(format!("{disk} was not learned: {why}{kept}")))
            }
            // Each place must be measured several times in a row. A part of these measurements gives no result.
            ProbeEnd::Time if self.extraction.stage() == Stage::Rotation => {
                Err(Fault::Stopped(format!(
                    "{disk} was not learned in this time{kept}: how fast it turns is learned first, in one piece, and nothing is known before; that takes seconds, \
                     and up to 5m where the buffer is large. Give --time more"
                )))
            }
            ProbeEnd::Time => Err(Fault::Stopped(format!(
                "{disk} was not learned in this time{kept}{on}"
            ))),
            ProbeEnd::Told => Err(Fault::Stopped(format!("told to end{kept}{on}"))),
            ProbeEnd::Done if self.verdict.worth < Worth::Rough => Err(Fault::Check(format!(
                "{disk} was not learned: {}{kept}",
                worth(self.verdict.worth)
            ))),
            ProbeEnd::Done => Ok(()),
        }
    }

    fn capacity(&self) -> f64 {
        let bytes = self.extraction.capacity();
        bytes.bytes(self.extraction.sector_bytes()) as f64
    }

    fn bytes(&self, sectors: u64) -> f64 {
        sectors as f64 * f64::from(self.extraction.sector_bytes())
    }

    fn heading(&self) -> String {
        let extraction = self.extraction;
        let (in_vain, vain_time) = extraction.in_vain;
        format!(
            "{} · {} · {} commands in {:.0} s · seed {}",
            extraction.name(),
            size(extraction.capacity(), extraction.sector_bytes()),
            extraction.reads + in_vain,
            (extraction.spent + vain_time).as_secs_f64(),
            extraction.seed()
        )
    }

    /// Excess of the slowest turn over the fastest, in millionths. `None` if the turn was measured less than twice.
    fn drift_ppm(&self) -> Option<f64> {
        let turns = &self.extraction.turns;
        let of = turns.iter().map(|(_, turn)| *turn);
        let (least, most) = of.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), turn| {
            (least.min(turn), most.max(turn))
        });
        (turns.len() > 1).then(|| (most / least - 1.0) * 1e6)
    }

    /// Known facts, by name.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if let Some(spindle) = &self.extraction.spindle {
            let (rpm, turn) = (60e9 / spindle.turn, spindle.turn / 1e6);
            let mut text = format!("{rpm:.3} turns a minute, {turn:.5} ms each");
            if let Some(ppm) = self.drift_ppm().filter(|ppm| *ppm >= 0.05) {
                text += &format!(", {ppm:.1} millionths between slowest and fastest");
            }
            lines.push(("rotation", text));
        }
        if let (Some(first), Some(last)) = (self.zones.first(), self.zones.last()) {
            let slips: u64 = self.tracks.iter().map(|tracks| tracks.slips).sum();
            let zones = self.zones.len();
            let upto = match &self.profile {
                Some(_) => String::new(),
                None => format!(", as far as {}", size_of(self.bytes(last.to))),
            };
            lines.push((
                "tracks",
                format!(
                    "{} sectors at the beginning, {} at the end, {zones} zones, {slips} slipped{upto}",
                    first.sectors(),
                    last.sectors()
                ),
            ));
        }
        if let Some(profile) = &self.profile {
            self.lines_of_profile(profile, &mut lines);
        }
        if self.is_provisional() {
            let facts = lines.iter_mut().filter(|(name, _)| *name != "rotation");
            facts.for_each(|(_, text)| text.push_str(" (provisional)"));
        }
        lines.push(("check", self.check()));
        let contradictions = self.extraction.contradictions.iter();
        lines.extend(contradictions.map(|what| ("contradicts", what.clone())));
        if self.profile.is_some() {
            lines.push(("remapped", self.remapped()));
        }
        lines
    }

    /// True if too few other reads were compared with the profile.
    fn is_provisional(&self) -> bool {
        self.verdict.worth <= Worth::Unchecked && self.verdict.worth != Worth::Wrong
    }

    fn lines_of_profile(&self, profile: &Profile, lines: &mut Vec<(&'static str, String)>) {
        let geometry = &profile.geometry;
        let mut missing = self.verdict.missing();
        let assumed = match missing.any(|(key, _)| key == "layout.order") {
            true => " (assumed)",
            false => "",
        };
        lines.push((
            "surfaces",
            format!(
                "{}, {} cylinders, {}{assumed}{}",
                geometry.heads,
                geometry.cylinders,
                profile.layout.order_word(),
                groups(profile)
            ),
        ));
        let mechanics = Mechanics::new(profile);
        let full = geometry.cylinders.saturating_sub(1).max(1);
        let seeks = |op: Op| {
            let ms = |distance: u32| mechanics.seek(distance.max(1), op).as_millis_f64();
            format!(
                "{:.3} ms one cylinder, {:.2} a third, {:.2} all",
                ms(1),
                ms(full / 3),
                ms(full)
            )
        };
        if matches!(profile.seek.read, SeekCurve::Table { .. }) {
            lines.push(("reads seek", seeks(Op::Read)));
        }
        let written = self.extraction.writes.is_some();
        if written {
            lines.push(("writes seek", seeks(Op::Write)));
        }
        let overhead = &profile.overhead;
        let most = if written { "" } else { "at most " };
        lines.push((
            "switch",
            format!(
                "{most}{:.3} ms to another head",
                profile.seek.head_switch.as_millis_f64()
            ),
        ));
        let of = |time| (overhead.per_command + time).as_millis_f64();
        let processing = of(overhead.read_miss_after_read);
        let hit = of(overhead.read_hit_after_read);
        let varies = match self.extraction.electronics.jitter {
            Some(_) => format!(
                ", give or take {:.3}",
                profile.noise.overhead_sd.as_millis_f64()
            ),
            None => String::new(),
        };
        lines.push((
            "processing",
            format!("{processing:.3} ms a read, {hit:.3} ms one from the buffer{varies}"),
        ));
        if let Some(taken) = self.extraction.zero_latency {
            let text = match taken {
                true => "sectors of a track are taken as they come (zero latency)",
                false => "sectors of a track are taken in their order (no zero latency)",
            };
            lines.push(("access", text.to_owned()));
        }
        let order = self.extraction.electronics.queueing.order_line();
        lines.extend(inside::lines(profile, order, |key| self.knows(key)));
    }

    /// True if a key of the profile was learned.
    fn knows(&self, key: &str) -> bool {
        let mut findings = self.verdict.findings.iter();
        findings.any(|finding| finding.key == key && !matches!(finding.known, KeyState::Not(_)))
    }

    /// Describes remapped sectors, and the share of the disk that was read to find them.
    fn remapped(&self) -> String {
        let remaps = &self.extraction.remaps;
        let found = match remaps.found.len() {
            0 => "none".to_owned(),
            1 => "1 sector is elsewhere".to_owned(),
            many => format!("{many} sectors are elsewhere"),
        };
        let unclear = match remaps.unclear {
            0 => String::new(),
            1 => "; 1 late read has no such reason".to_owned(),
            many => format!("; {many} late reads have no such reason"),
        };
        let among = match &remaps.combing {
            None => "met by the way; --remaps reads all sectors".to_owned(),
            Some(_) if remaps.is_complete() => "of all sectors, which were read".to_owned(),
            Some(combing) => {
                let share = 100.0 * combing.share(self.extraction.capacity().get());
                let ended = combing.ended.as_ref().map(|why| format!(" since {why}"));
                format!(
                    "of {share:.1} % that were read{}",
                    ended.unwrap_or_default()
                )
            }
        };
        format!("{found}, {among}{unclear}{}", self.unreadable())
    }

    /// Describes sectors that cannot be read. Empty if there are none.
    fn unreadable(&self) -> String {
        let remaps = &self.extraction.remaps;
        let count = remaps.unreadable.len();
        if count == 0 {
            return String::new();
        }
        let places = remaps.unreadable_together();
        let named = places.iter().take(MOST_NAMED).map(|extent| {
            let last = extent.end().get() - 1;
            match extent.len.get() {
                1 => last.to_string(),
                _ => format!("{} to {last}", extent.start),
            }
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if places.len() > MOST_NAMED {
            ", .."
        } else {
            ""
        };
        let sectors = if count == 1 { "sector" } else { "sectors" };
        format!("; {count} {sectors} cannot be read ({named}{more})")
    }

    /// Describes the comparison of other reads with the profile.
    fn check(&self) -> String {
        let held = &self.extraction.held;
        if held.reads == 0 {
            return "no other reads were held against what is provisional".to_owned();
        }
        let compared = held.compared().max(1) as f64;
        let [within_50, _, within_300] = held.shares().map(|share| 100.0 * share);
        let late = 100.0 * held.late as f64 / compared;
        let early = 100.0 * held.early as f64 / compared;
        format!(
            "of {} other reads {within_50:.1} % come within 50 us of what the profile says, {within_300:.1} % within 300, \
             {late:.1} % a turn later, {early:.1} % a turn sooner",
            held.compared()
        )
    }

    /// Describes the outcome of the probe in a sentence.
    fn sentence(&self) -> String {
        let stage = self.extraction.stage();
        let ended = match &self.end {
            ProbeEnd::Done => return format!("All was looked at: {}.", worth(self.verdict.worth)),
            ProbeEnd::Time => "The time was over".to_owned(),
            ProbeEnd::Told => "It was told to end".to_owned(),
            // If the disk cannot be learned, there is no remaining time.
            ProbeEnd::Refused(why) => {
                let quick = match self.extraction.spindle {
                    Some(_) => "",
                    // `--quick` measures speed without knowing the time of a turn.
                    None => " `--quick` still tells how fast it is.",
                };
                return format!(
                    "It ended: {why}. That was at the part \"{}\": {}.{quick}",
                    stage.text(),
                    worth(self.verdict.worth)
                );
            }
        };
        let left = match self.extraction.progress().left {
            Some(left) => format!(
                "about {:.0} min before all is known",
                left.as_secs_f64() / 60.0
            ),
            None => "and how long the rest takes is not known yet".to_owned(),
        };
        format!(
            "{ended} at the part \"{}\", {left}: {}.",
            stage.text(),
            worth(self.verdict.worth)
        )
    }

    /// Returns keys, each with its certainty or the reason why it is unknown.
    fn findings(&self) -> Vec<(String, String)> {
        let findings = self.verdict.findings.iter();
        let mut findings: Vec<(String, String)> = findings
            .map(|finding| {
                let known = match &finding.known {
                    KeyState::Learned(confidence) => {
                        let provisional = self.is_provisional() && finding.key != "rotation";
                        let mark = if provisional { ", provisional" } else { "" };
                        format!("{:.0} %{mark}", 100.0 * confidence)
                    }
                    KeyState::Unchecked => "learned, and not checked".to_owned(),
                    KeyState::Not(why) => format!("not learned: {why}"),
                };
                (finding.key.to_owned(), known)
            })
            .collect();
        // Keys that no part of the probe measures.
        let trust = self.profile.iter().flat_map(|profile| profile.trust.iter());
        for (key, trust) in trust {
            let known = |(finding, _): &(String, String)| {
                finding == key || finding.starts_with(&format!("{key}."))
            };
            if *trust == headtime_disk::profile::Trust::Assumed && !findings.iter().any(known) {
                findings.push((key.clone(), "assumed: not looked at".to_owned()));
            }
        }
        findings
    }

    /// Returns the page as text.
    pub fn text(&self, terminal: Terminal) -> String {
        let mut text = format!("{}\n\n", self.heading());
        for (name, value) in self.lines() {
            text.push_str(&format!("{name:13}{value}\n"));
        }
        if !self.tracks.is_empty() {
            text.push_str("\nTracks by place\n");
            text.push_str(&self.table_of_tracks(terminal));
        }
        if let Some((_, seeks)) = self.seek_tables().first() {
            let some = sparse(seeks);
            let write = self.profile.as_ref().map(Mechanics::new);
            let write = write.filter(|_| self.extraction.writes.is_some());
            let distances = some.iter().map(|(distance, _)| distance.to_string());
            let ms = |time: f64| format!("{time:.3}");
            let mut columns = vec![
                TableColumn::numbers("cylinders", distances),
                TableColumn::numbers("read ms", some.iter().map(|(_, time)| ms(*time))),
            ];
            if let Some(mechanics) = write {
                let write = some
                    .iter()
                    .map(|(distance, _)| ms(mechanics.seek(*distance, Op::Write).as_millis_f64()));
                columns.push(TableColumn::numbers("write ms", write));
            }
            text.push_str("\nSeeks by distance\n");
            text.push_str(&table(&columns, terminal));
        }
        text.push_str("\nHow surely each key of the profile is known\n");
        let findings = self.findings();
        let mut all = self.verdict.findings.iter();
        if all.all(|finding| matches!(finding.known, KeyState::Not(_))) {
            // The probe ended before its first part was finished. A table would have no values.
            text.push_str("nothing of it: no part was looked at to its end\n");
            text.push_str(&format!("\n{}\n", self.sentence()));
            return text;
        }
        let columns = [
            TableColumn::words("key", findings.iter().map(|(key, _)| key.clone())),
            TableColumn::words("known", findings.iter().map(|(_, known)| known.clone())),
        ];
        text.push_str(&table(&columns, terminal));
        text.push_str(&format!("\n{}\n", self.sentence()));
        text
    }

    fn table_of_tracks(&self, terminal: Terminal) -> String {
        let some = sparse(&self.zones);
        let from = some.iter().map(|tracks| size_of(self.bytes(tracks.from)));
        let mut columns = vec![
            TableColumn::numbers("from", from),
            TableColumn::numbers("sectors", some.iter().map(|tracks| tracks.sectors())),
        ];
        if some.iter().any(|tracks| tracks.skews.is_some()) {
            for (at, name) in self.skew_names() {
                let cells = some.iter().map(|tracks| {
                    let skew = tracks.skews.map(|skews| format!("{:.4}", skews[at]));
                    skew.unwrap_or_default()
                });
                columns.push(TableColumn::numbers(name, cells));
            }
        }
        let slips = some.iter().map(|tracks| tracks.slips.to_string());
        columns.push(TableColumn::numbers("slipped", slips));
        table(&columns, terminal)
    }

    /// Returns the skews that carry information, by their index in `skews`.
    fn skew_names(&self) -> Vec<(usize, &'static str)> {
        let by_group = |skews: [f64; 3]| skews[2] != skews[1];
        let grouped = self
            .tracks
            .iter()
            .filter_map(|tracks| tracks.skews)
            .any(by_group);
        match grouped {
            true => vec![(0, "track skew"), (2, "group skew")],
            false => vec![(0, "track skew"), (1, "cylinder skew")],
        }
    }

    /// Returns the seek tables of the profile: cylinders and ms.
    fn seek_tables(&self) -> Vec<(&'static str, Vec<(u32, f64)>)> {
        let Some(profile) = &self.profile else {
            return Vec::new();
        };
        let SeekCurve::Table { points, .. } = &profile.seek.read else {
            return Vec::new();
        };
        let mechanics = Mechanics::new(profile);
        let of = |op: Op| -> Vec<(u32, f64)> {
            let distances = points.iter().map(|(distance, _)| *distance);
            distances
                .map(|distance| (distance, mechanics.seek(distance, op).as_millis_f64()))
                .collect()
        };
        let mut tables = vec![("reads", of(Op::Read))];
        if self.extraction.writes.is_some() {
            tables.push(("writes", of(Op::Write)));
        }
        tables
    }
}

/// Describes lengths of groups. Empty without groups.
fn groups(profile: &Profile) -> String {
    match group_cylinders(profile) {
        Some([1, 1]) => ", groups of 1 cylinder".to_owned(),
        Some([least, most]) if least == most => format!(", groups of {least} cylinders"),
        Some([least, most]) => format!(", groups of {least} to {most} cylinders"),
        None => String::new(),
    }
}

fn size_of(bytes: f64) -> String {
    size(headtime_units::Sectors::new(bytes as u64), 1)
}

/// Describes the use of a profile of this worth.
fn worth(worth: Worth) -> &'static str {
    match worth {
        Worth::Nothing => "there is no profile",
        Worth::Wrong => {
            "the profile is wrong, less than half of other reads come within 300 us of what it says"
        }
        Worth::Unchecked => "the profile is not checked by enough other reads",
        Worth::Rough => {
            "the profile is rough: for simulation, but a scheduler by position needs 90 % of the reads within 300 us"
        }
        Worth::Predicts => {
            "reads come when the profile says, which is what schedulers by position need"
        }
    }
}
