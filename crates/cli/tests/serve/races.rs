//! Servers that start at once, or are killed while they start. One server has the files, and serves the file at the
//! path.

use super::common::{Server, headtime, run, scratch};
use super::nbd::{Ask, Client};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A disk that is not there yet: its lines in a configuration, and the names of its files.
struct Absent {
    lines: &'static str,
    files: &'static [&'static str],
}

const DEVICE: Absent = Absent {
    lines: "device = \"disk\"\nsize = \"4MiB\"\ndirect = false\ncreate = true\n",
    files: &["disk"],
};
const STORE: Absent = Absent {
    lines: "emulate = \"atlas10k\"\nstore = \"disk\"\nsize = \"4MiB\"\ncreate = true\n",
    files: &["disk"],
};
/// A disk of 18 TB in a store of several files. Each file holds at most 8 TiB.
const STORE_OF_SEVERAL: Absent = Absent {
    lines: "emulate = \"exos-x18\"\nstore = \"disk\"\ncreate = true\n",
    files: &["disk", "disk.1", "disk.2"],
};

fn config(lines: &str, socket: &str) -> String {
    format!(
        "[[disk]]\nname = \"disk0\"\nscheduler = \"noop\"\n{lines}[listen]\nnbd = \"unix:{socket}\"\n"
    )
}

/// A server that may come up or not, and ends with the test.
struct Starting(Child);

impl Starting {
    fn new(directory: &Path, number: usize, lines: &str) -> Starting {
        let file = format!("{number}.toml");
        let text = config(lines, &format!("{number}.sock"));
        fs::write(directory.join(&file), text).unwrap();
        let messages = File::create(directory.join(format!("{number}.err"))).unwrap();
        let mut command = headtime(directory, &["serve", &file, "--ready"]);
        command.stdout(Stdio::piped()).stderr(messages);
        Starting(command.spawn().unwrap())
    }

