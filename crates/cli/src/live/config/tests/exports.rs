//! Exports that are parts of disks.

use super::*;

fn with(exports: &[&str]) -> Result<Config, Error> {
    let head = "[[disk]]\nname = \"d\"\ndevice = \"null\"\nsize = \"1GiB\"\nscheduler = \"noop\"\n";
    let exports: Vec<String> = (exports.iter().zip('a'..))
        .map(|(keys, name)| format!("[[disk.export]]\nname = \"{name}\"\n{keys}\n"))
        .collect();
    Config::parse("c.toml", &format!("{head}{}", exports.concat()))
}

#[test]
fn a_range_is_two_sizes_of_which_the_first_is_less() {
    for (range, error) in [
        (
            "100GiB",
            "\"100GiB\": allowed are two sizes, as in \"0B..100GiB\"",
        ),
        ("0B..", "\"0B..\": no number"),
        ("1..2GiB", "a size needs its unit"),
        ("-1B..2GiB", "no number"),
        ("0B..2giga", "unknown unit"),
        ("0B..99999999999TiB", "too large"),
        (
            "1GiB..1GiB",
            "is empty: the first size is less than the second",
        ),
        ("2GiB..1GiB", "is empty"),
    ] {
        let found = with(&[&format!("range = \"{range}\"")])
            .expect_err(range)
            .to_string();
        let begins = "c.toml:8: disk[0].export[0].range: ";
        assert!(found.starts_with(begins), "{found}");
        assert!(found.contains(error), "{found}");
    }
    let config = with(&["range = \"0 .. 1.5KiB\""]).expect("fits");
    let range = ExportRange {
        start: 0,
        end: 1536,
    };
    assert_eq!(config.disks[0].exports[0].range.as_deref(), Some(&range));
}

#[test]
fn exports_that_take_writes_have_no_bytes_in_common_or_all() {
    let first = "range = \"0B..2MiB\"";
    for (second, fits) in [
        ("range = \"2MiB..3MiB\"", true),
        ("range = \"1MiB..3MiB\"", false),
        ("range = \"0B..1MiB\"", false),
        ("range = \"1MiB..3MiB\"\nread_only = true", true),
        (first, true),
        ("", false),
        ("read_only = true", true),
    ] {
        for exports in [[first, second], [second, first]] {
            let read = with(&exports);
            assert_eq!(read.is_ok(), fits, "{exports:?}");
        }
    }
    assert!(with(&["", ""]).is_ok());
    let error = with(&[first, "", "range = \"1MiB..3MiB\""]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "c.toml:9: disk[0].export[1].range: b (the whole disk) and a (0B..2MiB) take writes to the same bytes; give ranges apart, the same range, or read_only = true"
    );
}
