//! Checks on the HTTP server: whatever a client sends, the answer is well-formed, and nobody changes anything at the address of
//! metrics.

use headtime_linux::clock::Clock;
use headtime_sched::{Noop, WorkConserving};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::http::{Site, Sockets, Watched, WatchedMember};
use headtime_serve::listen::Listen;
use headtime_serve::null::Null;
use headtime_serve::scrub::Scrubs;
use headtime_units::Sectors;
use std::convert::Infallible;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

/// Time for an answer to a complete request. A request that is cut short gets no more time.
const ANSWERS: Duration = Duration::from_millis(5);

const PATIENCE: Duration = Duration::from_secs(5);

/// Sockets of a server of a null device, for as long as the process lives.
struct Served {
    metrics: SocketAddr,
    control: PathBuf,
}

fn site() -> Site {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let options = Options::new("null", Clock::start(), ("noop".into(), Box::new(build)));
    let null = || Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(512), 32)) as Box<_>);
    let disk = Disk::start(options, null).expect("starts");
    let member = WatchedMember {
        name: "null".to_owned(),
        backend: "null".to_owned(),
        faults: true,
        parse_scheduler: Arc::new(move |text| Ok((text.to_owned(), Box::new(build)))),
    };
    Site {
        disks: vec![Watched {
            backend: "null".to_owned(),
            exports: vec![("null".to_owned(), disk.addresses())],
            members: vec![member],
            scrubs: Arc::new(Scrubs::new(disk.clone(), "null", None, None)),
            disk,
        }],
        nbd: None,
        goals: None,
        messages_dropped: Arc::default(),
        clock: Clock::start(),
        version: "0".to_owned(),
    }
}

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let name = format!("headtime-fuzz-http-{}", std::process::id());
        let control = std::env::temp_dir().join(name);
        let at = Listen::unix(&control);
        let (bound, binds) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let any = Listen::Tcp("127.0.0.1:0".parse().expect("an address"));
                let sockets = Sockets::bind(Some(any), Some(at)).await.expect("binds");
                let metrics = sockets.metrics().expect("a port");
                bound.send(metrics).expect("somebody waits");
                let (_end, ended) = watch::channel(false);
                sockets.serve(Arc::new(site()), ended).await;
            });
        });
        let metrics = binds.recv().expect("binds");
        Served { metrics, control }
    })
}

/// All that the server says.
fn answer(stream: &mut (impl Read + Write), input: &[u8], end: impl FnOnce()) -> Vec<u8> {
    // The server may hang up before it has read all.
    let _ = stream.write_all(input);
    let (mut output, mut end) = (Vec::new(), Some(end));
    loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) => return output,
            Ok(read) => output.extend(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => match end.take() {
                Some(end) => end(),
                None => panic!("no end after {PATIENCE:?}"),
            },
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                return output;
            }
        }
    }
}

/// Checks an answer. Returns the status; `None` if there is no answer.
fn status(answer: &[u8]) -> Option<u16> {
    if answer.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(answer);
    let (head, _) = text.split_once("\r\n\r\n").expect("a whole head");
    let rest = head.strip_prefix("HTTP/1.1 ");
    let rest = rest.or(head.strip_prefix("HTTP/1.0 ")).expect("a version");
    let status = rest.get(..3).and_then(|status| status.parse().ok());
    let status: u16 = status.expect("a number");
    assert_ne!(status, 500, "{text}");
    Some(status)
}

/// The bytes are a request at the control socket. Scrubs are left out, since their requests name files to write.
pub fn control(bytes: &[u8]) {
    if bytes.windows(5).any(|part| part == b"scrub") {
        return;
    }
    let mut stream = UnixStream::connect(&served().control).expect("listens");
    stream.set_read_timeout(Some(ANSWERS)).expect("a timeout");
    let other = stream.try_clone().expect("the same socket");
    let output = answer(&mut stream, bytes, || {
        let _ = other.shutdown(Shutdown::Write);
        other.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    });
    status(&output);
}

/// The bytes are a request at the address of metrics.
pub fn metrics(bytes: &[u8]) {
    let mut stream = TcpStream::connect(served().metrics).expect("listens");
    stream.set_read_timeout(Some(ANSWERS)).expect("a timeout");
    let other = stream.try_clone().expect("the same socket");
    let output = answer(&mut stream, bytes, || {
        let _ = other.shutdown(Shutdown::Write);
        other.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    });
    if status(&output) == Some(200) {
        let request = bytes.trim_ascii_start();
        let mut reads = [b"GET ".as_slice(), b"HEAD "].into_iter();
        assert!(
            reads.any(|method| request.starts_with(method)),
            "only reads are served here"
        );
    }
}
