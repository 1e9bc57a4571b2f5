//! The clients that people use; a test without its tool says so and passes.

use crate::fixture::{Fixture, Setup};
use headtime_sched::{Flags, Op};
use std::path::Path;
use std::process::{Command, Output};

/// Returns true if these are installed.
pub fn there(tools: &[&str]) -> bool {
    tools.iter().all(|tool| {
        let found = command(tool).arg("--version").output().is_ok();
        if !found {
            println!("SKIPPED: {tool} is not installed");
        }
        found
    })
}

/// A tool of the system; nbdsh finds its module with the system's Python.
fn command(tool: &str) -> Command {
    let mut command = Command::new(tool);
    command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command
}

pub fn output(tool: &str, arguments: &[&str]) -> Output {
    command(tool).args(arguments).output().expect("runs")
}

/// Output of a tool that has to succeed.
pub fn run(tool: &str, arguments: &[&str]) -> String {
    let output = output(tool, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{tool} {arguments:?}: {text}{errors}"
    );
    text
}

fn fixture() -> Fixture {
    Fixture::new(Setup::default())
}

fn uri(fixture: &Fixture, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", fixture.path().display())
}

fn qemu(fixture: &Fixture, export: &str) -> String {
    format!("nbd:unix:{}:exportname={export}", fixture.path().display())
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("plain names")
}

