//! Programs with goals.

use super::*;
use headtime_qos::Goal;

/// Two disks, each with a part for each of two programs, and an array.
pub(super) const TEXT: &str = "\
[[disk]]
name = \"one\"
device = \"null\"
size = \"1GiB\"
scheduler = \"noop\"
gate = \"windows\"
[[disk.export]]
name = \"mail1\"
range = \"0B..1MiB\"
[[disk.export]]
name = \"web1\"
range = \"1MiB..2MiB\"
[[disk]]
name = \"two\"
device = \"null\"
size = \"1GiB\"
scheduler = \"noop\"
gate = \"windows\"
[[disk.export]]
name = \"mail2\"
[[disk]]
name = \"three\"
device = \"null\"
size = \"1GiB\"
scheduler = \"noop\"
[[qos.program]]
name = \"mail\"
exports = [\"mail1\", \"mail2\"]
goal = \"by 06:00\"
profile = \"mail.profile\"
tree = \"mail.tree\"
[[qos.program]]
name = \"web\"
exports = [\"web1\"]
";

#[test]
fn exports_have_the_number_of_their_program() {
    let config = Config::parse("c.toml", TEXT).unwrap();
    let exports = config.disks.iter().flat_map(|disk| &disk.exports);
    let numbers: Vec<_> = exports
        .map(|export| (&*export.name, export.program))
        .collect();
    assert_eq!(
        numbers,
        [("mail1", 1), ("web1", 2), ("mail2", 1), ("three", 0)]
    );
    let [mail, web] = &config.programs[..] else {
        panic!("{config:?}");
    };
    assert_eq!(mail.goal, "by 06:00".parse::<Goal>().ok());
    assert_eq!(mail.profile.as_deref(), Some(Path::new("mail.profile")));
    assert_eq!((web.goal, &web.profile), (None, &None));
}

#[test]
fn an_array_has_programs_too() {
    let array = "name = \"three\"\ngate = \"windows\"";
    let text = TEXT.replacen("name = \"three\"", array, 1).replacen(
        "[\"web1\"]",
        "[\"web1\", \"both\"]",
        1,
    );
    let more = "[[disk]]\nname = \"four\"\ndevice = \"null\"\nsize = \"1GiB\"\nscheduler = \"noop\"\ngate = \"windows\"\n[[array]]\nname = \"both\"\nmembers = [\"three\", \"four\"]\n";
    let config = Config::parse("c.toml", &format!("{text}{more}")).unwrap();
    assert_eq!(config.arrays[0].exports[0].program, 2);
}

#[test]
fn programs_that_do_not_fit_are_refused_by_key() {
    for (from, to, error) in [
        (
            "name = \"web\"",
            "name = \"mail\"",
            "c.toml:33: qos.program[1].name: there is a program \"mail\" already, at c.toml:27",
        ),
        (
            "[\"web1\"]",
            "[\"wbe1\"]",
            "c.toml:34: qos.program[1].exports: wbe1: there is no export of this name; did you mean \"web1\"?",
        ),
        (
            "[\"web1\"]",
            "[\"web1\", \"mail2\"]",
            "c.toml:34: qos.program[1].exports: mail2: is an export of the program mail already",
        ),
        (
            "name = \"mail1\"\n",
            "name = \"mail1\"\nclass = \"real-time\"\n",
            "c.toml:29: qos.program[0].exports: mail1: has the class real-time, whose requests wait for no window; give the export another class, ",
        ),
        (
            "[\"web1\"]",
            "[\"web1\", \"web1\"]",
            "c.toml:34: qos.program[1].exports: web1: is there twice",
        ),
        (
            "[\"web1\"]",
            "[]",
            "c.toml:34: qos.program[1].exports: is an empty list; give at least one",
        ),
        (
            "exports = [\"web1\"]\n",
            "",
            "c.toml:32: qos.program[1].exports: missing",
        ),
        (
            "by 06:00",
            "by 6 o'clock",
            "c.toml:29: qos.program[0].goal: \"by 6 o'clock\": ",
        ),
        (
            "by 06:00",
            "0s",
            "c.toml:29: qos.program[0].goal: \"0s\": `0s` is no goal: it is zero",
        ),
        (
            "[\"web1\"]\n",
            "[\"web1\"]\np99 = \"+10%\"\n",
            "c.toml:35: qos.program[1].p99: \"+10%\": a share has no measure: ",
        ),
        (
            "[\"web1\"]\n",
            "[\"web1\"]\np99 = \"0s\"\n",
            "c.toml:35: qos.program[1].p99: \"0s\": it is zero; give a time (`200ms`)",
        ),
        (
            "goal = \"by 06:00\"\n",
            "p99 = \"200ms\"\n",
            "c.toml:29: qos.program[0].p99: is for programs without a goal; leave out p99, or profile and goal",
        ),
        (
            "profile = \"mail.profile\"\n",
            "",
            "c.toml:29: qos.program[0].goal: takes profile = \"FILE\"; `headtime control SOCKET qos profile mail start` records one",
        ),
        (
            "goal = \"by 06:00\"\nprofile = \"mail.profile\"\n",
            "",
            "c.toml:29: qos.program[0].tree: takes profile",
        ),
        (
            "gate = \"windows\"",
            "gate = \"depth\"",
            "c.toml:6: disk[0].gate: programs share one; give gate = \"windows\" (or \"average\")",
        ),
        (
            "gate = \"windows\"\n",
            "",
            "c.toml:1: disk[0].gate: programs share one; give gate = \"windows\" (or \"average\")",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:by=export\"",
            "c.toml:6: disk[0].gate: programs share one; give gate",
        ),
        (
            "gate = \"windows\"",
            "gate = \"average:lanes=2\"",
            "c.toml:6: disk[0].gate: programs share one; 2 programs take 3 lanes, one for each and one for others, and the gate has 2; give \"average:lanes=3\"",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:lanes=2\"",
            "c.toml:6: disk[0].gate: programs share one; 2 programs take 3 lanes, one for each and one for others, and the gate has 2; give \"windows:lanes=3\"",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:period=50ms\"",
            "c.toml:6: disk[0].gate: programs share one; its period is 50ms; allowed is 100ms or more",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:period=10ms\"",
            "programs share one; its period is 10ms; allowed is 100ms or more with a guard of 15ms",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:guard=200ms\"",
            "programs share one; its period is 1s; allowed is 1.2s or more with a guard of 200ms",
        ),
        (
            "gate = \"windows\"",
            "gate = \"windows:guard=20ms\"",
            "c.toml:18: disk[1].gate: programs share two; all disks with programs have the same gate, and not ",
        ),
        (
            "[[qos.program]]\nname = \"mail\"",
            "[qos]\nprograms = 1\n[[qos.program]]\nname = \"mail\"",
            "programs: unknown key; did you mean `program`?",
        ),
    ] {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        let found = Config::parse("c.toml", &text).expect_err(error).to_string();
        assert!(found.contains(error), "{found}\n{error}");
    }
    let (disks, _) = TEXT.split_once("[[qos.program]]").unwrap();
    let found = Config::parse("c.toml", &format!("{disks}[qos]\n")).unwrap_err();
    assert_eq!(
        found.to_string(),
        "c.toml:26: qos.program: missing; give at least one [[qos.program]]"
    );
}
