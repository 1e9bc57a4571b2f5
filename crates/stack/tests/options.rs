//! Test of the places that list the options of an engine.

use headtime_engine::EngineSpec;
use headtime_stack::entries;
use std::fs;
use std::path::{Path, PathBuf};

/// Finds the Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.extension() {
            _ if path.is_dir() => sources(&path, found),
            Some(end) if end == "rs" => found.push(path),
            _ => {}
        }
    }
}

/// Returns the text from the opening brace at its start up to the matching brace.
fn braced(text: &str) -> &str {
    let mut open = 0;
    let end = text.find(|sign| {
        open += i32::from(sign == '{') - i32::from(sign == '}');
        open == 0
    });
    &text[..end.expect("braces come in pairs")]
}

/// Returns the code of all crates, except for this file and the two files that name all options.
fn all_code() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).expect("the crates") {
        let of = entry.expect("a crate").path();
        let folders = ["src", "tests", "benches"].map(|folder| of.join(folder));
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            sources(folder, &mut files);
        }
    }
    sources(&root.join("fuzz/src"), &mut files);
    let text = |path: PathBuf| {
        let inside = path.strip_prefix(&root).expect("it is below");
        let name = inside.to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("text"))
    };
    let all = files.into_iter().map(text);
    all.filter(|(name, _)| {
        ![
            "crates/engine/src/config.rs",
            "crates/engine/src/spec.rs",
            "crates/stack/tests/options.rs",
        ]
        .contains(&name.as_str())
    })
    .collect()
}

/// A new option is added to the two descriptions of an engine, to the code that uses it, and to the documentation. No
/// other code may name all options, as fields or as texts.
#[test]
fn nobody_but_the_engine_and_its_description_names_all_of_its_options() {
    let files = all_code();
    assert!(files.len() > 400, "{}", files.len());
    // The options that a table of results would list: all except sizes and durations.
    let all = entries(&EngineSpec::default()).into_iter();
    let plain = all.filter(|(key, _)| key != "merge_max");
    let plain: Vec<String> = plain.map(|(key, _)| format!("\"{key}\"")).collect();
    let mut literals = 0;
    for (file, text) in &files {
        for kind in ["Config {", "EngineSpec {"] {
            for (at, _) in text.match_indices(kind) {
                let fields = braced(&text[at + kind.len() - 1..]);
                if !fields.contains("commit_ahead") {
                    continue;
                }
                literals += 1;
                assert!(
                    fields.contains(".."),
                    "{file}: a new option would have to be added here; end with `..`: {kind}{fields}"
                );
            }
        }
        let listed = plain.iter().all(|key| text.contains(key));
        assert!(
            !listed,
            "{file}: a list of options; headtime_stack::entries has it"
        );
    }
    // The search must find something to be of use.
    assert!(literals > 10, "{literals}");
}

#[test]
fn every_option_of_the_engine_is_explained() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let all = entries(&EngineSpec::linux_2_6().complete().expect("it has a plug"));
    let page = |page: &str| fs::read_to_string(docs.join(page)).expect("a page");
    let text = page("scenario.md");
    for (key, _) in &all {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
    let of_disks = "| every other key of `[engine]` | as [there](scenario.md#keys) |";
    assert!(page("serve.md").contains(of_disks));
}
