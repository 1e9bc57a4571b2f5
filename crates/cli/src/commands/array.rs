//! `headtime array`

use super::context::Context;
use crate::args::{ArrayCreate, ArrayDetect, ArrayShow, ArrayVerb};
use headtime_config::to_text;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::header::{CreateError, CreateOptions, Header, HeaderError, create};
use headtime_serve::md::{self, MdArray, MdError, MdLevel};
use headtime_units::Bytes;
use rustix::fs::OFlags;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

pub(super) fn array(verb: &ArrayVerb, context: &mut Context<'_>) -> Result<(), Fault> {
    match verb {
        ArrayVerb::Create(args) => create_all(args, context),
        ArrayVerb::Show(args) => show(args, context),
        ArrayVerb::Detect(args) => detect(args, context),
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
        let file = open(path)?;
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

/// Opens a file or a device for reading. A pipe has no writer to wait for.
fn open(path: &Path) -> Result<File, Fault> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path);
    file.map_err(|error| Fault::reading(path, &error))
}

fn detect(args: &ArrayDetect, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut paths = Vec::with_capacity(args.files.len());
    let mut devices = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let text = path.to_str().ok_or_else(|| {
            let problem = "is not UTF-8, so that no configuration can name the file";
            Fault::Input(format!("{}: {problem}", path.shown()))
        })?;
        paths.push(text);
        devices.push(open(path)?);
    }
    if !args.names.is_empty() && args.names.len() != paths.len() {
        let (names, files) = (args.names.len(), paths.len());
        return Err(Fault::Usage(format!(
            "--names: {names} names for {files} files"
        )));
    }
    let found = md::detect(&devices).map_err(|(device, error)| {
        let text = format!("{}: {error}", args.files[device].shown());
        match error {
            MdError::Io(_) => Fault::File(text),
            _ => Fault::Input(text),
        }
    })?;
    context.print(&configuration(&found, &paths, &args.names))
}

/// A disk of a configuration.
#[derive(Serialize)]
struct DiskText<'a> {
    name: &'a str,
    device: &'a str,
    scheduler: &'static str,
}

/// An array of a configuration, without its geometry.
#[derive(Serialize)]
struct ArrayText<'a> {
    name: &'a str,
    level: &'static str,
    members: &'a [String],
    chunk: String,
    coordinate: bool,
}

/// Configuration that coordinates the disks of an md array. `names` are the disks' names, if there are disks already.
fn configuration(found: &MdArray, paths: &[&str], names: &[String]) -> String {
    let level = match found.level {
        MdLevel::Raid0 { .. } => "raid0",
        MdLevel::Raid5 => "raid5",
    };
    let count = found.disks.len();
    let shown = found.name.escape_debug();
    let mut text = format!("# md array \"{shown}\": {level} of {count} disks\n");
    let array = valid_name(found.name.rsplit(':').next().unwrap_or_default(), "md");
    let given = names;
    let mut names: Vec<String> = Vec::with_capacity(count);
    for disk in &found.disks {
        if let Some(name) = given.get(disk.device) {
            names.push(name.clone());
            continue;
        }
        let path = paths[disk.device];
        let file = Path::new(path).file_name();
        let file = file.map(|file| file.to_string_lossy()).unwrap_or_default();
        let name = valid_name(&file, "disk");
        let others = (2..).map(|number| format!("{name}-{number}"));
        let mut free = std::iter::once(name.clone()).chain(others);
        let is_free = |name: &String| !names.contains(name) && *name != array;
        let name = free.find(is_free).unwrap_or_default();
        let disk = DiskText {
            name: &name,
            device: path,
            scheduler: "stream(deadline)",
        };
        let _ = write!(text, "[[disk]]\n{}\n", to_text(&disk));
        names.push(name);
    }
    let keys = ArrayText {
        name: &array,
        level,
        members: &names,
        chunk: found.chunk.to_string(),
        coordinate: true,
    };
    let _ = write!(text, "[[array]]\n{}", to_text(&keys));
    let offset = each(found.disks.iter().map(|disk| disk.offset));
    let size = each(found.disks.iter().map(|disk| disk.size));
    let layout = match found.level {
        MdLevel::Raid0 { original } if size.starts_with('[') => match original {
            Some(true) => ", layout = \"original\"",
            Some(false) => ", layout = \"alternate\"",
            None => {
                text.push_str("# The superblocks do not name the layout: \"original\" if raid0.default_layout of the kernel is 1.\n");
                ", layout = \"alternate\""
            }
        },
        _ => "",
    };
    let _ = writeln!(
        text,
        "geometry = {{ offset = {offset}, size = {size}{layout} }}"
    );
    text
}

/// One size if all are equal, or else a list.
fn each(sizes: impl Iterator<Item = Bytes>) -> String {
    let all: Vec<String> = sizes.map(|size| format!("\"{size}\"")).collect();
    match all.iter().all(|size| *size == all[0]) {
        true => all[0].clone(),
        false => format!("[{}]", all.join(", ")),
    }
}

/// Makes a text the name of a disk or of an array. `usual` is the name if nothing is left.
fn valid_name(text: &str, usual: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let text: String = text.chars().filter(|char| plain(*char)).take(48).collect();
    match text.trim_start_matches('.') {
        "" => usual.to_owned(),
        text => text.to_owned(),
    }
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
