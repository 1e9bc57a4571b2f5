mod shake;

use super::*;
use proptest::prelude::*;
use shake::shake;

fn offer(name: &str) -> Offer {
    Offer {
        name: name.to_owned(),
        description: "a disk".to_owned(),
        addresses: Addresses::whole(1 << 30, 512),
        read_only: false,
        discards: true,
    }
}

fn offers(names: &[&str]) -> Arc<[Offer]> {
    names.iter().map(|name| offer(name)).collect()
}

/// Makes a handshake whose client has sent its flags.
fn begun(names: &[&str], flags: u32) -> Handshake {
    let mut handshake = Handshake::new(offers(names));
    let taken = handshake.advance(&flags.to_be_bytes(), &mut Vec::new());
    assert_eq!(taken, Ok((4, Step::Again)));
    handshake
}

fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::IHAVEOPT.to_be_bytes().to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Replies to an option: kind and data.
type Replies = Vec<(u32, Vec<u8>)>;

fn replies(option: u32, mut bytes: &[u8]) -> Replies {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(u64_at(bytes, 0), wire::OPTION_REPLY_MAGIC);
        assert_eq!(u32_at(bytes, 8), option);
        let end = 20 + u32_at(bytes, 16) as usize;
        replies.push((u32_at(bytes, 12), bytes[20..end].to_vec()));
        bytes = &bytes[end..];
    }
    replies
}

/// Sends an option, which is taken whole.
fn send(handshake: &mut Handshake, option: u32, data: &[u8]) -> (Step, Replies) {
    let bytes = option_bytes(option, data);
    let mut out = Vec::new();
    for missing in [1, bytes.len() - 8] {
        let part = handshake.advance(&bytes[..bytes.len() - missing], &mut out);
        assert_eq!(part, Ok((0, Step::NeedMore)));
    }
    let (taken, step) = handshake.advance(&bytes, &mut out).expect("an answer");
    assert_eq!(taken, bytes.len());
    (step, replies(option, &out))
}

