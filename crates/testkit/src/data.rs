//! Finds recorded data that is too large to be kept beside the code, or not ours to keep.
//!
//! A test that needs absent data does nothing, and must not be mistaken for a test that passed. It
//! says so on the terminal itself, since the harness hides the output of passing tests. If
//! `HEADTIME_REQUIRE_DATA` is set, it fails.

use std::env::var_os;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder `sub` of the recorded data: of where `HEADTIME_DATA` points, else of `../shared/data`
/// beside the project. `None`, with a line on standard error that names the test, if there is no
/// such folder.
///
/// # Panics
///
/// If there is no such folder and `HEADTIME_REQUIRE_DATA` is set, and not to nothing.
pub fn data(sub: &str) -> Option<PathBuf> {
    let root = var_os("HEADTIME_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let required = var_os("HEADTIME_REQUIRE_DATA").is_some_and(|value| !value.is_empty());
    match find(&root, sub) {
        Ok(folder) => Some(folder),
        Err(missing) if required => panic!("{missing}; HEADTIME_REQUIRE_DATA asks for it"),
        Err(missing) => {
            let thread = std::thread::current();
            let line = format!(
                "skipped: {}: {missing}\n",
                thread.name().unwrap_or("a test")
            );
            // Not `eprintln!`, which the harness keeps. If standard error is closed, nobody listens.
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
    }
}

fn find(root: &Path, sub: &str) -> Result<PathBuf, String> {
    let folder = root.join(sub);
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(format!(
        "no folder {} (HEADTIME_DATA names the one that has `{sub}` in it)",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(find(root, "src"), Ok(root.join("src")));
        // A file is no folder.
        let missing = find(root, "Cargo.toml").unwrap_err();
        assert!(missing.contains("testkit/Cargo.toml"), "{missing}");
        assert!(missing.contains("HEADTIME_DATA"), "{missing}");
    }
}
