use super::*;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

const MIB: u64 = 1 << 20;
const DATA: [u8; 4096] = [7; 4096];

/// A file of 1 MiB that is one hole. The file's name is already removed.
fn holes() -> (Holes, File) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("headtime-allocation-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    let file = options.open(&path).expect("makes a file");
    std::fs::remove_file(&path).expect("removes");
    file.set_len(MIB).expect("there is room");
    let again = file.try_clone().expect("one descriptor more");
    (Holes { file: file.into() }, again)
}

fn told(holes: &impl Allocation, offset: u64, len: u64) -> (bool, u64) {
    holes.status(offset, len).expect("it can tell")
}

#[test]
fn a_file_whose_end_is_a_hole() {
    let (holes, file) = holes();
    assert_eq!(told(&holes, 0, MIB), (false, MIB));
    file.write_all_at(&DATA, 0).expect("there is room");
    assert_eq!(told(&holes, 0, MIB), (true, 4096));
    assert_eq!(told(&holes, 4096, MIB - 4096), (false, MIB - 4096));
    assert_eq!(told(&holes, MIB - 1, 1), (false, 1));
}

#[test]
fn a_file_whose_end_is_data() {
    let (holes, file) = holes();
    file.write_all_at(&DATA, MIB - 4096).expect("there is room");
    assert_eq!(told(&holes, 0, MIB), (false, MIB - 4096));
    assert_eq!(told(&holes, MIB - 4096, 4096), (true, 4096));
    assert_eq!(told(&holes, MIB - 4096, 512), (true, 512));
    assert_eq!(told(&holes, MIB - 1, 1), (true, 1));
}

/// An empty range is not allocated, at any offset.
#[test]
fn a_range_without_bytes_is_not_asked_for() {
    let (holes, file) = holes();
    file.write_all_at(&DATA, 0).expect("there is room");
    for offset in [0, 4096, MIB, 1 << 40] {
        assert_eq!(told(&holes, offset, 0), (false, 0), "{offset}");
    }
}

/// A read beyond the end of a disk's file fails instead of returning zeroes. The bytes must not be reported as a hole,
/// because copying programs do not read holes.
#[test]
fn a_file_that_somebody_has_made_shorter_is_no_hole_beyond_its_end() {
    let (holes, file) = holes();
    file.set_len(MIB / 2).expect("cuts");
    assert_eq!(told(&holes, 0, MIB), (false, MIB / 2));
    assert_eq!(told(&holes, MIB / 2, MIB / 2), (true, MIB / 2));
    assert_eq!(told(&holes, MIB - 512, 512), (true, 512));
    file.write_all_at(&DATA, MIB / 2 - 4096)
        .expect("there is room");
    assert_eq!(told(&holes, MIB / 2 - 4096, MIB), (true, 4096));
    file.set_len(0).expect("cuts");
    assert_eq!(told(&holes, 0, MIB), (true, MIB));
}

/// A file with prepared answers. The last answer to each question is repeated.
#[derive(Default)]
struct Fake {
    ends: Answers,
    datas: Answers,
    holes: Answers,
}

type Answers = RefCell<Vec<Result<u64, Errno>>>;

fn next(answers: &Answers) -> Result<u64, Errno> {
    let mut answers = answers.borrow_mut();
    match answers.len() {
        0 => panic!("nobody was to ask that"),
        1 => answers[0],
        _ => answers.remove(0),
    }
}

impl Sparse for Fake {
    fn data(&self, _: u64) -> Result<u64, Errno> {
        next(&self.datas)
    }

    fn hole(&self, _: u64) -> Result<u64, Errno> {
        next(&self.holes)
    }

    fn end(&self) -> Result<u64, Errno> {
        next(&self.ends)
    }
}

