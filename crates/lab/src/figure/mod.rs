//! A figure of a paper as data: scenarios, and points that are measured in them and judged.
//!
//! `experiments/<id>.toml` holds one; `docs/experiments.md` explains its keys. All that come with
//! the program are compiled in.

pub mod baseline;
pub mod judge;
pub mod output;
pub mod read;
pub mod run;
mod shipped;

use crate::report::catalogue::Measure;
use crate::scenario::Scenario;
use headtime_sched::Spec;

pub use shipped::{BASELINE, SHIPPED, Shipped};

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the figure, which is the name of its file.
    pub id: String,
    /// Paper, and figure or section of the paper.
    pub source: String,
    /// Title, in a line.
    pub title: String,
    /// The seed of its first runs.
    pub seed: u64,
    /// Number of seeds for each run: `seed` and its successors.
    pub seeds: u32,
    /// Remarks on the figure.
    pub notes: Vec<String>,
    /// True if fairness and each origin's share are reported beside the measured values.
    pub shares: bool,
    /// Scenarios to simulate.
    pub variants: Vec<Variant>,
    /// Points to measure, in the order of the file.
    pub points: Vec<Point>,
    /// Panels to draw.
    pub plots: Vec<PlotSpec>,
}

/// One scenario of a figure, with all schedulers that its points name.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name of the variant in the figure.
    pub name: String,
    /// Place of the variant on the horizontal axis.
    pub x: X,
    /// The scenario.
    pub scenario: Scenario,
}

/// A place on the horizontal axis.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum X {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

impl Default for X {
    fn default() -> X {
        X::Number(0.0)
    }
}

impl std::fmt::Display for X {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            X::Number(number) => write!(f, "{number}"),
            X::Text(text) => f.write_str(text),
        }
    }
}

/// One run of a figure: a variant under a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOf {
    /// Index of the variant.
    pub variant: usize,
    /// The scheduler.
    pub scheduler: Spec,
}

/// Computation of a point from measured values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// The measured value itself.
    #[default]
    Value,
    /// Ratio to the value of another run.
    Ratio,
    /// Improvement factor over another run: the ratio if more is better, its inverse if less is.
    Speedup,
    /// Improvement over another run, in %.
    Improvement,
    /// Largest ratio of a speedup to the speedup of the scenario before, in a row of scenarios. At most 1 if the speedups never rise.
    Rise,
    /// Share of the ranks at which the response is shorter than in another run, in %. Ignores the metric.
    Sooner,
    /// Increase of the value over a first other run, as a share of the increase that the best of further runs achieves.
    Added,
}

/// How the values of several seeds are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// The value of each seed is within the range.
    #[default]
    Each,
    /// The mean of the values is within the range.
    Mean,
    /// The paper's number, which comes from one run, lies between the least and the largest value.
    Among,
}

/// One number of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The line or bar it belongs to.
    pub series: String,
    /// Place on the horizontal axis.
    pub x: X,
    /// Metric to measure.
    pub metric: &'static Measure,
    /// Computation of the point from measured values.
    pub transform: Transform,
    /// The unit of the result, in words.
    pub unit: String,
    /// The run, and other runs for comparison. The best of these counts. Only [`Transform::Rise`] has several such groups.
    pub runs: Vec<(RunOf, Vec<RunOf>)>,
    /// The paper's number, if there is one.
    pub paper: Option<f64>,
    /// Least and largest accepted value. Either may be infinite.
    pub accept: Option<(f64, f64)>,
    /// Reason for the range.
    pub why: Option<String>,
    /// How several seeds are judged.
    pub judge: Judge,
    /// True if the paper's number was used to calibrate, so that agreement proves nothing.
    pub calibrated: bool,
    /// Remark on the point.
    pub note: Option<String>,
}

impl Point {
    /// Name of the point in messages.
    pub fn name(&self) -> String {
        name(&self.series, &self.x, self.metric.name, &self.unit)
    }
}

/// The name of a point in messages.
pub fn name(series: &str, x: &X, metric: &str, unit: &str) -> String {
    format!("{series}, {x}, {metric} ({unit})")
}

/// One panel of a figure's picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotSpec {
    /// Form of the panel.
    pub kind: PlotKind,
    /// Heading of the panel.
    pub title: String,
    /// The label of its horizontal axis.
    pub x: String,
    /// The label of its vertical axis.
    pub y: String,
    /// For bars and lines: unit of the points to show.
    pub unit: String,
    /// For bars and lines: metric of the points to show, if the unit does not suffice to select them.
    pub metric: Option<&'static Measure>,
    /// Runs to show, for kinds that show runs.
    pub runs: Vec<RunOf>,
}

/// Form of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Bars in groups, one group for each x.
    Bars,
    /// Lines over numbers.
    Lines,
    /// Time from arrival to the drive, as a dot for each request at its time of arrival.
    Waits,
    /// Time that the drive took, as a dot for each request at its time of arrival.
    Services,
    /// Distribution of the errors of predicted head times, as bars of 0.1 ms.
    Errors,
}

impl PlotKind {
    /// True if the panel shows single requests.
    pub fn is_scatter(self) -> bool {
        matches!(self, PlotKind::Waits | PlotKind::Services)
    }

    /// True if the panel shows runs, not points.
    pub fn shows_runs(self) -> bool {
        self.is_scatter() || self == PlotKind::Errors
    }
}

/// Size at which a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Size for which the figure's values are meant.
    Full,
    /// Smaller size, as the figure defines, for a quick check.
    Quick,
}

impl Figure {
    /// Runs whose single requests must be recorded.
    pub fn recorded(&self) -> impl Iterator<Item = &RunOf> {
        self.runs_of(PlotKind::is_scatter)
    }

    /// Runs whose errors of prediction are shown.
    pub fn predicted(&self) -> impl Iterator<Item = &RunOf> {
        self.runs_of(|kind| kind == PlotKind::Errors)
    }

    fn runs_of(&self, is_shown: impl Fn(PlotKind) -> bool) -> impl Iterator<Item = &RunOf> {
        self.plots
            .iter()
            .filter(move |plot| is_shown(plot.kind))
            .flat_map(|plot| &plot.runs)
    }
}
