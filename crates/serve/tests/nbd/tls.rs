//! TLS and client certificates. The certificates are made by openssl.

use crate::client::{Client, PATIENCE};
use crate::device::wait_until;
use crate::fixture::{Fixture, Folder, Setup};
use crate::tools;
use headtime_serve::nbd::tls::{Tls, TlsError, TlsFile, TlsFiles};
use headtime_serve::nbd::wire::{command, option, reply};
use headtime_serve::nbd::{Limits, Listen, Network, Server, SetupError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Folder of the certificates, see tests/live/certificates.sh.
static CERTIFICATES: LazyLock<Folder> = LazyLock::new(|| {
    let folder = Folder::new();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/live/certificates.sh"
    );
    let made = Command::new(script).arg(folder.join("made")).output();
    let made = made.expect("the script runs");
    assert!(made.status.success(), "openssl is needed: {made:?}");
    folder
});

fn file(path: &str) -> PathBuf {
    CERTIFICATES.join("made").join(path)
}

fn files(server: &str) -> TlsFiles {
    TlsFiles {
        certificate: file(server).join("server-cert.pem"),
        key: file(server).join("server-key.pem"),
        ca: Some(file("ca/ca-cert.pem")),
    }
}

fn open(files: &TlsFiles) -> Tls {
    Tls::open(files).expect("all is there")
}

/// A server with certificates at an address, and at a unix socket.
fn fixture_of(tls: Tls, limits: Limits) -> Fixture {
    let setup = Setup {
        limits,
        network: Network {
            tls: Some(tls),
            is_trusted: false,
        },
        ..Setup::default()
    };
    Fixture::listening(setup, |folder| {
        let address = "tcp:127.0.0.1:0".parse().expect("an address");
        vec![address, Listen::unix(folder.join("nbd"))]
    })
}

fn fixture() -> Fixture {
    fixture_of(open(&files("server")), Limits::default())
}

fn tcp(fixture: &Fixture) -> TcpStream {
    let Listen::Tcp(address) = fixture.listens[0] else {
        panic!("{:?}", fixture.listens);
    };
    let socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_file_iter(path).expect("a file");
    all.collect::<Result<_, _>>().expect("certificates")
}

/// Settings of a client, by the folder of its files.
fn client_config(who: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&file(who).join("ca-cert.pem")) {
        roots.add(certificate).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ciphers")
        .with_root_certificates(roots);
    let own = file(who).join("client-cert.pem");
    if !own.exists() {
        return builder.with_no_client_auth();
    }
    let key = PrivateKeyDer::from_pem_file(file(who).join("client-key.pem")).expect("a key");
    let config = builder.with_client_auth_cert(certificates(&own), key);
    config.expect("the key of the certificate")
}

type Private = StreamOwned<ClientConnection, TcpStream>;

/// Sends STARTTLS, and gets the answer. Returns the bare socket.
fn started(fixture: &Fixture) -> TcpStream {
    let socket = tcp(fixture);
    let same = socket.try_clone().expect("the same socket");
    let mut client = Client::greeted(same);
    assert_eq!(client.option(option::STARTTLS, b""), [(reply::ACK, vec![])]);
    socket
}

fn private(fixture: &Fixture, who: &str) -> Private {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(client_config(who)), name);
    StreamOwned::new(connection.expect("a client"), started(fixture))
}

/// A client whose handshakes are done.
fn client(fixture: &Fixture, who: &str) -> Client {
    let mut client = Client {
        socket: Box::new(private(fixture, who)),
        structured: false,
        size: 0,
        flags: 0,
        next: 1,
    };
    client.choose("disk", true, true);
    client
}

/// Returns the reason why a client gets no answer.
fn refused(fixture: &Fixture, who: &str) -> String {
    let mut socket = private(fixture, who);
    let list = [&b"IHAVEOPT"[..], &[0, 0, 0, 3, 0, 0, 0, 0]].concat();
    let written = socket.write_all(&list).and_then(|()| socket.flush());
    let read = written.and_then(|()| socket.read_exact(&mut [0; 1]));
    read.expect_err("the server answers nothing").to_string()
}

