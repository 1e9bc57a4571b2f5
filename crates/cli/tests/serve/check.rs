//! What is looked at before anything is served.

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
disk disk0: wd5000aaks in memory, 4GiB, stream(deadline), depth 32, timeout 30s
  export vm: real-time
  export backup: idle, read-only
disk file: disk.img, 1MiB, deadline:fifo_batch=4, depth 4, timeout off
  export file: best-effort
disk nothing: null, 1TiB, noop, depth 32, timeout 30s
  export nothing: best-effort
nbd at unix:nbd.sock
nbd at tcp:127.0.0.1:0
metrics at http://127.0.0.1:0/metrics
control at unix:control.sock
"
    );
}

#[test]
fn what_is_refused() {
    for (from, to, error) in [
        (
            "tcp = true\n",
            "",
            "error: serve.toml: listen.nbd: every user of this machine can connect to tcp:127.0.0.1:0; if that is meant, say listen.tcp = true or --tcp\n",
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
            "error: serve.toml:27: disk[2].scheduler: sptf: has to know the drive, which no profile is given of; give belief",
        ),
        (
            "scheduler = \"noop\"",
            "scheduler = \"stream\"",
            "give belief = \"DRIVE or FILE\" or curve = \"FILE\"",
        ),
        (
            "timeout = \"off\"",
            "belief = \"x\"",
            "error: serve.toml:21: disk[1].belief: no drive is called `x`",
        ),
        (
            "\"disk.img\"",
            "\"no/disk.img\"",
            "error: serve.toml:17: disk[1].device: no: No such file or directory",
        ),
        ("\"disk.img\"", "\"/dev\"", "disk[1].device: /dev"),
        (
            "size = \"1MiB\"",
            "read_only = false",
            "error: serve.toml:17: disk[1].device: disk.img: is not there; with size = ",
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
    let (code, _, err) = check("tcp", &CONFIG.replacen("tcp = true\n", "", 1), &["--tcp"]);
    assert_eq!(code, Some(0), "{err}");
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
