//! Figures that come with the program, and keys that several figures share.

use super::{Figure, Scale};
use crate::fault::{Fault, did_you_mean};
use headtime_linux::shown::one_line;
use std::fs;
use std::path::Path;

/// A figure that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Name of the figure or base.
    pub id: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

impl Shipped {
    /// Reads the figure.
    ///
    /// # Errors
    ///
    /// As [`Figure::parse`].
    pub fn figure(&self, scale: Scale) -> Result<Figure, Fault> {
        let file = format!("experiments/{}.toml", self.id);
        Ok(Figure::parse(&file, self.text, scale)?)
    }
}

impl Figure {
    /// Reads the shipped figure of this name, or a figure's file.
    ///
    /// # Errors
    ///
    /// If there is neither, and as [`Figure::parse`].
    pub fn open(name: &str, scale: Scale) -> Result<Figure, Fault> {
        if let Some(figure) = SHIPPED.iter().find(|figure| figure.id == name) {
            return figure.figure(scale);
        }
        let path = Path::new(name);
        if path.extension().is_none() && !name.contains(['/', '\\']) {
            let ids = SHIPPED.iter().map(|figure| figure.id);
            let guess = did_you_mean(name, ids.clone(), ".");
            let all: Vec<&str> = ids.collect();
            let all = all.join(", ");
            return Err(Fault::Usage(format!(
                "no figure is called `{}`{guess} There are {all}; or give `all`, or a file",
                one_line(name)
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
        // A wrong `set` of the file is no option of the command line.
        Figure::parse(name, &text, scale).map_err(Fault::input)
    }
}

macro_rules! shipped {
    ($($id:literal),+ $(,)?) => {
        &[$(Shipped {
            id: $id,
            text: include_str!(concat!("../../../../experiments/", $id, ".toml")),
        }),+]
    };
}

/// All shipped figures, in the order of the list.
pub const SHIPPED: &[Shipped] = shipped![
    "efs-shares",
    "stream-fig3",
    "stream-fig3-processes",
    "stream-fig4",
    "stream-fig5",
    "stream-fig5-guests",
    "stream-fig5-servers",
    "stream-fig6",
    "stream-fig6-raid5",
    "stream-fig7",
    "stream-array-disks",
    "stream-array-readahead",
    "stream-array-slice",
    "stream-readahead",
    "stream-think",
    "datasheets",
    "ncq-fig3",
    "ncq-fig5",
    "ncq-fig6",
    "ncq-fig7",
    "ncq-fig8",
    "ncq-fig9",
    "ncq-table4",
    "ncq-fig11",
    "ncq-table5",
    "ncq-fig12",
    "ncq-fig13",
    "ncq-fig15",
    "ncq-fig16",
    "ncq-fig17",
    "ncq-fig18",
    "ncq-fig19",
    "ncq-fig20",
    "ncq-fig21",
    "ncq-fig22",
    "nise-any",
    "freeblock-fig7",
    "freeblock-fig8",
    "freeblock-fig9",
    "freeblock-fig10",
    "freeblock-fig11",
    "freeblock-steps",
    "freeblock-beyond",
    "freeblock-nearline",
    "freeblock-nearline-policies",
    "freeblock-classes",
    "freeblock-queue",
    "freeblock-promises",
    "freeblock-week",
    "probe-truth",
    "probe-comparison",
    "probe-in-place",
    "probe-tracking",
    "predict-nearline",
    "ushape-fig1",
    "ushape-fig3",
    "ushape-fig5",
    "ushape-fig6",
    "ushape-fig7",
    "ushape-fig8",
    "ushape-overload",
    "ushape-scrub",
    "ushape-table1",
    "ushape-table2",
];

/// Shared keys of scenarios, by the name that a figure gives as its `base`.
pub const BASES: &[Shipped] = shipped!["freeblock-host"];

/// Baseline of the figures' results, as text.
pub const BASELINE: &str = include_str!("../../../../experiments/baseline.json");
