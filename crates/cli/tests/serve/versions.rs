//! Files of version 0.1, in `tests/data/version-0.1`: a server of this version goes on with them, and replays their log. A later version
//! adds a folder of its own; these files stay as they are.

use super::common::{Server, headtime, run, scratch};
use super::scrub::{done, left, status};
use std::fs;
use std::path::{Path, PathBuf};

/// Copies the files of version 0.1 into a new folder.
fn files(name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-0.1");
    let to = scratch(name);
    fs::create_dir(to.join("state")).unwrap();
    for file in ["serve.toml", "disk0.log", "state/disk0.scrub"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    to
}

/// The server of version 0.1 ended with a third of its scrub done.
#[test]
fn a_server_goes_on_with_the_configuration_and_the_scrub_of_version_0_1() {
    let directory = files("version-0.1");
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    let mut server = Server::spawn(directory, &mut command);
    assert_eq!(status(&server)["state"], "paused");
    assert_eq!(left(&server), 1_856);
    let text = done(&server, &["resume"]);
    assert!(!text.contains("another version"), "{text}");
    let text = done(&server, &[]);
    assert!(text.contains("range       1MiB-13MiB"), "{text}");
    assert_eq!(status(&server)["state"], "done");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn the_log_of_version_0_1_is_replayed_identically() {
    let directory = files("version-0.1-log");
    let output = run(&directory, &["sim", "replay-log", "disk0.log"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("42 decisions, identical"),
        "{output:?}"
    );
}
