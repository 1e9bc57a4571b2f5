//! `headtime drive probe` without `--quick`: the profile, the page, stopping and going on, kills.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "waits for processes"
)]

use super::common::{all, data, ended, headtime, json, keys, number, run, scratch, stdout};
use headtime_disk::Profile;
use headtime_disk::profile::Trust;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn emulated<'a>(drive: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["drive", "probe", "--emulate", drive], more].concat()
}

/// Learned in 40 s of its time.
fn little<'a>(more: &[&'a str]) -> Vec<&'a str> {
    emulated("little.toml", more)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Profile that an uninterrupted probe writes.
fn through(directory: &Path) -> String {
    let (out, state) = (directory.join("through.toml"), directory.join("through"));
    stdout(&little(&["--out", text(&out), "--state", text(&state)]));
    fs::read_to_string(out).unwrap()
}

#[test]
fn the_page_the_picture_and_the_profile_say_what_a_disk_is() {
    let directory = scratch("probe-whole");
    let (out, plot) = (directory.join("learned.toml"), directory.join("disk.svg"));
    let page = stdout(&little(&["--out", text(&out), "--plot", text(&plot)]));
    for part in [
        "little · 43.0 MB · ",
        "\nrotation     1",
        "\ntracks       120 sectors at the beginning, 90 at the end, 2 zones, 3 slipped\n",
        "\nsurfaces     2, 400 cylinders, cylinder-first (assumed)\n",
        "\nreads seek   ",
        "\nswitch       at most ",
        "\naccess       sectors of a track are taken in their order",
        "\norder        of 2, 3 commands the soonest under the head in ",
        "\nTracks by place\n",
        "\nSeeks by distance\n",
        " not learned: nothing may be written without a scratch range\n",
        "\ncache.segments ",
        "\nAll was looked at: reads come when the profile says",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let picture = fs::read_to_string(&plot).unwrap();
    for part in [
        ">Sectors on a track<",
        ">Skews<",
        ">Seeks<",
        ">Check<",
        ">cylinder skew<",
    ] {
        assert!(picture.contains(part), "no {part}");
    }
    let learned = fs::read_to_string(&out).unwrap();
    let profile = Profile::from_toml("learned.toml", &learned).unwrap();
    assert_eq!(
        (profile.geometry.cylinders, profile.geometry.heads),
        (400, 2)
    );
    let rotation = profile.trust.iter().find(|(key, _)| key == "rotation");
    assert_eq!(rotation.unwrap().1, Trust::Learned);
    assert!(
        profile.provenance.contains("Confidence in layout.zones: "),
        "{}",
        profile.provenance
    );
    // As any other profile.
    stdout(&["drive", "show", text(&out)]);
    assert_eq!(page, stdout(&little(&[])), "the same each time");
}

#[test]
fn what_is_over_between_zones_is_neither_a_zone_nor_a_spike() {
    // Three of the drive's zones begin with a piece shorter than a track, which belongs to neither neighbour's
    // groups.
    let plot = scratch("probe-fragments").join("disk.svg");
    let probe = ["drive", "probe", "--emulate", "wd5000aaks"];
    let page = stdout(&[&probe[..], &["--plot", text(&plot)]].concat());
    assert!(
        page.contains(" 1750 sectors at the beginning, 875 at the end, 24 zones, "),
        "{page}"
    );
    assert!(!page.contains("0.0000"), "{page}");
    let value = json(&[&probe[..], &["--format", "json"]].concat());
    assert!(value["tracks"].as_array().unwrap().len() > 24);
    // The picture counts the keys that were not learned, and the page lists them.
    let picture = fs::read_to_string(&plot).unwrap();
    let missing = page.matches(" not learned: ").count();
    let said = format!(">{missing} keys of the profile are not learned<");
    assert!(missing > 1 && picture.contains(&said), "{said}");
    assert!(!picture.contains("not learned: "));
}

#[test]
fn a_disk_whose_tracks_take_too_long_is_told_with_what_is_known_and_without_a_time_to_go() {
    let probe = ["drive", "probe", "--emulate", "plausible-103"];
    let ended = run(&probe);
    assert_eq!(ended.status.code(), Some(1));
    let page = String::from_utf8(ended.stdout).unwrap();
    assert!(page.contains("\nrotation     "), "{page}");
    assert!(
        page.contains("It ended: its tracks take too long: after "),
        "{page}"
    );
    assert!(!page.contains("before all is known"), "{page}");
    // Less patience is told sooner.
    let hasty = run(&[&probe[..], &["--patience", "1h", "--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_slice(&hasty.stdout).unwrap();
    assert!(number(&value["took_s"]) < 600.0, "{value}");
    assert_eq!(value["provisional"], true);
    let refused = run(&[&probe[..], &["--patience", "5m"]].concat());
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn all_sectors_are_read_of_a_disk_that_is_known_and_the_one_that_is_elsewhere_is_told() {
    let directory = scratch("probe-remaps");
    let [drive, out, state] =
        ["worn.toml", "learned.toml", "state"].map(|name| directory.join(name));
    let little = fs::read_to_string(data().join("little.toml")).unwrap();
    let worn = "spares = 50\nremaps = [[5000, 47970]]";
    fs::write(&drive, little.replacen("spares = 50", worn, 1)).unwrap();
    let probe = ["drive", "probe", "--emulate", text(&drive)];
    let kept = ["--state", text(&state), "--out", text(&out)];
    let page = stdout(&[&probe[..], &kept[..]].concat());
    let not_all = ", met by the way; --remaps reads all sectors\n";
    assert!(page.contains(not_all), "{page}");
    let page = all(&[&probe[..], &kept[..], &["--remaps"]].concat());
    for part in [
        "\nremapped     1 sector is elsewhere, of all sectors, which were read\n",
        "reads all sectors now, for about ",
        "layout.remaps",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let learned = Profile::from_toml("learned.toml", &fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(learned.layout.zones[0].remaps, [(5000, 47_970)]);
    // The state has it all.
    let value = json(&[&probe[..], &kept[..], &["--remaps", "--format", "json"]].concat());
    assert_eq!(value["remaps"]["complete"], true);
    assert_eq!(value["remaps"]["sectors_and_angles"][0][0], 4998);
}

#[test]
fn json_has_what_the_page_has() {
    let value = json(&little(&["--format", "json"]));
    for key in [
        "version",
        "capacity_bytes",
        "commands",
        "took_s",
        "turn_ms",
        "seeks",
        "check",
    ] {
        assert!(keys(&value).contains(&key), "{key}");
    }
    assert_eq!(
        (value["ended"].as_str(), value["worth"].as_str()),
        (Some("done"), Some("predicts"))
    );
    assert_eq!(value["tracks"].as_array().unwrap().len(), 2);
    assert_eq!(number(&value["tracks"][1]["sectors_per_track"]), 90.0);
    assert_eq!(number(&value["check"]["reads"]), 5_000.0);
    let orders = value["queue_order"].as_array().unwrap();
    let least = |order: &serde_json::Value| number(&order["commands"][0]);
    assert_eq!(orders.iter().map(least).collect::<Vec<_>>(), [2.0, 3.0]);
    for order in orders {
        let [choices, soonest, nearest, first] =
            ["choices", "soonest", "nearest", "first"].map(|key| number(&order[key]));
        assert_eq!(choices, 240.0);
        assert!(
            soonest > 200.0 && first < soonest && nearest < soonest,
            "{order}"
        );
    }
    let known = value["known"].as_array().unwrap();
    let of = |key: &str| known.iter().find(|known| known["key"] == key).unwrap();
    assert!(number(&of("layout.zones")["confidence"]) > 0.9);
    assert!(
        of("seek.write_settle")["why"]
            .as_str()
            .unwrap()
            .contains("scratch")
    );
}

#[test]
fn the_time_ends_it_with_what_is_known_and_the_same_command_goes_on() {
    let directory = scratch("probe-time");
    let (state, out) = (directory.join("state"), directory.join("learned.toml"));
    let args = little(&[
        "--time",
        "10s",
        "--state",
        text(&state),
        "--out",
        text(&out),
    ]);
    let first = run(&args);
    assert_eq!(first.status.code(), Some(5));
    let page = String::from_utf8(first.stdout).unwrap();
    assert!(
        page.contains("\nThe time was over at the part \""),
        "{page}"
    );
    assert!(page.contains(" not learned: not looked at yet\n"), "{page}");
    assert!(page.contains(" (provisional)\n"), "{page}");
    assert!(
        page.contains("\ncheck        no other reads were held against what is provisional\n"),
        "{page}"
    );
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(said.contains("was not learned in this time"), "{said}");
    assert!(said.contains("the same command goes on with "), "{said}");
    let mut runs = 1;
    loop {
        let (code, said) = ended(&args);
        runs += 1;
        assert!(said.contains("note: goes on with "), "{said}");
        if code == 0 {
            break;
        }
        assert_eq!(code, 5, "{said}");
        assert!(runs < 10);
    }
    assert!(runs >= 4, "{runs} runs of 10 s learn what takes 40 s");
    assert!(fs::read_to_string(&out).unwrap() == through(&directory));
    // All is known: nothing is read again.
    let value = json(&[&args[..], &["--format", "json"]].concat());
    assert_eq!(value["ended"], "done");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(32), ..ProptestConfig::default() })]
    #[test]
    #[ignore = "a minute; `the_time_ends_it_with_what_is_known_and_the_same_command_goes_on` is the small case"]
    fn who_stops_and_goes_on_gets_the_profile_of_who_does_not(
        // Under the other one's buffer no place is looked at twice.
        drive in prop::sample::select(vec!["little.toml", "roomy.toml"]),
        seed in 1_u64..1_000_000,
        times in prop::collection::vec(10_u32..40, 1..4),
    ) {
        let directory = scratch(&format!("probe-resumed-{seed}"));
        let (state, out) = (directory.join("state"), directory.join("learned.toml"));
        let (state, out, seed) = (text(&state), text(&out), seed.to_string());
        let mut page = String::new();
        for time in times.iter().map(Some).chain([None]) {
            let time = time.map(|time| format!("{time}s"));
            let mut args = emulated(drive, &["--seed", &seed, "--state", state, "--out", out]);
            args.extend(time.iter().flat_map(|time| ["--time", time.as_str()]));
            page = String::from_utf8(run(&args).stdout).unwrap();
        }
        let (other, again) = (directory.join("through.toml"), directory.join("through"));
        let (other, again) = (text(&other), text(&again));
        let through = run(&emulated(drive, &["--seed", &seed, "--state", again, "--out", other]));
        let refused = through.stderr;
        prop_assert_eq!(page, String::from_utf8(through.stdout).unwrap());
        let [stopped, through] = [out, other].map(|path| fs::read(path).ok());
        prop_assert!(stopped == through);
        prop_assert!(through.is_some(), "{}", String::from_utf8_lossy(&refused));
        fs::remove_dir_all(directory).unwrap();
    }
}

fn spawn(args: &[&str]) -> Child {
    headtime(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(30) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    false
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let status = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(status.unwrap().success());
}

/// A drive that takes seconds in a debug build.
const LONG: [&str; 4] = ["drive", "probe", "--emulate", "exos-x18"];

#[test]
fn a_signal_ends_it_with_a_state_to_go_on_with() {
    for name in ["INT", "TERM", "HUP"] {
        let directory = scratch(&format!("probe-signal-{name}"));
        let state = directory.join("state");
        let args = [&LONG[..], &["--state", text(&state)]].concat();
        let mut child = spawn(&args);
        assert!(wait_until(
            || fs::metadata(&state).is_ok_and(|found| found.len() > 0)
        ));
        signal(&child, name);
        let code = child.wait().unwrap().code();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        assert_eq!(code, Some(5), "{said}");
        assert!(
            said.contains("told to end; the same command goes on with"),
            "{said}"
        );
        let (code, said) = ended(&[&args[..], &["--time", "10s"]].concat());
        assert!(code == 5 && said.contains("note: goes on with"), "{said}");
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            1,
            "nothing is left beside"
        );
    }
}

#[test]
fn a_killed_probe_goes_on_as_if_it_had_not_been() {
    let directory = scratch("probe-killed");
    let (state, out) = (directory.join("state"), directory.join("learned.toml"));
    let drive = ["drive", "probe", "--emulate", "cheetah9lp"];
    let args = [&drive[..], &["--state", text(&state), "--out", text(&out)]].concat();
    let mut kills = 0;
    // Each time a little later, from before there is a state.
    for round in 0.. {
        let mut child = spawn(&args);
        std::thread::sleep(Duration::from_millis(20 + 37 * round));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 1, "{kills}");
    let (through, again) = (directory.join("through.toml"), directory.join("through"));
    let to = ["--out", text(&through), "--state", text(&again)];
    stdout(&[&drive[..], &to].concat());
    assert!(fs::read(&out).unwrap() == fs::read(&through).unwrap());
}

/// A probe that turns switches, which the drive keeps in a file.
fn switching<'a>(state: &'a Path, range: &'a str, switches: &'a Path) -> Vec<&'a str> {
    let to = ["--state", text(state), "--write-scratch", range];
    little(&[&to[..], &["--emulate-switches", text(switches)]].concat())
}

/// Switches that the drive keeps while it is off.
fn kept(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn switches_that_a_killed_probe_has_turned_are_put_back_at_the_next_start() {
    let directory = scratch("probe-switches");
    let (state, switches) = (directory.join("state"), directory.join("drive"));
    let record = directory.join("state.switches");
    let args = switching(&state, "10MiB-30MiB", &switches);
    let on = "LookAhead on\nWriteCache on\n";
    let (mut turned, mut round) = (0, 0_u64);
    // A switch is turned for a short time only. The probe is killed at a turned switch or somewhat later, until
    // enough kills met one.
    while turned < 1 || round < 12 {
        round += 1;
        assert!(round < 300, "{turned} kills met a turned switch");
        fs::write(&switches, on).unwrap();
        let _ = fs::remove_file(&state);
        let mut child = spawn(&args);
        while kept(&switches) == on && child.try_wait().unwrap().is_none() {}
        std::thread::sleep(Duration::from_micros(round % 3 * 400));
        let _ = child.kill();
        child.wait().unwrap();
        // Every turned switch is recorded.
        if kept(&switches) != on {
            assert!(record.exists(), "round {round}: turned without a record");
            turned += 1;
        }
        let had = record.exists();
        // The next start first puts the switches back, also if it is refused.
        let (code, said) = match round % 2 {
            0 => ended(&[&args[..], &["--time", "10s"]].concat()),
            _ => ended(&switching(&state, "0-1", &switches)),
        };
        match round % 2 {
            0 => assert!(code == 0 || code == 5, "{said}"),
            _ => assert_eq!(code, 2, "{said}"),
        }
        assert_eq!(kept(&switches), on, "round {round}: {said}");
        assert!(!record.exists(), "round {round}");
        let told = said.contains(
            "note: the write cache is on again, which a probe that was killed had turned",
        );
        assert_eq!(told, had, "round {round}: {said}");
    }
}

#[test]
fn a_signal_while_switches_are_turned_puts_them_back() {
    let directory = scratch("probe-switches-signal");
    let (state, switches) = (directory.join("state"), directory.join("drive"));
    let record = directory.join("state.switches");
    let args = switching(&state, "0-83900", &switches);
    let mut met = 0;
    for _ in 0..200 {
        let _ = fs::remove_file(&state);
        let mut child = spawn(&args);
        wait_until(|| record.exists() || child.try_wait().unwrap().is_some());
        if child.try_wait().unwrap().is_none() {
            signal(&child, "INT");
        }
        met += u32::from(child.wait().unwrap().code() == Some(5));
        assert_eq!(kept(&switches), "LookAhead on\nWriteCache on\n");
        assert!(!record.exists());
        if met > 0 {
            return;
        }
    }
    panic!("{met} signals came in time");
}

#[test]
fn what_is_written_is_said_before() {
    let directory = scratch("probe-scratch");
    let state = directory.join("state");
    let with = |range| little(&["--state", text(&state), "--write-scratch", range]);
    let said = ended(&with("10MiB-30MiB")).1;
    assert!(
        said.starts_with(
            "warning: writes zeroes to 20MiB of little from 10MiB on (sectors 20480 to 61439), and nowhere else; \
             what is there is lost\n"
        ),
        "{said}"
    );
    for (args, code, part) in [
        // The drive's switches outlive the process.
        (
            little(&[
                "--write-scratch",
                "0-10488",
                "--emulate-switches",
                "switches",
            ]),
            2,
            "needs --state",
        ),
        // An unusable range is reported before other missing options.
        (
            little(&["--write-scratch", "0-8"]),
            2,
            "8 sectors are too few",
        ),
        (little(&["--write-scratch", "8-8"]), 2, "there is none"),
        (
            little(&["--write-scratch", "0-83901"]),
            2,
            "the disk ends at 83900",
        ),
        (with("0-1"), 2, "of this disk 10488 or more are needed"),
        (with("0-83901"), 2, "the disk ends at 83900"),
        (with("8-8"), 2, "there is none"),
        (with("8"), 2, "FIRST-END"),
        // It was begun with another range.
        (with("0-83900"), 3, "with --write-scratch 20480-61440"),
        (
            little(&["--state", text(&state)]),
            3,
            "with --write-scratch 20480-61440",
        ),
    ] {
        let (found, said) = ended(&args);
        assert!(
            found == code && said.contains(part),
            "{args:?}: {found} {said}"
        );
    }
}

#[test]
fn writes_of_a_simulated_drive_are_timed_without_a_state_as_with_one() {
    let directory = scratch("probe-scratch-stateless");
    let state = directory.join("state");
    let asked = ["--write-scratch", "10MiB-30MiB", "--format", "json"];
    let found = |more: &[&str]| json(&little(&[&asked, more].concat()));
    let without = found(&[]);
    assert_eq!(without, found(&["--state", text(&state)]));
    let known = without["known"].as_array().unwrap();
    let settle = known
        .iter()
        .find(|known| known["key"] == "seek.write_settle");
    // It has a confidence, so that writes were timed: the write cache was off meanwhile.
    assert!(number(&settle.unwrap()["confidence"]) > 0.0, "{settle:?}");
}

#[test]
fn files_that_would_overwrite_each_other_are_refused_before_anything_is_opened() {
    let directory = scratch("probe-apart");
    let at = |name: &str| directory.join(name);
    let (state, profile) = (at("state"), at("little.toml"));
    fs::copy(data().join("little.toml"), &profile).unwrap();
    fs::write(&state, "what was learned in hours").unwrap();
    std::os::unix::fs::symlink("state", at("link.svg")).unwrap();
    fs::hard_link(&state, at("hard.toml")).unwrap();
    let (around, new) = (at("./state"), at("new.svg"));
    let (link, hard, record) = (at("link.svg"), at("hard.toml"), at("state.switches"));
    let of_state = |more: &[&'static str], path: &Path| {
        let to = [text(&state), more[0], text(path)].map(str::to_owned);
        let args = ["drive", "probe", "--emulate", "little.toml", "--state"].map(str::to_owned);
        [&args[..], &to[..]].concat()
    };
    let mut runs = vec![
        of_state(&["--out"], &state),
        of_state(&["--out"], &around),
        of_state(&["--out"], &hard),
        of_state(&["--out"], &record),
        of_state(&["--plot"], &link),
    ];
    let more = [
        vec!["--emulate", text(&profile), "--out", text(&profile)],
        vec![
            "--emulate",
            "little.toml",
            "--out",
            text(&new),
            "--plot",
            text(&new),
        ],
        vec![text(&link), "--quick", "--plot", text(&link)],
    ];
    for more in more {
        let args = ["drive", "probe"].into_iter().chain(more);
        runs.push(args.map(str::to_owned).collect());
    }
    let before = fs::read(&profile).unwrap();
    for args in runs {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (code, said) = ended(&args);
        let is_said = said.contains("one would overwrite the other");
        assert!(code == 2 && is_said, "{args:?}: {code} {said}");
    }
    let kept = fs::read_to_string(&state).unwrap();
    assert_eq!(kept, "what was learned in hours");
    assert_eq!(fs::read(&profile).unwrap(), before);
    assert!(!new.exists() && !record.exists());
}

#[test]
fn what_does_not_go_together_or_is_no_disk_is_said() {
    let directory = scratch("probe-wrong");
    let file = directory.join("odd");
    fs::write(&file, "").unwrap();
    let whole = directory.join("whole");
    fs::write(&whole, vec![0; 4 << 20]).unwrap();
    for (args, code, part) in [
        (little(&["--export", "disk0"]), 2, "--emulate"),
        (
            vec!["drive", "probe", text(&whole), "--export", "disk0"],
            2,
            "is no socket",
        ),
        (
            vec!["drive", "probe", text(&file)],
            4,
            "has 0 bytes; a disk has at least 1",
        ),
    ] {
        let (found, said) = ended(&args);
        let is_said = said.contains(part);
        assert!(found == code && is_said, "{args:?}: {found} {said}");
    }
    // As a probe leaves it that was killed at once.
    let (empty, out) = (directory.join("empty"), directory.join("out.toml"));
    fs::write(&empty, "").unwrap();
    stdout(&little(&["--state", text(&empty), "--out", text(&out)]));
    assert_eq!(fs::read_to_string(&out).unwrap(), through(&directory));
}

/// FNV-1a of a text and its end.
fn hash_of(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().chain([0]).fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

#[test]
fn a_state_of_something_else_is_refused() {
    let directory = scratch("probe-states");
    let state = directory.join("state");
    let path = text(&state);
    let args = little(&["--state", path, "--time", "10s"]);
    assert_eq!(ended(&args).0, 5);
    let good = fs::read_to_string(&state).unwrap();
    let other = directory.join("other.toml");
    let profile = fs::read_to_string(data().join("little.toml")).unwrap();
    fs::write(&other, profile.replace("15000", "10000")).unwrap();
    for (args, part) in [
        (
            vec!["drive", "probe", "--emulate", "atlas10k", "--state", path],
            "is of another disk: little, ",
        ),
        (
            vec!["drive", "probe", "--emulate", text(&other), "--state", path],
            "is of another disk: little, ",
        ),
        (
            little(&["--state", path, "--seed", "2"]),
            "is of another disk: little, ",
        ),
    ] {
        let (code, said) = ended(&args);
        assert!(code == 3 && said.contains(part), "{args:?}: {code} {said}");
    }
    // Another version, whole.
    let (first, rest) = good.split_once('\n').unwrap();
    let rest = rest.replacen("version = \"", "version = \"9.", 1);
    let begin = first.rsplit_once(' ').unwrap().0;
    let hash = hash_of(&rest);
    fs::write(&state, format!("{begin} {hash}\n{rest}")).unwrap();
    let (code, said) = ended(&args);
    assert!(
        code == 3 && said.contains("was written by headtime 9."),
        "{said}"
    );
    // A file with a key that this version does not write.
    let rest = rest.replace("9.", "").replacen("seed = 1", "sed = 1", 1);
    let hash = hash_of(&rest);
    fs::write(&state, format!("{begin} {hash}\n{rest}")).unwrap();
    let (code, said) = ended(&args);
    assert!(
        code == 3 && said.contains("extraction.sed: unknown key"),
        "{said}"
    );
    // Files that are cut off, damaged or foreign. A kill at the beginning leaves an empty file.
    for at in [1, 20, 40, good.len() / 2, good.len() - 1] {
        fs::write(&state, &good[..at]).unwrap();
        let (code, said) = ended(&args);
        assert!(
            code == 3 && said.contains("is damaged or cut off"),
            "{at}: {said}"
        );
        assert_eq!(
            fs::read_to_string(&state).unwrap(),
            good[..at],
            "it is left as it is"
        );
        let mut bytes = good.clone().into_bytes();
        bytes[at.max(40)] ^= 0x81;
        fs::write(&state, bytes).unwrap();
        let (code, said) = ended(&args);
        assert!(
            code == 3 && said.contains("is damaged or cut off"),
            "{at}: {said}"
        );
    }
    fs::write(&state, "a letter\n").unwrap();
    let (code, said) = ended(&args);
    assert!(
        code == 3 && said.contains("is no file of a probe"),
        "{said}"
    );
    fs::write(&state, "").unwrap();
    assert_eq!(ended(&args).0, 5);
    // A path that is no regular file would be replaced by a file. The test uses no device, which a failure would
    // destroy.
    let pipe = directory.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [&pipe, &directory] {
        let (code, said) = ended(&little(&["--state", text(path)]));
        assert!(code == 2 && said.contains("no regular file"), "{said}");
    }
    let kind = std::os::unix::fs::FileTypeExt::is_fifo;
    assert!(kind(&fs::symlink_metadata(&pipe).unwrap().file_type()));
}

#[test]
fn a_damaged_record_of_switches_is_not_passed_over() {
    let directory = scratch("probe-record");
    let state = directory.join("state");
    let record = directory.join("state.switches");
    let args = little(&["--state", text(&state), "--time", "10s"]);
    fs::write(
        &record,
        "# What a headtime drive probe is to put back 01234",
    )
    .unwrap();
    let (code, said) = ended(&args);
    assert!(
        code == 3 && said.contains("which switches of the disk"),
        "{said}"
    );
    assert!(record.exists(), "it is left as it is");
    fs::remove_file(&record).unwrap();
    assert_eq!(ended(&args).0, 5);
}

#[test]
fn one_probe_at_a_time_has_a_state() {
    let directory = scratch("probe-locked");
    let state = directory.join("state");
    let mut child = spawn(&[&LONG[..], &["--state", text(&state)]].concat());
    assert!(wait_until(
        || fs::metadata(&state).is_ok_and(|found| found.len() > 0)
    ));
    let (code, said) = ended(&[&LONG[..], &["--state", text(&state)]].concat());
    assert!(
        code == 4 && said.contains("another probe is writing it"),
        "{said}"
    );
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn what_is_no_disk_is_refused_and_stays_as_it_is() {
    let directory = scratch("probe-no-disk");
    let out = directory.join("learned.toml");
    let file = |name: &str, bytes: usize| -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, vec![7; bytes]).unwrap();
        path
    };
    for (path, said) in [
        (
            file("tiny", 512),
            "too few sectors to learn anything from, 1",
        ),
        (file("small", 32 << 20), ""),
    ] {
        let output = run(&[
            "drive",
            "probe",
            text(&path),
            "--time",
            "20s",
            "--out",
            text(&out),
        ]);
        let error = String::from_utf8(output.stderr).unwrap();
        // Not every file system has direct reads.
        if output.status.code() == Some(4) && error.contains("direct") {
            return;
        }
        // The machine's disk may give any result, but no disk of 32 MiB.
        assert!(matches!(output.status.code(), Some(1 | 5)), "{error}");
        assert!(
            error.contains(said) && error.contains("was not learned"),
            "{error}"
        );
        assert!(error.contains("learned.toml was not written"), "{error}");
        let page = String::from_utf8(output.stdout).unwrap();
        assert!(page.contains("there is no profile."), "{page}");
        assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
        assert!(!out.exists());
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    for (args, code, said) in [
        (vec!["drive", "probe"], 2, "--emulate"),
        (little(&["/dev/null"]), 2, "cannot be used with"),
        (little(&["--time", "9s"]), 2, "allowed is 10s and more"),
        (
            little(&["--quick", "--out", "a.toml"]),
            2,
            "cannot be used with",
        ),
        (
            little(&["--quick", "--state", "a"]),
            2,
            "cannot be used with",
        ),
        (little(&["--emit", "ceph"]), 2, "--quick"),
        (little(&["--plot", "disk.png"]), 2, "svg"),
        (
            little(&["--out", "no/such/directory/a.toml"]),
            4,
            "cannot write",
        ),
        (
            little(&["--state", "no/such/directory/a"]),
            4,
            "cannot write",
        ),
        (little(&["--seed", "9223372036854775808"]), 2, "--seed"),
        (
            vec!["drive", "probe", "--emulate", "no-such-drive"],
            3,
            "no-such-drive",
        ),
        (vec!["drive", "probe", "/no/such/device"], 4, "No such file"),
        (
            vec!["drive", "probe", "/dev/null"],
            4,
            "regular file or a block device",
        ),
    ] {
        let (found, text) = ended(&args);
        assert_eq!(found, code, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
    assert!(!all(&little(&["--time", "10s"])).contains("panicked"));
}