/// Bytes that are different everywhere, with holes of 64 KiB.
pub fn image(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut bytes: Vec<u8> = (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    for hole in bytes.chunks_mut(1 << 16).step_by(3) {
        hole.fill(0);
    }
    bytes
}

#[test]
fn nbdinfo_shows_the_exports() {
    if !there(&["nbdinfo"]) {
        return;
    }
    let fixture = fixture();
    let json = run("nbdinfo", &["--json", &uri(&fixture, "disk")]);
    for line in [
        r#""protocol": "newstyle-fixed""#,
        r#""structured": true"#,
        r#""export-name": "disk""#,
        r#""description": "disk test""#,
        r#""base:allocation""#,
        r#""is_rotational": true"#,
        r#""is_read_only": false"#,
        r#""can_cache": false"#,
        r#""can_df": true"#,
        r#""can_fast_zero": false"#,
        r#""can_flush": true"#,
        r#""can_fua": true"#,
        r#""can_multi_conn": true"#,
        r#""can_trim": true"#,
        r#""can_zero": true"#,
        r#""block_size_minimum": 1"#,
        r#""block_size_preferred": 4096"#,
        r#""block_size_maximum": 67108864"#,
        r#""export-size": 67108864"#,
    ] {
        assert!(json.contains(line), "{line} is not in {json}");
    }
    let fixed = run("nbdinfo", &["--json", &uri(&fixture, "fixed")]);
    assert!(fixed.contains(r#""is_read_only": true"#), "{fixed}");
    let list = run("nbdinfo", &["--list", &uri(&fixture, "")]);
    for name in ["disk", "urgent", "fixed"] {
        assert!(list.contains(&format!("export=\"{name}\":")), "{list}");
    }
    let unknown = output("nbdinfo", &[&uri(&fixture, "other")]);
    assert!(!unknown.status.success());
    let text = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(text.contains("No such file"), "{text}");
}

#[test]
fn nbdinfo_tells_what_is_allocated() {
    if !there(&["nbdinfo"]) {
        return;
    }
    let fixture = fixture();
    fixture.memory.inside().allocated[8..16].fill(true);
    let map = run("nbdinfo", &["--map", &uri(&fixture, "disk")]);
    let lines: Vec<Vec<&str>> = map
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines,
        [
            vec!["0", "4096", "3", "hole,zero"],
            vec!["4096", "4096", "0", "data"],
            vec!["8192", "67100672", "3", "hole,zero"]
        ]
    );
}

#[test]
fn nbdcopy_there_and_back() {
    if !there(&["nbdcopy"]) {
        return;
    }
    let fixture = fixture();
    let (there, back) = (fixture.folder.join("there"), fixture.folder.join("back"));
    let bytes = image(64 << 20);
    std::fs::write(&there, &bytes).expect("writes");
    let uri = uri(&fixture, "disk");
    // Over four connections with 64 requests each.
    run("nbdcopy", &["--flush", text(&there), &uri]);
    assert!(fixture.memory.inside().bytes == bytes);
    let last = fixture.memory.inside().seen.last().map(|seen| seen.op);
    assert_eq!(last, Some(Op::Flush));
    run("nbdcopy", &[&uri, text(&back)]);
    assert!(std::fs::read(&back).expect("reads") == bytes);
    run(
        "nbdcopy",
        &["--synchronous", "--allocated", text(&there), &uri],
    );
    assert!(fixture.memory.inside().bytes == bytes);
}

#[test]
fn nbdsh_reads_what_it_wrote() {
    if !there(&["nbdsh"]) {
        return;
    }
    let fixture = fixture();
    let socket = fixture.path();
    let script = format!(
        r#"
import errno
path = {:?}

def connect(structured=True, export="disk", context=True):
    h = nbd.NBD()
    h.set_export_name(export)
    h.set_request_structured_replies(structured)
    if context:
        h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    h.connect_unix(path)
    h.set_strict_mode(0)
    return h

def fails(error, call, *arguments):
    try:
        call(*arguments)
    except nbd.Error as e:
        assert e.errnum == error, (call, arguments, e)
    else:
        assert False, (call, arguments)

for structured in [False, True]:
    h = connect(structured)
    assert h.get_structured_replies_negotiated() == structured
    assert h.can_df() == structured
    assert h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION) == structured
    assert h.can_multi_conn() and h.can_fua() and h.can_trim() and h.can_zero()
    assert h.is_rotational() and not h.is_read_only() and not h.can_cache()
    data = bytes(range(256)) * 32
    h.pwrite(data, 8192, nbd.CMD_FLAG_FUA)
    assert h.pread(8192, 8192) == data
    if structured:
        assert h.pread(8192, 8192, nbd.CMD_FLAG_DF) == data
    h.zero(4096, 8192)
    assert h.pread(8192, 8192) == bytes(4096) + data[4096:]
    h.zero(4096, 8192, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
    h.trim(4096, 12288, nbd.CMD_FLAG_FUA)
    h.flush()
    h.pwrite(b"odd", 8191)
    assert h.pread(5, 8190) == bytes(1) + b"odd" + bytes(1)
    fails(errno.EINVAL, h.pread, 0, 0)
    fails(errno.EINVAL, h.pread, 512, h.get_size())
    fails(errno.ENOSPC, h.pwrite, data, h.get_size())
    fails(errno.EINVAL, h.trim, 512, h.get_size())
    fails(errno.EINVAL, h.cache, 512, 0)
    fails(errno.EINVAL, h.zero, 512, 0, nbd.CMD_FLAG_FAST_ZERO)
    assert h.pread(512, 0) == bytes(512)
    h.shutdown()

# Of each chunk of a read, its place.
h = connect()
chunks = []
h.pread_structured(65536, 4096, lambda data, offset, status, error: chunks.append((len(data), offset, status)) and None)
assert chunks == [(65536, 4096, nbd.READ_DATA)], chunks

# What is allocated.
extents = []
def note(context, offset, entries, error):
    extents.append((context, offset, entries))
h.zero(h.get_size(), 0)
h.pwrite(b"x" * 4096, 4096)
h.block_status(65536, 0, note)
assert extents == [("base:allocation", 0, [4096, 3, 4096, 0, 57344, 3])], extents
extents.clear()
h.block_status(65536, 4096, note, nbd.CMD_FLAG_REQ_ONE)
assert extents == [("base:allocation", 4096, [4096, 0])], extents
plain = connect(context=False)
fails(errno.EINVAL, lambda: plain.block_status(65536, 0, note))

# Two connections, and a third to another export.
a, b, c = connect(), connect(), connect(export="fixed")
a.pwrite(b"y" * 512, 0)
a.flush()
assert b.pread(512, 0) == c.pread(512, 0) == b"y" * 512
assert c.is_read_only()
fails(errno.EPERM, c.pwrite, b"z" * 512, 0)
fails(errno.EPERM, c.zero, 512, 0)

# Many at a time.
buffers = [nbd.Buffer(512) for _ in range(500)]
cookies = [a.aio_pread(buffer, 512 * at) for at, buffer in enumerate(buffers)]
while cookies:
    a.poll(-1)
    cookies = [cookie for cookie in cookies if not a.aio_command_completed(cookie)]
assert all(buffer.to_bytearray() == a.pread(512, 512 * at) for at, buffer in enumerate(buffers))
print("done")
"#,
        text(&socket)
    );
    let printed = run("nbdsh", &["-c", &script]);
    assert!(printed.ends_with("done\n"), "{printed}");
    let seen = fixture.memory.seen();
    assert!(
        seen.iter()
            .any(|seen| seen.op == Op::Write && seen.flags.has(Flags::FUA))
    );
}

#[test]
fn qemu_img_converts_to_and_from_an_export() {
    if !there(&["qemu-img"]) {
        return;
    }
    let fixture = fixture();
    let url = qemu(&fixture, "disk");
    let info = run("qemu-img", &["info", "-f", "raw", &url]);
    assert!(info.contains("64 MiB (67108864 bytes)"), "{info}");
    let path = fixture.folder.join("image");
    let bytes = image(64 << 20);
    std::fs::write(&path, &bytes).expect("writes");
    let image = text(&path);
    let raw = ["-n", "-f", "raw", "-O", "raw"];
    run(
        "qemu-img",
        &[&["convert"], &raw[..], &[image, &url]].concat(),
    );
    assert!(fixture.memory.inside().bytes == bytes);
    let same = run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", image, &url],
    );
    assert!(same.contains("identical"), "{same}");
    let back = fixture.folder.join("back");
    run(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "raw", &url, text(&back)],
    );
    assert!(std::fs::read(&back).expect("reads") == bytes);
    fixture.memory.inside().bytes[5_000_000] ^= 1;
    let different = output(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", image, &url],
    );
    assert_eq!(different.status.code(), Some(1));
}

