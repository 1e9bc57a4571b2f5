//! Copies of a part of a disk.

use super::super::rig::close;
use super::*;

#[test]
#[ignore = "minutes; .ci/nightly"]
fn an_image_of_a_part_has_its_bytes_alone_and_nothing_is_read_beside_its_blocks() {
    for part in [
        // Whole blocks, and neither blocks nor sectors.
        1 << 20..3 << 20,
        (1 << 20) + 5_001..(3 << 20) + 7_777,
        // Less than a sector, and the end of the disk.
        100_000..100_001,
        SECTORS * 512 - 700..SECTORS * 512,
        0..SECTORS * 512,
    ] {
        let place = Place::new();
        let read_from = Arc::new(Mutex::new(Vec::new()));
        let hook: Hook = {
            let read_from = Arc::clone(&read_from);
            Arc::new(move |request| {
                if request.op == Op::Read {
                    read_from.lock().expect("no panic").push(request.extent);
                }
            })
        };
        let rig = place.server(Of {
            hook: Some(&hook),
            ..place.of()
        });
        for page in (0..SECTORS / 8).step_by(3) {
            rig.write(page * 8, (page % 250) as u8 + 1);
        }
        rig.begin(&place.ask_for(&part));
        // Writes outside the part do not matter.
        rig.write(0, 251);
        rig.write(SECTORS - 8, 252);
        let done = rig.to_the_end();
        let blocks = part.start / 8192..part.end.div_ceil(8192);
        assert_eq!(done.blocks, blocks.end - blocks.start);
        let read = done.in_idle_time + done.outright + done.in_gaps;
        let is_whole = part == (0..SECTORS * 512);
        let has = done.copy.as_ref().expect("it copies").part;
        assert_eq!(has, (!is_whole).then_some((part.start, part.end)));
        if blocks.start > 0 && blocks.end < BLOCKS {
            assert_eq!((read, again(&done)), (done.blocks, 0), "{done:?}");
        }
        for extent in read_from.lock().expect("no panic").iter() {
            let sectors = blocks.start * 16..=blocks.end * 16;
            let (start, end) = (extent.start.get(), extent.end().get());
            assert!(sectors.contains(&start) && sectors.contains(&end));
        }
        let state = read_page_of_text(&place.folder.join("state/disk0.scrub"));
        let bytes = format!("\"copy_bytes\":[{},{}]", part.start, part.end);
        assert!(state.contains(&bytes), "{state}");
        rig.stop();
        if blocks.start > 0 && blocks.end < BLOCKS {
            place.is_the_part_but_for(part, &[]);
        }
    }
}

/// The JSON at the beginning of a file of the server's own.
fn read_page_of_text(path: &Path) -> String {
    let bytes = read(path);
    let text = bytes.split(|byte| *byte == 0).next().expect("a text");
    String::from_utf8(text.to_vec()).expect("JSON")
}

#[test]
fn what_is_written_at_the_edges_of_a_part_is_in_its_image_up_to_one_write_and_no_further() {
    // Both edges lie in the middle of a block.
    let (first, end) = (401, 1601);
    let edges = [first, end];
    let edges = edges.into_iter().flat_map(|edge| edge - 3..edge + 3);
    let inside = (first..end).step_by(97);
    // Writes outside the part go on all the time, too, and do not delay the copy.
    let beside = [0, 7, 300, 1700, Writer::PLACES - 1];
    each_until_some_is_copied_again(&[1, 8], |most| {
        let place = Place::new();
        let rig = place.server(place.of());
        let places = edges.clone().chain(inside.clone()).chain(beside);
        let mut writer = Writer::at(places.collect());
        for _ in 0..100 {
            writer.write(&rig, 8);
        }
        rig.begin(&place.ask_for(&(first * 4096..end * 4096)));
        writer.until_done(&rig, most);
        let done = rig.status();
        (0..100).for_each(|_| writer.write(&rig, 8));
        writer.finish();
        let image = read(&place.image);
        assert_eq!(image.len() as u64, (end - first) * 4096);
        let line = writer.holds(&image, first);
        let (from, to) = (100 - 20, writer.next - 100);
        assert!((from..=to).contains(&line), "{line} of {}", writer.next);
        rig.stop();
        again(&done)
    });
}

