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
    /// Its name, that of its file.
    pub id: String,
    /// Which paper and which figure or section of it.
    pub source: String,
    /// What it shows, in a line.
    pub title: String,
    /// The seed of its first runs.
    pub seed: u64,
    /// With how many seeds each run is made: this one and those that follow.
    pub seeds: u32,
    /// What is to be known about it.
    pub notes: Vec<String>,
    /// Whether fairness and each origin's share stand beside what is measured.
    pub shares: bool,
    /// What is simulated.
    pub variants: Vec<Variant>,
    /// What is measured, in the order of the file.
    pub points: Vec<Point>,
    /// What is drawn.
    pub plots: Vec<PlotSpec>,
}

/// One scenario of a figure, with all schedulers that its points name.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name in the figure.
    pub name: String,
    /// What it is, compared with others, on the axis.
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

/// One run of a figure: which variant, under which scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOf {
    /// Index of the variant.
    pub variant: usize,
    /// The scheduler.
    pub scheduler: Spec,
}

/// What is made of a measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// Nothing.
    #[default]
    Value,
    /// Divided by that of another run.
    Ratio,
    /// How many times as good as another run: the ratio if more is better, its inverse if less is.
    Speedup,
    /// How much better than another run, in %.
    Improvement,
    /// Of speedups over another run in a row of scenarios, the largest ratio of one to the one
    /// before it: at most 1 if they never rise.
    Rise,
    /// Of the responses, those that are shorter than in another run, rank by rank, in %. The metric says nothing.
    Sooner,
    /// How much a run adds to the value of a first other one, as a share of what the best of further ones adds.
    Added,
}

/// How the values of several seeds are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// Each of them is within the range.
    #[default]
    Each,
    /// Their mean is.
    Mean,
    /// The paper's number, which is of one run, lies between the least and the largest of them.
    Among,
}

/// One number of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The line or bar it belongs to.
    pub series: String,
    /// Where on it.
    pub x: X,
    /// What is measured.
    pub metric: &'static Measure,
    /// What is made of it.
    pub transform: Transform,
    /// The unit of the result, in words.
    pub unit: String,
    /// The run, and the others it is compared with, of which the best counts; several of these for
    /// [`Transform::Rise`] alone.
    pub runs: Vec<(RunOf, Vec<RunOf>)>,
    /// What the paper says; nothing if it gives no number.
    pub paper: Option<f64>,
    /// Least and largest value accepted, either of which may be infinite.
    pub accept: Option<(f64, f64)>,
    /// Why the range is what it is.
    pub why: Option<String>,
    /// How several seeds are judged.
    pub judge: Judge,
    /// Whether the paper's number was used to calibrate, so that meeting it proves nothing.
    pub calibrated: bool,
    /// What is to be known about it.
    pub note: Option<String>,
}

impl Point {
    /// Its name in messages.
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
    /// What it looks like.
    pub kind: PlotKind,
    /// Its heading.
    pub title: String,
    /// The label of its horizontal axis.
    pub x: String,
    /// The label of its vertical axis.
    pub y: String,
    /// Of bars and lines: whose points are shown, by their unit.
    pub unit: String,
    /// Of bars and lines: the metric of these points, if that is needed to tell them from others.
    pub metric: Option<&'static Measure>,
    /// Of what shows runs: these.
    pub runs: Vec<RunOf>,
}

/// What a panel looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Bars in groups, one group for each x.
    Bars,
    /// Lines over numbers.
    Lines,
    /// A dot for each request at the time it was done: how long it had waited for the drive.
    Waits,
    /// The same: how long the drive took.
    Services,
    /// How often predicted head times were off by so much, as bars of 0.1 ms.
    Errors,
}

impl PlotKind {
    /// Whether it shows single requests.
    pub fn is_scatter(self) -> bool {
        matches!(self, PlotKind::Waits | PlotKind::Services)
    }

    /// Whether it shows runs, not points.
    pub fn shows_runs(self) -> bool {
        self.is_scatter() || self == PlotKind::Errors
    }
}

/// At which size a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As its values were meant.
    Full,
    /// Smaller, as the figure says, for a check that is soon over.
    Quick,
}

impl Figure {
    /// Which runs' single requests are to be recorded.
    pub fn recorded(&self) -> impl Iterator<Item = &RunOf> {
        self.runs_of(PlotKind::is_scatter)
    }

    /// Which runs' errors of prediction are shown.
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
