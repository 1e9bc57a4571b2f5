use super::*;
use proptest::prelude::*;
use std::fs::File;
use std::os::fd::AsFd;

/// The caching page of a SAS disk that reads ahead, writes back, and can save the page.
const PAGE: [u8; 20] = [
    0x88, 0x12, 0x14, 0x00, 0xFF, 0xFF, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0x80, 0x20, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00,
];

/// A simulated disk with a caching page, and its faults.
struct Fake {
    page: Vec<u8>,
    mask: u8,
    /// Bytes of block descriptors in front of the page.
    descriptors: u8,
    long: bool,
    short: bool,
    /// Number of commands that are refused first, and the sense data for these commands.
    first: (u32, Sense),
    /// Sense data of a refused MODE SELECT.
    refuses: Option<Sense>,
    /// True if MODE SELECT is accepted and changes nothing.
    stays: bool,
    /// Most bytes of an answer.
    most: usize,
    /// Data of the last MODE SELECT.
    selected: Vec<u8>,
    selects: u32,
}

fn sense_of(key: u8, additional: (u8, u8)) -> Sense {
    Sense {
        key,
        additional,
        field: None,
    }
}

impl Fake {
    fn new() -> Fake {
        Fake {
            page: PAGE.to_vec(),
            mask: DRA,
            descriptors: 8,
            long: true,
            short: true,
            first: (0, sense_of(UNIT_ATTENTION, (0x29, 0))),
            refuses: None,
            stays: false,
            most: usize::MAX,
            selected: Vec::new(),
            selects: 0,
        }
    }

    fn answer(&self, form: Length, changeable: bool) -> Vec<u8> {
        let mut page = self.page.clone();
        if changeable {
            page[2..].fill(0);
            page[DRA_AT] = self.mask;
        }
        let length = form.header() + usize::from(self.descriptors) + page.len();
        // DPO and FUA are supported, as by most disks, and the disk is write-protected.
        let mut data = match form {
            Length::Six => vec![length as u8 - 1, 0, 0x90, self.descriptors],
            Length::Ten => vec![0, length as u8 - 2, 0, 0x90, 0, 0, 0, self.descriptors],
        };
        data.extend(std::iter::repeat_n(0xAA, self.descriptors.into()));
        data.extend(page);
        data
    }
}

impl Wire for Fake {
    fn send(&mut self, command: &[u8], data: Data<'_>) -> Result<usize, Unanswered> {
        if self.first.0 > 0 {
            self.first.0 -= 1;
            return Err(Unanswered::Sense(self.first.1));
        }
        let (form, asked) = match *command {
            [0x1A | 0x15, _, _, 0, asked, 0] => (Length::Six, asked),
            [0x5A | 0x55, _, _, 0, 0, 0, 0, 0, asked, 0] => (Length::Ten, asked),
            _ => panic!("{command:X?}"),
        };
        let known = match form {
            Length::Six => self.short,
            Length::Ten => self.long,
        };
        if !known {
            return Err(Unanswered::Sense(sense_of(
                ILLEGAL_REQUEST,
                UNKNOWN_COMMAND,
            )));
        }
        match data {
            Data::From(room) => {
                assert_eq!((room.len(), command[1]), (usize::from(asked), 0));
                assert!(matches!(command[0], 0x1A | 0x5A));
                let came = self.answer(
                    form,
                    match command[2] {
                        0x08 => false,
                        0x48 => true,
                        page => panic!("{page:X}"),
                    },
                );
                let moved = came.len().min(room.len()).min(self.most);
                room[..moved].copy_from_slice(&came[..moved]);
                Ok(moved)
            }
            Data::To(data) => {
                // PF, and not SP.
                assert_eq!((data.len(), command[1]), (usize::from(asked), 0x10));
                assert!(matches!(command[0], 0x15 | 0x55));
                self.selects += 1;
                if let Some(sense) = self.refuses {
                    return Err(Unanswered::Sense(sense));
                }
                self.selected = data.to_vec();
                let (header, page) = data.split_at(form.header());
                assert!(header.iter().all(|byte| *byte == 0), "{header:X?}");
                let mut was = self.page.clone();
                was[0] &= !SAVEABLE;
                was[DRA_AT] = was[DRA_AT] & !DRA | page[DRA_AT] & DRA;
                assert_eq!(page, was, "one bit may change");
                if !self.stays {
                    self.page[DRA_AT] = page[DRA_AT];
                    // Some disks report this to the host that made the change.
                    self.first = (1, sense_of(UNIT_ATTENTION, (0x2A, 0x01)));
                }
                Ok(data.len())
            }
        }
    }
}

