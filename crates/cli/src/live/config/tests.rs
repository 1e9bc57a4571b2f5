//! Tests of the configuration as a text.

mod exports;
mod programs;

use super::*;
use headtime_engine::EngineSpec;
use headtime_sched::Class;
use headtime_testkit::damaged;
use headtime_units::{Bytes, Nanos};
use proptest::prelude::*;

/// All keys of a configuration.
const FULL: &str = "\
[[disk]]
name = \"disk0\"
emulate = \"wd5000aaks\"
store = \"store.img\"
size = \"4GiB\"
create = true
scheduler = \"stream(deadline)\"
firmware = \"sptf\"
override.cache.enabled = false
noise = false
seed = 7
belief = \"atlas10k\"
curve = \"curve.toml\"
depth = 8
merge = false
merge_max = \"64KiB\"
hide_processes = true
timeout = \"off\"
read_only = false
faults = true
[[disk.export]]
name = \"vm\"
class = \"real-time\"
[[disk.export]]
name = \"backup\"
class = \"idle\"
read_only = true
[[disk]]
name = \"disk1\"
device = \"/dev/null-or-so\"
direct = false
force = true
scheduler = \"noop\"
[[disk]]
name = \"nothing\"
device = \"null\"
size = \"1TiB\"
scheduler = \"noop\"
[listen]
nbd = [\"unix:nbd.sock\", \"tcp:localhost:10809\"]
tcp = true
metrics = \"[::1]:9104\"
control = \"unix:control.sock\"
[log]
level = \"debug\"
format = \"json\"
events = \"events.log\"
[[disk]]
name = \"left\"
device = \"null\"
size = \"1MiB\"
scheduler = \"noop\"
[[disk]]
name = \"right\"
device = \"null\"
size = \"2MiB\"
scheduler = \"sstf\"
[[array]]
name = \"both\"
level = \"raid0\"
members = [\"left\", \"right\"]
chunk = \"128KiB\"
[[array.export]]
name = \"stripes\"
class = \"idle\"
";

#[test]
fn everything_at_once() {
    let config = Config::parse("c.toml", FULL).unwrap();
    let [disk0, disk1, nothing, left, _] = &config.disks[..] else {
        panic!("{config:?}");
    };
    assert_eq!(disk0.stack.scheduler.to_string(), "stream(deadline)");
    assert_eq!((disk0.depth, disk0.timeout), (Some(8), None));
    assert_eq!(disk0.queue_timeout, None);
    let engine = &disk0.stack.engine;
    assert!(engine.hide_processes && disk0.faults && !engine.merge);
    assert!(disk0.create && !disk1.create);
    assert_eq!(disk0.exports[0].class, Class::REAL_TIME);
    assert!(disk0.exports[1].read_only && !disk0.exports[0].read_only);
    let Backend::Emulated(emulated) = &disk0.backend else {
        panic!("{disk0:?}");
    };
    assert_eq!((emulated.seed, emulated.simulated.noise), (7, false));
    assert_eq!(emulated.store.as_deref(), Some(Path::new("store.img")));
    assert_eq!(disk1.timeout, Some(Nanos::from_secs(30)));
    assert_eq!((disk1.exports.len(), &*disk1.exports[0].name), (1, "disk1"));
    let device = Backend::Device {
        path: PathBuf::from("/dev/null-or-so"),
        direct: false,
        force: true,
        size: None,
        io_priority: None,
    };
    assert_eq!(disk1.backend, device);
    let null = Backend::Null {
        size: Bytes(1 << 40),
    };
    assert_eq!(nothing.backend, null);
    let tcp = Socket::Tcp("127.0.0.1:10809".parse().unwrap());
    assert_eq!(config.listen.nbd[1], tcp);
    assert_eq!(config.log.format, Some(LogFormat::Json));
    let both = &config.arrays[0];
    assert_eq!((&*both.name, &both.members[..]), ("both", &[3, 4][..]));
    assert_eq!(both.spec.chunk, Bytes(128 << 10));
    assert_eq!(both.exports[0].name, "stripes");
    assert!(left.is_member() && !nothing.is_member());
}

#[test]
fn what_cannot_be_an_array_is_refused_by_array_and_disk() {
    let beside = |text: &str| format!("{FULL}{text}");
    let of_left =
        |keys: &str| FULL.replacen("name = \"left\"", &format!("name = \"left\"\n{keys}"), 1);
    let of_both = |from: &str, to: &str| FULL.replacen(from, to, 1);
    let members = "[\"left\", \"right\"]";
    let another = |members: &str| {
        beside(&format!(
            "[[array]]\nname = \"more\"\nmembers = {members}\n"
        ))
    };
    let many: Vec<String> = (0..65).map(|number| format!("d{number}")).collect();
    for (text, error) in [
        (
            of_both(members, "[\"left\"]"),
            "c.toml:61: array[0].members: 1 disks; allowed are 2 to 64",
        ),
        (
            of_both(members, &format!("{many:?}")),
            "c.toml:61: array[0].members: 65 disks; allowed are 2 to 64",
        ),
        (
            of_both(members, "[\"left\", \"left\"]"),
            "c.toml:61: array[0].members: left: is there twice",
        ),
        (
            of_both(members, "[\"left\", \"rihgt\"]"),
            "c.toml:61: array[0].members: rihgt: there is no [[disk]] of this name in this server, and an array has the disks of one server; did you mean \"right\"?",
        ),
        (
            of_both(&format!("members = {members}\n"), ""),
            "c.toml:58: array[0].members: missing",
        ),
        (
            of_both("128KiB", "1000B"),
            "c.toml:62: array[0].chunk: \"1000B\": allowed is a multiple of 4KiB up to 64MiB",
        ),
        (
            of_both("128KiB\"", "128KiB\"\nbus = \"400MB/s\""),
            "c.toml:63: array[0].bus: is for scenarios",
        ),
        (
            of_both("128KiB\"", "128KiB\"\ncoordinate = [true, false]"),
            "c.toml:63: array[0].coordinate: a server takes true or false, no list",
        ),
        (
            of_both("128KiB\"", "128KiB\"\ncoordinate = true"),
            "c.toml:52: disk[3].scheduler: left is a disk of the array both, which has coordinate = true; \"noop\" obeys no coordinator; give `stream`",
        ),
        (
            of_both("128KiB\"", "128KiB\"\ncoordinate = true")
                .replacen(
                    "\"noop\"\n[[disk]]\nname = \"right\"",
                    "\"stream\"\n[[disk]]\nname = \"right\"",
                    1,
                )
                .replacen("\"sstf\"", "\"stream:slice=1s\"", 1),
            "disk[4].scheduler: right is a disk of the array both, which has coordinate = true; \"stream(deadline):slice=1s\" has other options than at left",
        ),
        (
            of_both("raid0", "raid5"),
            "c.toml:60: array[0].level: a server keeps no parity and no copies; allowed is \"raid0\", and with geometry \"raid5\"",
        ),
        (
            of_both("name = \"both\"", "name = \"left\""),
            "c.toml:59: array[0].name: there is a disk or an array \"left\" already, at c.toml:49",
        ),
        (
            of_both("name = \"stripes\"", "name = \"vm\""),
            "c.toml:64: array[0].export[0].name: there is an export \"vm\" already",
        ),
        (
            another("[\"left\", \"nothing\"]"),
            "c.toml:68: array[1].members: left: is a disk of the array both",
        ),
        (
            of_left("export = [{ name = \"x\" }]"),
            "c.toml:50: disk[3].export: left is a disk of the array both; clients ask for the array: give [[array.export]]",
        ),
        (
            of_left("scrub = \"s\""),
            "c.toml:50: disk[3].scrub: left is a disk of the array both; serve the disk by itself, read-only, to scrub it",
        ),
        (
            of_left("timeout = \"1s\""),
            "disk[4].timeout: right is a disk of the array both, of which all have this key alike; left differs",
        ),
        (
            of_left("queue_timeout = \"1s\""),
            "disk[4].queue_timeout: right is a disk of the array both, of which all have this key alike; left differs",
        ),
        (
            of_left("merge = false"),
            "disk[4].merge: right is a disk of the array both, of which all have this key alike; left differs",
        ),
        (
            of_left("gate = \"rsd\""),
            "disk[4].gate: right is a disk of the array both",
        ),
        (
            of_left("read_only = true").replacen(
                "name = \"stripes\"",
                "name = \"stripes\"\nread_only = false",
                1,
            ),
            "array[0].export[0].read_only: is false, but the disk is read-only",
        ),
    ] {
        let found = Config::parse("c.toml", &text).unwrap_err().to_string();
        assert!(
            found.starts_with("c.toml:") && found.contains(error),
            "{found}"
        );
    }
    // A file of an array is made beforehand, with its header.
    let file = "device = \"f\"\ncreate = true";
    let text = FULL.replacen(
        "device = \"null\"\nsize = \"2MiB\"",
        &format!("{file}\nsize = \"2MiB\""),
        1,
    );
    let found = Config::parse("c.toml", &text).unwrap_err().to_string();
    assert!(found.contains("disk[4].create: right is a disk of the array both; `headtime array create --size` makes its file"), "{found}");
}

/// An array that clients make of three disks.
const GEOMETRY: &str = "\
[[disk]]
name = \"a\"
device = \"null\"
size = \"1MiB\"
scheduler = \"stream\"
[[disk]]
name = \"b\"
device = \"null\"
size = \"1MiB\"
scheduler = \"stream\"
[[disk.export]]
name = \"vm-b\"
range = \"0B..512KiB\"
[[disk]]
name = \"c\"
device = \"null\"
size = \"2MiB\"
scheduler = \"stream\"
[[array]]
name = \"md0\"
level = \"raid5\"
members = [\"c\", \"a\", \"b\"]
coordinate = true
geometry = { offset = \"64KiB\" }
";

#[test]
fn disks_of_an_array_that_clients_make_have_exports_of_their_own() {
    let config = Config::parse("c.toml", GEOMETRY).unwrap();
    let array = &config.arrays[0];
    let geometry = GeometryConfig {
        offsets: vec![Bytes(64 << 10); 3],
        sizes: None,
        layout: Layout::LeftSymmetric,
    };
    assert_eq!(array.geometry, Some(geometry));
    assert!(array.exports.is_empty());
    assert_eq!(config.disks[1].exports[0].name, "vm-b");
    assert_eq!(config.disks[2].exports[0].name, "c");

    let with = |from: &str, to: &str| GEOMETRY.replacen(from, to, 1);
    let offset = "offset = \"64KiB\"";
    for (text, error) in [
        (
            with("coordinate = true", "coordinate = false"),
            "c.toml:24: array[0].geometry: is for coordinate = true; without it, serve the disks without [[array]]",
        ),
        (
            with(offset, ""),
            "c.toml:24: array[0].geometry.offset: missing",
        ),
        (
            with(offset, "offset = [\"0B\", \"64KiB\"]"),
            "c.toml:24: array[0].geometry.offset: 2 sizes; allowed is one, or one for each of 3 disks",
        ),
        (
            with(offset, "offset = \"64KiB\", layout = \"original\""),
            "c.toml:24: array[0].geometry.layout: allowed are \"alternate\" and \"original\" with raid0, \"left-symmetric\" with raid5",
        ),
        (
            with(offset, "offset = \"64KiB\", chunk = \"64KiB\""),
            "c.toml:24: array[0].geometry.chunk: unknown key",
        ),
        (
            with("coordinate", "export = { name = \"all\" }\ncoordinate"),
            "c.toml:23: array[0].export: is for arrays without geometry; clients see the disks: give [[disk.export]]",
        ),
        (
            with("name = \"vm-b\"", "name = \"c\""),
            "name: is that of an export, and would be this disk's too, as it has none",
        ),
        (
            with("scheduler = \"stream\"", "scheduler = \"noop\""),
            "a is a disk of the array md0, which has coordinate = true; \"noop\" obeys no coordinator",
        ),
    ] {
        let found = Config::parse("c.toml", &text).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
}

/// Changes of the configuration above, and the error of each.
#[test]
fn what_does_not_fit() {
    let long = format!("unix:{}", "x".repeat(108));
    let mut others = Vec::new();
    for (from, to, error) in [
        (
            "depth = 8",
            "deph = 8",
            "c.toml:14: disk[0].deph: unknown key; did you mean `depth`?",
        ),
        (
            "[log]",
            "[logs]",
            "c.toml:44: logs: unknown key; did you mean `log`?",
        ),
        (
            "timeout = \"off\"",
            "queue_timeout = \"1ms\"",
            "c.toml:18: disk[0].queue_timeout: \"1ms\": allowed is 100ms to 3650d, or \"off\"",
        ),
        (
            "timeout = \"off\"",
            "timeout = \"213503d\"",
            "c.toml:18: disk[0].timeout: \"213503d\": allowed is 100ms to 3650d, or \"off\"",
        ),
        (
            "stream(deadline)",
            "stream(deadline):slice=99999999999d",
            "slice is \"99999999999d\"; allowed is 0ns to 86400s",
        ),
        // If a misspelt key leaves another key missing, the misspelt key is reported.
        (
            "store = \"store.img\"",
            "stroe = \"store.img\"",
            "c.toml:4: disk[0].stroe: unknown key; did you mean `store`?",
        ),
        (
            "name = \"vm\"",
            "nmae = \"vm\"",
            "c.toml:22: disk[0].export[0].nmae: unknown key; did you mean `name`? Allowed here: ",
        ),
        (
            "size = \"1TiB\"",
            "sizes = \"1TiB\"",
            "c.toml:37: disk[2].sizes: unknown key; did you mean `size`?",
        ),
        (
            "metrics = \"[::1]:9104\"",
            "metric = \"0.0.0.0:9104\"",
            "c.toml:42: listen.metric: unknown key; did you mean `metrics`? Allowed here: ",
        ),
        (
            "format = \"json\"",
            "formats = 3",
            "c.toml:46: log.formats: unknown key; did you mean `format`? Allowed here: ",
        ),
        (
            "name = \"disk1\"",
            "name = \"disk0\"",
            "c.toml:29: disk[1].name: there is a disk \"disk0\" already, at c.toml:2",
        ),
        (
            "name = \"backup\"",
            "name = \"vm\"",
            "c.toml:25: disk[0].export[1].name: there is an export \"vm\" already, at c.toml:22",
        ),
        (
            "name = \"backup\"",
            "name = \"disk1\"",
            "c.toml:29: disk[1].name: is that of an export, and would be this disk's too, as it has none, at c.toml:25",
        ),
        (
            "name = \"vm\"",
            "name = \"a/b\"",
            "disk[0].export[0].name: allowed are 1 to 255 bytes",
        ),
        (
            "name = \"disk1\"",
            "name = \"../x\"",
            "disk[1].name: \"../x\": allowed are 1 to 64",
        ),
        (
            "device = \"/dev/null-or-so\"",
            "device = \"store.img\"",
            "c.toml:30: disk[1].device: store.img is in use already, at c.toml:4",
        ),
        (
            "device = \"/dev/null-or-so\"",
            "device = \"x\"\nemulate = \"atlas10k\"",
            "disk[1].device: allowed is one of emulate and device",
        ),
        (
            "device = \"/dev/null-or-so\"",
            "size = \"1GiB\"",
            "disk[1].emulate: missing; give emulate",
        ),
        (
            "store = \"store.img\"\n",
            "",
            "disk[0].store: missing; give \"memory\"",
        ),
        (
            "direct = false",
            "store = \"memory\"",
            "disk[1].store: is for emulate = \"DRIVE\" only",
        ),
        (
            "noise = false",
            "direct = true",
            "disk[0].direct: is for device = \"PATH\" only",
        ),
        (
            "size = \"1TiB\"\n",
            "",
            "disk[2].size: missing; the null device",
        ),
        (
            "store = \"store.img\"",
            "store = \"memory\"",
            "c.toml:6: disk[0].create: is for a file: a store = \"PATH\" or a device = \"PATH\"",
        ),
        (
            "read_only = false",
            "read_only = true",
            "c.toml:6: disk[0].create: is true, but the disk is read-only: what is only read is not made",
        ),
        (
            "create = true",
            "create = \"yes\"",
            "c.toml:6: disk[0].create: is the string \"yes\", but should be true or false",
        ),
        (
            "force = true",
            "create = true",
            "c.toml:32: disk[1].create: takes size, which says how large the file is to be",
        ),
        (
            "size = \"1TiB\"",
            "size = \"1TiB\"\ncreate = true",
            "c.toml:38: disk[2].create: is for a file",
        ),
        ("create = true", "create = false", ""),
        ("direct = false", "size = \"1GiB\"\ncreate = true", ""),
        (
            "size = \"4GiB\"",
            "size = \"1000B\"",
            "disk[0].size: allowed is a multiple of 512B",
        ),
        (
            "size = \"4GiB\"",
            "size = 4",
            "disk[0].size: is the number 4, but should be a size",
        ),
        (
            "scheduler = \"stream(deadline)\"",
            "scheduler = \"sream\"",
            "disk[0].scheduler: \"sream\": ",
        ),
        (
            "scheduler = \"stream(deadline)\"",
            "scheduler = \"clairvoyant\"",
            "disk[0].scheduler: \"clairvoyant(deadline)\": is told of requests before they come",
        ),
        (
            "depth = 8",
            "depth = 8\ngate = \"rdd\"",
            "c.toml:15: disk[0].gate: \"rdd\": there is no gate \"rdd\"; did you mean \"rsd\"?",
        ),
        (
            "depth = 8",
            "depth = 8\ngate = \"rsd:age_th=2000000\"",
            "disk[0].gate: \"rsd:age_th=2000000\": age_th is \"2000000\"; allowed is 0 to 1000000",
        ),
        (
            "depth = 8",
            "depth = 8\ngate = \"rsd-priority:ranks=1/8\"",
            "c.toml:15: disk[0].gate: ranks is 1/8; allowed is less than the depth, which is 8",
        ),
        (
            "depth = 8",
            "depth = 8\ngate = \"rsd-priority:ranks=3/1\"",
            "disk[0].gate: ranks is 3/1; allowed are numbers that do not fall",
        ),
        ("depth = 8", "gate = \"rsd-priority:ranks=1/30\"", ""),
        (
            "timeout = \"off\"",
            "timeout = \"1ms\"",
            "disk[0].timeout: \"1ms\": allowed is 100ms to 3650d, or \"off\"",
        ),
        (
            "depth = 8",
            "depth = 0",
            "disk[0].depth: 0 is out of range; allowed is 1 to 256",
        ),
        (
            "merge_max = \"64KiB\"",
            "merge_max = \"2GiB\"",
            "disk[0].merge_max: allowed is a multiple of 512B",
        ),
        (
            "class = \"idle\"",
            "class = \"best\"",
            "disk[0].export[1].class: \"best\": allowed are real-time",
        ),
        ("create = true\n", "", ""),
        (
            "tcp:localhost:10809",
            "tcp:10.0.0.1:10809",
            "listen.nbd: tcp:10.0.0.1:10809: other machines reach this address; allowed is a loopback address, client",
        ),
        (
            "tcp:localhost:10809",
            "udp:x",
            "listen.nbd[1]: \"udp:x\": write unix:PATH",
        ),
        (
            "[listen]",
            "[listen]\nmax_bytes = \"1KiB\"",
            "listen.max_bytes: allowed is 1MiB to 1TiB",
        ),
        (
            "tcp:localhost:10809",
            "tcp:[::1]:9104",
            "listen.metrics: [::1]:9104 is in use already, at c.toml:40",
        ),
        (
            "[::1]:9104",
            "0.0.0.0:9104",
            "listen.metrics: \"0.0.0.0:9104\": other machines",
        ),
        (
            "[::1]:9104",
            "9104",
            "listen.metrics: \"9104\": write address and port, such as 127.0.0.1:9104",
        ),
        (
            "unix:control.sock",
            "unix:nbd.sock",
            "c.toml:43: listen.control: nbd.sock is in use already, at c.toml:40",
        ),
        (
            "unix:control.sock",
            "unix:store.img",
            "listen.control: store.img is in use already, at c.toml:4",
        ),
        (
            "unix:control.sock",
            "tcp:127.0.0.1:1",
            "listen.control: \"tcp:127.0.0.1:1\": allowed is a unix socket",
        ),
        (
            "unix:control.sock",
            &long,
            "the path has 108 bytes; a unix socket's has at most 107",
        ),
        ("unix:control.sock", "unix:", "the path is missing"),
        (
            "tcp:localhost:10809",
            "tcp:localhost:99999",
            "listen.nbd[1]: \"tcp:localhost:99999\": write address and port, such as 127.0.0.1:10809",
        ),
        (
            "unix:control.sock",
            "control.sock",
            "listen.control: \"control.sock\": write unix:PATH",
        ),
        (
            "level = \"debug\"",
            "level = \"loud\"",
            "c.toml:45: log.level: \"loud\": `loud` is no level; allowed are off, error,",
        ),
        (
            "level = \"debug\"",
            "level = \"debug,tokio=loud\"",
            "c.toml:45: log.level: \"debug,tokio=loud\": ",
        ),
        ("level = \"debug\"", "level = \"warn,tokio=debug\"", ""),
        (
            "scheduler = \"noop\"",
            "scheduler = \"kyber\"",
            "disk[1].scheduler: \"kyber\": there is no policy \"kyber\"",
        ),
        (
            "format = \"json\"",
            "format = \"xml\"",
            "log.format: \"xml\" is not allowed; allowed are \"text\", \"json\"",
        ),
    ] {
        let changed = FULL.replacen(from, to, 1);
        assert_ne!(changed, FULL, "{from}");
        match Config::parse("c.toml", &changed) {
            Ok(_) => assert_eq!(error, "", "{to} is taken"),
            Err(found) => {
                let found = found.to_string();
                if error.is_empty() || !found.contains(error) {
                    others.push(format!("{found}\n  instead of {error}"));
                }
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    for (text, error) in [
        ("", "c.toml:1: disk: missing; give at least one [[disk]]"),
        ("disk = []", "c.toml:1: disk: is an empty list"),
        ("[[disk]]\n", "c.toml:1: disk[0].name: missing"),
        (
            "[[disks]]\n",
            "c.toml:1: disks: unknown key; did you mean `disk`? Allowed here: array, disk, listen, log",
        ),
    ] {
        let found = Config::parse("c.toml", text).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
    // A read-only disk has no export that takes writes.
    let text = FULL.replacen("create = true\n", "", 1);
    let text = text.replacen("read_only = false", "read_only = true", 1);
    assert!(Config::parse("c.toml", &text).is_ok());
    let text = text.replacen("class = \"idle\"\nread_only = true", "read_only = false", 1);
    let found = Config::parse("c.toml", &text).unwrap_err().to_string();
    assert!(
        found.contains("read_only: is false, but the disk is read-only"),
        "{found}"
    );
}

/// The check also finds one file under two names if neither is the other's real path.
#[test]
fn one_file_by_two_names_is_given_once() {
    let folder = std::env::temp_dir().join(format!("headtime-config-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("disk"), "").unwrap();
    fs::hard_link(folder.join("disk"), folder.join("hard")).unwrap();
    std::os::unix::fs::symlink("disk", folder.join("soft")).unwrap();
    fs::write(folder.join("other"), "").unwrap();
    let refused = |first: &str, second: &str| {
        let disk = |name: &str, file: &str| {
            let path = folder.join(file);
            format!("[[disk]]\nname = \"{name}\"\ndevice = {path:?}\nscheduler = \"noop\"\n")
        };
        let store = format!(
            "[[disk]]\nname = \"c\"\nstore = {:?}\nemulate = \"atlas10k\"\nscheduler = \"noop\"\n",
            folder.join(second)
        );
        let beside = |second: &str| Config::parse("c", &(disk("a", first) + second));
        let error = beside(&disk("b", second))
            .err()
            .map(|error| error.to_string());
        let of_store = beside(&store).err().map(|error| error.to_string());
        assert_eq!(
            of_store,
            error.clone().map(|error| error.replace("device", "store"))
        );
        error
    };
    let shown = |name: &str| folder.join(name).display().to_string();
    for (other, tail) in [("disk", ""), ("soft", ""), ("hard", ", by another name")] {
        let expected = format!(
            "c:7: disk[1].device: {} is in use already{tail}, at c:3",
            shown(other)
        );
        assert_eq!(refused("disk", other), Some(expected));
    }
    assert_eq!(refused("disk", "other"), None);
    assert_eq!(refused("disk", "not there"), None);
    fs::remove_dir_all(&folder).unwrap();
}

/// The page that explains the configuration has all keys, and its example is valid.
#[test]
fn the_documentation_is_of_this() {
    let page = include_str!("../../../../../docs/serve.md");
    let (_, table) = page.split_once("## Keys").expect("a section of keys");
    let (table, _) = table.split_once("\n## ").expect("another section");
    for line in (FULL.lines().chain(GEOMETRY.lines())).chain(programs::TEXT.lines()) {
        let key = line.split([' ', '.']).next().unwrap_or_default();
        let key = match key.starts_with('[') {
            true => key.to_owned(),
            false => format!("`{key}`"),
        };
        assert!(table.contains(&key), "{key}");
    }
    let mut examples = page.split("```toml\n").skip(1);
    let example = examples.next().and_then(|rest| rest.split("```").next());
    let config = Config::parse("serve.md", example.expect("an example")).unwrap();
    assert_eq!(config.disks[0].exports.len(), 2);
}

#[test]
fn addresses_that_others_reach_need_client_certificates_or_a_plain_word() {
    let read = |nbd: &str, keys: &str| {
        let disk =
            "[[disk]]\nname = \"d\"\ndevice = \"null\"\nsize = \"1MiB\"\nscheduler = \"noop\"\n";
        let text = format!("{disk}[listen]\nnbd = \"{nbd}\"\n{keys}");
        Config::parse("c", &text).map_err(|error| error.to_string())
    };
    let (far, near) = ("tcp:192.0.2.1:10809", "tcp:127.0.0.1:10809");
    let pair = "tls_certificate = \"c\"\ntls_key = \"k\"\n";
    let all = format!("{pair}tls_ca = \"a\"");
    let files = read(far, &all).unwrap().listen.tls.unwrap();
    let paths = [
        Some(&files.certificate),
        Some(&files.key),
        files.ca.as_ref(),
    ];
    assert_eq!(
        paths,
        ["c", "k", "a"].map(PathBuf::from).each_ref().map(Some)
    );
    assert!(read(far, "trusted_network = true").is_ok());
    assert!(read(near, pair).is_ok());
    let reached = "c:7: listen.nbd: tcp:192.0.2.1:10809: other machines reach this address; allowed is a loopback \
                   address, client certificates (listen.tls_ca), or listen.trusted_network = true";
    for (nbd, keys, problem) in [
        (far, "", reached),
        (far, "tcp = true", reached),
        (far, pair, reached),
        (
            near,
            "tls_certificate = \"c\"",
            "c:8: listen.tls_certificate: needs tls_key, the certificate's key",
        ),
        (
            near,
            "tls_key = \"k\"",
            "c:8: listen.tls_key: needs tls_certificate, its certificate",
        ),
        (
            near,
            "tls_ca = \"a\"",
            "c:8: listen.tls_ca: needs tls_certificate and tls_key",
        ),
        (
            "unix:n",
            pair,
            "c:8: listen.tls_certificate: is for addresses, and nbd has none",
        ),
    ] {
        assert_eq!(read(nbd, keys).unwrap_err(), problem);
    }
    let page = include_str!("../../../../../docs/serve.md");
    for key in ["tls_certificate", "tls_key", "tls_ca", "trusted_network"] {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}

/// Each option of the engine is an option of a server too, without a line of the server's code.
#[test]
fn a_disk_takes_every_option_of_an_engine() {
    let engine = EngineSpec {
        depth: 3,
        hide_processes: true,
        ..EngineSpec::linux_2_6()
    };
    let engine = engine.complete().unwrap();
    let read = |keys: &str| {
        let disk = "name = \"d\"\ndevice = \"null\"\nsize = \"1MiB\"\nscheduler = \"noop\"\n";
        Config::parse("c", &format!("[[disk]]\n{disk}{keys}"))
    };
    let config = read(&headtime_config::to_text(&engine)).unwrap();
    assert_eq!(config.disks[0].stack.engine, engine);
    for (keys, problem) in [
        (
            "plug_requests = 4",
            "c:6: disk[0].plug_requests: is for plug = true",
        ),
        (
            "commit_ahead = 1",
            "c:6: disk[0].commit_ahead: is the number 1, but should be true or false",
        ),
        // A device has no profile that could be changed.
        (
            "noise = false",
            "c:6: disk[0].noise: is for emulate = \"DRIVE\" only",
        ),
        (
            "override.cache.enabled = false",
            "c:6: disk[0].override: is for emulate = \"DRIVE\" only",
        ),
    ] {
        assert_eq!(read(keys).unwrap_err().to_string(), problem);
    }
}

#[test]
fn what_takes_a_restart() {
    let config = Config::parse("c.toml", FULL).unwrap();
    let other = |from: &str, to: &str| {
        let other = Config::parse("c.toml", &FULL.replacen(from, to, 1)).unwrap();
        config.disks[0].fixed_differences(&other.disks[0])
    };
    assert_eq!(
        other("scheduler = \"stream", "scheduler = \"stream"),
        [""; 0]
    );
    assert_eq!(other("timeout = \"off\"", "timeout = \"1s\""), [""; 0]);
    assert_eq!(
        other("timeout = \"off\"", "queue_timeout = \"1s\""),
        [""; 0]
    );
    // A running server makes no files, so the key has no effect.
    assert_eq!(other("create = true", "create = false"), [""; 0]);
    assert_eq!(other("depth = 8", "depth = 9"), ["depth"]);
    assert_eq!(
        other("seed = 7", "seed = 8"),
        ["emulate, device, store or size"]
    );
    assert_eq!(
        other("class = \"idle\"", "class = \"real-time\""),
        ["export backup"]
    );
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(text in damaged(&[FULL])) {
        let _ = Config::parse("c", &text);
    }
}
