//! What the picture of a comparison is drawn from.

use headtime_lab::execute::Mark;
use headtime_lab::report::{NamedRun, Run};

/// A run that is drawn.
#[derive(Clone, Debug)]
pub struct Drawn<'a> {
    /// Its figures.
    pub run: &'a Run,
    /// What the head did, in order of time; may be only the beginning.
    pub marks: Vec<Mark>,
}

impl<'a> Drawn<'a> {
    /// Its name among the others.
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

    /// Its workloads and programs, if there are several.
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
    /// Its title.
    pub title: String,
    /// What was run, in a line or two.
    pub subtitle: String,
    /// Which part of the time the first panels show, in seconds.
    pub window: (f64, f64),
    /// Bytes of the drive.
    pub capacity: f64,
    /// The runs.
    pub runs: Vec<Drawn<'a>>,
}