#[test]
fn a_client_with_a_certificate_reads_what_it_wrote() {
    let fixture = fixture();
    let mut alice = client(&fixture, "alice");
    let data: Vec<u8> = (0..9_000_001).map(|at| (at / 7) as u8).collect();
    alice.pwrite(4095, &data);
    assert!(alice.pread(4095, data.len() as u32) == data);
    assert!(client(&fixture, "alice").pread(4095, 9_000_001) == data);
    // Nobody needs TLS at the unix socket.
    let mut plain = Client::connect(&fixture.path(), "disk");
    assert!(plain.pread(4095, data.len() as u32) == data);
    wait_until("one client with a certificate", || {
        fixture.counts.certified("disk") == [("alice".to_owned(), 1)].into()
    });
    // Many small requests at a time.
    let cookies: Vec<u64> = (0..256)
        .map(|at| alice.request(command::READ, 0, at * 512, 512, b""))
        .collect();
    let mut replies: Vec<u64> = cookies.iter().map(|_| alice.reply(512).cookie).collect();
    replies.sort_unstable();
    assert_eq!(replies, cookies);
    alice.request(command::DISC, 0, 0, 0, b"");
    assert!(alice.is_closed());
    wait_until("none", || fixture.counts.certified("disk").is_empty());
    drop(plain);
}

#[test]
fn clients_without_the_right_certificate_get_nothing() {
    let fixture = fixture();
    for (who, reason) in [
        ("nobody", "CertificateRequired"),
        ("stranger", "UnknownCA"),
        ("expired", "CertificateExpired"),
        ("early", "CertificateExpired"),
    ] {
        let error = refused(&fixture, who);
        // A reset may overtake the alert.
        let told = error.contains(reason) || error.contains("reset") || error.contains("pipe");
        assert!(told, "{who}: {error}");
    }
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 4);
    client(&fixture, "alice").pread(0, 512);
}

#[test]
fn a_client_takes_no_server_with_a_wrong_certificate() {
    for (server, who, reason) in [
        ("elsewhere", "alice", "not valid for name"),
        ("old-server", "alice", "expired"),
        ("server", "mistaken", "UnknownIssuer"),
    ] {
        let fixture = fixture_of(open(&files(server)), Limits::default());
        let error = refused(&fixture, who);
        assert!(error.contains(reason), "{server} {who}: {error}");
        fixture.all_gone();
        assert_eq!(fixture.counts.failed(), 1);
    }
}

#[test]
fn without_tls_a_client_learns_nothing() {
    let fixture = fixture();
    let mut client = Client::greeted(tcp(&fixture));
    for option in [option::LIST, option::GO, option::STRUCTURED_REPLY] {
        let replies = client.option(option, b"");
        assert_eq!(replies[0].0, reply::ERR_TLS_REQD);
        assert!(!String::from_utf8_lossy(&replies[0].1).contains("disk"));
    }
    assert_eq!(client.option(option::ABORT, b""), [(reply::ACK, vec![])]);
    assert!(client.is_closed());
    let mut client = Client::greeted(tcp(&fixture));
    client.send(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    assert!(client.is_closed());
    let mut unix = Client::greeted(crate::client::unix(&fixture.path()));
    assert_eq!(unix.option(option::STARTTLS, b"")[0].0, reply::ERR_POLICY);
}

/// Somebody on the way could put an option behind STARTTLS.
#[test]
fn an_option_behind_starttls_is_not_obeyed() {
    let fixture = fixture();
    let mut client = Client::greeted(tcp(&fixture));
    let starttls = b"IHAVEOPT\0\0\0\x05\0\0\0\0";
    client.send(&[&starttls[..], b"IHAVEOPT\0\0\0\x03\0\0\0\0"].concat());
    assert_eq!(client.read(20)[12..16], [0, 0, 0, 1]);
    // An alert of TLS, if any.
    let mut rest = Vec::new();
    let _ = client.socket.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest[0] == 21, "{rest:?}");
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 1);
}

#[test]
fn half_a_handshake_keeps_its_place_no_longer_than_it_may() {
    let limits = Limits {
        handshake: Duration::from_secs(1),
        connections: 3,
        ..Limits::default()
    };
    let fixture = fixture_of(open(&files("server")), limits);
    let silent = started(&fixture);
    let mut begun = started(&fixture);
    // The head of a first message of 256 bytes.
    begun
        .write_all(b"\x16\x03\x01\x01\0\x01\0\0\xfc\x03\x03")
        .expect("the server reads");
    let greeted = Client::greeted(tcp(&fixture));
    wait_until("three clients", || fixture.counts.connected() == 3);
    // The limit holds before TLS.
    assert_eq!(tcp(&fixture).read(&mut [0; 1]).expect("the end"), 0);
    assert_eq!(fixture.counts.turned_away(), 1);
    for socket in [silent, begun] {
        let mut rest = Vec::new();
        let _ = { socket }.read_to_end(&mut rest);
    }
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 3);
    drop(greeted);
    client(&fixture, "alice").pread(0, 512);
}

#[test]
fn a_client_that_takes_no_replies_is_dropped() {
    let limits = Limits {
        stalled: Duration::from_millis(500),
        ..Limits::default()
    };
    let fixture = fixture_of(open(&files("server")), limits);
    let mut client = client(&fixture, "alice");
    for _ in 0..3 {
        client.request(command::READ, 0, 0, 16 << 20, b"");
    }
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 1);
}

