//! Where the options of an engine stand.

use headtime_engine::EngineSpec;
use headtime_stack::entries;
use std::fs;
use std::path::{Path, PathBuf};

/// The files below a folder, but for tests of their own.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.extension() {
            _ if is_test => {}
            _ if path.is_dir() => sources(&path, found),
            Some(end) if end == "rs" => found.push(path),
            _ => {}
        }
    }
}

/// Whoever adds an option writes it down where it acts (here in each gate), and where the random runs draw it. That
/// scenarios, servers, logs and reports have it then is the work of its serde implementation.
#[test]
fn an_option_of_the_engine_stands_in_the_engine_and_in_no_reader_or_writer() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates") {
        let source = entry.expect("a crate").path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    assert!(files.len() > 300, "{}", files.len());
    let names_it = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("text");
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let mut code = code.lines().map(str::trim_start);
        code.any(|line| !line.starts_with("//") && line.contains("commit_ahead"))
    };
    let mut found: Vec<String> = files
        .iter()
        .filter(|path| names_it(path))
        .map(|path| {
            let inside = path.strip_prefix(&crates).expect("one of the crates");
            inside.to_string_lossy().into_owned()
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "engine/src/config.rs",
            "engine/src/gate.rs",
            "engine/src/spec.rs",
            "sim/src/fuzz.rs"
        ]
    );
}

#[test]
fn every_option_of_the_engine_is_explained() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let all = entries(&EngineSpec::linux_2_6().complete().expect("it has a plug"));
    for page in ["scenario.md", "serve.md"] {
        let text = fs::read_to_string(docs.join(page)).expect("a page");
        for (key, _) in &all {
            assert!(text.contains(&format!("`{key}`")), "{key} in {page}");
        }
    }
}