fn kinds(replies: &Replies) -> Vec<u32> {
    replies.iter().map(|(kind, _)| *kind).collect()
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn info_data(name: &str, asked: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend_from_slice(&(asked.len() as u16).to_be_bytes());
    asked
        .iter()
        .for_each(|kind| data.extend_from_slice(&kind.to_be_bytes()));
    data
}

fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

const BOTH: u32 = 3;

/// As `Offer::flags` without structured replies: flush, FUA, rotational, trim, zeroes, several
/// connections.
const FLAGS: u16 = 0b1_0111_1101;

#[test]
fn the_server_greets_with_the_bytes_of_the_protocol() {
    assert_eq!(&Handshake::GREETING[..16], b"NBDMAGICIHAVEOPT");
    assert_eq!(Handshake::GREETING[16..], [0, 3]);
}

#[test]
fn an_export_has_the_flags_of_its_abilities() {
    assert_eq!(offer("").flags(false), FLAGS);
    assert_eq!(offer("").flags(true), FLAGS | export::SEND_DF);
    let read_only = Offer {
        read_only: true,
        ..offer("")
    };
    assert_eq!(read_only.flags(false), 0b1_0001_1111);
    let stiff = Offer {
        discards: false,
        ..offer("")
    };
    assert_eq!(stiff.flags(false), FLAGS & !export::SEND_TRIM);
}

#[test]
fn unknown_flags_of_a_client_end_the_connection() {
    let mut handshake = Handshake::new(offers(&["a"]));
    assert_eq!(
        handshake.advance(&[0, 0, 0], &mut Vec::new()),
        Ok((0, Step::NeedMore))
    );
    let error = handshake.advance(&[0, 0, 0, 7], &mut Vec::new());
    assert_eq!(error, Err(HandshakeError::Flags(7)));
}

/// The name goes into a message, and must not become another one.
#[test]
fn an_unknown_export_name_with_line_breaks_and_escapes_is_told_escaped_and_cut() {
    let mut handshake = begun(&["a", "b"], BOTH);
    let mut name = b"x\" is served\n2026-11-22 ERROR \x1b[31m\r\xff".to_vec();
    name.resize(4096, b'\n');
    let bytes = option_bytes(option::EXPORT_NAME, &name);
    let error = handshake.advance(&bytes, &mut Vec::new());
    let text = error.expect_err("there is no such export").to_string();
    let begins = r#"there is no export "x\" is served\n2026-11-22 ERROR \u{1b}[31m\r"#;
    assert!(text.starts_with(begins), "{text}");
    // The byte that is not UTF-8 is replaced by a character of three bytes.
    assert!(text.ends_with("\\n...(4098 bytes)\""), "{text}");
    assert!(!text.contains(char::is_control), "{text}");
    assert!(text.len() < 400, "{}", text.len());
}

#[test]
fn export_name_with_and_without_zeroes() {
    for (flags, zeroes) in [(3, 0), (1, 124), (0, 124), (2, 0)] {
        let mut handshake = begun(&["a", "b"], flags);
        let mut out = Vec::new();
        let bytes = option_bytes(option::EXPORT_NAME, b"b");
        let (_, step) = handshake.advance(&bytes, &mut out).expect("b is there");
        let choice = Choice {
            export: 1,
            structured: false,
            allocation: false,
        };
        assert_eq!(step, Step::Transmission(choice));
        let mut expected = vec![0, 0, 0, 0, 0x40, 0, 0, 0, 1, 0b0111_1101];
        expected.resize(10 + zeroes, 0);
        assert_eq!(out, expected);
    }
}

#[test]
fn export_name_of_no_export_ends_the_connection() {
    let mut handshake = begun(&["a"], BOTH);
    let bytes = option_bytes(option::EXPORT_NAME, b"b");
    let error = handshake
        .advance(&bytes, &mut Vec::new())
        .expect_err("no b");
    assert_eq!(error.to_string(), "there is no export \"b\"");
}

#[test]
fn the_only_export_needs_no_name() {
    let (step, _) = send(&mut begun(&["a"], BOTH), option::GO, &info_data("", &[]));
    assert!(matches!(step, Step::Transmission(Choice { export: 0, .. })));
    let (step, replies) = send(
        &mut begun(&["a", "b"], BOTH),
        option::GO,
        &info_data("", &[]),
    );
    assert_eq!(step, Step::Again);
    assert_eq!(kinds(&replies), [reply::ERR_UNKNOWN]);
    // An export with an empty name has precedence.
    let (step, _) = send(
        &mut begun(&["a", ""], BOTH),
        option::GO,
        &info_data("", &[]),
    );
    assert!(matches!(step, Step::Transmission(Choice { export: 1, .. })));
}

#[test]
fn a_client_without_fixed_newstyle_gets_no_errors() {
    let mut handshake = begun(&["a"], 2);
    let error = handshake.advance(&option_bytes(option::LIST, b""), &mut Vec::new());
    assert_eq!(error, Err(HandshakeError::NotFixed(option::LIST)));
}

#[test]
fn exports_are_listed() {
    let mut handshake = begun(&["a", "bc"], BOTH);
    let (step, replies) = send(&mut handshake, option::LIST, b"");
    assert_eq!(step, Step::Again);
    assert_eq!(
        replies,
        [
            (reply::SERVER, b"\0\0\0\x01aa disk".to_vec()),
            (reply::SERVER, b"\0\0\0\x02bca disk".to_vec()),
            (reply::ACK, vec![])
        ]
    );
    let (_, replies) = send(&mut handshake, option::LIST, b"x");
    assert_eq!(kinds(&replies), [reply::ERR_INVALID]);
}

#[test]
fn abort_is_acknowledged() {
    let (step, replies) = send(&mut begun(&["a"], BOTH), option::ABORT, b"");
    assert_eq!((step, kinds(&replies)), (Step::End, vec![reply::ACK]));
}

#[test]
fn what_is_not_known_is_refused() {
    let mut handshake = begun(&["a"], BOTH);
    for (option, kind) in [
        (option::STARTTLS, reply::ERR_POLICY),
        (4, reply::ERR_UNSUP),
        (11, reply::ERR_UNSUP),
        (12345, reply::ERR_UNSUP),
    ] {
        let (step, replies) = send(&mut handshake, option, b"data");
        assert_eq!((step, kinds(&replies)), (Step::Again, vec![kind]));
    }
}

/// A handshake at a socket that needs TLS.
fn private() -> Handshake {
    let mut handshake = Handshake::with_tls(offers(&["a"]));
    let taken = handshake.advance(&BOTH.to_be_bytes(), &mut Vec::new());
    assert_eq!(taken, Ok((4, Step::Again)));
    handshake
}

#[test]
fn before_tls_every_option_is_refused_and_changes_nothing() {
    let mut handshake = private();
    for (option, data) in [
        (option::LIST, vec![]),
        (option::INFO, info_data("a", &[])),
        (option::GO, info_data("a", &[])),
        (option::STRUCTURED_REPLY, vec![]),
        (
            option::SET_META_CONTEXT,
            context_data("a", &["base:allocation"]),
        ),
        (12345, b"data".to_vec()),
    ] {
        let (step, replies) = send(&mut handshake, option, &data);
        let refused = (Step::Again, vec![reply::ERR_TLS_REQD]);
        assert_eq!((step, kinds(&replies)), refused, "{option}");
    }
    let mut out = Vec::new();
    let long = option_bytes(option::LIST, &[0; OPTION_BYTES_MAX as usize + 1]);
    let (taken, _) = handshake.advance(&long, &mut out).expect("is skipped");
    handshake
        .advance(&long[taken..], &mut out)
        .expect("a reply");
    assert_eq!(kinds(&replies(option::LIST, &out)), [reply::ERR_TLS_REQD]);
    let (step, replies) = send(&mut handshake, option::STARTTLS, b"data");
    assert_eq!(
        (step, kinds(&replies)),
        (Step::Again, vec![reply::ERR_INVALID])
    );

    let (step, replies) = send(&mut handshake, option::STARTTLS, b"");
    assert_eq!((step, kinds(&replies)), (Step::StartTls, vec![reply::ACK]));
    let (step, replies) = send(&mut handshake, option::STARTTLS, b"");
    assert_eq!(
        (step, kinds(&replies)),
        (Step::Again, vec![reply::ERR_INVALID])
    );
    let (step, _) = send(&mut handshake, option::GO, &info_data("a", &[]));
    let Step::Transmission(choice) = step else {
        panic!("{step:?}");
    };
    assert!(!choice.structured && !choice.allocation);
}

#[test]
fn before_tls_a_client_may_end_and_export_name_ends_the_connection() {
    let (step, replies) = send(&mut private(), option::ABORT, b"");
    assert_eq!((step, kinds(&replies)), (Step::End, vec![reply::ACK]));
    let bytes = option_bytes(option::EXPORT_NAME, b"a");
    let result = private().advance(&bytes, &mut Vec::new());
    assert_eq!(result, Err(HandshakeError::NoTls));
}

#[test]
fn info_tells_what_is_asked_for() {
    let mut handshake = begun(&["a"], BOTH);
    let sizes = (
        reply::INFO,
        vec![0, 3, 0, 0, 0, 1, 0, 0, 0x10, 0, 4, 0, 0, 0],
    );
    let size = (
        reply::INFO,
        vec![0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 0b0111_1101],
    );
    let ack = (reply::ACK, vec![]);
    let (step, replies) = send(&mut handshake, option::INFO, &info_data("a", &[]));
    assert_eq!(step, Step::Again);
    assert_eq!(replies, [sizes.clone(), size.clone(), ack.clone()]);
    let asked = [info::BLOCK_SIZE, info::DESCRIPTION, 77, info::NAME];
    let (_, replies) = send(&mut handshake, option::INFO, &info_data("a", &asked));
    assert_eq!(
        replies,
        [
            (reply::INFO, b"\0\x01a".to_vec()),
            (reply::INFO, b"\0\x02a disk".to_vec()),
            sizes,
            size,
            ack
        ]
    );
}

#[test]
fn info_and_go_that_are_malformed() {
    let mut handshake = begun(&["a"], BOTH);
    let mut long = info_data("a", &[info::NAME]);
    long.push(0);
    let mut short = info_data("a", &[info::NAME]);
    short.pop();
    let mut far = info_data("a", &[]);
    far[2] = 0x20;
    for option in [option::INFO, option::GO] {
        for data in [
            &b""[..],
            b"\0\0\0\x01a",
            b"\0\0\0\x01a\0",
            &long,
            &short,
            &far,
        ] {
            let (step, replies) = send(&mut handshake, option, data);
            assert_eq!(
                (step, kinds(&replies)),
                (Step::Again, vec![reply::ERR_INVALID])
            );
        }
        let (step, replies) = send(&mut handshake, option, &info_data("b", &[]));
        assert_eq!(
            (step, kinds(&replies)),
            (Step::Again, vec![reply::ERR_UNKNOWN])
        );
    }
}

#[test]
fn structured_replies_are_agreed_on_once() {
    let mut handshake = begun(&["a"], BOTH);
    let (_, replies) = send(&mut handshake, option::STRUCTURED_REPLY, b"x");
    assert_eq!(kinds(&replies), [reply::ERR_INVALID]);
    let (_, replies) = send(&mut handshake, option::STRUCTURED_REPLY, b"");
    assert_eq!(kinds(&replies), [reply::ACK]);
    let (_, replies) = send(&mut handshake, option::STRUCTURED_REPLY, b"");
    assert_eq!(kinds(&replies), [reply::ERR_INVALID]);
    let (step, replies) = send(&mut handshake, option::GO, &info_data("a", &[]));
    let choice = Choice {
        export: 0,
        structured: true,
        allocation: false,
    };
    assert_eq!(step, Step::Transmission(choice));
    assert_eq!(kinds(&replies), [reply::INFO, reply::INFO, reply::ACK]);
    // The flag for structured replies appears only now.
    assert_eq!(replies[1].1[10..], [1, 0b1111_1101]);
}

#[test]
fn contexts_are_listed_and_chosen() {
    let mut handshake = begun(&["a", "b"], BOTH);
    let both = [option::LIST_META_CONTEXT, option::SET_META_CONTEXT];
    for option in both {
        let (_, replies) = send(&mut handshake, option, &context_data("a", &[]));
        assert_eq!(kinds(&replies), [reply::ERR_INVALID], "not structured");
    }
    send(&mut handshake, option::STRUCTURED_REPLY, b"");
    let context = |id: u8| {
        (
            reply::META_CONTEXT,
            [&[0, 0, 0, id], BASE_ALLOCATION].concat(),
        )
    };
    let ack = (reply::ACK, vec![]);
    let cases: [(u32, &[&str], bool); 8] = [
        (option::LIST_META_CONTEXT, &[], true),
        (option::LIST_META_CONTEXT, &["base:"], true),
        (option::LIST_META_CONTEXT, &["x:y", "base:allocation"], true),
        (option::LIST_META_CONTEXT, &["base:alloc"], false),
        (option::SET_META_CONTEXT, &[], false),
        (option::SET_META_CONTEXT, &["base:"], false),
        (option::SET_META_CONTEXT, &["x:y"], false),
        (option::SET_META_CONTEXT, &["x:y", "base:allocation"], true),
    ];
    for (option, queries, found) in cases {
        let (_, replies) = send(&mut handshake, option, &context_data("a", queries));
        let id = u8::from(option == option::SET_META_CONTEXT);
        let expected = match found {
            true => vec![context(id), ack.clone()],
            false => vec![ack.clone()],
        };
        assert_eq!(replies, expected, "{option} {queries:?}");
    }
    let chosen = |handshake: &Handshake, name| match send(
        &mut handshake.clone(),
        option::GO,
        &info_data(name, &[]),
    )
    .0
    {
        Step::Transmission(choice) => choice.allocation,
        step => panic!("{step:?}"),
    };
    assert!(chosen(&handshake, "a"));
    assert!(!chosen(&handshake, "b"), "chosen for another export");
    // A choice of contexts that fails cancels the one before.
    let (_, replies) = send(
        &mut handshake,
        both[1],
        &context_data("c", &["base:allocation"]),
    );
    assert_eq!(kinds(&replies), [reply::ERR_UNKNOWN]);
    assert!(!chosen(&handshake, "a"));
}

#[test]
fn malformed_contexts_are_refused() {
    let mut handshake = begun(&["a"], BOTH);
    send(&mut handshake, option::STRUCTURED_REPLY, b"");
    let mut long = context_data("a", &["x"]);
    long.push(0);
    let mut short = context_data("a", &["x"]);
    short.pop();
    let mut many = context_data("a", &[]);
    many[5] = 0xff;
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        for data in [&b""[..], b"\0\0\0\x01a", &long, &short, &many] {
            let (step, replies) = send(&mut handshake, option, data);
            assert_eq!(
                (step, kinds(&replies)),
                (Step::Again, vec![reply::ERR_INVALID])
            );
        }
    }
}

