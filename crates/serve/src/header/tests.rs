use super::*;
use headtime_testkit::Folder;
use std::fs;
use std::path::PathBuf;

const CHUNK: u64 = 64 << 10;

fn header(index: u32, count: u32) -> Header {
    Header {
        set: SetId([7; 16]),
        count,
        index,
        chunk: CHUNK,
        bytes: 8 << 20,
    }
}

#[test]
fn a_header_round_trips_and_no_byte_of_it_may_change() {
    let encoded = header(1, 3).encode();
    assert_eq!(Header::decode(&encoded).unwrap(), Some(header(1, 3)));
    for at in 0..LEN {
        let mut damaged = encoded;
        damaged[at] ^= 1;
        match Header::decode(&damaged) {
            Ok(None) => assert!(at < MAGIC.len(), "byte {at}"),
            Err(HeaderError::Damaged) => assert!(at >= MAGIC.len(), "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    // Numbers out of range, with a good checksum.
    for wrong in [
        Header {
            index: 3,
            ..header(0, 3)
        },
        Header {
            chunk: 0,
            ..header(0, 3)
        },
        Header {
            chunk: 1000,
            ..header(0, 3)
        },
        Header {
            bytes: 4097,
            ..header(0, 3)
        },
    ] {
        let read = Header::decode(&wrong.encode());
        assert!(matches!(read, Err(HeaderError::Damaged)), "{wrong:?}");
    }
    let mut newer = encoded;
    newer[16] = 2;
    let check = XxHash64::oneshot(0, &newer[..BODY]).to_le_bytes();
    newer[BODY..].copy_from_slice(&check);
    assert!(matches!(
        Header::decode(&newer),
        Err(HeaderError::Version(2))
    ));
}

#[test]
fn disks_that_are_not_a_set_in_its_order_are_refused_by_name() {
    let [one, two, three] = [0, 1, 2].map(|index| header(index, 3));
    let foreign = Header {
        set: SetId([8; 16]),
        ..two.clone()
    };
    let coarse = Header {
        chunk: 2 * CHUNK,
        ..one.clone()
    };
    let checked = |disks: &[&Header]| {
        let names = ["a", "b", "c"];
        let disks: Vec<_> = names
            .into_iter()
            .zip(disks.iter().copied().map(Some))
            .collect();
        check_set(&disks, CHUNK)
    };
    assert_eq!(checked(&[&one, &two, &three]), Ok(()));
    for (disks, number, problem) in [
        (
            vec![&two, &one, &three],
            0,
            "is disk 1 of the set at place 0: give the disks in their order",
        ),
        (
            vec![&one, &three],
            1,
            "is disk 2 of the set, of which disk 1 is missing",
        ),
        (
            vec![&one, &two],
            1,
            "is one of 3 disks of its set, and 2 are given",
        ),
        (
            vec![&one, &two, &two],
            2,
            "is there twice: b is disk 1 of the set, too",
        ),
        (
            vec![&one, &foreign, &three],
            1,
            "belongs to another array: its set is 0808",
        ),
        (
            vec![&coarse, &two, &three],
            0,
            "has chunks of 128KiB by its header; the array is to have 64KiB",
        ),
    ] {
        let (found, said) = checked(&disks).expect_err(problem);
        assert_eq!(found, number, "{said}");
        assert!(said.starts_with(problem), "{said}");
    }
    // Memory has no header, and is passed over.
    let [one, two] = [0, 1].map(|index| header(index, 2));
    let mixed = [("a", Some(&one)), ("memory", None), ("b", Some(&two))];
    assert_eq!(check_set(&mixed, CHUNK), Ok(()));
    assert_eq!(check_set(&[("a", None), ("b", None)], CHUNK), Ok(()));
}

#[test]
fn headers_are_written_on_all_disks_or_none_and_nothing_is_overwritten_unasked() {
    let folder = Folder::new();
    let paths: Vec<PathBuf> = ["a", "b"].map(|name| folder.join(name)).to_vec();
    let options = CreateOptions {
        chunk: CHUNK,
        size: Some(Header::DATA + 3 * CHUNK + 100),
        overwrite: false,
        force: false,
    };
    let said = |paths: &[PathBuf], options: &CreateOptions| {
        create(paths, options).expect_err("refused").to_string()
    };
    let unsized_options = CreateOptions {
        size: None,
        ..options
    };
    let found = said(&paths, &unsized_options);
    assert!(
        found.ends_with("a is not there; --size 4GiB makes a file of 4GiB"),
        "{found}"
    );
    // The second has data, so the first is not made.
    fs::write(&paths[1], vec![1; options.size.unwrap() as usize]).unwrap();
    let found = said(&paths, &options);
    assert!(
        found.ends_with(
            "b: has data in the first 1MiB; --overwrite makes an array of it all the same"
        ),
        "{found}"
    );
    assert!(!paths[0].exists());
    fs::remove_file(&paths[1]).unwrap();
    let headers = create(&paths, &options).expect("written");
    for (index, path) in (0..).zip(&paths) {
        let read = Header::read(&File::open(path).unwrap()).unwrap();
        let header = read.expect("it has one");
        assert_eq!(header, headers[index as usize]);
        let whole = 3 * CHUNK;
        assert_eq!(
            (header.index, header.count, header.bytes),
            (index, 2, whole)
        );
    }
    assert_eq!(headers[0].set, headers[1].set);
    let found = said(&paths, &options);
    assert!(found.contains("a: is disk 0 of the set "), "{found}");
    let again = CreateOptions {
        overwrite: true,
        ..options
    };
    assert_ne!(
        create(&paths, &again).expect("asked for")[0].set,
        headers[0].set
    );
    let twice = [paths[0].clone(), folder.join("./a")];
    assert!(said(&twice, &again).contains("is there twice"));
    let one = |options| said(&paths[..1], options);
    assert_eq!(one(&again), "1 disks; allowed are 2 to 64");
    let odd = CreateOptions {
        chunk: 1000,
        ..again
    };
    assert_eq!(
        said(&paths, &odd),
        "chunks of 1kB; allowed is a multiple of 4KiB up to 64MiB"
    );
    let large = CreateOptions {
        chunk: 4 * CHUNK,
        ..again
    };
    assert!(said(&paths, &large).contains("are too few; a header takes 1MiB, and a chunk 256KiB"));
}
