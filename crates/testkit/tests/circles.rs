//! No module uses another that uses it, directly or through others, in any crate.
//!
//! A module uses another if it names an item of that module. Declaring a module, importing it as a whole and
//! re-exporting its items are no use. Tests may use any module.

mod sources;

use sources::{Name, in_each_crate, is_test, of_files};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, ItemUse, Macro, UseTree, Visibility};

/// The modules of a crate.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Name, Module>,
    /// Definition path of each re-exported name.
    exported: BTreeMap<Name, Name>,
}

/// Names that a module uses.
#[derive(Default)]
struct Module {
    /// Path of each import, by its local name.
    imported: BTreeMap<String, Name>,
    /// Paths as they are written.
    written: BTreeSet<Name>,
}

impl Crate {
    fn of(modules: Vec<(Name, Vec<Item>)>) -> Crate {
        let mut found = Crate::default();
        for (name, items) in modules {
            found.modules.entry(name.clone()).or_default();
            items.iter().for_each(|item| found.add_item(&name, item));
        }
        found
    }

    fn add_item(&mut self, name: &Name, item: &Item) {
        match item {
            Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => {
                for (name_here, path) in leaves(&item.tree) {
                    let exported = joined(name, &[name_here]);
                    self.exported.insert(exported, absolute(name, &path));
                }
            }
            item => {
                let mut names = Names(self.modules.entry(name.clone()).or_default());
                names.visit_item(item);
            }
        }
    }

    /// The module in which the item of a path is defined, if it is one of this crate.
    fn module_of(&self, from: &Name, path: &Name) -> Option<&Name> {
        let imported = &self.modules[from].imported;
        let mut path = match path[0].as_str() {
            "crate" | "super" | "self" => absolute(from, path),
            first => match imported.get(first) {
                Some(import) if path.len() > 1 => joined(&absolute(from, import), &path[1..]),
                _ if self.modules.contains_key(&joined(from, &path[..1])) => joined(from, path),
                _ => return None,
            },
        };
        // A re-exported item belongs to the module that defines it, through any number of re-exports. A name that
        // stands for itself belongs to another crate.
        let exported = |path: &Name| {
            let lengths = (1..=path.len()).rev();
            let names = lengths.map(|at| path[..at].to_vec());
            let mut names = names.filter(|name| !self.modules.contains_key(name));
            names.find_map(|name| Some(joined(self.exported.get(&name)?, &path[name.len()..])))
        };
        for _ in 0..self.modules.len() {
            match exported(&path) {
                Some(other) if other != path => path = other,
                _ => break,
            }
        }
        let item_of = |at: &usize| self.modules.contains_key(&path[..*at]);
        let at = (0..path.len()).rev().find(item_of)?;
        let is_module = self.modules.contains_key(&path);
        let (module, _) = self.modules.get_key_value(&path[..at])?;
        (!is_module && module != from).then_some(module)
    }

    /// Modules that each module uses.
    fn uses(&self) -> BTreeMap<&Name, BTreeSet<&Name>> {
        let uses = self.modules.iter().map(|(name, module)| {
            let imported = module.imported.values().map(|path| absolute(name, path));
            let crate_path = |path: Name| joined(&vec!["crate".to_owned()], &path);
            let paths: Vec<Name> = imported
                .map(crate_path)
                .chain(module.written.iter().cloned())
                .collect();
            let used = paths.iter().filter_map(|path| self.module_of(name, path));
            (name, used.collect())
        });
        uses.collect()
    }

    /// Groups of modules in which each uses all others, directly or through others.
    fn circles(&self) -> Vec<Vec<String>> {
        let uses = self.uses();
        let reached = |from: &Name| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(name) = next.pop() {
                next.extend(
                    uses[name]
                        .iter()
                        .filter(|used| seen.insert(**used))
                        .map(|used| &**used),
                );
            }
            seen
        };
        let reached: BTreeMap<&Name, BTreeSet<&Name>> =
            uses.keys().map(|name| (*name, reached(name))).collect();
        let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
        for (name, own) in reached.iter().filter(|(name, own)| own.contains(*name)) {
            let group = own.iter().filter(|other| reached[**other].contains(name));
            circles.insert(group.map(|name| shown(name)).collect());
        }
        circles.into_iter().collect()
    }
}

/// Gathers the names that a module uses.
struct Names<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.0.imported.extend(leaves(&item.tree));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.0.written.insert(names.collect());
        visit::visit_path(self, path);
    }

    /// Macro arguments are not parsed yet, so every path-like text counts.
    fn visit_macro(&mut self, of: &'ast Macro) {
        self.visit_path(&of.path);
        let text = of.tokens.to_string().replace(" :: ", "::");
        let is_path = |text: &&str| text.contains("::") && !text.starts_with("::");
        let split = |letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':');
        for path in text.split(split).filter(is_path) {
            let names = path.trim_end_matches(':').split("::").map(str::to_owned);
            self.0.written.insert(names.collect());
        }
    }
}

