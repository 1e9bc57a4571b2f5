//! The name of a type stands for one thing in its crate.
//!
//! Structs, enums, unions, traits and aliases count, in every module, with every visibility, and also within a
//! function. Tests may use any name.

mod sources;

use sources::{Name, in_each_crate, is_test, of_files};
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Ident, Item};

/// The modules in which types are declared, by the names of these.
#[derive(Default)]
struct Declared {
    module: Name,
    by_name: BTreeMap<String, Vec<Name>>,
}

impl Declared {
    fn add(&mut self, name: &Ident) {
        let modules = self.by_name.entry(name.to_string()).or_default();
        modules.push(self.module.clone());
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(item) {
            return;
        }
        match item {
            Item::Struct(item) => self.add(&item.ident),
            Item::Enum(item) => self.add(&item.ident),
            Item::Union(item) => self.add(&item.ident),
            Item::Trait(item) => self.add(&item.ident),
            Item::Type(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// The names that stand for several types of a crate, each with the modules that declare one.
fn twice(modules: Vec<(Name, Vec<Item>)>) -> Vec<String> {
    let mut declared = Declared::default();
    for (name, items) in modules {
        declared.module = name;
        items.iter().for_each(|item| declared.visit_item(item));
    }
    let several = declared.by_name.into_iter().filter(|(_, of)| of.len() > 1);
    let shown = several.map(|(name, of)| {
        let of = of
            .iter()
            .map(|module| format!("crate::{}", module.join("::")));
        format!("{name} in {}", of.collect::<Vec<_>>().join(", "))
    });
    shown.collect()
}

#[test]
fn a_name_of_two_types_is_found_wherever_and_whatever_they_are() {
    for other in [
        "struct A;",
        "pub(super) enum A {}",
        "trait A {}",
        "type A = u8;",
        "union A { of: u8 }",
        "fn f() { struct A; }",
        "impl B { fn f() { enum A {} } }",
        "mod inner { pub struct A; }",
    ] {
        let files = [
            ("lib.rs", "mod one; mod two;"),
            ("one.rs", "pub struct A<T>(T);"),
            ("two.rs", other),
        ];
        let found = twice(of_files(&files));
        assert_eq!(found.len(), 1, "{other}: {found:?}");
        assert!(found[0].contains("crate::one"), "{other}: {found:?}");
    }
}

#[test]
fn imports_associated_types_variants_and_tests_are_no_second_type() {
    let files = [
        ("lib.rs", "mod one; mod two; pub use one::A;"),
        ("one.rs", "pub struct A;"),
        (
            "two.rs",
            "use super::one::A; enum B { A, C } trait D { type A; } impl D for A { type A = u8; }
             #[cfg(test)] mod tests { struct A; } #[cfg(test)] struct A; fn A() {}",
        ),
    ];
    assert_eq!(twice(of_files(&files)), Vec::<String>::new());
}

#[test]
fn each_name_of_a_type_stands_for_one_thing_in_its_crate() {
    let found = in_each_crate(twice);
    let lines = found.iter().map(|(of, name)| format!("{of}: {name}\n"));
    assert!(
        found.is_empty(),
        "names stand for several types:\n{}",
        lines.collect::<String>()
    );
}
