//! The doc comment of a large struct lists the struct's invariants.
//!
//! A paragraph that begins with "Invariant" counts. Types of tests and structs of the kernel's interface, which are
//! `repr(C)`, may lack the paragraph.

mod sources;

use sources::{Name, in_each_crate, is_test, of_files};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Fields, Item, ItemStruct, Lit, Meta};

/// Largest number of fields of a struct without a list of invariants.
const FIELDS_MAX: usize = 12;

/// Large structs, each with its path and true if its doc comment lists invariants.
#[derive(Default)]
struct Large {
    module: Name,
    found: Vec<(String, bool)>,
}

impl<'ast> Visit<'ast> for Large {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let is_large = matches!(&item.fields, Fields::Named(_)) && item.fields.len() > FIELDS_MAX;
        if is_large && !item.attrs.iter().any(is_repr_c) {
            let module: String = self.module.iter().map(|name| format!("{name}::")).collect();
            let lists = item.attrs.iter().any(lists_invariants);
            self.found.push((format!("{module}{}", item.ident), lists));
        }
    }
}

fn is_repr_c(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) => list.path.is_ident("repr") && list.tokens.to_string() == "C",
        _ => false,
    }
}

/// Returns true for the first line of a list of invariants in a doc comment.
fn lists_invariants(attribute: &Attribute) -> bool {
    let Meta::NameValue(pair) = &attribute.meta else {
        return false;
    };
    match &pair.value {
        Expr::Lit(value) if pair.path.is_ident("doc") => match &value.lit {
            Lit::Str(line) => line.value().trim_start().starts_with("Invariant"),
            _ => false,
        },
        _ => false,
    }
}

fn large(modules: Vec<(Name, Vec<Item>)>) -> Vec<(String, bool)> {
    let mut large = Large::default();
    for (name, items) in modules {
        large.module = name;
        items.iter().for_each(|item| large.visit_item(item));
    }
    large.found
}

#[test]
fn large_structs_are_found_wherever_they_are_and_small_or_foreign_ones_are_not() {
    let fields = |count: usize| -> String {
        (0..count)
            .map(|number| format!("f{number}: u8, "))
            .collect()
    };
    let (large_one, small) = (fields(FIELDS_MAX + 1), fields(FIELDS_MAX));
    for (text, expected) in [
        (format!("struct A {{ {large_one} }}"), Some(false)),
        (
            format!("fn f() {{ struct A {{ {large_one} }} }}"),
            Some(false),
        ),
        (
            format!("/// No invariant.\nstruct A {{ {large_one} }}"),
            Some(false),
        ),
        (
            format!(
                "/// An a.\n///\n/// Invariants: none.\n#[derive(Debug)]\npub(super) struct A {{ {large_one} }}"
            ),
            Some(true),
        ),
        (format!("struct A {{ {small} }}"), None),
        (format!("#[repr(C)] struct A {{ {large_one} }}"), None),
        (format!("#[cfg(test)] struct A {{ {large_one} }}"), None),
        (
            format!("#[cfg(test)] mod tests {{ struct A {{ {large_one} }} }}"),
            None,
        ),
    ] {
        let found = large(of_files(&[("lib.rs", &text)]));
        let expected: Vec<_> = expected
            .map(|lists| ("A".to_owned(), lists))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn each_large_struct_lists_its_invariants() {
    let found = in_each_crate(large);
    assert!(found.len() > 50, "{}", found.len());
    let lacking: Vec<String> = (found.iter())
        .filter(|(_, (_, lists))| !lists)
        .map(|(of, (name, _))| format!("{of}: {name}\n"))
        .collect();
    assert!(
        lacking.is_empty(),
        "structs of more than {FIELDS_MAX} fields lack a paragraph \"Invariants:\":\n{}",
        lacking.concat()
    );
}
