//! A process with a store in a file is killed: nothing that it was told is flushed is lost, and no
//! sector is torn.
//!
//! The child is this program again, running [`child`] alone.

use crate::host::{Folder, Host, emulate, profile};
use headtime_sched::Flags;
use headtime_serve::emulated::StoreSpec;
use headtime_workload::Random;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SECTORS: u64 = 1 << 14;

/// Names the store of the child, for which nothing is asserted when it is not there.
const STORE: &str = "HEADTIME_TEST_KILL_STORE";

/// Where the versions of a number of writes go: write `n` is of byte `n`, to somewhere.
fn place(write: u64) -> (u64, u64) {
    let mut random = Random::keyed(1, write, 0);
    let len = 1 + random.below(200);
    (random.below(SECTORS - len), len)
}

/// A byte that is neither zero nor the same for writes that follow each other.
fn byte(write: u64) -> u8 {
    1 + (write % 250) as u8
}

#[test]
#[ignore = "run by a_killed_server_loses_nothing_that_was_flushed, which kills it"]
#[allow(
    clippy::disallowed_methods,
    reason = "how it learns that it is the child"
)]
fn child() {
    let Ok(path) = std::env::var(STORE) else {
        return;
    };
    let store = StoreSpec::File(PathBuf::from(path));
    let mut host = Host::new(emulate(&profile("wd5000aaks"), store, SECTORS));
    for write in 0.. {
        let (start, len) = place(write);
        host.write(start, len, byte(write), Flags::NONE);
        assert_eq!(host.next().result, Ok(()));
        if write % 7 == 0 {
            host.flush();
            assert_eq!(host.next().result, Ok(()));
            let mut out = std::io::stdout();
            writeln!(out, "flushed {write}").expect("somebody reads");
            out.flush().expect("somebody reads");
        }
    }
}

#[test]
fn a_killed_server_loses_nothing_that_was_flushed() {
    let program = std::env::current_exe().expect("it has a name");
    for round in 0..5 {
        let folder = Folder::new();
        let path = folder.join("store");
        let mut process = Command::new(&program)
            .args(["--exact", "kill::child", "--ignored", "--nocapture"])
            .env(STORE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be run");
        let out = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut flushed = None;
        let mut seen = 0;
        for line in out.lines() {
            let line = line.expect("it is text");
            // The test harness prints its own text on the line of the first write.
            if let Some((_, write)) = line.rsplit_once("flushed ") {
                flushed = Some(write.parse::<u64>().expect("a number"));
                seen += 1;
            }
            if seen == 20 + round * 17 {
                process.kill().expect("it runs");
            }
        }
        let status = process.wait().expect("it was started");
        assert!(!status.success(), "it does not end by itself");
        let flushed = flushed.expect("it came to a flush");
        let mut versions: Vec<Vec<u64>> = vec![Vec::new(); SECTORS as usize];
        // The process may have completed more writes than the test has read from the pipe.
        let latest = flushed + 8;
        for write in 0..=latest {
            let (start, len) = place(write);
            for sector in &mut versions[start as usize..(start + len) as usize] {
                if write <= flushed {
                    sector.clear();
                }
                sector.push(write);
            }
        }
        let store = StoreSpec::File(path);
        let mut host = Host::new(emulate(&profile("wd5000aaks"), store, SECTORS));
        let contents = host.contents(0, SECTORS);
        for (lba, sector) in contents.chunks(512).enumerate() {
            assert!(
                sector.iter().all(|byte| *byte == sector[0]),
                "sector {lba} is torn"
            );
            let possible = versions[lba].iter().map(|write| byte(*write));
            // Where nothing was flushed there may still be nothing.
            let nothing = versions[lba].first().is_none_or(|write| *write > flushed);
            assert!(
                possible.into_iter().any(|byte| byte == sector[0]) || nothing && sector[0] == 0,
                "sector {lba} holds {} after {flushed} was flushed, not one of {:?}",
                sector[0],
                versions[lba]
            );
        }
    }
}
