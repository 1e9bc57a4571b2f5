//! `headtime top --once`: a second of a server as a table.

use super::common::{Server, run};
use super::nbd::{Ask, Client};
use std::thread;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "memory"
size = "64MiB"
scheduler = "deadline"
[[disk.export]]
name = "quiet"
[[disk.export]]
name = "busy"
rate = "1MiB/s"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

/// The cells of the row that begins with a name, by heading. No cell of the table has blanks.
fn row(text: &str, table: &str, name: &str) -> Vec<String> {
    let tables = text.split("\n\n");
    let of_name = |table: &str, name: &str| {
        let mut lines = table.lines().map(|line| line.split_whitespace());
        lines
            .find(|words| words.clone().next() == Some(name))
            .map(|words| words.map(str::to_owned).collect())
    };
    let mut tables = tables.filter(|lines| lines.starts_with(table));
    let found = tables.next().and_then(|lines| of_name(lines, name));
    found.unwrap_or_else(|| panic!("no {name} under {table} in:\n{text}"))
}

#[test]
fn one_table_has_the_rates_of_a_second() {
    let mut server = Server::start("top", CONFIG, &[]);
    let socket = server.path("nbd.sock");
    let client = thread::spawn(move || {
        let mut client = Client::connect(&socket, "busy").unwrap();
        let mut data = vec![0; 64 << 10];
        // The rate makes the reads last for seven seconds.
        for place in 0..120 {
            assert_eq!(client.ask(Ask::Read, place << 16, &mut data).unwrap(), 0);
        }
    });
    let output = run(&server.directory, &["top", "control.sock", "--once"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    client.join().unwrap();
    assert!(text.contains("rates of 1."), "{text}");
    let busy = row(&text, "export", "busy");
    let reads: f64 = busy[1].parse().unwrap();
    assert!((5.0..=20.0).contains(&reads), "{text}");
    assert_eq!(busy.last().unwrap(), "1.0", "{text}");
    assert_eq!(
        row(&text, "export", "quiet")[1..5],
        ["0", "0", "0.0", "0.0"]
    );
    let disk = row(&text, "disk", "disk0");
    assert_eq!(disk[disk.len() - 2..], ["deadline", "depth"]);
    assert!(disk[3].parse::<f64>().unwrap() >= 5.0, "{text}");
    // The parts of the arm's time sum to the second, but for rounding.
    let arm = row(&text, "time of the arm", "disk0");
    let sum: f64 = arm[1..]
        .iter()
        .map(|part| part.parse::<f64>().unwrap())
        .sum();
    assert!((95.0..=105.0).contains(&sum), "{text}");

    let output = run(&server.directory, &["top", "control.sock"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--once"), "{error}");
    assert_eq!(server.terminate(), Some(0));
    let output = run(&server.directory, &["top", "control.sock", "--once"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("no server listens there"), "{error}");
}

#[test]
fn a_socket_of_something_else_is_refused() {
    let server = Server::start("top-nbd", CONFIG, &[]);
    let output = run(&server.directory, &["top", "nbd.sock", "--once"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("the answer is not HTTP"), "{error}");
}
