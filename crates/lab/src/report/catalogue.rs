//! What is measured of a run, each value described once: name, unit, which way is better, what it is, and how it is taken.
//!
//! Tables, CSV, sweeps and their pictures, figures, invariants and docs/values.md take a value from here. JSON of `sim run` has the fields of
//! [`Run`](super::Run) as they are. A new value is one entry: in `catalogue/columns.rs` if CSV is to show it, else in `catalogue/values.rs`.

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

/// They stay as long as the program runs, and so do their names.
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
    all.extend(learned::learned());
    all
});

/// All values, columns first, in their order.
pub fn all() -> &'static [Measure] {
    &ALL
}

/// All columns: `sim run --format csv` writes them behind `origin`, `sweep` beside the swept keys.
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
/// If there is none, with the one it resembles.
pub fn judged_by_name(name: &str) -> Result<&'static Measure, String> {
    let judged = || all().iter().filter(|measure| measure.is_judged());
    let found = judged().find(|measure| measure.name == name);
    found.ok_or_else(|| {
        let guess = nearest(name, judged().map(|measure| measure.name));
        let guess = guess.map(|guess| format!("did you mean `{guess}`? "));
        let mut families: Vec<&str> = judged().map(|measure| measure.family).collect();
        families.dedup();
        format!(
            "no metric is called that; {}allowed are {}",
            guess.unwrap_or_default(),
            families.join(", ")
        )
    })
}

/// The column of half the width of a value's confidence interval, if there is one.
pub fn ci95(of: &Measure) -> Option<&'static Measure> {
    column(&format!("{}_ci95", of.name))
}

#[cfg(test)]
mod tests;
