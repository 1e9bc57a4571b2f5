//! Access to a server's sockets.

use super::common::{Server, headtime, scratch};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
device = "null"
size = "1MiB"
scheduler = "noop"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

/// A group that nobody here is in, and that has no name.
const FOREIGN: u32 = 54_321;

/// Returns true for root, who can give files to any group.
fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Permissions and group of a socket.
fn of(directory: &Path, name: &str) -> (u32, u32) {
    let found = fs::symlink_metadata(directory.join(name)).unwrap();
    (found.mode() & 0o7777, found.gid())
}

/// The command as a user who may give files only to groups of their own.
fn without_the_right_to_give(directory: &Path, args: &[&str]) -> Command {
    let plain = headtime(directory, args);
    if !is_root() {
        return plain;
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-chown", "--inh-caps=-chown"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// Exit code, standard output, standard error.
fn end(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("the command can be started");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_sockets_of_clients_are_their_groups_and_the_control_socket_stays_the_owners() {
    let own = fs::metadata("/proc/self").unwrap().gid();
    let group = if is_root() { FOREIGN } else { own };
    let config = format!("{CONFIG}group = {group}\n");
    let mut server = Server::start("group", &config, &[]);
    assert_eq!(of(&server.directory, "nbd.sock"), (0o660, group));
    assert_eq!(of(&server.directory, "control.sock"), (0o600, own));
    assert_eq!(server.status()["disks"][0]["name"], "disk0");
    // A changed mode in the file takes a restart.
    let other = format!("{CONFIG}mode = \"0666\"\ncontrol_group = {group}\n");
    fs::write(server.path("serve.toml"), other).unwrap();
    server.signal("HUP");
    server.wait_for(
        "listen: mode or group, control_mode or control_group: another value takes a restart",
    );
    assert_eq!(of(&server.directory, "nbd.sock"), (0o660, group));
    assert_eq!(of(&server.directory, "control.sock"), (0o600, own));
    // A group that does not exist makes the whole file invalid.
    let unknown = format!("{CONFIG}group = \"no-such-group\"\n");
    fs::write(server.path("serve.toml"), unknown).unwrap();
    server.signal("HUP");
    server.wait_for("nothing is changed: serve.toml:10: listen.group: \"no-such-group\": ");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn the_control_socket_has_keys_of_its_own() {
    let own = fs::metadata("/proc/self").unwrap().gid();
    let group = if is_root() { FOREIGN } else { own };
    let config = format!("{CONFIG}control_group = {group}\n");
    let server = Server::start("own-keys", &config, &[]);
    assert_eq!(of(&server.directory, "nbd.sock"), (0o600, own));
    assert_eq!(of(&server.directory, "control.sock"), (0o660, group));
}

/// Permissions of the environment do not count, neither more nor less.
#[test]
fn permissions_are_those_of_the_configuration_whatever_the_umask() {
    for mask in ["000", "077", "777"] {
        let directory = scratch(&format!("umask-{mask}"));
        let config = format!("{CONFIG}mode = \"0666\"\n");
        fs::write(directory.join("serve.toml"), config).unwrap();
        let plain = headtime(&directory, &["serve", "serve.toml", "--ready"]);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("umask {mask}; exec \"$0\" \"$@\"")])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(&directory)
            .stdin(Stdio::null());
        let server = Server::spawn(directory, &mut command);
        assert_eq!(of(&server.directory, "nbd.sock").0, 0o666, "{mask}");
        assert_eq!(of(&server.directory, "control.sock").0, 0o600, "{mask}");
    }
}

#[test]
fn a_check_shows_who_may_connect_and_what_keeps_them_out() {
    let directory = scratch("shows");
    let config = format!("{CONFIG}mode = \"0666\"\ncontrol_mode = \"0660\"\n");
    fs::write(directory.join("serve.toml"), config).unwrap();
    let closed = |mode| {
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        let (code, out, err) = end(headtime(&directory, &["serve", "serve.toml", "--check"]));
        assert_eq!(code, Some(0), "{err}");
        let expected = "nbd at unix:nbd.sock, 0666, every user of this machine\n\
                        control at unix:control.sock, 0660\n";
        assert!(out.ends_with(expected), "{out}");
        err
    };
    let shown = directory.display();
    let expected = format!(
        "note: unix:nbd.sock, 0666, every user of this machine: who is let in cannot get there, as {shown} is closed to them (chmod g+x or o+x)\n\
         note: unix:control.sock, 0660: who is let in cannot get there, as {shown} is closed to them (chmod g+x or o+x)\n"
    );
    assert_eq!(closed(0o700), expected);
    let open = closed(0o711);
    assert!(!open.contains(&*shown.to_string()), "{open}");
    // A server that starts says so too.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    let server = Server::spawn(directory.clone(), &mut command);
    server.wait_for("WARN unix:control.sock, 0660: who is let in cannot get there");
}

/// Before there is a socket, or a file of a disk.
#[test]
fn a_group_that_the_server_is_not_in_is_said_at_its_key_by_check_and_start() {
    for (key, socket) in [("group", "nbd.sock"), ("control_group", "control.sock")] {
        let directory = scratch(&format!("foreign-{key}"));
        let config = CONFIG.replacen("\"null\"", "\"disk.img\"\ncreate = true", 1);
        let config = format!("{config}{key} = {FOREIGN}\n");
        fs::write(directory.join("serve.toml"), config).unwrap();
        for more in [&["--check"][..], &[]] {
            let args: Vec<&str> = ["serve", "serve.toml"]
                .iter()
                .chain(more)
                .copied()
                .collect();
            let (code, out, err) = end(without_the_right_to_give(&directory, &args));
            assert_eq!((code, &*out), (Some(3), ""), "{err}");
            let expected = format!(
                "error: serve.toml:11: listen.{key}: \"{FOREIGN}\": unix:{socket} cannot be given to this group; \
                 let the server's user join that group (in a systemd unit: SupplementaryGroups=), or give the server CAP_CHOWN\n"
            );
            assert_eq!(err, expected);
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// The kernel refuses the group only when the socket is made. The server then removes all files that it made.
#[test]
fn a_group_that_is_refused_in_the_end_leaves_nothing_behind() {
    let directory = scratch("refused-group");
    if std::os::unix::fs::chown(&directory, None, Some(FOREIGN)).is_err() {
        println!("skipped: a directory cannot be given to another group");
        fs::remove_dir_all(&directory).unwrap();
        return;
    }
    let config = CONFIG.replacen("\"null\"", "\"disk.img\"\ncreate = true\ndirect = false", 1);
    let config = format!("{config}group = {FOREIGN}\n");
    fs::write(directory.join("serve.toml"), config).unwrap();
    let args = ["serve", "serve.toml"];
    let (code, out, err) = end(without_the_right_to_give(&directory, &args));
    assert_eq!((code, &*out), (Some(4), ""), "{err}");
    let expected = format!(
        "serve.toml: listen.nbd: unix:nbd.sock: its file cannot be given to group {FOREIGN}: Operation not permitted (os error 1); let the server's user join"
    );
    assert!(err.contains(&expected), "{err}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    fs::remove_dir_all(&directory).unwrap();
}