#[test]
fn new_certificates_are_for_new_connections() {
    let tls = open(&files("server"));
    let fixture = fixture_of(tls.clone(), Limits::default());
    let mut present = client(&fixture, "alice");
    let other = TlsFiles {
        ca: Some(file("other-ca/ca-cert.pem")),
        ..files("server")
    };
    tls.replace(&open(&other));
    refused(&fixture, "alice");
    present.pread(0, 512);
    client(&fixture, "stranger").pread(0, 512);
}

#[test]
fn nbdcopy_and_qemu_img_copy_there_and_back() {
    if !tools::there(&["nbdcopy", "nbdinfo", "qemu-img"]) {
        return;
    }
    let fixture = fixture();
    let Listen::Tcp(address) = fixture.listens[0] else {
        panic!("{:?}", fixture.listens);
    };
    let port = address.port();
    let pki = file("alice");
    let pki = tools::text(&pki);
    let uri = format!("nbds://localhost:{port}/disk?tls-certificates={pki}");
    let info = tools::run("nbdinfo", &[&uri]);
    assert!(info.contains("protocol: newstyle-fixed with TLS"), "{info}");
    let (there, back) = (fixture.folder.join("there"), fixture.folder.join("back"));
    let bytes = tools::image(64 << 20);
    std::fs::write(&there, &bytes).expect("writes");
    tools::run("nbdcopy", &["--flush", tools::text(&there), &uri]);
    assert!(fixture.memory.inside().bytes == bytes);
    tools::run("nbdcopy", &[&uri, tools::text(&back)]);
    assert!(std::fs::read(&back).expect("reads") == bytes);
    let object = format!("tls-creds-x509,id=tls0,endpoint=client,dir={pki}");
    let disk = format!("driver=nbd,host=localhost,port={port},export=disk,tls-creds=tls0");
    let options = ["convert", "--object", &object, "--image-opts", &disk];
    let to = ["-O", "raw", tools::text(&back)];
    tools::run("qemu-img", &[&options[..], &to].concat());
    assert!(std::fs::read(&back).expect("reads") == bytes);
    // Without TLS nothing is learned.
    let plain = tools::output("nbdinfo", &["--list", &format!("nbd://localhost:{port}/")]);
    assert!(
        !plain.status.success() && plain.stdout.is_empty(),
        "{plain:?}"
    );
}

#[test]
fn other_machines_need_certificates() {
    let bind = |ca: Option<PathBuf>| {
        let files = TlsFiles {
            ca,
            ..files("server")
        };
        let network = Network {
            tls: Some(open(&files)),
            is_trusted: false,
        };
        let any = ["tcp:0.0.0.0:0".parse().expect("an address")];
        Server::bind_to(network, &any, Vec::new(), Limits::default())
    };
    bind(Some(file("ca/ca-cert.pem"))).expect("binds");
    let error = bind(None).expect_err("anybody could connect");
    assert!(matches!(error, SetupError::Beyond(_)), "{error}");
}

#[test]
fn files_that_do_not_fit_are_named_with_what_is_allowed() {
    let good = files("server");
    let of = |files: &TlsFiles, path: &Path| {
        let TlsError { file, problem } = Tls::open(files).expect_err("wrong");
        let start = format!("{}: ", path.display());
        let rest = problem.strip_prefix(&start).expect("the path first");
        (file, rest.to_owned())
    };
    let with_key = |key: PathBuf| TlsFiles {
        key,
        ..good.clone()
    };
    let (which, problem) = of(&with_key(file("none.pem")), &file("none.pem"));
    assert_eq!(which, TlsFile::Key);
    assert!(
        problem.starts_with("cannot read: No such file"),
        "{problem}"
    );
    let (which, problem) = of(&with_key(good.certificate.clone()), &good.certificate);
    assert_eq!(which, TlsFile::Key);
    assert!(problem.contains("without a password"), "{problem}");
    let foreign = file("alice/client-key.pem");
    let (which, problem) = of(&with_key(foreign.clone()), &foreign);
    assert_eq!(which, TlsFile::Key);
    assert!(problem.contains("the key with which that"), "{problem}");
    let certificate = good.key.clone();
    let (which, problem) = of(
        &TlsFiles {
            certificate,
            ..good.clone()
        },
        &good.key,
    );
    assert_eq!(which, TlsFile::Certificate);
    assert!(problem.contains("certificates in PEM"), "{problem}");
    let ca = Some(good.key.clone());
    let (which, _) = of(&TlsFiles { ca, ..good.clone() }, &good.key);
    assert_eq!(which, TlsFile::Ca);
}
