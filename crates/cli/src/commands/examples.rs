//! The files that printed examples use: `headtime generate examples`.

use crate::fault::Fault;
use headtime_linux::shown::PathShown as _;
use std::fs;
use std::path::Path;

/// What is written, each by its name: a trace that `headtime trace record` made of pgbench on ext4
/// (docs/replays/live), a sweep, and a server's configuration.
const FILES: [(&str, &[u8]); 3] = [
    (
        "database.csv.gz",
        include_bytes!("../../../../docs/replays/live/pgbench.csv.gz"),
    ),
    ("depths.toml", DEPTHS.as_bytes()),
    ("disk.toml", DISK.as_bytes()),
];

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

/// Writes them into a directory.
///
/// # Errors
///
/// If one is there with another content, which is kept; or if one cannot be written.
pub(super) fn examples(directory: &Path) -> Result<(), Fault> {
    for (name, content) in FILES {
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
