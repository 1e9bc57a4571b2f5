//! Sources of the crates as text, so that a check sees every feature. Tests in the sources are left out.

use std::fs;
use std::path::Path;
use syn::{Attribute, Item, ItemMod, Meta};

/// A module, or an item in one: the names that lead to it from the root of its crate.
pub type Name = Vec<String>;

/// Reads a module's file: `dir` is the folder of its children, and of a file `name.rs` in it.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Findings of a check in each library of the workspace, each with the name of the library.
pub fn in_each_crate<T>(check: impl Fn(Vec<(Name, Vec<Item>)>) -> Vec<T>) -> Vec<(String, T)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(&crates).expect("the folder of the crates") {
        let entry = entry.expect("an entry");
        let (name, source) = (entry.file_name(), entry.path().join("src"));
        if source.join("lib.rs").exists() {
            let of = modules(&|path| fs::read_to_string(source.join(path)).ok());
            count += of.len();
            let name = name.to_string_lossy().into_owned();
            found.extend(check(of).into_iter().map(|one| (name.clone(), one)));
        }
    }
    assert!(count > 300, "{count} modules were read");
    found
}

/// The modules of a crate, and the other items of each.
fn modules(read: Read<'_>) -> Vec<(Name, Vec<Item>)> {
    let mut found = Vec::new();
    let root = read("lib.rs").expect("a library has a root");
    add(&mut found, Name::new(), parse(&root), read);
    found
}

fn add(found: &mut Vec<(Name, Vec<Item>)>, name: Name, items: Vec<Item>, read: Read<'_>) {
    let mut others = Vec::new();
    for item in items.into_iter().filter(|item| !is_test(item)) {
        match item {
            Item::Mod(ItemMod { ident, content, .. }) => {
                let mut child = name.clone();
                child.push(ident.to_string());
                let items = content.map(|(_, items)| items).unwrap_or_else(|| {
                    let path = child.join("/");
                    let text = read(&format!("{path}.rs"));
                    let text = text.or_else(|| read(&format!("{path}/mod.rs")));
                    parse(&text.unwrap_or_else(|| panic!("no file of module {path}")))
                });
                add(found, child, items, read);
            }
            item => others.push(item),
        }
    }
    found.push((name, others));
}

fn parse(text: &str) -> Vec<Item> {
    syn::parse_file(text)
        .expect("sources that compile can be read")
        .items
}

/// Returns true if the item exists in tests only.
pub fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// The modules of a crate of a few files, each with its path and its text.
pub fn of_files(files: &[(&str, &str)]) -> Vec<(Name, Vec<Item>)> {
    modules(&|path| {
        let mut files = files.iter();
        let found = files.find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned())
    })
}