#[test]
fn reading_ahead_goes_off_and_on_again_by_either_command() {
    for (long, short, descriptors) in [
        (true, true, 8),
        (true, false, 16),
        (false, true, 8),
        (false, true, 0),
    ] {
        let mut disk = Fake {
            long,
            short,
            descriptors,
            first: (3, sense_of(UNIT_ATTENTION, (0x29, 0))),
            ..Fake::new()
        };
        assert_eq!(is_on(&mut disk), Ok(true));
        turn(&mut disk, true).unwrap();
        assert_eq!(disk.selects, 0, "it is so");
        turn(&mut disk, false).unwrap();
        assert_eq!(is_on(&mut disk), Ok(false));
        let length = if long { 8 } else { 4 } + PAGE.len();
        assert_eq!(disk.selected.len(), length, "no block descriptors");
        turn(&mut disk, true).unwrap();
        assert_eq!((is_on(&mut disk), disk.page), (Ok(true), PAGE.to_vec()));
    }
}

/// Returns the error of a disk when its look-ahead is to be turned off.
fn said(disk: Fake) -> String {
    let mut disk = disk;
    turn(&mut disk, false).unwrap_err().to_string()
}

#[test]
fn a_disk_that_does_not_turn_it_says_why() {
    let fixed = Fake {
        mask: !DRA,
        ..Fake::new()
    };
    assert_eq!(
        said(fixed),
        "there is no such switch: the disk says that this bit of its caching page (DRA) cannot be changed"
    );
    let deaf = Fake {
        stays: true,
        ..Fake::new()
    };
    assert_eq!(said(deaf), SwitchError::Left.to_string());
    let refuses = Fake {
        refuses: Some(Sense {
            field: Some((20, false)),
            ..sense_of(ILLEGAL_REQUEST, (0x26, 0))
        }),
        long: false,
        ..Fake::new()
    };
    assert_eq!(
        said(refuses),
        "MODE SELECT(6): the disk refuses: a request that it does not take, a field of the page that it does not take, byte 20 of the data \
         (sense 5/26/00)"
    );
    let neither = Fake {
        long: false,
        short: false,
        ..Fake::new()
    };
    assert_eq!(
        said(neither),
        "MODE SENSE(10): the disk refuses: a request that it does not take, a command that it does not know (sense 5/20/00)"
    );
    let cut = Fake {
        most: 8 + 8 + 19,
        ..Fake::new()
    };
    assert_eq!(
        said(cut),
        "MODE SENSE(10): the disk has sent an answer that is cut short"
    );
    let old = Fake {
        page: vec![0x08, 0x0A, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ..Fake::new()
    };
    assert!(matches!(
        CachingPage::of(Length::Ten, &old.answer(Length::Ten, false)),
        Err(why) if why.contains("old kind")
    ));
}

#[test]
fn a_disk_that_always_has_something_else_to_say_is_not_asked_for_ever() {
    let restless = Fake {
        first: (u32::MAX, sense_of(UNIT_ATTENTION, (0x2A, 0x01))),
        ..Fake::new()
    };
    assert!(said(restless).contains("another has changed a mode page"));
    let mut contested = Fake {
        refuses: Some(sense_of(UNIT_ATTENTION, (0x2A, 0x01))),
        ..Fake::new()
    };
    assert!(turn(&mut contested, false).is_err());
    assert_eq!(contested.selects, ATTEMPTS);
}

#[test]
fn sense_is_read_in_both_formats() {
    let fixed = [
        0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xC0, 0, 2,
    ];
    let expected = Sense {
        key: 5,
        additional: (0x24, 0),
        field: Some((2, true)),
    };
    assert_eq!(Sense::of(&fixed), Some(expected));
    // Descriptors of information (0) and of the field (2).
    let descriptors = [
        0x72, 0x05, 0x24, 0, 0, 0, 0, 20, 0, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 6, 0, 0, 0xC0,
        0, 2, 0,
    ];
    assert_eq!(Sense::of(&descriptors), Some(expected));
    // Bytes after the end of the sense data do not count.
    let mut short = fixed;
    short[7] = 4;
    assert_eq!(Sense::of(&short), Some(sense_of(5, (0, 0))));
    assert_eq!(Sense::of(&fixed[..3]), Some(sense_of(5, (0, 0))));
    assert_eq!(Sense::of(&fixed[..2]), None);
    assert_eq!(Sense::of(&[0; 18]), None);
}

#[test]
fn what_the_kernel_says_of_a_command_is_understood() {
    let moved = |went: Went<'_>| went.moved().map_err(|why| why.to_string());
    let done = Went {
        asked: 252,
        left: 216,
        ..Went::default()
    };
    assert_eq!(moved(done), Ok(36));
    // The host counts wrongly.
    for (left, all) in [(-5, 252), (300, 0), (c_int::MIN, 252)] {
        assert_eq!(moved(Went { left, ..done }), Ok(all));
    }
    let check = |sense| Went {
        status: 0x02,
        sense,
        ..done
    };
    // A rounded value is accepted. The page that is read back shows the result.
    assert_eq!(
        moved(check(&[
            0x70, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x37, 0, 0, 0, 0, 0
        ])),
        Ok(36)
    );
    let stopped = [0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 2];
    for (went, words) in [
        (check(&stopped[..]), "sg_start --start) (sense 2/04/02)"),
        (check(&[]), "with status 02h"),
        (
            Went {
                status: 0x18,
                ..done
            },
            "reservation conflict",
        ),
        (Went { status: 8, ..done }, "busy"),
        (Went { host: 1, ..done }, "not connected"),
        (Went { host: 3, ..done }, "in time"),
        (Went { host: 7, ..done }, "host status 07h"),
    ] {
        let why = moved(went).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
    let of = |errno| Unanswered::Kernel(io::Error::from_raw_os_error(errno)).of("MODE SENSE(10)");
    assert_eq!(of(libc::ENOTTY), SwitchError::Foreign("SCSI"));
    assert_eq!(of(libc::EPERM), SwitchError::NotPermitted);
    assert!(of(libc::ENODEV).to_string().starts_with("MODE SENSE(10): "));
}

#[test]
fn a_file_takes_no_scsi_commands() {
    let file = File::open("/dev/null").unwrap();
    let mut wire = Generic(file.as_fd());
    assert_eq!(is_on(&mut wire), Err(SwitchError::Foreign("SCSI")));
    assert_eq!(turn(&mut wire, true), Err(SwitchError::Foreign("SCSI")));
    let public = look_ahead(file.as_fd()).unwrap_err();
    assert!(matches!(
        public,
        SwitchError::Foreign("SCSI") | SwitchError::NotPermitted
    ));
}

#[test]
fn the_header_is_as_long_as_the_kernels() {
    let of_64_bits = cfg!(target_pointer_width = "64");
    assert_eq!(size_of::<SgIoHdr>(), if of_64_bits { 88 } else { 64 });
}

proptest! {
    #[test]
    fn whatever_a_disk_sends_is_a_page_or_is_not(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        long in any::<bool>(),
        length in 0_u8..80,
        code in prop_oneof![Just(0x08_u8), Just(0x88), any::<u8>()],
        descriptors in 0_u8..24,
    ) {
        let form = if long { Length::Ten } else { Length::Six };
        let _ = CachingPage::of(form, &bytes);
        // Bytes that are nearly a page.
        let mut near = bytes;
        let (count, header) = if long { (1, 7) } else { (0, 3) };
        if near.len() > header {
            near[..=header].fill(0);
            near[count] = length;
            near[header] = descriptors;
            let at = form.header() + usize::from(descriptors);
            if at + 1 < near.len() {
                near[at] = code;
                near[at + 1] %= 32;
            }
        }
        if let Ok(page) = CachingPage::of(form, &near) {
            prop_assert!(page.bytes.len() > DRA_AT && near.len() >= form.header() + page.bytes.len());
            prop_assert_eq!(page.bytes.len(), 2 + usize::from(page.bytes[1]));
            for on in [true, false] {
                let turned = page.clone().with(on);
                prop_assert_eq!(turned.reads_ahead(), on);
                let data = turned.parameters(form);
                prop_assert_eq!(data.len(), form.header() + page.bytes.len());
                prop_assert_eq!(data[form.header()], CACHING);
                let command = form.select(data.len());
                prop_assert_eq!(usize::from(command[command.len() - 2]), data.len());
            }
        }
    }

    #[test]
    fn whatever_sense_is_it_is_said(bytes in prop::collection::vec(any::<u8>(), 0..40), format in 0x70_u8..0x74) {
        let mut near = bytes.clone();
        if let Some(first) = near.first_mut() {
            *first = format;
        }
        for bytes in [bytes, near] {
            if let Some(sense) = Sense::of(&bytes) {
                prop_assert!(!sense.to_string().is_empty());
            }
        }
    }

    #[test]
    fn whatever_comes_from_a_disk_ends(
        answers in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0_usize..300, any::<u8>()), 1..20),
        on in any::<bool>(),
    ) {
        struct Noise(Vec<(Vec<u8>, usize, u8)>, usize);
        impl Wire for Noise {
            fn send(&mut self, _: &[u8], data: Data<'_>) -> Result<usize, Unanswered> {
                let (bytes, moved, key) = &self.0[self.1 % self.0.len()];
                self.1 += 1;
                if key % 3 == 0 {
                    return Err(Unanswered::Sense(sense_of(key % 16, (*key, 0))));
                }
                if let Data::From(room) = data {
                    let len = bytes.len().min(room.len());
                    room[..len].copy_from_slice(&bytes[..len]);
                }
                Ok(*moved)
            }
        }
        let mut noise = Noise(answers, 0);
        let _ = is_on(&mut noise);
        let _ = turn(&mut noise, on);
        prop_assert!(noise.1 < 2_000);
    }
}
