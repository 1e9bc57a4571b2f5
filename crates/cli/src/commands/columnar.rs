//! Results as Parquet, which builds with the feature `parquet` have.

use crate::args::Format;
use headtime_lab::fault::Fault;
use headtime_lab::report::field::{Field, Fields};
use std::io::IsTerminal;

/// Refuses Parquet before a long run, if this build lacks the format or a terminal would get the file.
pub(super) fn check(format: Format) -> Result<(), Fault> {
    if format != Format::Parquet {
        return Ok(());
    }
    can_write()?;
    match std::io::stdout().is_terminal() {
        true => Err(Fault::Usage(
            "--format parquet: a terminal shows no Parquet; write into a file, as in `> runs.parquet`".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Refuses Parquet if this build lacks the format.
pub(super) fn can_write() -> Result<(), Fault> {
    match cfg!(feature = "parquet") {
        true => Ok(()),
        false => Err(Fault::Usage(
            "this build writes no Parquet; take CSV, or build with `--features parquet`".to_owned(),
        )),
    }
}

/// A Parquet file of rows that have the same headings.
pub(super) fn file_of<'a>(
    fields: impl Iterator<Item = Fields<'a>>,
    seed: Option<u64>,
    scenario_hash: &str,
) -> Result<Vec<u8>, Fault> {
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    for Fields(fields) in fields {
        let (headings, values): (Vec<&str>, Vec<Field>) = fields.into_iter().unzip();
        names = headings;
        rows.push(values);
    }
    file(&names, &rows, seed, scenario_hash)
}

/// A Parquet file of rows with these headings.
#[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
pub(super) fn file(
    names: &[&str],
    rows: &[Vec<Field>],
    seed: Option<u64>,
    scenario_hash: &str,
) -> Result<Vec<u8>, Fault> {
    can_write()?;
    #[cfg(feature = "parquet")]
    {
        use headtime_lab::output::columnar;

        let origin = columnar::Origin {
            seed,
            scenario_hash: scenario_hash.to_owned(),
        };
        Ok(columnar::parquet(&columnar::rows(names, rows, &origin)))
    }
    #[cfg(not(feature = "parquet"))]
    unreachable!("a build without the feature has been refused")
}
