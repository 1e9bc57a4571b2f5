//! Where the options of an engine stand.

use headtime_engine::EngineSpec;
use headtime_stack::entries;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of Rust below a folder.
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

/// What stands between the brace that `text` begins with and its fellow.
fn braced(text: &str) -> &str {
    let mut open = 0;
    let end = text.find(|sign| {
        open += i32::from(sign == '{') - i32::from(sign == '}');
        open == 0
    });
    &text[..end.expect("braces come in pairs")]
}

/// The crates, but for this one file and the two that are to name all options.
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

/// Whoever adds an option writes it down in the two descriptions of an engine, where it acts and in the documentation.
/// So nobody else may name all options: not as fields, and not as texts.
#[test]
fn nobody_but_the_engine_and_its_description_names_all_of_its_options() {
    let files = all_code();
    assert!(files.len() > 400, "{}", files.len());
    // What a table of results would list: all but sizes and durations.
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
    // Or the search is of no use.
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
