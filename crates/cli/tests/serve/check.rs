//! Checks before a server starts.

use super::common::{run, scratch};
use std::fs;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "wd5000aaks"
store = "memory"
size = "4GiB"
scheduler = "stream"
[[disk.export]]
name = "vm"
class = "real-time"
[[disk.export]]
name = "backup"
class = "idle"
read_only = true
[[disk]]
name = "file"
device = "disk.img"
size = "1MiB"
create = true
direct = false
scheduler = "deadline:fifo_batch=4"
timeout = "off"
depth = 4
[[disk]]
name = "nothing"
device = "null"
size = "1TiB"
scheduler = "noop"
[listen]
nbd = ["unix:nbd.sock", "tcp:127.0.0.1:0"]
tcp = true
metrics = "127.0.0.1:0"
control = "unix:control.sock"
"#;

/// Exit code, standard output, standard error of `serve --check` for a configuration.
fn check(name: &str, config: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let directory = scratch(name);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let mut all = vec!["serve", "serve.toml", "--check"];
    all.extend(args);
    let output = run(&directory, &all);
    let left = fs::read_dir(&directory).unwrap().count();
    assert_eq!(left, 1, "a check leaves nothing behind");
    fs::remove_dir_all(&directory).unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn what_would_be_served() {
    let (code, out, err) = check("check", CONFIG, &[]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert_eq!(
        out,
        "\
disk disk0: wd5000aaks in memory, 4GiB, stream(deadline), depth 32, gate depth, assumed profile wd5000aaks, timeout 30s
  export vm: real-time
  export backup: idle, read-only
disk file: disk.img, 1MiB, deadline:fifo_batch=4, depth 4, gate depth, timeout off
  export file: best-effort
disk nothing: null, 1TiB, noop, depth 32, gate depth, timeout 30s
  export nothing: best-effort
nbd at unix:nbd.sock
nbd at tcp:127.0.0.1:0
metrics at http://127.0.0.1:0/metrics
control at unix:control.sock
"
    );
}

#[test]
fn a_device_that_nobody_describes_has_the_seeks_of_a_drive_of_its_size() {
    let without = CONFIG.replace("size = \"4GiB\"\n", "").replace(
        "emulate = \"wd5000aaks\"\nstore = \"memory\"",
        "device = \"null\"\nsize = \"4GiB\"",
    );
    let (code, _, err) = check("assumed", &without, &[]);
    assert_eq!(code, Some(0), "{err}");
    let warned = err
        .lines()
        .filter(|line| line.contains("assumed by the size of the disk"));
    let warned: Vec<&str> = warned.collect();
    assert_eq!(warned.len(), 1, "{err}");
    assert!(
        warned[0]
            .starts_with("warning: disk disk0: stream(deadline) goes by the seeks of wd5000aaks"),
        "{err}"
    );
    let large = without.replace("4GiB", "8TiB");
    let (_, _, err) = check("assumed-large", &large, &[]);
    assert!(err.contains("the seeks of exos-x18"), "{err}");
    let (_, _, err) = check("described", CONFIG, &[]);
    assert!(!err.contains("assumed"), "{err}");
}

#[test]
fn settings_that_work_against_each_other_are_said() {
    let disk = |settings: &str| {
        format!(
            "[listen]\nnbd = \"unix:nbd.sock\"\n[[disk]]\nname = \"d\"\ndevice = \"null\"\nsize = \"1GiB\"\n{settings}"
        )
    };
    for (settings, said) in [
        (
            "scheduler = \"noop\"\ndepth = 1\n",
            "noop at depth 1 keeps the order of arrival",
        ),
        (
            "scheduler = \"deadline\"\ndepth = 1\ngate = \"head-time\"\n",
            "gate head-time has nothing to hold back at depth 1",
        ),
        (
            "scheduler = \"cfq\"\nhide_processes = true\n",
            "cfq goes by processes, and hide_processes hides them",
        ),
        (
            "scheduler = \"sptf\"\nbelief = \"wd5000aaks\"\n",
            "sptf predicts where the head is, and at depth 32",
        ),
    ] {
        let (code, _, err) = check("against", &disk(settings), &[]);
        assert_eq!(code, Some(0), "{err}");
        assert!(
            err.starts_with(&format!("warning: disk d: {said}")),
            "{err}"
        );
    }
    let (_, out, err) = check(
        "gated",
        &disk("scheduler = \"deadline\"\ngate = \"head-time\"\n"),
        &[],
    );
    assert!(
        err.is_empty() && out.contains("depth 32, gate head-time, timeout"),
        "{out}{err}"
    );
}

#[test]
fn a_wrong_configuration_is_refused_by_check() {
    for (from, to, error) in [
        (
            "tcp = true\n",
            "",
            "error: serve.toml: listen.nbd: every user of this machine can connect to tcp:127.0.0.1:0; if that is meant, say listen.tcp = true or --tcp, or give listen.tls_ca\n",
        ),
        (
            "nbd = [\"unix:nbd.sock\", \"tcp:127.0.0.1:0\"]\n",
            "",
            "error: serve.toml: listen.nbd: missing; give for example nbd = \"unix:headtime.sock\"\n",
        ),
        (
            "wd5000aaks",
            "wd5000aak",
            "error: serve.toml:4: disk[0].emulate: no drive is called `wd5000aak`; did you mean `wd5000aaks`?",
        ),
        (
            "size = \"4GiB\"",
            "size = \"4TiB\"",
            "error: serve.toml:6: disk[0].size: 4TiB is more than the ",
        ),
        (
            "scheduler = \"stream\"",
            "scheduler = \"stream\"\ndepth = 64",
            "error: serve.toml:8: disk[0].depth: 64: allowed is 1 to 32, as many as the drive takes",
        ),
        (
            "scheduler = \"noop\"",
            "scheduler = \"sptf\"",
            "error: serve.toml:28: disk[2].scheduler: sptf: has to know the drive, which no profile is given of; give belief",
        ),
        (
            "scheduler = \"noop\"",
            "scheduler = \"noop\"\ndepth = 2\nissue = \"late\"",
            "issue = late has to know when the arm is free; give belief = \"DRIVE or FILE\"",
        ),
        (
            "timeout = \"off\"",
            "belief = \"x\"",
            "error: serve.toml:22: disk[1].belief: no drive is called `x`",
        ),
        (
            "timeout = \"off\"",
            "belief = \"probed\"",
            "error: serve.toml:22: disk[1].belief: `probed` is for simulated drives; give the FILE",
        ),
        (
            "\"disk.img\"",
            "\"no/disk.img\"",
            "error: serve.toml:17: disk[1].device: no: No such file or directory",
        ),
        ("\"disk.img\"", "\"/dev\"", "disk[1].device: /dev"),
        (
            "size = \"1MiB\"\ncreate = true\n",
            "",
            "error: serve.toml:17: disk[1].device: disk.img is not there; with size = \"4GiB\" and create = true a file is made\n",
        ),
        (
            "create = true\n",
            "",
            "error: serve.toml:17: disk[1].device: disk.img is not there; with create = true a file of 1MiB is made\n",
        ),
        (
            "\"disk.img\"",
            "\"/dev/headtime-sdz\"",
            "error: serve.toml:17: disk[1].device: /dev/headtime-sdz is not there, and no file is made under /dev\n",
        ),
        (
            "\"memory\"",
            "\"store.img\"",
            "error: serve.toml:5: disk[0].store: store.img is not there; with create = true a file of 4GiB is made\n",
        ),
        (
            "\"memory\"",
            "\"/dev/shm/headtime-store\"\ncreate = true",
            "error: serve.toml:5: disk[0].store: /dev/shm/headtime-store is not there, and no file is made under /dev\n",
        ),
        ("\"disk.img\"", "\"/dev/zero\"", "disk[1].device: /dev/zero"),
        (
            "store = \"memory\"",
            "store = \"no/x\"",
            "error: serve.toml:5: disk[0].store: no: No such file or directory",
        ),
        ("noop", "nop", "did you mean \"noop\"?"),
    ] {
        let changed = CONFIG.replacen(from, to, 1);
        assert_ne!(changed, CONFIG, "{from}");
        let (code, out, err) = check("refused", &changed, &[]);
        assert_eq!((code, &*out), (Some(3), ""), "{err}");
        assert!(err.contains(error), "{err}");
    }
    // The curve is checked with any scheduler.
    let folder = scratch("other-curve");
    let learn = ["drive", "curve", "atlas10k", "--out", "curve.toml"];
    assert!(run(&folder, &learn).status.success());
    let curve = folder.join("curve.toml");
    let believed = format!("belief = \"wd5000aaks\"\ncurve = {curve:?}");
    let changed = CONFIG.replacen("timeout = \"off\"", &believed, 1);
    let (code, _, err) = check("refused", &changed, &[]);
    let expected = "disk[1].curve: ";
    assert_eq!(code, Some(3), "{err}");
    assert!(
        err.contains(expected) && err.contains("learned from atlas10k"),
        "{err}"
    );
    // Of several disks each has its log.
    let log = format!("{CONFIG}[log]\nevents = \"/dev/headtime-sdz\"\n");
    let (code, _, err) = check("log", &log, &[]);
    let expected = "error: /dev/headtime-sdz.disk0 is not there, and no file is made under /dev\n";
    assert_eq!((code, &*err), (Some(4), expected));
    let (code, _, err) = check("log-given", &log, &["--log", "events.log"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = check("tcp", &CONFIG.replacen("tcp = true\n", "", 1), &["--tcp"]);
    assert_eq!(code, Some(0), "{err}");
}

/// `--check` reports the errors of a start, and neither leaves files.
#[test]
fn a_start_is_refused_as_the_check_is() {
    let directory = scratch("same");
    fs::create_dir(directory.join("folder")).unwrap();
    std::os::unix::fs::symlink("/dev", directory.join("devices")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.join("link")).unwrap();
    for (file, size) in [("empty.img", 0), ("small.img", 512 << 10)] {
        let file = fs::File::create(directory.join(file)).unwrap();
        file.set_len(size).unwrap();
    }
    let told = |config: &str, args: &[&str]| {
        fs::write(directory.join("serve.toml"), config).unwrap();
        let output = run(&directory, &[&["serve", "serve.toml"], args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        let messages = error.lines().filter(|line| line.starts_with("error: "));
        (
            output.status.code(),
            messages.collect::<Vec<_>>().join("\n"),
        )
    };
    for (backend, size) in [
        ("device = \"PATH\"\ndirect = false", "1MiB"),
        ("emulate = \"atlas10k\"\nstore = \"PATH\"", "1MiB"),
    ] {
        for (path, expected) in [
            (
                "new.img",
                Some("is not there; with create = true a file of 1MiB is made"),
            ),
            (
                "empty.img",
                Some("is empty; with create = true it becomes a file of 1MiB"),
            ),
            ("small.img", None),
            ("folder", None),
            ("folder/", None),
            ("no/new.img", None),
            ("link", Some("no file is made behind a link")),
            ("/dev/headtime-sdz", Some("no file is made under /dev")),
            (
                "devices/../dev/headtime-sdz",
                Some("no file is made under /dev: its folder is /dev"),
            ),
            ("/sys/headtime-sdz", Some("no file is made under /sys")),
            ("/proc/headtime-sdz", Some("no file is made under /proc")),
            ("/dev/zero", None),
        ] {
            for create in ["", "create = true\n"] {
                let is_made = path == "new.img" || path == "empty.img";
                if is_made && !create.is_empty() {
                    continue;
                }
                let backend = backend.replacen("PATH", path, 1);
                let config = format!(
                    "[[disk]]\nname = \"disk0\"\n{backend}\nsize = \"{size}\"\n{create}\
                     scheduler = \"noop\"\n[listen]\nnbd = \"unix:nbd.sock\"\n"
                );
                let checked = told(&config, &["--check"]);
                assert_eq!(checked, told(&config, &[]), "{config}");
                assert_eq!(checked.0, Some(3), "{config}: {}", checked.1);
                if let Some(expected) = expected {
                    assert!(checked.1.ends_with(expected), "{}", checked.1);
                }
            }
        }
    }
    let mut left: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let before = [
        "devices",
        "empty.img",
        "folder",
        "link",
        "serve.toml",
        "small.img",
    ];
    assert_eq!(left, before);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_configuration_that_is_not_there() {
    let directory = scratch("missing");
    let output = run(&directory, &["serve", "no.toml"]);
    assert_eq!(output.status.code(), Some(4));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: no.toml: cannot read"), "{error}");
    fs::remove_dir_all(&directory).unwrap();
}
