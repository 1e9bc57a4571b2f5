//! The baseline of the figures' results: earlier values, and the reason for each value out of its range.

use super::Scale;
use super::judge::{KnownPoint, MeasuredFigure, MeasuredPoint, range, spread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest accepted change of a value, as a share of the value. Results are bit-identical if nothing changed. This is therefore the change
/// that passes without review.
pub const DRIFT_MAX: f64 = 0.005;

/// Known results, by figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Entries by the figure's name.
    pub figures: BTreeMap<String, KnownFigure>,
}

/// Known results of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFigure {
    /// Points at the full scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<KnownPoint>,
    /// Points at the quick scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quick: Vec<KnownPoint>,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    ///
    /// If the text is no baseline, with line and column.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Text that [`Baseline::parse`] reads. Equal content has equal text, with a line for each point, so that people can read changes.
    pub fn to_text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let figures = self.figures.iter().map(|(id, entry)| {
            let scales = [("full", &entry.full), ("quick", &entry.quick)];
            let scales = scales.into_iter().filter(|(_, known)| !known.is_empty());
            let scales = scales.map(|(scale, known)| {
                let lines = known.iter().map(|known| {
                    let line = serde_json::to_string(known).expect("text keys, finite numbers");
                    format!("\n        {line}")
                });
                let lines: Vec<String> = lines.collect();
                format!("\n      \"{scale}\": [{}\n      ]", lines.join(","))
            });
            let scales: Vec<String> = scales.collect();
            format!("\n    {}: {{{}\n    }}", quoted(id), scales.join(","))
        });
        let figures: Vec<String> = figures.collect();
        format!("{{\n  \"figures\": {{{}\n  }}\n}}\n", figures.join(","))
    }

    /// Known points of a figure.
    pub fn of(&self, id: &str, scale: Scale) -> &[KnownPoint] {
        match (self.figures.get(id), scale) {
            (None, _) => &[],
            (Some(entry), Scale::Full) => &entry.full,
            (Some(entry), Scale::Quick) => &entry.quick,
        }
    }

    /// Lines that describe differences from the baseline; empty if there are none.
    pub fn differences(&self, measured: &MeasuredFigure, scale: Scale) -> Vec<String> {
        let known = self.of(&measured.id, scale);
        let mut lines = Vec::new();
        for point in &measured.points {
            let name = format!("{}: {}", measured.id, point.name());
            let (value, values) = (point.measured, spread(point));
            let range = range(point.accept);
            let known = known.iter().find(|known| known.is_of(point));
            if known.is_none() && !measured.reds_alone {
                lines.push(format!("{name}: is not in the baseline; --bless adds it"));
                continue;
            }
            let red = known.and_then(|known| known.red.as_deref());
            match (point.within == Some(false), red) {
                (true, None) => {
                    lines.push(format!("{name}: newly out of range: {values} is outside {range}"));
                }
                (true, Some("")) => lines.push(format!(
                    "{name}: out of range ({values}, not {range}), and the baseline does not say why"
                )),
                (false, Some(_)) => lines.push(format!(
                    "{name}: {value} is in its range now, but the baseline expects it outside; --bless updates it"
                )),
                (true, Some(_)) | (false, None) => {}
            }
            if let Some(known) = known.filter(|known| drifted(&known.unit, known.measured, value)) {
                lines.push(format!(
                    "{name}: was {}, is {value}; --bless if the change is meant",
                    known.measured
                ));
            }
        }
        // A smaller number of drawn points has only some of the baseline's points.
        for known in known.iter().filter(|_| !measured.reds_alone) {
            if !measured.points.iter().any(|point| known.is_of(point)) {
                let name = super::name(&known.series, &known.x, &known.metric, &known.unit);
                lines.push(format!(
                    "{}: {name}: is in the baseline, but not in the figure; --bless drops it",
                    measured.id
                ));
            }
        }
        lines
    }

    /// Takes over the measured values. A reason is kept while its point is out of range. A point that is newly out of range gets an empty
    /// reason, for a person to write.
    pub fn bless(&mut self, measured: &MeasuredFigure, scale: Scale) {
        let before = self.of(&measured.id, scale).to_vec();
        let reason = |point: &MeasuredPoint| {
            let known = before.iter().find(|known| known.is_of(point));
            known
                .and_then(|known| known.red.clone())
                .unwrap_or_default()
        };
        let has = |point: &&MeasuredPoint| !measured.reds_alone || point.within == Some(false);
        // If fewer points are drawn than before, the missing points keep their entries.
        let left_out = |known: &&KnownPoint| {
            measured.reds_alone && !measured.points.iter().any(|point| known.is_of(point))
        };
        let left_out = before.iter().filter(left_out).cloned();
        let points = measured.points.iter().filter(has);
        let known = points
            .map(|point| KnownPoint {
                series: point.series.clone(),
                x: point.x.clone(),
                metric: point.metric.to_owned(),
                unit: point.unit.clone(),
                measured: point.measured,
                red: (point.within == Some(false)).then(|| reason(point)),
            })
            .chain(left_out)
            .collect();
        let entry = self.figures.entry(measured.id.clone()).or_default();
        match scale {
            Scale::Full => entry.full = known,
            Scale::Quick => entry.quick = known,
        }
    }
}

