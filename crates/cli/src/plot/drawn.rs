//! Data for the picture of a comparison.

use headtime_lab::execute::Mark;
use headtime_lab::report::{NamedRun, Run};

/// A run to be drawn.
#[derive(Clone, Debug)]
pub struct Drawn<'a> {
    /// Figures of the run.
    pub run: &'a Run,
    /// Head movements in order of time. The list may end before the run.
    pub marks: Vec<Mark>,
}

impl<'a> Drawn<'a> {
    /// Name that distinguishes the run from the other runs.
    pub fn label(&self) -> &'a str {
        &self.run.label
    }

    /// Figures to show beside the name.
    pub fn note(&self) -> String {
        let mean = self.run.response_ms.mean;
        let places = if mean < 10.0 { 2 } else { 0 };
        let iops = self.run.iops;
        format!("{iops:.0} requests/s, mean response {mean:.places$} ms")
    }

    /// Workloads and programs of the run, if there are several.
    pub fn names(&self) -> &'a [NamedRun] {
        match &self.run.by_name[..] {
            [] | [_] => &[],
            names => names,
        }
    }
}

/// A comparison of runs, to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Comparison<'a> {
    /// Title of the picture.
    pub title: String,
    /// Description of the runs, in a line or two.
    pub subtitle: String,
    /// Time window that the first panels show, in seconds.
    pub window: (f64, f64),
    /// Size of the drive in bytes.
    pub capacity: f64,
    /// The runs.
    pub runs: Vec<Drawn<'a>>,
}
