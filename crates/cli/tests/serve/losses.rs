//! Acknowledged writes that are lost, as clients and administrators see it.

use super::common::Server;
use super::nbd::{Ask, Client};

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "wd5000aaks"
store = "memory"
size = "1GiB"
scheduler = "noop"
faults = true

[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

const EPERM: u32 = 1;
const EIO: u32 = 5;

#[test]
fn a_power_cut_that_loses_writes_is_told_to_every_client_until_an_administrator_clears_it() {
    let mut server = Server::start("losses", CONFIG, &[]);
    let connect = || Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let (mut writer, mut other) = (connect(), connect());
    for block in 0..200u64 {
        let offset = block * 7919 % (1 << 18) * 4096;
        assert_eq!(writer.ask(Ask::Write, offset, &mut [7; 4096]).unwrap(), 0);
    }
    let told = server.told(&["power-cut", "disk0"]);
    assert!(
        told.contains("acknowledged and not flushed are lost"),
        "{told}"
    );
    server.told(&["power-on", "disk0"]);
    // No request of either was in the way of the cut, so none has failed.
    for client in [&mut writer, &mut other] {
        assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), EIO);
        assert_eq!(client.ask(Ask::Write, 0, &mut [1; 4096]).unwrap(), EPERM);
        assert_eq!(client.ask(Ask::Read, 0, &mut [0; 4096]).unwrap(), 0);
    }
    let disk = &server.status()["disks"][0];
    assert_eq!(disk["failed"], true);
    let failure = disk["failure"].as_str().expect("says why");
    assert!(failure.starts_with("the power was cut, and "), "{failure}");
    server.wait_for("takes no more writes until the failure is cleared: the power was cut");

    server.told(&["clear-failure", "disk0"]);
    assert_eq!(other.ask(Ask::Write, 0, &mut [1; 4096]).unwrap(), 0);
    assert_eq!(writer.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_server_that_ends_after_a_loss_says_so() {
    let mut server = Server::start("losses-end", CONFIG, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    // The number of writes is so large that some are not on the medium when the power is cut.
    for block in 0..200u64 {
        let offset = block * 7919 % (1 << 18) * 4096;
        assert_eq!(client.ask(Ask::Write, offset, &mut [7; 4096]).unwrap(), 0);
    }
    server.told(&["power-cut", "disk0"]);
    server.told(&["power-on", "disk0"]);
    assert_eq!(server.terminate(), Some(4));
    let messages = server.messages();
    assert!(messages.contains("lost acknowledged writes"), "{messages}");
}

#[test]
fn what_there_is_nothing_to_do_for_is_refused() {
    let server = Server::start("losses-nothing", CONFIG, &[]);
    for (args, error) in [
        (["clear-failure", "disk0"], "disk disk0: nothing has failed"),
        (["power-on", "disk0"], "disk disk0: the power is on"),
    ] {
        let output = server.control(&args);
        let found = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {found}");
        assert!(found.contains(error), "{args:?}: {found}");
    }
    assert_eq!(
        server.told(&["power-cut", "disk0"]),
        "",
        "nothing was at stake"
    );
    let output = server.control(&["power-cut", "disk0"]);
    let found = String::from_utf8_lossy(&output.stderr);
    assert!(found.contains("disk disk0: the power is off"), "{found}");
}
