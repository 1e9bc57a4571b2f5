//! Tests of the values that the reader takes and refuses, and of its errors.

use headtime_config::{
    Many, OneOrList, Place, Placed, Table, lines, number, read, rows, to_text, to_text_with,
    verbatim, whole,
};
use headtime_units::{Bytes, Millionths, Nanos, SignedNanos};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Deserialize, Serialize, Debug, Clone, PartialEq, Default)]
#[serde(default)]
struct All {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(deserialize_with = "whole::<_, _, 1, 9>")]
    count: Option<u32>,
    #[serde(deserialize_with = "number::<_, f64, 0, 1>")]
    share: f64,
    any: u64,
    small: u8,
    flag: bool,
    time: Nanos,
    less: SignedNanos,
    size: Bytes,
    weight: Millionths,
    pairs: Vec<(u32, f64)>,
    names: OneOrList<String>,
    word: Word,
    curve: Option<Curve>,
    load: Vec<Load>,
    free: BTreeMap<String, Word>,
}

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Default)]
#[serde(rename_all = "kebab-case")]
enum Word {
    #[default]
    FirstOne,
    Other,
}

#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename = "$kind", rename_all = "kebab-case")]
enum Curve {
    Off,
    Line { from: Nanos, to: Option<Nanos> },
    Load(Load),
}

#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
struct Load {
    size: Bytes,
    #[serde(default)]
    name: String,
}

fn error<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    let table = Table::parse("f", text).unwrap();
    let error = read::<T>(&table, &Place::line("f", 1)).unwrap_err();
    error.to_string()
}

#[test]
fn a_wrong_value_is_named_with_its_line_its_key_and_what_is_allowed() {
    for (text, message) in [
        (
            "\ntext = 3",
            "f:2: text: is the number 3, but should be a string",
        ),
        (
            "count = 0",
            "f:1: count: 0 is out of range; allowed is 1 to 9",
        ),
        (
            "count = -1",
            "f:1: count: -1 is out of range; allowed is 1 to 9",
        ),
        (
            "count = 1.5",
            "f:1: count: is the number 1.5, but should be a whole number from 1 to 9",
        ),
        (
            "share = 2",
            "f:1: share: 2 is out of range; allowed is 0 to 1",
        ),
        (
            "share = nan",
            "f:1: share: NaN is out of range; allowed is 0 to 1",
        ),
        (
            "share = []",
            "f:1: share: is a list, but should be a number from 0 to 1",
        ),
        (
            "any = -1",
            "f:1: any: is the number -1; allowed is a whole number, 0 or more",
        ),
        (
            "small = 256",
            "f:1: small: is the number 256; allowed is a whole number from 0 to 255",
        ),
        (
            "flag = 1",
            "f:1: flag: is the number 1, but should be true or false",
        ),
        (
            "time = 3",
            "f:1: time: is the number 3, but should be a duration with its unit, such as \"30ms\"",
        ),
        (
            "time = '3'",
            "f:1: time: \"3\": a duration needs its unit: ns, us, ms, s, m, h or d, as in 30ms",
        ),
        (
            "size = '3x'",
            "f:1: size: \"3x\": unknown unit of size; allowed are B, kB, KiB, MB, MiB, GB, GiB, TB and TiB",
        ),
        (
            "weight = '1.0000001'",
            "f:1: weight: \"1.0000001\": at most six digits may follow the point",
        ),
        (
            "pairs = [[1, 2],\n[3]]",
            "f:2: pairs[1]: has 1 value, but should be a list of 2 values",
        ),
        (
            "pairs = [[1, 2],\n[3, 'x']]",
            "f:2: pairs[1][1]: is the string \"x\", but should be a number",
        ),
        (
            "pairs = 4",
            "f:1: pairs: is the number 4, but should be a list",
        ),
        (
            "names = ['x', 3]",
            "f:1: names[1]: is the number 3, but should be a string",
        ),
        (
            "names = 3",
            "f:1: names: is the number 3, but should be a string",
        ),
        (
            "word = 'othr'",
            "f:1: word: \"othr\" is not allowed; did you mean \"other\"? Allowed are \"first-one\", \"other\"",
        ),
        (
            "word = 'x'",
            "f:1: word: \"x\" is not allowed; allowed are \"first-one\", \"other\"",
        ),
        (
            "word = 3",
            "f:1: word: is the number 3, but should be \"first-one\" or \"other\"",
        ),
        (
            "curve = 3",
            "f:1: curve: is the number 3, but should be a table",
        ),
        (
            "[curve]\nkind = 'of'",
            "f:2: curve.kind: \"of\" is not allowed; did you mean \"off\"? Allowed are \"off\", \"line\", \"load\"",
        ),
        (
            "[curve]\nkind = 1",
            "f:2: curve.kind: is the number 1, but should be \"off\", \"line\" or \"load\"",
        ),
        (
            "[curve]\nfrom = '1s'",
            "f:1: curve.kind: missing; give \"off\", \"line\" or \"load\"",
        ),
        (
            "[curve]\nkind = 'off'\nfrom = '1s'",
            "f:3: curve.from: unknown key; allowed here: kind",
        ),
        (
            "[curve]\nkind = 'line'\nfrm = '1s'",
            "f:3: curve.frm: unknown key; did you mean `from`? Allowed here: from, kind, to",
        ),
        (
            "[curve]\nkind = 'line'",
            "f:1: curve.from: missing; give a duration with its unit, such as \"30ms\"",
        ),
        (
            "[curve]\nkind = 'load'",
            "f:1: curve.size: missing; give a size with its unit, such as \"4KiB\"",
        ),
        (
            "[curve]\nkind = 'load'\nsiz = 3",
            "f:3: curve.siz: unknown key; did you mean `size`? Allowed here: kind, name, size",
        ),
        (
            "[[load]]\nsize = '1B'\n[[load]]\nname = 'x'",
            "f:3: load[1].size: missing; give a size with its unit, such as \"4KiB\"",
        ),
        (
            "[[load]]\nsize = '1B'\n[[load]]\nnme = 'x'\nage = 1",
            "f:4: load[1].nme: unknown key; did you mean `name`? Allowed here: name, size",
        ),
        (
            "load = [3]",
            "f:1: load[0]: is the number 3, but should be a table",
        ),
        (
            "free.'a.b' = 'x'",
            "f:1: free.a.b: \"x\" is not allowed; allowed are \"first-one\", \"other\"",
        ),
        ("[free]\nx\u{7f}y = 3", ""),
    ] {
        if message.is_empty() {
            assert!(
                Table::parse("f", text)
                    .unwrap_err()
                    .to_string()
                    .starts_with("f:2: not TOML: ")
            );
        } else {
            assert_eq!(error::<All>(text), message, "{text}");
        }
    }
}