    /// Waits until it serves or has ended.
    fn serves(&mut self) -> bool {
        let mut line = String::new();
        let out = self.0.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).unwrap();
        line.starts_with("ready ")
    }

    /// Returns true if the server has a file of this name open.
    fn has(&self, path: &Path) -> bool {
        let inode = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let Ok(found) = inode(path) else {
            return false;
        };
        let open = fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap();
        let mut open = open.flatten().filter_map(|entry| inode(&entry.path()).ok());
        open.any(|one| one == found)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files in a directory, without the test's own.
fn made(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let known = [".toml", ".err", ".sock"];
    let mut made: Vec<_> = names
        .filter(|name| !known.iter().any(|end| name.ends_with(end)))
        .collect();
    made.sort();
    made
}

fn race(name: &str, disk: &Absent) {
    const SERVERS: usize = 4;
    for round in 0..8 {
        let directory = scratch(name);
        let start = |number| Starting::new(&directory, number, disk.lines);
        let mut servers: Vec<_> = (0..SERVERS).map(start).collect();
        let serving: Vec<_> = servers.iter_mut().map(Starting::serves).collect();
        let errors = (0..SERVERS).map(|number| {
            let error = fs::read_to_string(directory.join(format!("{number}.err"))).unwrap();
            error.lines().last().unwrap_or_default().to_owned()
        });
        let errors: Vec<_> = errors.collect();
        let winners: Vec<_> = (0..SERVERS).filter(|number| serving[*number]).collect();
        let [winner] = winners[..] else {
            panic!("round {round}: {serving:?} {errors:?}");
        };
        for (number, error) in errors.iter().enumerate() {
            let refused = error.contains("disk is in use");
            assert!(number == winner || refused, "round {round}: {errors:?}");
        }
        assert_eq!(made(&directory), disk.files, "round {round}");
        for file in disk.files {
            let path = directory.join(file);
            assert!(servers[winner].has(&path), "round {round}: {file}");
        }
        // Data that a client has flushed are in the file of that name.
        let socket = directory.join(format!("{winner}.sock"));
        let mut client = Client::connect(&socket, "disk0").unwrap();
        assert_eq!(client.ask(Ask::Write, 4096, &mut [7; 512]).unwrap(), 0);
        assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
        let mut found = [0; 512];
        let file = File::open(directory.join("disk")).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 4096).unwrap();
        assert_eq!(found, [7; 512], "round {round}");
        drop(servers);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn of_servers_started_at_once_on_an_absent_device_one_serves_the_file_of_that_name() {
    race("race-device", &DEVICE);
}

#[test]
fn of_servers_started_at_once_on_an_absent_store_one_serves_the_file_of_that_name() {
    race("race-store", &STORE);
}

#[test]
fn of_servers_started_at_once_on_an_absent_store_of_several_files_one_serves_them_all() {
    race("race-several", &STORE_OF_SEVERAL);
}

/// A kill at any time leaves nothing that hinders the next server, and no file beside the disk.
fn kill(name: &str, disk: &Absent) {
    let directory = scratch(name);
    for round in 0..24 {
        let mut killed = Starting::new(&directory, 0, disk.lines);
        // A start takes some tens of milliseconds.
        std::thread::sleep(Duration::from_millis(5 + 3 * round));
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
        // Files of a killed server stay for the next server.
        if round % 2 == 1 {
            let left = made(&directory);
            let mut next = Starting::new(&directory, 1, disk.lines);
            let error = || fs::read_to_string(directory.join("1.err")).unwrap();
            assert!(next.serves(), "round {round}: {left:?}: {}", error());
            assert_eq!(made(&directory), disk.files, "round {round}");
            drop(next);
            for file in disk.files {
                fs::remove_file(directory.join(file)).unwrap();
            }
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_server_killed_while_it_makes_a_device_leaves_the_next_nothing_to_clear_away() {
    kill("kill-device", &DEVICE);
}

#[test]
fn a_server_killed_while_it_makes_a_store_of_several_files_leaves_the_next_nothing_to_clear_away() {
    kill("kill-several", &STORE_OF_SEVERAL);
}

/// The second server may use any other name and any other settings.
#[test]
fn a_file_that_is_served_is_nobody_elses() {
    let text = config(
        "emulate = \"atlas10k\"\nstore = \"disk\"\nsize = \"4MiB\"\ncreate = true\n",
        "nbd.sock",
    );
    let server = Server::start("shared", &text, &[]);
    fs::hard_link(server.path("disk"), server.path("hard")).unwrap();
    symlink("disk", server.path("soft")).unwrap();
    for path in ["disk", "hard", "soft", "../NAME/disk"] {
        let own = server.directory.file_name().unwrap().to_str().unwrap();
        let path = path.replace("NAME", own);
        for lines in [
            format!("device = \"{path}\"\n"),
            format!("device = \"{path}\"\nsize = \"4MiB\"\ncreate = true\n"),
            format!("device = \"{path}\"\nread_only = true\n"),
            format!("emulate = \"atlas10k\"\nsize = \"4MiB\"\nstore = \"{path}\"\n"),
            format!(
                "emulate = \"wd5000aaks\"\nsize = \"4MiB\"\nstore = \"{path}\"\ncreate = true\n"
            ),
        ] {
            fs::write(server.path("other.toml"), config(&lines, "other.sock")).unwrap();
            // Beside its server, a changed configuration can be checked.
            for (check, code) in [(&["--check"][..], 0), (&[], 4)] {
                let args = [&["serve", "other.toml"], check].concat();
                let output = run(&server.directory, &args);
                let error = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(code), "{lines}: {error}");
                assert!(error.contains(&format!("{path} is in use")), "{error}");
            }
        }
    }
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [7; 512]).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
    assert_eq!(fs::read(server.path("disk")).unwrap()[..512], [7; 512]);
}

/// A store's further files are files like others.
#[test]
fn a_further_file_of_a_store_is_nobody_elses() {
    let server = Server::start("further", &config(STORE_OF_SEVERAL.lines, "nbd.sock"), &[]);
    for lines in [
        "device = \"disk.1\"\ndirect = false\n",
        "device = \"disk.2\"\ndirect = false\nread_only = true\n",
    ] {
        fs::write(server.path("other.toml"), config(lines, "other.sock")).unwrap();
        let output = run(&server.directory, &["serve", "other.toml"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{error}");
        assert!(error.contains("is in use: another program"), "{error}");
    }
    assert_eq!(
        fs::metadata(server.path("disk.1")).unwrap().len(),
        8 << 40,
        "as it was"
    );
}