fn joined(name: &Name, rest: &[String]) -> Name {
    name.iter().chain(rest).cloned().collect()
}

fn shown(name: &Name) -> String {
    match name.is_empty() {
        true => "crate".to_owned(),
        false => name.join("::"),
    }
}

/// Path from the root of the crate. A path without `crate`, `super` or `self` begins in the module itself.
fn absolute(module: &Name, path: &Name) -> Name {
    let ups = path
        .iter()
        .take_while(|name| *name == "super" || *name == "self");
    let ups = ups.fold((0, 0), |(taken, up), name| {
        (taken + 1, up + usize::from(name == "super"))
    });
    match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        _ => joined(&module[..module.len() - ups.1].to_vec(), &path[ups.0..]),
    }
}

/// The names that a tree of imports makes, and the path of each. A glob stands for the module, by a name that nobody
/// can write.
fn leaves(tree: &UseTree) -> Vec<(String, Name)> {
    let within = |name: &str, rest: Vec<(String, Name)>| -> Vec<(String, Name)> {
        let rest = rest.into_iter().map(|(here, path)| match path[0].as_str() {
            "self" if here == "self" => (name.to_owned(), vec![name.to_owned()]),
            "self" => (here, vec![name.to_owned()]),
            _ => (here, joined(&vec![name.to_owned()], &path)),
        });
        rest.collect()
    };
    match tree {
        UseTree::Path(path) => within(&path.ident.to_string(), leaves(&path.tree)),
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(name) => vec![(name.ident.to_string(), vec![name.ident.to_string()])],
        UseTree::Rename(name) => vec![(name.rename.to_string(), vec![name.ident.to_string()])],
        UseTree::Glob(_) => vec![("*".to_owned(), vec!["*".to_owned()])],
    }
}

/// The circles of a crate of a few files.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    Crate::of(of_files(files)).circles()
}

#[test]
fn modules_that_use_each_other_are_a_circle_however_they_say_it() {
    let one = "use crate::two::B; pub struct A(B);";
    for two in [
        "use super::one::A; pub struct B;",
        "use super::one; pub struct B; fn f(_: one::A) {}",
        "use super::{one as other}; pub struct B; fn f(_: other::A) {}",
        "pub struct B; fn f() { let _ = format!(\"{}\", crate::one::A::of()); }",
        "use crate::A; pub struct B;",
        "use crate::one::*; pub struct B;",
        "pub struct B; mod inner { use super::super::one::A; } fn f(_: inner::C) {}",
    ] {
        let files = [
            ("lib.rs", "mod one; mod two; pub use one::A;"),
            ("one.rs", one),
            ("two.rs", two),
        ];
        let found = circles_of(&files);
        assert_eq!(found.len(), 1, "{two}");
        assert!(
            found[0].starts_with(&["one".to_owned()]),
            "{two}: {found:?}"
        );
    }
    // A parent and its child, and three in a row.
    let files = [
        ("lib.rs", "mod up;"),
        ("up.rs", "mod down; pub struct A; fn f() { down::g() }"),
        ("up/down.rs", "use super::A; pub fn g(_: A) {}"),
    ];
    assert_eq!(circles_of(&files), [["up", "up::down"]]);
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a/mod.rs", "use crate::b::X;"),
        ("b.rs", "pub struct X; use crate::c::Y;"),
        ("c.rs", "pub struct Y; fn f() { crate::a::g() }"),
    ];
    assert_eq!(circles_of(&files), [["a", "b", "c"]]);
}

#[test]
fn a_re_export_a_declaration_and_a_test_are_no_use() {
    let files = [
        ("lib.rs", "mod up; pub mod other; pub use up::A;"),
        (
            "up.rs",
            "mod down; pub mod types; pub use down::g; use crate::other; pub use types::A;
             #[cfg(test)] mod tests { use super::down::g; fn f() { g() } }",
        ),
        ("up/down.rs", "use super::types::A; pub fn g(_: A) {}"),
        (
            "up/types.rs",
            "pub struct A; #[cfg(test)] use super::down::g;",
        ),
        (
            "other.rs",
            "use crate::up::{A, g}; use std::fmt; fn f() -> fmt::Result { up::none() }",
        ),
    ];
    assert!(circles_of(&files).is_empty());
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let found = in_each_crate(|modules| Crate::of(modules).circles());
    let lines = found
        .iter()
        .map(|(of, circle)| format!("{of}: {}\n", circle.join(", ")));
    assert!(
        found.is_empty(),
        "modules use each other:\n{}",
        lines.collect::<String>()
    );
}