/// The first unknown key of the text is named, though the tree is sorted by name.
#[test]
fn of_several_unknown_keys_the_first_in_the_text_is_named() {
    let message = error::<All>("zzz = 1\nbbb = 1\ntext = 3");
    assert!(
        message.starts_with("f:1: zzz: unknown key; allowed here: any, count"),
        "{message}"
    );
}

#[test]
fn control_characters_of_a_file_stay_out_of_messages() {
    let message = error::<All>("text = ['\\u001b']\n\"a\\nb\" = 1");
    assert!(message.starts_with("f:2: a\\nb: unknown key"), "{message}");
}

#[test]
fn many_takes_one_value_a_list_and_a_text_by_comma() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct File {
        depth: Many<u32>,
    }
    for (text, depths) in [
        ("depth = 4", &[4][..]),
        ("depth = [1, 4]", &[1, 4]),
        ("depth = '1,4'", &[1, 4]),
        ("depth = ['1, 2', 4]", &[1, 2, 4]),
    ] {
        let table = Table::parse("f", text).unwrap();
        let file: File = read(&table, &Place::BuiltIn).unwrap();
        assert_eq!(file.depth.0, depths);
    }
    for (text, message) in [
        (
            "depth = []",
            "f:1: depth: is an empty list; give at least one",
        ),
        (
            "depth = ''",
            "f:1: depth: is an empty list; give at least one",
        ),
        (
            "depth = [1,\n'x']",
            "f:2: depth[1]: is the string \"x\", but should be a whole number from 0 to 4294967295",
        ),
        (
            "depth = '1,x'",
            "f:1: depth: is the string \"x\", but should be a whole number from 0 to 4294967295",
        ),
        (
            "",
            "f:1: depth: missing; give a whole number from 0 to 4294967295",
        ),
    ] {
        assert_eq!(error::<File>(text), message);
    }
}

