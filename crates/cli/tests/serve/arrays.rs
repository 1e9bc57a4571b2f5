//! Arrays of disks.

use super::common::{Ended, Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const CONFIG: &str = r#"
[[disk]]
name = "one"
emulate = "atlas10k"
store = "memory"
size = "8MiB"
scheduler = "deadline"
timeout = "500ms"
faults = true
[[disk]]
name = "two"
emulate = "atlas10k"
store = "memory"
size = "12MiB"
scheduler = "sstf"
timeout = "500ms"
faults = true
[[array]]
name = "data"
members = ["one", "two"]
chunk = "64KiB"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

const EIO: u32 = 5;
const CHUNK: u64 = 64 << 10;

fn connect(server: &Server, export: &str) -> Client {
    Client::connect(&server.path("nbd.sock"), export).unwrap()
}

/// Bytes that differ from sector to sector.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at / 512 % 251) as u8).collect()
}

fn write(client: &mut Client, offset: u64, data: &[u8]) {
    let mut data = data.to_vec();
    assert_eq!(client.ask(Ask::Write, offset, &mut data).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
}

fn read(client: &mut Client, offset: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    assert_eq!(client.ask(Ask::Read, offset, &mut data).unwrap(), 0);
    data
}

/// Standard output of a command that has to succeed.
fn done(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a command that has to fail with this exit code.
fn refused(directory: &Path, args: &[&str], code: i32) -> String {
    let output = run(directory, args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    error
}

#[test]
fn an_array_is_read_as_it_was_written_and_its_log_replays() {
    let mut server = Server::start("array", CONFIG, &["--log", "events.log"]);
    let mut client = connect(&server, "data");
    assert_eq!(client.bytes, 20 << 20);
    // Places within chunks and sectors, and a write into the second zone.
    let (data, at) = (pattern((1 << 20) + 700), CHUNK / 2 + 300);
    let zone = (16 << 20) - 100_000;
    write(&mut client, at, &data);
    write(&mut client, zone, &data);
    assert!(read(&mut client, at, data.len()) == data);
    assert!(read(&mut client, zone, data.len()) == data);

    let status = server.status();
    let array = &status["disks"][0];
    assert_eq!(array["backend"], "raid0 of one, two, chunk 64KiB");
    assert_eq!(array["scheduler"], "deadline, sstf");
    let issued = |of: &serde_json::Value| of["engine"]["issued"].as_u64().unwrap();
    let members = array["members"].as_array().unwrap();
    assert_eq!((members.len(), &members[1]["name"]), (2, &"two".into()));
    assert!(members.iter().all(|member| issued(member) > 8));
    assert_eq!(members.iter().map(issued).sum::<u64>(), issued(array));
    let seek = |of: &serde_json::Value| of["head_time_s"]["seek"].as_f64().unwrap();
    let sum: f64 = members.iter().map(seek).sum();
    assert!(sum > 0.0 && (sum - seek(array)).abs() < 1e-6, "{array}");
    let metrics = server.told(&["metrics"]);
    for line in [
        "headtime_disk_size_bytes{disk=\"data\"} 20971520",
        "headtime_commands_total{disk=\"data\",member=\"two\"} ",
        "headtime_requests_total{disk=\"data\",export=\"data\",op=\"write\"} 2",
        "member=\"one\",backend=\"atlas10k in memory\",scheduler=\"deadline\",gate=\"depth\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in:\n{metrics}");
    }

    // One member by its name, then both by the array's.
    server.told(&["scheduler", "two", "stream(noop)"]);
    assert!(read(&mut client, 0, 4 << 20).len() == 4 << 20);
    assert_eq!(
        server.status()["disks"][0]["members"][0]["scheduler"],
        "deadline"
    );
    server.told(&["scheduler", "data", "clook"]);
    for member in ["one", "two"] {
        server.wait_for(&format!(
            "the scheduler is swapped disk=\"{member}\" scheduler=\"clook\""
        ));
    }
    server.told(&["gate", "one", "rsd:age_th=30"]);
    assert!(read(&mut client, at, data.len()) == data);
    let status = server.status();
    assert_eq!(status["disks"][0]["scheduler"], "clook");
    assert_eq!(status["disks"][0]["gate"], "rsd:age_th=30, depth");
    assert_eq!(server.terminate(), Some(0));
    let said = done(&server.directory, &["sim", "replay-log", "events.log"]);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("events.log: member 0: deadline: "),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("events.log: member 1: sstf: "),
        "{said:?}"
    );
    assert!(
        said.iter().all(|line| line.ends_with(", identical")),
        "{said:?}"
    );
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    assert!(log.contains("\n# array.chunk 64KiB\n"), "{}", &log[..2000]);
}

#[test]
fn coordinated_disks_serve_two_readers_in_slices_and_their_log_replays() {
    let config = CONFIG
        .replace("size = \"8MiB\"\n", "")
        .replace("size = \"12MiB\"\n", "")
        .replace("\"deadline\"", "\"stream\"")
        .replace("\"sstf\"", "\"stream\"")
        .replace("chunk =", "coordinate = true\nchunk =");
    let mut server = Server::start("array-coordinated", &config, &["--log", "events.log"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Ended(&stop);
        for reader in 0..2 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let mut client = connect(server, "data");
                let mut offset = reader * (8 << 30);
                while !stop.load(Ordering::Relaxed) {
                    let _ = read(&mut client, offset, 2 * CHUNK as usize);
                    offset += 2 * CHUNK;
                }
            });
        }
        let slices = || server.status()["disks"][0]["coordinated"]["slices"].as_u64();
        wait_until(|| slices() > Some(3), || format!("{:?} slices", slices()));
    });
    let metrics = server.told(&["metrics"]);
    let line = "headtime_array_slices_total{disk=\"data\",end=\"any\"} ";
    assert!(metrics.contains(line), "{metrics}");
    assert_eq!(server.terminate(), Some(0));
    let said = done(&server.directory, &["sim", "replay-log", "events.log"]);
    assert_eq!(said.matches(", identical").count(), 2, "{said}");
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    assert!(log.contains(" dedicate "), "{}", &log[..2000]);
}