/// Returns the status of 4096 bytes from 8192 on, in a file of 16384 bytes with these answers.
fn faked(
    datas: &[Result<u64, Errno>],
    holes: &[Result<u64, Errno>],
) -> Result<(bool, u64), Option<i32>> {
    faked_with_ends(&[Ok(16384)], datas, holes)
}

fn faked_with_ends(
    ends: &[Result<u64, Errno>],
    datas: &[Result<u64, Errno>],
    holes: &[Result<u64, Errno>],
) -> Result<(bool, u64), Option<i32>> {
    let fake = Fake {
        ends: RefCell::new(ends.to_vec()),
        datas: RefCell::new(datas.to_vec()),
        holes: RefCell::new(holes.to_vec()),
    };
    status(&fake, 8192, 4096).map_err(|error| error.raw_os_error())
}

#[test]
fn a_file_system_that_does_not_know_holes_has_none() {
    for errno in [Errno::INVAL, Errno::OPNOTSUPP] {
        assert_eq!(faked(&[Err(errno)], &[]), Ok((true, 4096)));
        assert_eq!(faked(&[Ok(8192)], &[Err(errno)]), Ok((true, 4096)));
    }
}

#[test]
fn a_hole_that_comes_between_the_two_questions_is_asked_for_again() {
    assert_eq!(
        faked(&[Ok(8192), Ok(9216)], &[Ok(8192)]),
        Ok((false, 1024)),
        "it ends before the bytes do"
    );
    assert_eq!(
        faked(&[Ok(8192), Err(Errno::NXIO)], &[Ok(8192)]),
        Ok((false, 4096)),
        "it goes on to the end"
    );
    assert_eq!(
        faked(&[Ok(8192)], &[Ok(8192), Ok(8704)]),
        Ok((true, 512)),
        "it has gone again"
    );
}

/// The status never covers zero bytes. Otherwise a caller that continues from there would ask for ever.
#[test]
fn a_file_that_never_answers_the_same_is_copied() {
    assert_eq!(faked(&[Ok(8192)], &[Ok(8192)]), Ok((true, 4096)));
    // A kernel does not give these answers, but a file system in user space may.
    assert_eq!(faked(&[Ok(0)], &[Ok(0)]), Ok((true, 4096)));
    assert_eq!(faked(&[Err(Errno::INTR)], &[]), Ok((true, 4096)));
}

#[test]
fn a_file_that_becomes_shorter_between_two_questions() {
    let short = [Ok(16384), Ok(9216)];
    assert_eq!(
        faked_with_ends(&short, &[Err(Errno::NXIO)], &[]),
        Ok((false, 1024))
    );
    let shorter = [Ok(16384), Ok(4096)];
    assert_eq!(
        faked_with_ends(&shorter, &[Err(Errno::NXIO)], &[]),
        Ok((true, 4096))
    );
    assert_eq!(
        faked_with_ends(&shorter, &[Ok(8192)], &[Err(Errno::NXIO)]),
        Ok((true, 4096))
    );
}

/// The status covers no bytes that were appended between the questions.
#[test]
fn a_file_that_becomes_longer_between_two_questions() {
    let longer = [Ok(9216), Ok(16384)];
    assert_eq!(
        faked_with_ends(&longer, &[Err(Errno::NXIO)], &[]),
        Ok((false, 1024))
    );
}

#[test]
fn a_signal_in_between_is_no_error() {
    let (interrupted, asked) = (Err(Errno::INTR), Ok(8192));
    assert_eq!(
        faked(&[interrupted, asked], &[interrupted, Ok(8704)]),
        Ok((true, 512))
    );
}

#[test]
fn other_errors_are_errors() {
    let eio = Some(Errno::IO.raw_os_error());
    assert_eq!(faked(&[Err(Errno::IO)], &[]), Err(eio));
    assert_eq!(faked(&[Ok(8192)], &[Err(Errno::IO)]), Err(eio));
    assert_eq!(faked_with_ends(&[Err(Errno::IO)], &[], &[]), Err(eio));
}