#[test]
fn a_struct_may_be_a_list_of_its_fields() {
    #[derive(Deserialize, Serialize, Debug, PartialEq)]
    #[serde(rename = "[]", expecting = "[first, last], two cylinders")]
    struct Range {
        first: u32,
        #[serde(deserialize_with = "whole::<_, u32, 0, 9>")]
        last: u32,
    }
    #[derive(Deserialize, Serialize, Debug, PartialEq)]
    struct File {
        ranges: Vec<Range>,
    }
    let text = "ranges = [[1, 2], [3, 4]]\n";
    let table = Table::parse("f", text).unwrap();
    let file = read::<File>(&table, &Place::NoText).unwrap();
    assert_eq!(to_text(&file), text);
    for (text, message) in [
        (
            "ranges = [[1]]",
            "f:1: ranges[0]: has 1 value, but should be [first, last], two cylinders",
        ),
        (
            "ranges = [3]",
            "f:1: ranges[0]: is the number 3, but should be [first, last], two cylinders",
        ),
        (
            "ranges = [{first = 1}]",
            "f:1: ranges[0]: is a table, but should be [first, last], two cylinders",
        ),
        (
            "ranges = [[1,\n10]]",
            "f:2: ranges[0][1]: 10 is out of range; allowed is 0 to 9",
        ),
    ] {
        assert_eq!(error::<File>(text), message);
    }
}

#[test]
fn parts_of_a_table_share_its_keys() {
    #[derive(Deserialize, Serialize, Debug, PartialEq)]
    struct Three {
        name: String,
        #[serde(rename = "+two")]
        two: Two,
    }
    #[derive(Deserialize, Serialize, Debug, PartialEq)]
    struct Two {
        depth: u32,
        #[serde(rename = "+curve")]
        curve: Curve,
    }
    #[derive(Deserialize, Serialize, Debug, PartialEq)]
    struct File {
        disk: Vec<Placed<Three>>,
    }
    let text = "\n[[disk]]\nname = \"x\"\ndepth = 4\nkind = \"line\"\nfrom = \"1s\"\n";
    let table = Table::parse("f", text).unwrap();
    let file: File = read(&table, &Place::line("f", 1)).unwrap();
    assert_eq!(to_text(&file), text);
    let error_at = file.disk[0].error_at("from", "is too late").to_string();
    assert_eq!(error_at, "f:6: disk[0].from: is too late");
    for (from, to, message) in [
        (
            "depth",
            "dept",
            "f:4: disk[0].dept: unknown key; did you mean `depth`? Allowed here: depth, from, kind, name, to",
        ),
        (
            "name",
            "nme",
            "f:3: disk[0].nme: unknown key; did you mean `name`? Allowed here: depth, from, kind, name, to",
        ),
        (
            "name = \"x\"\n",
            "",
            "f:2: disk[0].name: missing; give a string",
        ),
        (
            "depth = 4\n",
            "",
            "f:2: disk[0].depth: missing; give a whole number from 0 to 4294967295",
        ),
        (
            "name = \"x\"\ndepth = 4\n",
            "",
            "f:2: disk[0].name: missing; give a string",
        ),
        (
            "depth = 4",
            "depth = true",
            "f:4: disk[0].depth: is true, but should be a whole number from 0 to 4294967295",
        ),
        (
            "line",
            "lin",
            "f:5: disk[0].kind: \"lin\" is not allowed; did you mean \"line\"? Allowed are \"off\", \"line\", \"load\"",
        ),
    ] {
        assert_eq!(error::<File>(&text.replacen(from, to, 1)), message);
    }
}