#[test]
fn a_copy_of_a_part_is_gone_on_with_by_its_range_alone_and_another_is_refused_and_named() {
    let part = (1 << 20) + 4_096..(7 << 20) + 1_000;
    for sole_writer in [true, false] {
        let place = Place::new();
        let rig = place.server(place.of());
        (0..60).for_each(|nth| rig.write(nth * 272, 7));
        let blocks = ScrubAsk {
            block: Some(4096),
            ..place.ask_for(&part)
        };
        halfway_as(&rig, &blocks);
        let left = rig.status().left;
        rig.stop();
        let rig = place.server(Of {
            sole_writer,
            ..place.of()
        });
        // Other ranges: the whole disk, another beginning in the same block, and another end in the same block.
        for other in [
            None,
            Some((part.start + 1, part.end)),
            Some((part.start, part.end - 1)),
        ] {
            let refused = rig.scrubs.begin(&ScrubAsk {
                range: other,
                ..place.ask()
            });
            let refused = refused.expect_err("another range").to_string();
            let has = "an unfinished scrub has another range, 1028KiB-7341032";
            assert!(refused.starts_with(has), "{refused}");
        }
        // Writes at both edges. Each lies half outside the part.
        rig.write(part.start / 512 - 4, 9);
        rig.write(part.end / 512 - 4, 10);
        // The same range continues with the first scrub's block size, which needs not be given.
        rig.begin(&place.ask_for(&part));
        let done = rig.to_the_end();
        let read = done.in_idle_time + done.outright + done.in_gaps;
        match sole_writer {
            true => assert!(read <= left + 4, "{left} {done:?}"),
            false => assert!(read >= done.blocks, "{done:?}"),
        }
        assert_eq!(done.blocks, (7 << 20) / 4096 + 1 - 257);
        rig.stop();
        place.is_the_part_but_for(part.clone(), &[]);
        // A finished copy permits a copy of another part in another file.
        let rig = place.server(place.of());
        rig.begin(&ScrubAsk {
            copy: Some(place.folder.join("other")),
            ..place.ask_for(&(0..8192))
        });
        rig.to_the_end();
        rig.stop();
        assert_eq!(read_len(&place.folder.join("other")), 8192);
    }
}

fn read_len(path: &Path) -> u64 {
    path.metadata().expect("there").len()
}

#[test]
fn a_part_that_is_not_the_one_that_was_copied_is_not_taken_for_it() {
    let part = 1 << 20..7 << 20;
    let bytes = format!("\"copy_bytes\":[{},{}]", part.start, part.end);
    let change = |path: &Path, to: &str| {
        let text = read_page_of_text(path);
        assert!(text.contains(&bytes), "{text}");
        let changed = format!("\"copy_bytes\":{to}");
        let mut text = text.replace(&bytes, &changed).into_bytes();
        text.resize(12 << 10, 0);
        close(&mut text, 0);
        let file = File::options().write(true).open(path).expect("there");
        file.write_all_at(&text, 0).expect("room");
    };
    for (name, to, problem) in [
        // More than there is, more than is read, and nothing.
        ("disk0.scrub", "[0,99999999999]", "`copy_bytes` is"),
        (
            "disk0.scrub",
            "[0,4096]",
            "0B-4KiB are copied, and 1MiB-7MiB read",
        ),
        ("disk0.scrub", "[4096,4096]", "`copy_bytes` is"),
        // Another part of the same length. The image's contents cannot be trusted and are copied anew.
        ("disk0.copy", "[0,6291456]", ""),
        ("disk0.copy", "[0,1]", ""),
    ] {
        let place = Place::new();
        let rig = place.server(place.of());
        (0..60).for_each(|nth| rig.write(nth * 272, 7));
        halfway_as(&rig, &place.ask_for(&part));
        rig.stop();
        change(&place.folder.join("state").join(name), to);
        let rig = Rig::emulated(place.of());
        let resumed = rig.scrubs.resume_unfinished();
        if !problem.is_empty() {
            let text = resumed.expect_err(to).to_string();
            assert!(text.contains(problem), "{text}");
            rig.stop();
            continue;
        }
        resumed.expect(to);
        rig.begin(&ScrubAsk::default());
        let done = rig.to_the_end();
        let read = done.in_idle_time + done.outright + done.in_gaps;
        assert_eq!(read, 6 << 20 >> 13, "{done:?}");
        rig.stop();
        place.is_the_part_but_for(part.clone(), &[]);
    }
}
