//! Catalogue of measured values. An entry has name, unit, better direction, meaning, and the function that takes the value of a run.
//!
//! Tables, CSV, sweeps with their pictures, figures, invariants and docs/values.md read the catalogue. JSON of `sim run` has the fields of
//! [`Run`](super::Run). A new value is one entry: with a column in `catalogue/columns.rs`, without in `catalogue/values.rs`.

mod columns;
mod learned;
mod measure;
mod percentiles;
mod programs;
mod values;

use headtime_units::nearest;
pub use measure::{Better, Measure};
pub use programs::{commands_per_tx, tx_per_s};
use std::sync::LazyLock;

/// All entries. Entries and their names live as long as the program.
static ALL: LazyLock<Vec<Measure>> = LazyLock::new(|| {
    let mut all = columns::columns();
    for measure in &mut all {
        measure.is_column = true;
    }
    all.extend(values::values());
    let named: Vec<&str> = all.iter().map(|measure| measure.name).collect();
    let further = percentiles::percentiles();
    let further = further.filter(|measure| !named.contains(&measure.name));
    let further: Vec<Measure> = further.collect();
    all.extend(further);
    all.extend(programs::singles());
    all.extend(learned::learned());
    all
});

/// All values: the columns in their order, then the others.
pub fn all() -> &'static [Measure] {
    &ALL
}

/// All columns. `sim run --format csv` writes them behind `origin`, and `sweep` beside the swept keys.
pub fn columns() -> &'static [Measure] {
    static COLUMNS: LazyLock<usize> =
        LazyLock::new(|| all().iter().filter(|measure| measure.is_column).count());
    &all()[..*COLUMNS]
}

/// The column of this name.
pub fn column(name: &str) -> Option<&'static Measure> {
    columns().iter().find(|column| column.name == name)
}

/// The judged value of this name.
///
/// # Errors
///
/// If no judged value has the name. The message has the nearest name.
pub fn judged_by_name(name: &str) -> Result<&'static Measure, String> {
    let judged = || all().iter().filter(|measure| measure.is_judged());
    let found = judged().find(|measure| measure.name == name);
    found.ok_or_else(|| {
        let guess = nearest(name, judged().map(|measure| measure.name));
        let guess = guess.map(|guess| format!("did you mean `{guess}`? "));
        if all().iter().any(|measure| measure.name == name) {
            return "neither more nor less of it is better, so that it cannot be judged".to_owned();
        }
        let mut families: Vec<&str> = Vec::new();
        for measure in judged() {
            if !families.contains(&measure.family) {
                families.push(measure.family);
            }
        }
        format!(
            "no metric is called that; {}allowed are {}",
            guess.unwrap_or_default(),
            families.join(", ")
        )
    })
}

/// Column with half the width of the confidence interval of `of`; `None` without such a column.
pub fn ci95(of: &Measure) -> Option<&'static Measure> {
    column(&format!("{}_ci95", of.name))
}

#[cfg(test)]
mod tests;
