//! Goals of programs on two servers that run.

use super::common::{Ended, Server, headtime, run, scratch, wait_until};
use super::goals::{CONFIG, read};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn server(name: &str) -> Server {
    Server::start(name, CONFIG, &["--log", "events.log"])
}

/// The command line of a coordinator of servers, which listens at `control.sock` in a directory.
fn arguments(directory: &Path, servers: &[&Server], programs: &str) -> Vec<String> {
    fs::write(directory.join("programs.toml"), programs).unwrap();
    let mut all: Vec<String> = [
        "qos",
        "coordinate",
        "--programs",
        "programs.toml",
        "--control",
        "control.sock",
    ]
    .map(str::to_owned)
    .to_vec();
    let sockets = servers.iter().map(|server| server.path("control.sock"));
    all.extend(sockets.map(|socket| socket.to_str().unwrap().to_owned()));
    all
}

fn coordinator(servers: &[&Server], programs: &str) -> Server {
    let directory = scratch("coordinator");
    let all = arguments(&directory, servers, programs);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut command = headtime(&directory, &all);
    Server::spawn(directory, &mut command)
}

/// Why there can be no coordinator, with its exit code.
fn refused(servers: &[&Server], programs: &str) -> (Option<i32>, String) {
    // Tests run side by side.
    let last = servers[servers.len() - 1].directory.file_name().unwrap();
    let directory = scratch(&format!("no-coordinator-of-{}", last.display()));
    let all = arguments(&directory, servers, programs);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let output = run(&directory, &all);
    fs::remove_dir_all(&directory).unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const PROGRAMS: &str = "[[qos.program]]\nname = \"mail\"\n[[qos.program]]\nname = \"web\"\n";

fn joined(coordinator: &Server) -> bool {
    let status = coordinator.status();
    let servers = status["servers"].as_array().unwrap();
    servers.iter().all(|server| server["joined"] == true)
}

#[test]
fn a_run_goes_on_over_two_servers_of_which_one_is_killed_and_started_again() {
    let (first, second) = (server("first"), server("second"));
    let mut planner = coordinator(&[&first, &second], PROGRAMS);
    let never = AtomicBool::new(false);
    wait_until(|| joined(&planner), || planner.status().to_string());
    planner.told(&["qos", "profile", "mail", "start"]);
    std::thread::scope(|scope| {
        scope.spawn(|| read(&first, "mail", 60, &never));
        read(&second, "mail", 60, &never);
    });
    // The last requests are known after a few questions.
    let text = planner.told(&["qos", "profile", "mail", "stop"]);
    assert!(
        text.contains("\nsite = disk0+disk0\nprogram = mail\n") && text.contains("\nservers = 2\n"),
        "{text}"
    );
    // Servers take no goals while they are coordinated.
    let output = first.control(&["qos", "goal", "mail", "none"]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        why.contains("a coordinator plans the windows of this server's programs"),
        "{why}"
    );
    assert_eq!(planner.terminate(), Some(0));

    let directory = scratch("coordinator-profile");
    fs::write(directory.join("mail.profile"), &text).unwrap();
    let profile = format!(
        "name = \"mail\"\nprofile = {:?}\ngoal = \"4x\"",
        directory.join("mail.profile")
    );
    let programs = PROGRAMS.replace("name = \"mail\"", &profile);
    // The first coordinator's sessions last for three periods.
    let (code, why) = refused(&[&first, &second], &programs);
    assert!(
        code == Some(1) && why.contains("end the coordinator and wait for 600ms"),
        "{code:?} {why}"
    );
    let mut planner = None;
    wait_until(
        || {
            let is_free = |server: &Server| {
                server
                    .control(&["qos", "goal", "mail", "none"])
                    .status
                    .success()
            };
            let free = is_free(&first) && is_free(&second);
            if free {
                planner = Some(coordinator(&[&first, &second], &programs));
            }
            free
        },
        || "the servers stay with the first coordinator".to_owned(),
    );
    let planner = planner.unwrap();
    wait_until(|| joined(&planner), || planner.status().to_string());
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ended(&end);
        scope.spawn(|| read(&first, "web", 1_000_000, &end));
        read(&first, "mail", 20, &never);
        let status = planner.status();
        let state = status["programs"][0]["state"].as_str().unwrap();
        assert!(["running", "behind"].contains(&state), "{status}");
        assert!(
            status["servers"][0]["offset_error_s"].as_f64().unwrap() < 0.1,
            "{status}"
        );
        drop(second);
        wait_until(|| !joined(&planner), || planner.status().to_string());
        let before = windows(&first);
        read(&first, "mail", 20, &never);
        let second = server("second");
        wait_until(|| joined(&planner), || planner.status().to_string());
        wait_until(|| windows(&second) > 2, || planner.messages());
        read(&second, "mail", 20, &never);
        assert!(windows(&first) > before, "{}", planner.messages());
        wait_until(
            || {
                let status = planner.status();
                let state = status["programs"][0]["state"].as_str().unwrap();
                // A goal of a second or two is no measure on a machine that does something else.
                ["met", "missed"].contains(&state)
            },
            || planner.status().to_string(),
        );
    });
    fs::remove_dir_all(&directory).unwrap();
}

/// Windows in a server's log.
fn windows(server: &Server) -> usize {
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    log.lines().filter(|line| line.contains("window ")).count()
}

#[test]
fn servers_that_cannot_be_coordinated_are_named_with_what_to_do() {
    let first = server("alike");
    let other = CONFIG.replace("period=200ms", "period=400ms");
    let other = Server::start("not-alike", &other, &[]);
    let (code, why) = refused(&[&first, &other], PROGRAMS);
    assert!(
        code == Some(1)
            && why.contains("/control.sock: the gate of its disks is windows(depth):")
            && why.contains("give all servers the same gate"),
        "{why}"
    );
    let (code, why) = refused(&[&other], "[[qos.program]]\nname = \"post\"\n");
    assert!(
        code == Some(1)
            && why.contains(
                "its programs are mail, web; allowed are the coordinator's in the same order, post"
            ),
        "{why}"
    );
    let (code, why) = refused(&[&other], &format!("{PROGRAMS}exports = [\"web\"]\n"));
    assert_eq!(code, Some(3));
    assert!(
        why.contains("programs.toml:5: qos.program[1].exports: is for servers"),
        "{why}"
    );
    let socket = other.path("control.sock");
    drop(other);
    let output = run(
        &std::env::temp_dir(),
        &[
            "qos",
            "coordinate",
            socket.to_str().unwrap(),
            "--programs",
            first.path("serve.toml").to_str().unwrap(),
        ],
    );
    // A server's file names exports.
    assert_eq!(output.status.code(), Some(3));
    fs::write(first.path("programs.toml"), PROGRAMS).unwrap();
    let output = run(
        &first.directory,
        &[
            "qos",
            "coordinate",
            socket.to_str().unwrap(),
            "--programs",
            "programs.toml",
        ],
    );
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(4)
            && why.contains("no server listens there: give the path of `listen.control`"),
        "{why}"
    );
}
