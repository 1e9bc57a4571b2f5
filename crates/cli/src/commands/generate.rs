//! `headtime generate`: man pages and completions from the definition of the command line, and files for its examples.

use crate::args::{Cli, Generate, Generated};
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use headtime_lab::fault::Fault;
use std::fs;
use std::path::Path;

pub(super) fn generate(args: &Generate) -> Result<(), Fault> {
    let directory = &args.directory;
    let fault = |error: std::io::Error| Fault::writing(directory, &error);
    fs::create_dir_all(directory).map_err(fault)?;
    match args.what {
        Generated::Completions => {
            for shell in Shell::value_variants() {
                let mut command = Cli::command();
                clap_complete::generate_to(*shell, &mut command, "headtime", directory)
                    .map_err(fault)?;
            }
        }
        Generated::Examples => super::examples::examples(directory)?,
        Generated::Man => {
            let mut command = Cli::command();
            command.build();
            pages(&command, "headtime", directory).map_err(fault)?;
        }
    }
    Ok(())
}

/// Writes the man pages of a command and of its visible subcommands.
fn pages(command: &Command, name: &str, directory: &Path) -> std::io::Result<()> {
    // A page is named after the whole command, like git's pages. clap needs a name with a static lifetime.
    let title: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let page = clap_mangen::Man::new(command.clone().name(title).display_name(title));
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(directory.join(format!("{name}.1")), text)?;
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        pages(below, &format!("{name}-{}", below.get_name()), directory)?;
    }
    Ok(())
}
