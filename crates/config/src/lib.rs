//! Reads configuration from TOML through serde, and writes it.
//!
//! The crate parses a text into a tree of values with their lines ([`Table::parse`]). Options of the command line put values into the tree
//! ([`Table::set`]). [`read`] makes a value of a type that derives `Deserialize` out of the tree. Errors name the file, the line, the key
//! with all its tables, and the allowed values. [`to_text`] writes a value that derives `Serialize`, in the order of its fields.
//!
//! The crate opens no file: it takes and gives text.
//!
//! # Reading
//!
//! ```
//! use headtime_config::{Place, Table, read, whole};
//! use headtime_units::Nanos;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, Debug)]
//! struct File {
//!     engine: Engine,
//! }
//!
//! #[derive(Deserialize, Debug)]
//! struct Engine {
//!     #[serde(deserialize_with = "whole::<_, u32, 1, 256>")]
//!     depth: u32,
//!     timeout: Option<Nanos>,
//!     #[serde(default)]
//!     order: Order,
//! }
//!
//! #[derive(Deserialize, Debug, Default, PartialEq)]
//! #[serde(rename_all = "kebab-case")]
//! enum Order {
//!     #[default]
//!     FirstCome,
//!     Nearest,
//! }
//!
//! let error = |text: &str| {
//!     let table = Table::parse("a.toml", text).unwrap();
//!     read::<File>(&table, &Place::line("a.toml", 1)).unwrap_err().to_string()
//! };
//! assert_eq!(
//!     error("[engine]\ndepht = 4"),
//!     "a.toml:2: engine.depht: unknown key; did you mean `depth`? Allowed here: depth, order, timeout"
//! );
//! assert_eq!(
//!     error("[engine]\ntimeout = '1s'"),
//!     "a.toml:1: engine.depth: missing; give a whole number from 1 to 256"
//! );
//! assert_eq!(
//!     error("[engine]\ndepth = 300"),
//!     "a.toml:2: engine.depth: 300 is out of range; allowed is 1 to 256"
//! );
//! assert_eq!(
//!     error("[engine]\ndepth = 'x'"),
//!     "a.toml:2: engine.depth: is the string \"x\", but should be a whole number from 1 to 256"
//! );
//! assert_eq!(
//!     error("[engine]\ndepth = 1\norder = 'nearst'"),
//!     "a.toml:3: engine.order: \"nearst\" is not allowed; did you mean \"nearest\"? Allowed are \
//!      \"first-come\", \"nearest\""
//! );
//!
//! let mut table = Table::parse("a.toml", "[engine]\ndepth = 4").unwrap();
//! table.set("--set engine.depth=9", "engine.depth", "9").unwrap();
//! let file: File = read(&table, &Place::line("a.toml", 1)).unwrap();
//! assert_eq!(file.engine.depth, 9);
//! ```
//!
//! Rules of the reader:
//!
//! - A struct takes no key but its fields; `deny_unknown_fields` is not needed. A misspelt key is reported before all other errors of its
//!   table.
//! - Do not use `flatten`, `untagged` or serde's `tag`: they copy values aside and lose their places. Use the two replacements below. A
//!   field whose serde name begins with `+` has its keys in the table of its struct. An enum whose serde name is `$` and a key is tagged by
//!   this key.
//! - A list in the text makes a `Vec`; one value or a list makes [`Many`] (by comma, not empty) or
//!   [`OneOrList`].
//! - A [`Placed`] value retains its place, for errors that show only later: `depth 64 is more than the drive takes`. A `Placed` struct
//!   knows the places of its keys as well.
//! - A check across the keys of a table, in a `TryFrom`, names the wrong key by a [`KeyError`]. [`Error::within`] finds the place of a key
//!   for checks that come after the reading.
//! - A struct whose serde name is `[]` is a list of its fields in the text: `[first, last]`. Give it
//!   `expecting`.
//! - A [`Table`] can be a field: its keys are free, and its values retain their places.
//! - Text that another function parses goes through [`parse`], a number in a range through [`whole`] or [`number`], a size or a duration in
//!   a range through [`bounded`].
//!
//! Parts of a table replace serde's `flatten`. A part can be a struct, a tagged enum, or, as the last, a [`Table`] or a map, which takes
//! the remaining keys. A part with required keys comes last.
//!
//! ```
//! use headtime_config::{Place, Table, read, to_text};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize, Serialize, Default)]
//! #[serde(default)]
//! struct Engine {
//!     depth: u32,
//! }
//!
//! #[derive(Deserialize, Serialize)]
//! struct Disk {
//!     name: String,
//!     #[serde(rename = "+engine")]
//!     engine: Engine,
//! }
//!
//! let read = |text| {
//!     let table = Table::parse("a.toml", text).unwrap();
//!     read::<Disk>(&table, &Place::line("a.toml", 1))
//! };
//! let text = "name = \"x\"\ndepth = 4\n";
//! let disk = read(text).ok().unwrap();
//! assert_eq!((disk.engine.depth, to_text(&disk)), (4, text.to_owned()));
//! assert_eq!(
//!     read("nam = 'x'\ndepth = 4").err().unwrap().to_string(),
//!     "a.toml:1: nam: unknown key; did you mean `name`? Allowed here: depth, name"
//! );
//! ```
//!
//! A tagged enum: the value of `kind` names the variant. The other keys are the variant's fields.
//!
//! ```
//! use headtime_config::{Place, Table, read, to_text};
//! use headtime_units::Nanos;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize, Serialize, Debug, PartialEq)]
//! #[serde(rename = "$kind", rename_all = "kebab-case")]
//! enum Gate {
//!     Fixed { depth: u32 },
//!     Windows { each: Nanos },
//! }
//!
//! #[derive(Deserialize, Serialize, Debug, PartialEq)]
//! struct File {
//!     gate: Gate,
//! }
//!
//! let text = "[gate]\nkind = \"windows\"\neach = \"100ms\"\n";
//! let table = Table::parse("a.toml", text).unwrap();
//! let file: File = read(&table, &Place::line("a.toml", 1)).unwrap();
//! assert_eq!(file.gate, Gate::Windows { each: Nanos::from_millis(100) });
//! assert_eq!(to_text(&file), format!("\n{text}"));
//! ```
//!
//! # Lists of what is compared
//!
//! [`Table::matrix`] makes a tree for each combination of the values of keys that may be lists, before any value is read.

mod error;
mod matrix;
mod read;
pub mod sizes;
mod tree;
mod values;
mod write;

pub use error::{Error, KeyError, Place};
pub use matrix::{Matrix, combinations, count};
pub use read::read;
pub use tree::{Node, Table, Value, split_list};
pub use values::{Many, Number, OneOrList, Placed, Whole, bounded, number, parse, whole};
pub use write::{Comment, lines, rows, to_text, to_text_with, verbatim, word};