#[test]
fn options_that_are_too_long() {
    let mut handshake = begun(&["a"], BOTH);
    let len = OPTION_BYTES_MAX + 1;
    let bytes = option_bytes(option::SET_META_CONTEXT, &vec![0; len as usize]);
    let (mut out, mut at) = (Vec::new(), 0);
    while out.is_empty() {
        let end = bytes.len().min(at + 1000);
        let (taken, step) = handshake
            .advance(&bytes[at..end], &mut out)
            .expect("goes on");
        assert!(taken > 0 && step == Step::Again);
        at += taken;
    }
    assert_eq!(at, bytes.len());
    let replies = replies(option::SET_META_CONTEXT, &out);
    assert_eq!(kinds(&replies), [reply::ERR_TOO_BIG]);
    // The handshake continues after a skipped option.
    assert_eq!(send(&mut handshake, option::ABORT, b"").0, Step::End);

    for (option, len, max) in [
        (option::EXPORT_NAME, 4097, 4096),
        (option::LIST, OPTION_SKIP_MAX + 1, OPTION_SKIP_MAX),
        (77, u32::MAX, OPTION_SKIP_MAX),
    ] {
        let mut bytes = option_bytes(option, b"");
        bytes[12..].copy_from_slice(&len.to_be_bytes());
        let error = begun(&["a"], BOTH).advance(&bytes, &mut Vec::new());
        assert_eq!(error, Err(HandshakeError::TooLong { option, len, max }));
    }
}

