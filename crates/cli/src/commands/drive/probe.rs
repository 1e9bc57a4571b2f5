//! `headtime drive probe`

mod page;
mod quick;
mod state;
mod whole;

use crate::args::Probe;
use crate::commands::context::Context;
use crate::fault::Fault;
use headtime_linux::shown::one_line;
use headtime_serve::file::{self, File, FileOptions};
use headtime_serve::probed::{Kernel, Probed};
use std::path::Path;

/// About as many lines as a table of a page has.
const LINES: usize = 9;

pub(in crate::commands) fn probe(args: &Probe, context: &mut Context<'_>) -> Result<(), Fault> {
    match args.quick {
        true => quick::probe(args, context),
        false => whole::probe(args, context),
    }
}

/// Opens a device; for writing only if something may be written.
fn device(path: &Path, writes: bool) -> Result<Probed<File>, Fault> {
    let mut options = FileOptions::new(path);
    options.read_only = !writes;
    let opened = file::open(&options).map_err(|error| Fault::File(error.to_string()))?;
    let kernel =
        Kernel::of(path, Path::new("/sys")).map_err(|error| Fault::reading(path, &error))?;
    let probed = Probed::new(one_line(&path.to_string_lossy()), opened);
    Ok(probed.with_kernel(kernel))
}

/// The first, the last and some in between.
fn sparse<T>(all: &[T]) -> Vec<&T> {
    let last = all.len() - 1;
    let count = LINES.min(last).max(1);
    let mut some: Vec<usize> = (0..=count).map(|step| step * last / count).collect();
    some.dedup();
    some.into_iter().map(|index| &all[index]).collect()
}