/// Two disks that clients make an array of. Bytes up to 1 MiB are md's on each.
fn of_clients() -> String {
    CONFIG
        .replace("atlas10k", "wd5000aaks")
        .replace("\"deadline\"", "\"stream\"")
        .replace("\"sstf\"", "\"stream\"")
        .replace(
            "chunk =",
            "coordinate = true\ngeometry = { offset = \"1MiB\" }\nchunk =",
        )
}

#[test]
fn disks_of_an_array_that_clients_make_are_exported_one_by_one() {
    let mut server = Server::start("array-geometry", &of_clients(), &["--log", "events.log"]);
    let mut disks = ["one", "two"].map(|name| connect(&server, name));
    assert_eq!(disks.each_ref().map(|disk| disk.bytes), [8 << 20, 12 << 20]);
    let error = Client::connect(&server.path("nbd.sock"), "data").err();
    assert!(error.is_some(), "clients do not see the array");
    let data = pattern(3 << 20);
    for (disk, at) in disks.iter_mut().zip([700, 8 << 20]) {
        write(disk, at, &data);
        assert!(read(disk, at, data.len()) == data);
    }
    // The end of each disk.
    let sector = pattern(512);
    for disk in &mut disks {
        write(disk, disk.bytes - 512, &sector);
        assert!(read(disk, disk.bytes - 512, 512) == sector);
    }
    // A flush concerns one disk. The flushed data outlive a power cut of that disk.
    let status = server.status();
    assert_eq!(
        status["disks"][0]["backend"],
        "clients' raid0 of one, two, chunk 64KiB, coordinate true, data from 1MiB"
    );
    server.told(&["power-cut", "two"]);
    server.told(&["power-on", "two"]);
    assert!(read(&mut disks[1], 8 << 20, data.len()) == data);
    assert_eq!(server.terminate(), Some(0));
    let said = done(&server.directory, &["sim", "replay-log", "events.log"]);
    assert_eq!(said.matches(", identical").count(), 2, "{said}");
}