#[test]
fn options_beyond_the_limit_end_the_connection() {
    let mut handshake = begun(&["a"], BOTH);
    for _ in 0..OPTIONS_MAX {
        send(&mut handshake, option::LIST, b"");
    }
    let error = handshake.advance(&option_bytes(option::LIST, b""), &mut Vec::new());
    assert_eq!(error, Err(HandshakeError::TooMany));
}

#[test]
fn noise_ends_the_connection_at_once() {
    let mut handshake = begun(&["a"], BOTH);
    let error = handshake
        .advance(b"GET / HT", &mut Vec::new())
        .expect_err("no option");
    assert_eq!(
        error.to_string(),
        "an option begins with 0x474554202f204854 in place of 0x49484156454f5054"
    );
}

proptest! {
    /// For any bytes in any pieces, the handshake ends or asks for more, and its answers are well-formed. The pieces make no difference.
    #[test]
    fn no_bytes_make_a_handshake_panic(
        options in prop::collection::vec((0u32..13, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        piece in 1usize..50,
    ) {
        let mut input = vec![0, 0, 0, 3];
        for (option, data) in &options {
            input.extend(option_bytes(*option, data));
        }
        input.extend(&tail);
        let run = |piece| shake(Handshake::new(offers(&["a"])), &input, piece);
        prop_assert_eq!(run(piece), run(input.len()));
    }
}
