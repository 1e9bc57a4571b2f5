//! Comparison of figures and invariants with a baseline.

use super::context::Context;
use crate::args::Judging;
use headtime_lab::fault::Fault;
use headtime_lab::figure::baseline::Baseline;
use headtime_lab::figure::judge::{self, MeasuredFigure};
use headtime_lab::figure::{BASELINE, Scale};
use headtime_lab::files::Output;
use headtime_linux::shown::PathShown as _;
use std::fs;
use std::path::Path;

impl Judging {
    fn file(&self) -> Option<&Path> {
        self.baseline.as_ref().and_then(Option::as_deref)
    }

    /// Returns the baseline of the file, or the program's own baseline.
    pub(super) fn known(&self) -> Result<Baseline, Fault> {
        let (name, text) = match self.file() {
            None if self.bless => {
                let problem =
                    "--bless: write --baseline=FILE; what comes with the program cannot be written";
                return Err(Fault::Usage(problem.to_owned()));
            }
            None => ("built-in baseline".to_owned(), BASELINE.to_owned()),
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
                (path.shown().to_string(), text)
            }
        };
        Baseline::parse(&text).map_err(|error| Fault::Input(format!("{name}: {error}")))
    }

    /// Writes the baseline, or returns the differences from the baseline as an error. The options choose between both.
    pub(super) fn conclude(
        &self,
        mut baseline: Baseline,
        all: &[MeasuredFigure],
        scale: Scale,
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        if let (true, Some(path)) = (self.bless, self.file()) {
            for measured in all {
                baseline.bless(measured, scale);
                let reasons = baseline.of(&measured.id, scale).iter();
                for known in reasons.filter(|known| known.red.as_deref() == Some("")) {
                    context.note(&format!(
                        "{}: {}, {}, {} is out of its range; write into {} why",
                        measured.id,
                        known.series,
                        known.x,
                        known.metric,
                        path.shown()
                    ));
                }
            }
            return Output::write_all_of(path, &baseline.to_text());
        }
        let differences = |measured| baseline.differences(measured, scale);
        let problems: Vec<String> = match (self.check, &self.baseline) {
            (false, _) => Vec::new(),
            (true, Some(_)) => all.iter().flat_map(differences).collect(),
            (true, None) => all.iter().flat_map(judge::out_of_range).collect(),
        };
        let what = match problems.len() {
            0 => return Ok(()),
            1 => "1 point is not as expected".to_owned(),
            count => format!("{count} points are not as expected"),
        };
        let problems = problems.into_iter().map(|problem| format!("  {problem}"));
        Err(Fault::Differs([what].into_iter().chain(problems).collect()))
    }
}