#[test]
fn readers_of_an_array_that_clients_make_are_coordinated() {
    let config = of_clients()
        .replace("size = \"8MiB\"\n", "")
        .replace("size = \"12MiB\"\n", "");
    let server = Server::start("array-geometry-slices", &config, &[]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Ended(&stop);
        for reader in 0..2 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let mut disks = ["one", "two"].map(|name| connect(server, name));
                let mut offset = (1 << 20) + reader * (4 << 30);
                while !stop.load(Ordering::Relaxed) {
                    for disk in &mut disks {
                        let _ = read(disk, offset, CHUNK as usize);
                    }
                    offset += CHUNK;
                }
            });
        }
        let slices = || server.status()["disks"][0]["coordinated"]["slices"].as_u64();
        wait_until(|| slices() > Some(3), || format!("{:?} slices", slices()));
    });
}

/// Writes a file of 8 MiB with md's superblock of version 1.2, as disk `role` of a RAID 0 of two disks.
fn md_disk(path: &Path, role: u16) {
    let mut bytes = vec![0; 8 << 20];
    let block = &mut bytes[4096..4096 + 260];
    let mut put = |at: usize, value: &[u8]| block[at..at + value.len()].copy_from_slice(value);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &[1]);
    put(32, b"guest:data");
    put(88, &[128]);
    put(92, &[2]);
    put(128, &2048_u64.to_le_bytes());
    put(136, &(2048 + 128 * u64::from(role)).to_le_bytes());
    put(144, &[8]);
    put(160, &role.to_le_bytes());
    put(220, &[2]);
    put(258, &[1]);
    let words = block.chunks_exact(4);
    let words = words.map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())));
    let sum: u64 = words.sum();
    block[216..220].copy_from_slice(&((sum as u32) + (sum >> 32) as u32).to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_array_that_md_made_is_detected_and_can_be_served() {
    let folder = scratch("array-detect");
    for (name, role) in [("x.img", 1), ("y.img", 0)] {
        md_disk(&folder.join(name), role);
    }
    let found = done(&folder, &["array", "detect", "x.img", "y.img"]);
    let expected = "\
# md array \"guest:data\": raid0 of 2 disks
[[disk]]
name = \"y.img\"
device = \"y.img\"
scheduler = \"stream(deadline)\"

[[disk]]
name = \"x.img\"
device = \"x.img\"
scheduler = \"stream(deadline)\"

[[array]]
name = \"data\"
level = \"raid0\"
members = [\"y.img\", \"x.img\"]
chunk = \"64KiB\"
coordinate = true
# The superblocks do not name the layout: \"original\" if raid0.default_layout of the kernel is 1.
geometry = { offset = \"1MiB\", size = [\"1MiB\", \"1088KiB\"], layout = \"alternate\" }
";
    assert_eq!(found, expected);
    let config = found + "[listen]\nnbd = \"unix:nbd.sock\"\n";
    fs::write(folder.join("disk.toml"), config).unwrap();
    let check = done(&folder, &["serve", "--check", "disk.toml"]);
    assert!(
        check.contains("array data: clients' raid0 of y.img, x.img"),
        "{check}"
    );
    assert!(check.contains("  export x.img: "), "{check}");

    let names = ["array", "detect", "--names", "right,left", "x.img", "y.img"];
    let array = done(&folder, &names);
    let expected = expected.replace("\"y.img\", \"x.img\"]", "\"left\", \"right\"]");
    let sections: Vec<&str> = expected.split("[[").collect();
    assert_eq!(array, format!("{}[[{}", sections[0], sections[3]));
    let error = refused(
        &folder,
        &["array", "detect", "--names", "x", "x.img", "y.img"],
        2,
    );
    assert!(error.contains("--names: 1 names for 2 files"), "{error}");
    // A pipe nobody writes to is no device, and is not waited for.
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    for verb in ["detect", "show"] {
        assert!(!run(&folder, &["array", verb, "pipe"]).status.success());
    }

    let error = refused(&folder, &["array", "detect", "y.img"], 3);
    assert_eq!(
        error,
        "error: y.img: disk 1 of 2 of its array is missing; give all\n"
    );
    let error = refused(&folder, &["array", "detect", "x.img", "disk.toml"], 3);
    assert_eq!(
        error,
        "error: disk.toml: has no superblock of md, version 1.0, 1.1 or 1.2\n"
    );
    refused(&folder, &["array", "detect", "missing"], 4);
}

#[test]
fn data_of_clients_arrays_lie_within_the_disks() {
    let folder = scratch("array-geometry-refused");
    for (offset, error) in [
        (
            "9MiB",
            "member 0 of the array data: geometry: 0B from 9MiB on are not within the disk's 8MiB",
        ),
        (
            "1000B",
            "member 0 of the array data: geometry: 8387608B from 1kB on are no whole sectors of 512 bytes",
        ),
        ("8160KiB", "is too small: 64 sectors; a chunk has 128"),
    ] {
        let config = of_clients().replace("1MiB\" }", &format!("{offset}\" }}"));
        fs::write(folder.join("disk.toml"), config).unwrap();
        let found = refused(&folder, &["serve", "--check", "disk.toml"], 3);
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn a_member_that_fails_or_stalls_fails_what_touches_it() {
    let server = Server::start("array-faults", CONFIG, &[]);
    let mut client = connect(&server, "data");
    write(&mut client, 0, &pattern(4 * CHUNK as usize));
    let fault = |args: &[&str]| server.told(&[&["fault"], args].concat());
    let ask = |client: &mut Client, chunk: u64| {
        let mut data = vec![0; 4096];
        client.ask(Ask::Read, chunk * CHUNK, &mut data).unwrap()
    };
    // The power of one member fails.
    server.told(&["power-cut", "two"]);
    assert_eq!(
        [0, 1, 2, 3].map(|chunk| ask(&mut client, chunk)),
        [0, EIO, 0, EIO]
    );
    let mut both = vec![0; 2 * CHUNK as usize];
    assert_eq!(client.ask(Ask::Read, 0, &mut both).unwrap(), EIO);
    server.told(&["power-on", "two"]);
    assert_eq!(ask(&mut client, 1), 0);
    // The fault takes sectors of the member: the second chunk of `two` is the fourth of the array.
    fault(&["unreadable", "two", "--lba", "128", "--sectors", "8"]);
    server.told(&["power-cut", "two"]);
    server.told(&["power-on", "two"]);
    assert_eq!([1, 2, 3].map(|chunk| ask(&mut client, chunk)), [0, 0, EIO]);
    // The array's name stands for all of its disks for which the command has an effect.
    server.told(&["power-cut", "one"]);
    server.told(&["power-cut", "data"]);
    server.told(&["power-on", "two"]);
    server.told(&["power-on", "data"]);
    assert_eq!(ask(&mut client, 0), 0);
    // The disk stalls for longer than the timeout.
    fault(&["stall", "two", "--for", "600s"]);
    client.send(Ask::Read, 7, CHUNK, 4096, &[]).unwrap();
    wait_until(
        || server.status()["disks"][0]["members"][1]["in_flight"] == 1,
        || "the request does not reach the drive".to_owned(),
    );
    let mut other = connect(&server, "data");
    assert_eq!([0, 2, 4].map(|chunk| ask(&mut other, chunk)), [0; 3]);
    let answer = client.answer(&mut [0; 4096]).unwrap();
    assert_eq!((answer.cookie, answer.error != 0), (7, true));
    let status = server.status();
    let members = &status["disks"][0]["members"];
    assert_eq!(
        (&members[0]["timeouts"], &members[1]["timeouts"]),
        (&0.into(), &1.into())
    );
    assert_eq!([0, 2, 4].map(|chunk| ask(&mut other, chunk)), [0; 3]);

    for (args, error) in [
        (
            &["fault", "stall", "data", "--for", "1s"][..],
            "disk data: is an array; name one of its disks: one, two",
        ),
        (
            &["power-cut", "three"],
            "no disk `three`; there are data, one, two",
        ),
        (
            &["fault", "unreadable", "one", "--lba", "16384"],
            "allowed is a whole number, 0 to 16383",
        ),
    ] {
        let output = server.control(args);
        let found = String::from_utf8_lossy(&output.stderr);
        assert!(found.contains(error), "{found}");
    }
    for name in ["data", "one"] {
        let error = refused(&server.directory, &["scrub", "control.sock", name], 1);
        assert!(
            error.contains("neither an array nor its disks can be scrubbed"),
            "{error}"
        );
    }
}

/// Makes two files with headers.
fn files(name: &str) -> PathBuf {
    let directory = scratch(name);
    let create = ["array", "create", "--size", "9MiB", "one.img", "two.img"];
    done(&directory, &create);
    directory
}

/// Serves files in this order of names.
fn of_files(members: &[&str]) -> String {
    let mut text = String::new();
    for name in ["one", "two"] {
        text += &format!(
            "[[disk]]\nname = \"{name}\"\ndevice = \"{name}.img\"\ndirect = false\nscheduler = \"noop\"\n"
        );
    }
    text += &format!("[[array]]\nname = \"data\"\nmembers = {members:?}\n");
    text + "[listen]\nnbd = \"unix:nbd.sock\"\ncontrol = \"unix:control.sock\"\n"
}

#[test]
fn files_with_headers_outlive_their_server_and_the_headers_stay() {
    let directory = files("array-files");
    let headers = || {
        ["one.img", "two.img"]
            .map(|name| fs::read(directory.join(name)).unwrap()[..1 << 20].to_vec())
    };
    let (before, data) = (headers(), pattern(5 << 20));
    let config = of_files(&["one", "two"]);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let said = done(&directory, &["serve", "serve.toml", "--check"]);
    assert!(said.starts_with("array data: raid0 of one, two, chunk 64KiB, 16MiB\n  disk one: one.img, noop, depth 32, gate depth, timeout 30s\n"), "{said}");
    for turn in 0..2 {
        let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
        let mut server = Server::spawn(directory.clone(), &mut command);
        let mut client = connect(&server, "data");
        assert_eq!(client.bytes, 16 << 20);
        if turn == 0 {
            write(&mut client, 1000, &data);
        }
        assert!(read(&mut client, 1000, data.len()) == data);
        assert_eq!(server.terminate(), Some(0));
        // The files are for the second server.
        if turn == 0 {
            std::mem::forget(server);
        } else {
            assert!(headers() == before);
            let first = fs::read(directory.join("one.img")).unwrap();
            let begin = 1 << 20;
            assert!(first[begin + 1000..begin + 64 * 1024] == data[..64 * 1024 - 1000]);
            let said = done(&directory, &["array", "show", "two.img"]);
            assert!(
                said.starts_with("two.img: disk 1 of 2 (from 0), set "),
                "{said}"
            );
            assert!(
                said.ends_with(", chunk 64KiB, 8MiB behind the header\n"),
                "{said}"
            );
        }
    }
}

#[test]
fn files_that_are_not_the_array_are_refused_by_array_and_member_and_stay_as_they_are() {
    let directory = files("array-bad");
    let other = files("array-other");
    let path = |name: &str| directory.join(name);
    let mut cases: Vec<(&str, String, &str)> = Vec::new();
    let good = of_files(&["one", "two"]);
    cases.push(("swapped", of_files(&["two", "one"]), "serve.toml:8: disk[1].device: member 0 of the array data: is disk 1 of the set at place 0: give the disks in their order"));
    cases.push(("chunk", good.replace("name = \"data\"", "name = \"data\"\nchunk = \"128KiB\""), "serve.toml:3: disk[0].device: member 0 of the array data: has chunks of 64KiB by its header; the array is to have 128KiB"));
    cases.push((
        "alone",
        good.replace("two.img", "memory.img").replace(
            "device = \"memory.img\"\ndirect = false",
            "device = \"null\"\nsize = \"8MiB\"",
        ),
        "member 0 of the array data: is one of 2 disks of its set, and 1 are given",
    ));
    cases.push(("foreign", good.replace("two.img", other.join("two.img").to_str().unwrap()), "serve.toml:8: disk[1].device: member 1 of the array data: belongs to another array: its set is "));
    fs::copy(path("two.img"), path("short.img")).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(path("short.img"))
        .unwrap()
        .set_len(5 << 20)
        .unwrap();
    cases.push(("short", good.replace("two.img", "short.img"), "member 1 of the array data: short.img: is too small: has 4MiB behind the header, which says 8MiB"));
    fs::copy(path("one.img"), path("copy.img")).unwrap();
    cases.push((
        "copy",
        good.replace("two.img", "copy.img"),
        "member 1 of the array data: is there twice: one is disk 0 of the set, too",
    ));
    fs::write(path("bare.img"), vec![0; 9 << 20]).unwrap();
    cases.push(("bare", good.replace("two.img", "bare.img"), "member 1 of the array data: bare.img: has no header of an array; `headtime array create` writes"));
    cases.push((
        "missing",
        good.replace("two.img", "gone.img"),
        "member 1 of the array data: gone.img is not there\n",
    ));
    let digest = || {
        let names = ["one.img", "two.img", "short.img", "copy.img", "bare.img"];
        names.map(|name| fs::read(path(name)).unwrap())
    };
    let before = digest();
    for (name, config, error) in &cases {
        fs::write(path("serve.toml"), config).unwrap();
        for args in [
            &["serve", "serve.toml", "--check"][..],
            &["serve", "serve.toml"],
        ] {
            let found = refused(&directory, args, 3);
            assert!(found.contains(error), "{name}: {found}");
        }
    }
    assert!(digest() == before);
    // A file that was made for the first disk goes if the second is refused.
    let made = "emulate = \"atlas10k\"\nstore = \"made.img\"\ncreate = true\nsize = \"8MiB\"";
    let config = good.replace("device = \"one.img\"\ndirect = false", made);
    let config = config.replace("two.img", "bare.img");
    // The drive takes one command at a time, a file would take more.
    let config = config.replace("\"noop\"", "\"noop\"\ndepth = 1");
    fs::write(path("serve.toml"), config).unwrap();
    let found = refused(&directory, &["serve", "serve.toml"], 3);
    assert!(found.contains("bare.img: has no header"), "{found}");
    assert!(!path("made.img").exists());
    // A disk of an array is not served alone for writing.
    let (alone, _) = good.split_once("[[array]]").unwrap();
    let listen = "[listen]\nnbd = \"unix:nbd.sock\"\n";
    fs::write(path("serve.toml"), format!("{alone}{listen}")).unwrap();
    let found = refused(&directory, &["serve", "serve.toml"], 3);
    assert!(
        found.contains("disk[0].device: one.img is disk 0 of the array "),
        "{found}"
    );
    for key in ["read_only", "force"] {
        let alone = alone.replace("direct = false", &format!("direct = false\n{key} = true"));
        fs::write(path("serve.toml"), format!("{alone}{listen}")).unwrap();
        done(&directory, &["serve", "serve.toml", "--check"]);
    }
    // Headers are not overwritten without the flag.
    let args = ["array", "create", "bare.img", "one.img"];
    let found = refused(&directory, &args, 3);
    assert!(found.contains("one.img: is disk 0 of the set "), "{found}");
    let found = refused(&directory, &["array", "create", "one.img"], 2);
    assert!(found.contains("1 disks; allowed are 2 to 64"), "{found}");
    assert!(digest() == before);
    for directory in [directory, other] {
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn another_reading_of_the_configuration_changes_the_disks_of_an_array() {
    let server = Server::start("array-reload", CONFIG, &[]);
    let read_again = |config: &str, until: &str| {
        fs::write(server.path("serve.toml"), config).unwrap();
        server.signal("HUP");
        server.wait_for(until);
    };
    let of_two = CONFIG.replace("\"sstf\"", "\"noop\"");
    read_again(
        &of_two,
        "the scheduler is swapped disk=\"two\" scheduler=\"noop\"",
    );
    assert_eq!(server.status()["disks"][0]["scheduler"], "deadline, noop");
    let one_timeout = of_two.replacen("500ms", "1s", 1);
    read_again(
        &one_timeout,
        "disk[1].timeout: two is a disk of the array data, of which all have this key alike; one differs",
    );
    let fixed = of_two.replace("64KiB", "128KiB");
    read_again(&fixed, "array data: chunk: another value takes a restart");
    let coordinated = CONFIG.replace("\"deadline\"", "\"stream\"");
    let coordinated = coordinated.replace("\"sstf\"", "\"stream\"");
    read_again(
        &coordinated.replace("chunk =", "coordinate = true\nchunk ="),
        "array data: coordinate: another value takes a restart",
    );
    let gone = of_two.replace("name = \"data\"", "name = \"other\"");
    read_again(&gone, "array data is gone; that takes a restart");
    server.wait_for("array other is new; that takes a restart");
}
