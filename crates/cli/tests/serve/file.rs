//! A file and a block device of this machine, served.

use super::common::{Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
device = "disk.img"
size = "4MiB"
create = true
direct = false
scheduler = "deadline"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

/// Writes of clients reach the file, and clients read the file's contents, also from the next server.
#[test]
fn a_file_is_served() {
    let mut server = Server::start("file", CONFIG, &[]);
    let image = server.path("disk.img");
    let connect = |server: &Server| Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut client = connect(&server);
    assert_eq!(client.bytes, 4 << 20);
    assert_eq!(fs::metadata(&image).unwrap().len(), 4 << 20);
    let mut written: Vec<u8> = (0..137 * 512_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(client.ask(Ask::Write, 9 * 512, &mut written).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
    let found = fs::read(&image).unwrap();
    assert!(found[9 * 512..][..written.len()] == written[..]);
    assert!(found[..9 * 512].iter().all(|byte| *byte == 0));
    assert!(found[(9 + 137) * 512..].iter().all(|byte| *byte == 0));
    let mut read = vec![0; written.len()];
    assert_eq!(client.ask(Ask::Read, 9 * 512, &mut read).unwrap(), 0);
    assert!(read == written);
    // There is nothing beyond the end, and asking does no harm.
    const EINVAL: u32 = 22;
    let mut beyond = [0; 1024];
    let end = (4 << 20) - 512;
    assert_eq!(client.ask(Ask::Read, end, &mut beyond).unwrap(), EINVAL);
    assert_eq!(client.ask(Ask::Read, end, &mut beyond[..512]).unwrap(), 0);

    // The file is for one server at a time.
    let other = CONFIG.replace("nbd.sock", "b.sock");
    let other = other.replace("control.sock", "c.sock");
    fs::write(server.path("other.toml"), other).unwrap();
    let output = run(&server.directory, &["serve", "other.toml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("other.toml:4: disk[0].device: "), "{error}");
    assert!(error.contains("another program has locked it"), "{error}");

    assert_eq!(server.terminate(), Some(0));
    let summary = "disk disk0: 4 requests, 0 failed\n";
    assert!(server.messages().contains(summary), "{}", server.messages());
    let mut command = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let again = Server::spawn(server.directory.clone(), &mut command);
    let mut client = connect(&again);
    assert_eq!(client.ask(Ask::Read, 9 * 512, &mut read).unwrap(), 0);
    assert!(read == written);
}

/// Runs a program of the machine; its output, if there is one and it succeeds.
fn program(name: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(name).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// A loop device with a mounted file system. Dropping the value removes both.
struct Mounted {
    directory: PathBuf,
    device: Option<String>,
    is_mounted: bool,
}

impl Mounted {
    /// `None` without permission or without the programs.
    fn new(name: &str) -> Option<Mounted> {
        let mut mounted = Mounted {
            directory: scratch(name),
            device: None,
            is_mounted: false,
        };
        let image = mounted.directory.join("image");
        let image = image.to_str()?;
        fs::File::create(image)
            .and_then(|file| file.set_len(16 << 20))
            .ok()?;
        fs::create_dir(mounted.at()).ok()?;
        program("mkfs.ext4", &["-q", "-F", image])?;
        let device = program("losetup", &["--find", "--show", image])?;
        let device = mounted.device.insert(device).clone();
        program("mount", &[&device, mounted.at().to_str()?])?;
        mounted.is_mounted = true;
        Some(mounted)
    }

    fn at(&self) -> PathBuf {
        self.directory.join("mounted")
    }

    fn unmount(&mut self) {
        if std::mem::take(&mut self.is_mounted) {
            let at = self.at();
            let gone = program("umount", &[at.to_str().unwrap_or_default()]);
            assert!(gone.is_some() || std::thread::panicking(), "{at:?} stays");
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.unmount();
        if let Some(device) = &self.device {
            program("losetup", &["--detach", device]);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Starts a server that must not come up. Returns its exit code and its messages.
fn refused(directory: &Path) -> (Option<i32>, String) {
    let told = |arguments: &[&str]| {
        let output = run(directory, arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), error)
    };
    // `--check` reports the same error.
    let (code, checked) = told(&["serve", "serve.toml", "--check"]);
    assert_eq!(code, Some(3), "{checked}");
    told(&["serve", "serve.toml"])
}

#[test]
fn a_mounted_device_takes_force() {
    let Some(mut mounted) = Mounted::new("device-mounted") else {
        println!("skipped: takes root, loop devices and mkfs.ext4");
        return;
    };
    let device = mounted.device.clone().unwrap();
    fs::write(mounted.at().join("kept"), "kept").unwrap();
    let config =
        CONFIG
            .replacen("disk.img", &device, 1)
            .replacen("size = \"4MiB\"\ncreate = true\n", "", 1);
    let directory = scratch("device");
    fs::write(directory.join("serve.toml"), &config).unwrap();
    let name = device.rsplit('/').next().unwrap();
    let mounted_on = format!("{name} is mounted on {}", mounted.at().display());
    let (code, error) = refused(&directory);
    assert_eq!(code, Some(3), "{error}");
    let place = format!("serve.toml:4: disk[0].device: {device} is in use: {mounted_on}");
    assert!(error.contains(&place), "{error}");
    assert!(!directory.join("nbd.sock").exists());
    // So is the file that is behind the device.
    let image = mounted.directory.join("image");
    let of_file = config.replacen(&device, image.to_str().unwrap(), 1);
    fs::write(directory.join("serve.toml"), of_file).unwrap();
    let (code, error) = refused(&directory);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains(&format!("it is behind {name}")), "{error}");

    // And it is no store.
    let drive = format!("emulate = \"wd5000aaks\"\nstore = {image:?}");
    let store = CONFIG
        .replacen("device = \"disk.img\"", &drive, 1)
        .replacen("direct = false\n", "", 1);
    fs::write(directory.join("serve.toml"), store).unwrap();
    let (code, error) = refused(&directory);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains(&format!("it is behind {name}")), "{error}");

    // With `--force` the server starts, with a warning.
    fs::write(directory.join("serve.toml"), &config).unwrap();
    let args = ["serve", "serve.toml", "--ready", "--force"];
    let mut server = Server::spawn(directory.clone(), &mut headtime(&directory, &args));
    server.wait_for(&mounted_on);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.bytes, 16 << 20);
    // An ext4's number, at its place.
    let mut superblock = [0; 1024];
    assert_eq!(client.ask(Ask::Read, 1024, &mut superblock).unwrap(), 0);
    assert_eq!(superblock[56..58], [0x53, 0xef]);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(
        fs::read_to_string(mounted.at().join("kept")).unwrap(),
        "kept"
    );

    // Nobody has to insist once it is unmounted.
    mounted.unmount();
    let args = ["serve", "serve.toml", "--ready"];
    let mut server = Server::spawn(directory.clone(), &mut headtime(&directory, &args));
    assert_eq!(server.terminate(), Some(0));
    wait_until(
        || !directory.join("nbd.sock").exists(),
        || "the socket stays".to_owned(),
    );
}
