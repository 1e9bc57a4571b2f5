//! Files of the printed examples: `headtime generate examples`.

use crate::args::Example;
use clap::ValueEnum as _;
use headtime_config::Table;
use headtime_lab::fault::Fault;
use headtime_lab::scenario::DEFAULT;
use headtime_linux::shown::PathShown as _;
use std::fs;
use std::path::Path;

/// Other files with their names. One is a trace of pgbench on ext4, made by `headtime trace record` (docs/replays/live). The others are
/// a sweep, a server's configuration and a job of fio.
const FILES: [(&str, &[u8]); 4] = [
    (
        "database.csv.gz",
        include_bytes!("../../../../docs/replays/live/pgbench.csv.gz"),
    ),
    ("depths.toml", DEPTHS.as_bytes()),
    ("disk.toml", DISK.as_bytes()),
    ("job.fio", JOB.as_bytes()),
];

const PAR_READ: &str = "\
title = \"Four processes read files 50 GB apart; the scheduler is not told who asks\"
seed = 1
schedulers = [\"noop\", \"deadline\", \"anticipatory\", \"cfq\", \"stream\", \"clairvoyant\"]

[drive]
profile = \"wd5000aaks\"

[engine]
hide_processes = true

[[program]]
benchmark = \"par-read\"
";

const ARRAY: &str = "\
title = \"Four readers of files on three disks\"
schedulers = \"noop,deadline,stream\"
drive.profile = \"barracuda-7200.10-160\"

[array]
members = 3
chunk = \"64KiB\"
coordinate = [false, true]

[[program]]
benchmark = \"par-read\"
";

const GOALS: &str = "\
title = \"Two parallel programs with goals and a backup on nine servers\"
schedulers = \"cfq\"
drive.profile = \"barracuda-7200.10-160\"

[engine]
depth = 31
gate = [\"depth\", \"average\", \"windows\"]

[cluster]
servers = 9
nodes = 4

[[program]]
benchmark = \"full-seq\"
goal = \"2.5x\"
size = \"4GiB\"

[[program]]
benchmark = \"seq-rand\"
goal = \"2.5x\"
size = \"2GiB\"
phase = \"250MiB\"
start = \"200GiB\"

[[program]]
benchmark = \"backup\"
start = \"400GiB\"
";

const TOGETHER: &str = "\
title = \"Two programs with goals, urgent and bulk requests and a scrub on three disks\"
schedulers = \"deadline,stream\"
drive.profile = \"barracuda-7200.10-160\"

[engine]
depth = 2
gate = [
    \"depth\",
    \"rsd-priority:ranks=0/1\",
    \"windows\",
    \"windows(rsd-priority:ranks=0/1:queue=single)\",
]

[array]
members = 3
coordinate = true

[[program]]
name = \"report\"
benchmark = \"full-seq\"
size = \"1GiB\"
goal = \"4x\"

[[program]]
name = \"index\"
benchmark = \"seq-rand\"
size = \"300MiB\"
phase = \"50MiB\"
start = \"100GiB\"
goal = \"4x\"

[[program]]
name = \"urgent\"
class = \"real-time\"
benchmark = \"transactions\"
processes = 4
transactions = 150
think = \"exponential(200ms)\"

[[program]]
name = \"bulk\"
benchmark = \"backup\"
start = \"200GiB\"

[freeblock]
block = \"64KiB\"
";

const DEPTHS: &str = "\
title = \"Random reads: the scheduler's depth or the drive's\"
schedulers = [\"noop\", \"deadline\", \"sptf\"]
drive.profile = \"wd5000aaks\"
workload = { processes = 16, requests = 100 }

[sweep]
engine.depth = [1, 4, 16]
workload.size = [\"4KiB\", \"64KiB\"]
";

const DISK: &str = "\
# A 500 GB drive of 2009 that costs as much memory as is written to it.
[[disk]]
name = \"disk0\"
emulate = \"wd5000aaks\"
store = \"memory\"
scheduler = \"stream(deadline)\"

[listen]
nbd = \"unix:disk.sock\"
";

const JOB: &str = "\
; A file server beside the log of a database.
[global]
filename=/dev/sdb
direct=1
ioengine=libaio
time_based
runtime=20
group_reporting

[server]
rw=randrw
rwmixread=80
bssplit=4k/60:16k/20:64k/20
random_distribution=zipf:0.9
size=100g
iodepth=16

[log]
rw=write
bs=8k
offset=200g
size=1g
fsync=1
thinktime=10ms
";

fn text(example: Example) -> &'static str {
    match example {
        Example::Array => ARRAY,
        Example::Goals => GOALS,
        Example::ParRead => PAR_READ,
        Example::Together => TOGETHER,
        Example::VmScrub => DEFAULT,
    }
}

/// The scenario of an example.
pub(super) fn scenario(example: Example) -> Table {
    Table::parse("built-in scenario", text(example)).expect("examples are TOML")
}

/// Writes the files into a directory.
///
/// # Errors
///
/// If a file cannot be written, or if a file exists with another content. An existing file is not changed.
pub(super) fn examples(directory: &Path) -> Result<(), Fault> {
    let scenarios = Example::value_variants().iter().map(|example| {
        let name = example.to_possible_value().expect("all have names");
        (
            format!("{}.toml", name.get_name()),
            text(*example).as_bytes(),
        )
    });
    let others = FILES.map(|(name, content)| (name.to_owned(), content));
    for (name, content) in scenarios.chain(others) {
        let path = directory.join(name);
        let fault = |error: std::io::Error| Fault::writing(&path, &error);
        match fs::read(&path) {
            Ok(there) if there == content => {}
            Ok(_) => {
                return Err(Fault::File(format!(
                    "{}: is there already, and is another; give another directory",
                    path.shown()
                )));
            }
            Err(_) => fs::write(&path, content).map_err(fault)?,
        }
    }
    Ok(())
}