/// True if a value has moved by more than [`DRIFT_MAX`]. An improvement in % is compared as a factor, since a change from 0.1 % to 0.2 % is
/// next to nothing.
fn drifted(unit: &str, before: f64, now: f64) -> bool {
    let offset = if unit.starts_with("% over ") {
        100.0
    } else {
        0.0
    };
    let (before, now) = (before + offset, now + offset);
    (now - before).abs() > DRIFT_MAX * before.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::X;

    fn point(measured: f64, within: Option<bool>) -> MeasuredPoint {
        MeasuredPoint {
            series: "stream".to_owned(),
            x: X::Number(20.0),
            metric: "iops",
            unit: "1/s".to_owned(),
            measured,
            accept: within.map(|_| [Some(2.0), None]),
            within,
            ..MeasuredPoint::default()
        }
    }

    fn figure(points: Vec<MeasuredPoint>) -> MeasuredFigure {
        MeasuredFigure {
            id: "f".to_owned(),
            points,
            ..MeasuredFigure::default()
        }
    }

    fn blessed(points: Vec<MeasuredPoint>, reason: Option<&str>) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.bless(&figure(points), Scale::Full);
        for known in &mut baseline.figures.get_mut("f").unwrap().full {
            if known.red.is_some() {
                known.red = reason.map(str::to_owned);
            }
        }
        baseline
    }

    fn told(baseline: &Baseline, points: Vec<MeasuredPoint>) -> String {
        baseline
            .differences(&figure(points), Scale::Full)
            .join("\n")
    }

    #[test]
    fn what_is_as_before_is_no_difference() {
        let green = point(3.0, Some(true));
        let red = point(1.0, Some(false));
        assert_eq!(told(&blessed(vec![green.clone()], None), vec![green]), "");
        let known = blessed(vec![red.clone()], Some("the drive is too fast"));
        assert_eq!(told(&known, vec![red]), "");
        assert_eq!(Baseline::parse(&known.to_text()), Ok(known));
        let empty = Baseline::default();
        assert_eq!(Baseline::parse(&empty.to_text()), Ok(empty));
    }

    #[test]
    fn every_difference_is_told() {
        let green = || point(3.0, Some(true));
        let red = || point(1.0, Some(false));
        for (before, reason, now, text) in [
            (green(), None, red(), "newly out of range: 1 is outside ≥ 2"),
            (red(), Some("why"), green(), "is in its range now"),
            (red(), Some(""), red(), "does not say why"),
            (green(), None, point(3.016, Some(true)), "was 3, is 3.016"),
            (point(3.0, None), None, point(2.98, None), "was 3, is 2.98"),
        ] {
            let told = told(&blessed(vec![before], reason), vec![now]);
            assert!(told.contains(text), "{told}");
        }
        let small = point(3.0149, Some(true));
        assert_eq!(told(&blessed(vec![green()], None), vec![small]), "");
        let none = told(&Baseline::default(), vec![green()]);
        assert!(none.contains("is not in the baseline"), "{none}");
        let gone = told(&blessed(vec![green()], None), vec![]);
        assert!(gone.contains("not in the figure"), "{gone}");
        // The other scale has entries of its own.
        let baseline = blessed(vec![green()], None);
        let quick = baseline.differences(&figure(vec![green()]), Scale::Quick);
        assert_eq!(quick.len(), 1);
    }

    #[test]
    fn reasons_outlive_a_blessing_and_vanish_with_the_red() {
        let mut baseline = blessed(vec![point(1.0, Some(false))], Some("why"));
        baseline.bless(&figure(vec![point(1.5, Some(false))]), Scale::Full);
        let known = &baseline.of("f", Scale::Full)[0];
        assert_eq!((known.measured, known.red.as_deref()), (1.5, Some("why")));
        baseline.bless(&figure(vec![point(2.5, Some(true))]), Scale::Full);
        assert_eq!(baseline.of("f", Scale::Full)[0].red, None);
    }

    #[test]
    fn improvements_drift_as_factors() {
        assert!(!drifted("% over noop", 0.1, 0.3));
        assert!(drifted("% over noop", 0.1, 0.7));
        assert!(drifted("MB/s", 0.1, 0.3));
        assert!(drifted("MB/s", 0.0, 0.1) && !drifted("MB/s", 0.0, 0.0));
    }
}