#[test]
fn a_last_part_takes_the_keys_that_are_left() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct All {
        first: Option<u32>,
        #[serde(rename = "+load")]
        load: Load,
        #[serde(rename = "+rest")]
        rest: Table,
    }
    let text = "size = '1B'\nfirst = 4\nother = 3\n[deep]\nx = 1";
    let table = Table::parse("f", text).unwrap();
    let All { first, load, rest } = read(&table, &Place::NoText).unwrap();
    assert_eq!((load.size, first), (Bytes(1), Some(4)));
    let keys: Vec<&str> = rest.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["deep", "other"]);
    assert_eq!(rest.at("deep.x").unwrap().place, Place::line("f", 5));
    let message = error::<All>("siz = 3");
    assert_eq!(
        message,
        "f:1: size: missing; give a size with its unit, such as \"4KiB\""
    );
}

/// If the first part cannot be read, the keys of the second part are not reported as unknown.
#[test]
fn a_part_that_misses_a_key_before_another_part_says_so() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct All {
        #[serde(rename = "+load")]
        load: Load,
        #[serde(rename = "+curve")]
        curve: Curve,
    }
    let message = "f:1: size: missing; give a size with its unit, such as \"4KiB\"";
    assert_eq!(error::<All>("kind = 'off'"), message);
}