#[test]
fn qemu_io_reads_what_it_wrote() {
    if !there(&["qemu-io"]) {
        return;
    }
    let fixture = fixture();
    let commands = [
        "write -P 0x11 0 1M",
        "write -f -P 0x22 1M 64k",
        "write -z 512k 64k",
        "write -z -u 640k 64k",
        "discard 2M 1M",
        "aio_write -P 0x33 4M 1M",
        "aio_read -P 0x11 0 512k",
        "aio_flush",
        "flush",
        "read -P 0x11 0 512k",
        "read -P 0 512k 64k",
        "read -P 0x11 576k 64k",
        "read -P 0 640k 64k",
        "read -P 0x22 1M 64k",
        "read -P 0x33 4M 1M",
        "map",
    ];
    let url = qemu(&fixture, "disk");
    let mut arguments = vec!["-f", "raw"];
    commands
        .iter()
        .for_each(|command| arguments.extend(["-c", command]));
    arguments.push(&url);
    let printed = run("qemu-io", &arguments);
    assert!(!printed.contains("failed"), "{printed}");
    let fixed = qemu(&fixture, "fixed");
    let refused = output("qemu-io", &["-f", "raw", "-c", "write 0 512", &fixed]);
    assert!(!refused.status.success());
}

#[test]
fn fio_verifies() {
    if !there(&["fio"]) {
        return;
    }
    let fixture = fixture();
    let uri = format!("--uri={}", uri(&fixture, "disk"));
    let arguments = [
        "--name=verify",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bsrange=4k-128k",
        "--iodepth=32",
        "--size=48m",
        "--verify=crc32c",
        "--verify_state_save=0",
        "--verify_backlog=64",
        "--fsync=50",
        "--randseed=7",
    ];
    let text = run("fio", &arguments);
    assert!(text.contains("err= 0"), "{text}");
}
