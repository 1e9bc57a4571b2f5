//! `headtime array`

use super::context::Context;
use crate::args::{ArrayCreate, ArrayShow, ArrayVerb};
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::header::{CreateError, CreateOptions, Header, HeaderError, create};
use headtime_units::Bytes;
use std::fs::File;
use std::path::Path;

pub(super) fn array(verb: &ArrayVerb, context: &mut Context<'_>) -> Result<(), Fault> {
    match verb {
        ArrayVerb::Create(args) => create_all(args, context),
        ArrayVerb::Show(args) => show(args, context),
    }
}

fn create_all(args: &ArrayCreate, context: &mut Context<'_>) -> Result<(), Fault> {
    let options = CreateOptions {
        chunk: args.chunk.0,
        size: args.size.map(|size| size.0),
        overwrite: args.overwrite,
        force: args.force,
    };
    let headers = create(&args.files, &options).map_err(|error| match error {
        CreateError::Count(_) | CreateError::Chunk(_) | CreateError::Twice { .. } => {
            Fault::Usage(error.to_string())
        }
        CreateError::Io { .. } => Fault::File(error.to_string()),
        _ => Fault::Input(error.to_string()),
    })?;
    for (path, header) in args.files.iter().zip(&headers) {
        context.print(&line(path, header))?;
    }
    Ok(())
}

fn show(args: &ArrayShow, context: &mut Context<'_>) -> Result<(), Fault> {
    for path in &args.files {
        let file = File::open(path).map_err(|error| Fault::reading(path, &error))?;
        let header = Header::read(&file).and_then(|header| header.ok_or(HeaderError::None));
        let header = header.map_err(|error| {
            let text = format!("{}: {error}", path.shown());
            match error {
                HeaderError::Io(_) => Fault::File(text),
                _ => Fault::Input(text),
            }
        })?;
        context.print(&line(path, &header))?;
    }
    Ok(())
}

fn line(path: &Path, header: &Header) -> String {
    let Header {
        set,
        count,
        index,
        chunk,
        bytes,
    } = header;
    let (chunk, bytes) = (Bytes(*chunk), Bytes(*bytes));
    format!(
        "{}: disk {index} of {count} (from 0), set {set}, chunk {chunk}, {bytes} behind the header\n",
        path.shown()
    )
}
