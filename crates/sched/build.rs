//! Makes the table of policies: every public module of the crate is one, in the order of `src/lib.rs`.
//!
//! A macro could declare the modules and the table at once. But rustfmt and the other tools that read
//! sources do not look into macros, and would no longer find the policies' files.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/lib.rs");
    let root = fs::read_to_string("src/lib.rs").expect("a package is built in its own folder");
    let entries: String = root
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(|name| format!("Registration::new(&crate::{name}::INFO, crate::{name}::build),\n"))
        .collect();
    let out = env::var_os("OUT_DIR").expect("cargo says where output goes");
    let path = Path::new(&out).join("policies.rs");
    fs::write(path, format!("&[\n{entries}]\n")).expect("the folder for output can be written");
}
