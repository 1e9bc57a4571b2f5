use super::*;
use std::os::unix::net;

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headtime-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("makes a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that lives, but lets as many clients wait as it can, would have had its successor wait
/// with them.
#[test]
fn a_server_that_is_too_busy_to_answer_lives() {
    let folder = Folder::new("busy");
    let path = folder.0.join("socket");
    let address = SocketAddrUnix::new(&path).expect("short enough");
    let server =
        rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&server, &address).expect("binds");
    rustix::net::listen(&server, 0).expect("listens");
    let _first = net::UnixStream::connect(&path).expect("waits to be accepted");
    let error = Listen::unix(&path).bind().expect_err("somebody listens");
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    drop(server);
    Listen::unix(&path).bind().expect("nobody does any more");
}

#[test]
fn what_another_put_there_stays() {
    let folder = Folder::new("another");
    let path = folder.0.join("socket");
    let bound = Listen::unix(&path).bind().expect("binds");
    std::fs::remove_file(&path).expect("removes");
    std::fs::write(&path, "valuable").expect("writes");
    drop(bound);
    assert_eq!(std::fs::read(&path).expect("is there"), b"valuable");
    let error = Listen::unix(&path).bind().expect_err("a file");
    assert!(matches!(error, BindError::NotASocket(_)), "{error}");
}

#[test]
fn a_link_to_a_living_server_is_not_replaced() {
    let folder = Folder::new("link");
    let (path, link) = (folder.0.join("socket"), folder.0.join("link"));
    let _bound = Listen::unix(&path).bind().expect("binds");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    let error = Listen::unix(&link).bind().expect_err("a link");
    assert!(matches!(error, BindError::NotASocket(_)), "{error}");
    assert!(link.exists());
}

/// Another server takes a moment to look at what is there; somebody else may hold a folder for ever.
#[test]
fn a_folder_that_somebody_has_locked_is_waited_for_with_a_bound() {
    let folder = Folder::new("locked");
    let path = folder.0.join("socket");
    let lock = std::fs::File::open(&folder.0).expect("opens");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("locks");
    let error = Listen::unix(&path).bind().expect_err("it is locked");
    assert!(matches!(error, BindError::FolderLocked(_)), "{error}");
    drop(lock);
    Listen::unix(&path).bind().expect("it is not any more");
}