#[test]
fn an_option_that_overrides_a_value_is_its_place() {
    let mut table = Table::parse("f", "count = 3\n[[load]]\nsize = '1B'").unwrap();
    for (option, key, value, message) in [
        (
            "--set count=12",
            "count",
            "12",
            "--set count=12: count: 12 is out of range; allowed is 1 to 9",
        ),
        (
            "--set load.size=1",
            "load.size",
            "1",
            "--set load.size=1: load[0].size: is the number 1, but should be a size with its unit, such as \"4KiB\"",
        ),
    ] {
        let mut table = table.clone();
        table.set(option, key, value).unwrap();
        let error = read::<All>(&table, &Place::line("f", 1)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    table.set("--set count=9", "count", "9").unwrap();
    assert_eq!(read::<All>(&table, &Place::BuiltIn).unwrap().count, Some(9));
}

#[test]
fn a_place_is_found_by_the_key_that_an_error_names() {
    let table = Table::parse(
        "f",
        "[a]\nb = [[1],\n[2]]\n[[c]]\n[[c]]\nd = 1\n[t]\n'x.y' = 2",
    )
    .unwrap();
    for (key, line) in [
        ("a", Some(1)),
        ("a.b", Some(2)),
        ("a.b[1]", Some(3)),
        ("a.b[1][0]", Some(3)),
        ("a.b[7]", Some(2)),
        ("a.z", Some(1)),
        ("c[1]", Some(5)),
        ("c[1].d", Some(6)),
        ("c[0].d", Some(4)),
        ("t.x.y", Some(8)),
        ("z", None),
        ("", None),
    ] {
        let place = line.map(|line| Place::line("f", line));
        assert_eq!(table.place(key), place.as_ref(), "{key}");
    }
}

/// A text or an option of any depth is refused before the stack overflows.
#[test]
fn depth_is_bounded() {
    let deep = 100_000;
    for text in [
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}", "{a=".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        format!("[[{}a]]", "a.".repeat(deep)),
    ] {
        assert!(Table::parse("f", &text).is_err(), "{:.20}", text);
    }
    let key = format!("{}a", "a.".repeat(deep));
    let error = Table::default().set("--set", &key, "1").unwrap_err();
    assert_eq!(error.to_string(), "--set: the key has more than 64 parts");
    let mut table = Table::default();
    table.set("--set", "a", &"[".repeat(deep)).unwrap();
}

#[test]
fn a_text_is_written_in_one_form() {
    #[derive(Serialize)]
    struct File {
        title: &'static str,
        none: Option<u32>,
        #[serde(serialize_with = "lines")]
        story: &'static str,
        whole: f64,
        part: f64,
        huge: f64,
        first: First,
        empty: BTreeMap<String, u32>,
        list: Vec<u32>,
        #[serde(serialize_with = "rows")]
        rows: Vec<(u32, Text)>,
        free: BTreeMap<String, Many<u32>>,
        mixed: Vec<BTreeMap<String, Vec<u32>>>,
    }
    #[derive(Serialize)]
    struct First {
        second: Second,
    }
    #[derive(Serialize)]
    struct Second {
        value: Word,
    }
    #[derive(Serialize)]
    struct Text(#[serde(serialize_with = "verbatim")] &'static str);
    let free = [("a b", vec![1]), ("c", vec![1, 2]), ("", vec![])];
    let mixed = BTreeMap::from([("m".to_owned(), vec![7])]);
    let file = File {
        title: "a \"b\"\n\u{1b}\\",
        none: None,
        story: "one \"two\"\r\nthree\"\"\"",
        whole: 7200.0,
        part: 0.25,
        huge: 1e300,
        first: First {
            second: Second { value: Word::Other },
        },
        empty: BTreeMap::new(),
        list: (0..40).collect(),
        rows: vec![(1, Text("2.500"))],
        free: free.map(|(key, list)| (key.to_owned(), Many(list))).into(),
        mixed: vec![mixed.clone(), mixed],
    };
    let comments = [("", "About\nit."), ("first.second.value", "Why.")];
    let text = to_text_with(&file, &comments, &["part"]);
    assert_eq!(
        text,
        "# About\n# it.\ntitle = \"a \\\"b\\\"\\n\\u001B\\\\\"\nstory = \"\"\"\none \"two\"\\u000D\n\
         three\\\"\\\"\\\"\n\"\"\"\nwhole = 7200\nhuge = 1e300\nlist = [\n    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, \
         13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,\n    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, \
         36, 37, 38, 39,\n]\nrows = [\n    [1, 2.500],\n]\n\n[first.second]\n# Why.\nvalue = \"other\"\n\n\
         [empty]\n\n[free]\n\"\" = []\n\"a b\" = 1\nc = [1, 2]\n\n[[mixed]]\nm = [7]\n\n[[mixed]]\nm = [7]\n"
    );
    Table::parse("f", &text).unwrap();
}

prop_compose! {
    fn all()(
        text in any::<Option<String>>(),
        count in prop::option::of(1_u32..=9),
        share in 0.0..=1.0,
        any in 0..=i64::MAX as u64,
        time in 0..=Nanos::LONGEST.as_nanos(),
        pairs in prop::collection::vec((any::<u32>(), prop::num::f64::NORMAL), 0..9),
        names in prop::collection::vec(any::<String>(), 0..3),
        keys in prop::collection::btree_set(any::<String>(), 0..3),
        sizes in prop::collection::vec(any::<u64>(), 0..3),
        flag in any::<bool>(),
    ) -> All {
        let from = Nanos::from_nanos(time);
        All {
            text,
            count,
            share,
            any,
            small: 3,
            flag,
            time: from,
            less: SignedNanos::from_nanos(-3),
            size: Bytes(any),
            weight: Millionths(any),
            pairs,
            names: OneOrList(names),
            word: Word::Other,
            curve: flag.then_some(Curve::Line { from, to: None }),
            load: sizes.into_iter().map(|size| Load { size: Bytes(size), name: "x".into() }).collect(),
            free: keys.into_iter().map(|key| (key, Word::FirstOne)).collect(),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(all in all()) {
        let text = to_text(&all);
        let table = Table::parse("f", &text);
        let table = table.map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        let again = read::<All>(&table, &Place::BuiltIn);
        prop_assert_eq!(again, Ok(all), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z]{0,3}( ?[\\[\\]{}=.,'\"0-9a-z\n-]){0,40}|\\PC*") {
        if let Ok(table) = Table::parse("f", &text) {
            let _ = read::<All>(&table, &Place::BuiltIn);
            let again = read::<Table>(&table, &Place::line("f", 1)).unwrap();
            // The debug form has the places, too, which a comparison of tables ignores.
            prop_assert_eq!(format!("{again:?}"), format!("{table:?}"));
        }
    }
}

#[test]
fn a_tree_with_whole_numbers_that_have_a_point_reads_back_with_the_point() {
    let text = "a = 1.0\nb = [-7200.0, 2, 0.5]\nc = 1e300\n";
    let table = Table::parse("f", text).unwrap();
    let written = to_text(&table);
    assert!(
        written.starts_with("a = 1.0\nb = [-7200.0, 2, 0.5]\n"),
        "{written}"
    );
    assert_eq!(Table::parse("f", &written), Ok(table));
    // A field of type `f64` is written as a person writes a number.
    assert_eq!(to_text(&BTreeMap::from([("a", 1.0)])), "a = 1\n");
}
