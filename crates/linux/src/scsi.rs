//! Look-ahead of SCSI and SAS disks: the bit DRA (disable read-ahead) of the caching mode page.
//!
//! MODE SENSE reads the page and the mask of changeable bits. MODE SELECT writes the page (SPC-4, sections 6.11 to 6.14 and 7.5; SBC-3,
//! section 6.5.5). Only current values are changed, which a disk forgets when it loses its power. Saved values stay.
//!
//! The commands bypass the kernel's disk driver by `SG_IO` (`scsi/sg.h`). MODE SELECT needs `CAP_SYS_RAWIO` on a device that is opened for
//! reading. On a partition every command needs it.

#![allow(
    unsafe_code,
    reason = "calls of the kernel that no library wraps safely"
)]

use crate::switch::SwitchError;
use crate::sys::{check, has_capability};
use rustix::thread::CapabilitySet;
use std::ffi::{c_int, c_uint, c_ushort, c_void};
use std::fmt::{Display, Formatter};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Code of the caching page; the bit PS, which is reserved in data to the disk; mask of the code and SPF.
const CACHING: u8 = 0x08;
const SAVEABLE: u8 = 0x80;
const CODE: u8 = 0x7F;
/// Byte of DRA in the page, and the bit.
const DRA_AT: usize = 12;
const DRA: u8 = 1 << 5;

/// Kinds of values of a page: current values, or the mask of changeable bits.
const CURRENT: u8 = 0;
const CHANGEABLE: u8 = 1;

/// Room for an answer. The length must fit into one byte. The page has 20 bytes, and at most 24 bytes precede it.
const ROOM: u8 = 252;
/// Most attempts to send a command to a disk that reports a changed state first, as after a reset.
const ATTEMPTS: u32 = 8;
/// Timeouts in milliseconds. A disk that is spun down answers. A disk that does not answer may have to be reset.
const SENSE_TIMEOUT: c_uint = 20_000;
const SELECT_TIMEOUT: c_uint = 60_000;

/// Returns true if a SCSI disk reads ahead.
///
/// # Errors
///
/// If the device takes no SCSI commands, the caller may not change the switch, or the disk says that the switch cannot be changed.
pub fn look_ahead(disk: BorrowedFd<'_>) -> Result<bool, SwitchError> {
    permitted()?;
    is_on(&mut Generic(disk))
}

/// Turns the look-ahead of a SCSI disk on or off, until the disk loses its power.
///
/// # Errors
///
/// As [`look_ahead`], and if the disk refuses or stays as it is.
pub fn set_look_ahead(disk: BorrowedFd<'_>, on: bool) -> Result<(), SwitchError> {
    permitted()?;
    turn(&mut Generic(disk), on)
}

/// Checks that the caller may change the page. The kernel lets every process that has opened a device read the page. A switch that cannot
/// be changed counts as absent.
fn permitted() -> Result<(), SwitchError> {
    match has_capability(CapabilitySet::SYS_RAWIO) {
        true => Ok(()),
        false => Err(SwitchError::NotPermitted),
    }
}

fn is_on<W: Wire>(wire: &mut W) -> Result<bool, SwitchError> {
    let (form, page) = sense(wire, CURRENT)?;
    changeable(wire, form)?;
    Ok(page.reads_ahead())
}

fn turn<W: Wire>(wire: &mut W, on: bool) -> Result<(), SwitchError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (form, page) = sense(wire, CURRENT)?;
        if page.reads_ahead() == on {
            return Ok(());
        }
        changeable(wire, form)?;
        let data = page.with(on).parameters(form);
        match wire.send(&form.select(data.len()), Data::To(&data)) {
            // The number of bytes is not checked, since some hosts count wrongly. The page is read back instead.
            Ok(_) => {
                let (_, page) = sense(wire, CURRENT)?;
                return match page.reads_ahead() == on {
                    true => Ok(()),
                    false => Err(SwitchError::Left),
                };
            }
            // Another host may have changed the page meanwhile, so the page is read again.
            Err(why) if why.is_passing() && attempts < ATTEMPTS => {}
            Err(why) => return Err(why.of(form.names().1)),
        }
    }
}

fn changeable<W: Wire>(wire: &mut W, form: Length) -> Result<(), SwitchError> {
    let mask = sense_as(wire, form, CHANGEABLE).map_err(|why| why.of(form.names().0))?;
    match mask.bytes[DRA_AT] & DRA {
        0 => Err(SwitchError::Absent(
            "the disk says that this bit of its caching page (DRA) cannot be changed",
        )),
        _ => Ok(()),
    }
}

/// Reads the page, by the long command if the disk knows it.
fn sense<W: Wire>(wire: &mut W, which: u8) -> Result<(Length, CachingPage), SwitchError> {
    let (ten, six) = (Length::Ten, Length::Six);
    let long = match sense_as(wire, ten, which) {
        Ok(page) => return Ok((ten, page)),
        Err(Unanswered::Sense(sense)) if sense.key == ILLEGAL_REQUEST => Unanswered::Sense(sense),
        Err(why) => return Err(why.of(ten.names().0)),
    };
    match sense_as(wire, six, which) {
        Ok(page) => Ok((six, page)),
        // The disk does not know the short command, so the answer to the long command counts.
        Err(Unanswered::Sense(sense)) if sense.additional == UNKNOWN_COMMAND => {
            Err(long.of(ten.names().0))
        }
        Err(why) => Err(why.of(six.names().0)),
    }
}

fn sense_as<W: Wire>(wire: &mut W, form: Length, which: u8) -> Result<CachingPage, Unanswered> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut reply = [0; ROOM as usize];
        match wire.send(&form.sense(which), Data::From(&mut reply)) {
            Ok(came) => {
                let came = reply.get(..came).unwrap_or(&reply);
                return CachingPage::of(form, came).map_err(Unanswered::Garbled);
            }
            Err(why) if why.is_passing() && attempts < ATTEMPTS => {}
            Err(why) => return Err(why),
        }
    }
}

/// Length of the commands, and of the header in front of a page. Disks know one or both lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Six,
    Ten,
}

impl Length {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Length::Six => ("MODE SENSE(6)", "MODE SELECT(6)"),
            Length::Ten => ("MODE SENSE(10)", "MODE SELECT(10)"),
        }
    }

    /// Returns the number of bytes in front of block descriptors and pages.
    fn header(self) -> usize {
        match self {
            Length::Six => 4,
            Length::Ten => 8,
        }
    }

    /// Returns the command that asks for the page. The command could exclude block descriptors, but not every disk knows that.
    fn sense(self, which: u8) -> Vec<u8> {
        let page = which << 6 | CACHING;
        match self {
            Length::Six => vec![0x1A, 0, page, 0, ROOM, 0],
            Length::Ten => vec![0x5A, 0, page, 0, 0, 0, 0, 0, ROOM, 0],
        }
    }

    /// Returns the command that brings `bytes` bytes in the format of pages (PF), without saving the pages (SP).
    fn select(self, bytes: usize) -> Vec<u8> {
        let bytes = u8::try_from(bytes).expect("no longer than what came");
        match self {
            Length::Six => vec![0x15, 0x10, 0, 0, bytes, 0],
            Length::Ten => vec![0x55, 0x10, 0, 0, 0, 0, 0, 0, bytes, 0],
        }
    }
}

/// Caching page of a disk, with the type of medium from the header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CachingPage {
    medium: u8,
    /// The page from its code to its end, including the byte of DRA.
    bytes: Vec<u8>,
}

impl CachingPage {
    /// Parses the answer to MODE SENSE. The error is the problem of the answer.
    fn of(form: Length, came: &[u8]) -> Result<CachingPage, &'static str> {
        const SHORT: &str = "an answer that is cut short";
        let header = came.get(..form.header()).ok_or(SHORT)?;
        let word = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        // Both lengths count what follows them.
        let (length, medium, descriptors) = match form {
            Length::Six => (usize::from(header[0]) + 1, header[1], header[3].into()),
            Length::Ten => (word(0) + 2, header[2], word(6)),
        };
        let came = &came[..length.min(came.len())];
        let page = came.get(form.header() + descriptors..).ok_or(SHORT)?;
        let [code, length, ..] = *page else {
            return Err(SHORT);
        };
        if code & CODE != CACHING {
            return Err("another page than the one asked for");
        }
        let bytes = page.get(..2 + usize::from(length)).ok_or(SHORT)?;
        if bytes.len() <= DRA_AT {
            return Err("a caching page of an old kind, which has no bit for reading ahead (DRA)");
        }
        Ok(CachingPage {
            medium,
            bytes: bytes.to_vec(),
        })
    }

    fn reads_ahead(&self) -> bool {
        self.bytes[DRA_AT] & DRA == 0
    }

    fn with(mut self, reads_ahead: bool) -> CachingPage {
        match reads_ahead {
            true => self.bytes[DRA_AT] &= !DRA,
            false => self.bytes[DRA_AT] |= DRA,
        }
        self
    }

    /// Returns the data of MODE SELECT: a header and the whole page. Without block descriptors the disk keeps its own.
    ///
    /// The length in front, the bits of write protection and of DPO and FUA, and PS are reserved, thus zero.
    fn parameters(&self, form: Length) -> Vec<u8> {
        let mut data = vec![0; form.header()];
        match form {
            Length::Six => data[1] = self.medium,
            Length::Ten => data[2] = self.medium,
        }
        data.push(self.bytes[0] & !SAVEABLE);
        data.extend_from_slice(&self.bytes[1..]);
        data
    }
}

/// Data of a command: room for data from the disk, or data to the disk.
enum Data<'a> {
    From(&'a mut [u8]),
    To(&'a [u8]),
}

/// Connection that carries commands to a disk.
trait Wire {
    /// Sends a command. Returns the number of moved bytes.
    fn send(&mut self, command: &[u8], data: Data<'_>) -> Result<usize, Unanswered>;
}

/// Reason for which a command was not done.
#[derive(Debug)]
enum Unanswered {
    /// The kernel has not sent the command.
    Kernel(io::Error),
    /// The disk reports the reason.
    Sense(Sense),
    /// The disk reports nothing but a status (SAM).
    Status(u8),
    /// The command was lost on the way (the kernel's `DID_*`).
    Way(u16),
    /// The disk's answer could not be understood.
    Garbled(&'static str),
}

impl Unanswered {
    /// Returns true if the disk reported a changed state first, and may do the command when it is sent again.
    fn is_passing(&self) -> bool {
        matches!(self, Unanswered::Sense(sense) if sense.key == UNIT_ATTENTION)
    }

    fn of(self, command: &'static str) -> SwitchError {
        let errno = match &self {
            Unanswered::Kernel(error) => error.raw_os_error(),
            _ => None,
        };
        match errno {
            Some(libc::ENOTTY | libc::EINVAL | libc::EOPNOTSUPP) => SwitchError::Foreign("SCSI"),
            Some(libc::EPERM | libc::EACCES) => SwitchError::NotPermitted,
            _ => SwitchError::Failed {
                command,
                why: self.to_string(),
            },
        }
    }
}

impl Display for Unanswered {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Unanswered::Kernel(error) => write!(f, "{error}"),
            Unanswered::Sense(sense) => write!(f, "the disk refuses: {sense}"),
            Unanswered::Status(0x08) => f.write_str("the disk is busy; try again later"),
            Unanswered::Status(0x18) => {
                f.write_str("another host has reserved the disk (reservation conflict)")
            }
            Unanswered::Status(0x28) => f.write_str("the queue of the disk is full"),
            Unanswered::Status(status) => write!(f, "the disk refuses, with status {status:02X}h"),
            Unanswered::Way(0x01 | 0x04) => f.write_str("the disk is not connected any more"),
            Unanswered::Way(0x03) => f.write_str("the disk has not answered in time"),
            Unanswered::Way(0x05 | 0x08) => f.write_str("it was lost in a reset; try again"),
            Unanswered::Way(way) => write!(
                f,
                "the host adapter has not brought it to the disk (host status {way:02X}h)"
            ),
            Unanswered::Garbled(what) => write!(f, "the disk has sent {what}"),
        }
    }
}

const NO_SENSE: u8 = 0x0;
const RECOVERED: u8 = 0x1;
const ILLEGAL_REQUEST: u8 = 0x5;
const UNIT_ATTENTION: u8 = 0x6;
/// The additional codes (ASC, ASCQ) of a command that a disk does not know.
const UNKNOWN_COMMAND: (u8, u8) = (0x20, 0x00);

/// Report of a disk on a command that was not done, or was done with a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sense {
    key: u8,
    additional: (u8, u8),
    /// Byte that the disk rejects. The flag is true for a byte of the command, false for a byte of the data.
    field: Option<(u16, bool)>,
}

impl Sense {
    /// Parses sense data. Returns `None` if there are none.
    fn of(bytes: &[u8]) -> Option<Sense> {
        let byte = |at: usize| bytes.get(at).copied();
        let field = |specific: &[u8]| match *specific {
            // The field is valid (SKSV), and the flag C/D says whether it is of the command.
            [flags, high, low] if flags & 0x80 != 0 => {
                Some((u16::from_be_bytes([high, low]), flags & 0x40 != 0))
            }
            _ => None,
        };
        let (key, additional, specific) = match byte(0)? & 0x7F {
            // Fixed format. Byte 7 has the number of bytes that count after the eighth.
            0x70 | 0x71 => {
                let end = 8 + usize::from(byte(7).unwrap_or(0));
                let counts = &bytes[..end.min(bytes.len())];
                let code = |at: usize| counts.get(at).copied().unwrap_or(0);
                (byte(2)?, (code(12), code(13)), counts.get(15..18))
            }
            // Descriptor format. The descriptor of type 2 has the field.
            0x72 | 0x73 => {
                let additional = (byte(2).unwrap_or(0), byte(3).unwrap_or(0));
                let mut rest = bytes.get(8..).unwrap_or(&[]);
                let mut specific = None;
                while let [kind, length, ..] = *rest {
                    if kind == 0x02 {
                        specific = rest.get(4..7);
                        break;
                    }
                    rest = rest.get(2 + usize::from(length)..).unwrap_or(&[]);
                }
                (byte(1)?, additional, specific)
            }
            _ => return None,
        };
        let key = key & 0x0F;
        let of_request = specific.filter(|_| key == ILLEGAL_REQUEST);
        Some(Sense {
            key,
            additional,
            field: of_request.and_then(field),
        })
    }

    /// Returns true if the command was done nevertheless.
    fn is_done(self) -> bool {
        matches!(self.key, NO_SENSE | RECOVERED)
    }
}

const KEYS: [&str; 16] = [
    "nothing in particular",
    "done, after a recovery",
    "not ready",
    "an error of the medium",
    "an error of its hardware",
    "a request that it does not take",
    "a state that has changed",
    "protected data",
    "a blank medium",
    "something of the vendor's own",
    "a copy that was ended",
    "a command that was ended",
    "equal data",
    "an overflow",
    "data that differ",
    "done",
];

/// Additional codes that a command for a mode page can meet.
const ADDITIONAL: [((u8, u8), &str); 18] = [
    ((0x04, 0x01), "it is becoming ready; try again later"),
    (
        (0x04, 0x02),
        "it stands still and has to be started (sg_start --start)",
    ),
    ((0x04, 0x03), "it has to be seen to by hand"),
    ((0x04, 0x04), "it is being formatted"),
    ((0x1A, 0x00), "a list of the wrong length"),
    (UNKNOWN_COMMAND, "a command that it does not know"),
    ((0x20, 0x02), "who asks has no access rights with the disk"),
    (
        (0x24, 0x00),
        "a field of the command that it does not know, or not this page",
    ),
    ((0x25, 0x00), "there is no such unit"),
    ((0x26, 0x00), "a field of the page that it does not take"),
    ((0x26, 0x01), "a parameter that it does not have"),
    ((0x26, 0x02), "a value that it does not take"),
    ((0x27, 0x00), "it is write-protected"),
    ((0x29, 0x00), "it was switched on or reset"),
    ((0x2A, 0x01), "another has changed a mode page"),
    ((0x2C, 0x00), "a command at the wrong time"),
    ((0x39, 0x00), "it cannot save pages"),
    ((0x74, 0x71), "it is locked (self-encrypting disk)"),
];

impl Display for Sense {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let (code, qualifier) = self.additional;
        f.write_str(KEYS[usize::from(self.key & 0x0F)])?;
        let known = ADDITIONAL.iter().find(|(of, _)| *of == self.additional);
        if let Some((_, words)) = known {
            write!(f, ", {words}")?;
        }
        if let Some((byte, of_command)) = self.field {
            let of = if of_command { "command" } else { "data" };
            write!(f, ", byte {byte} of the {of}")?;
        }
        write!(f, " (sense {:X}/{code:02X}/{qualifier:02X})", self.key)
    }
}

/// Result of a command, as the kernel reports it.
#[derive(Clone, Copy, Debug, Default)]
struct Went<'a> {
    status: u8,
    host: u16,
    sense: &'a [u8],
    /// Bytes of the data, and bytes that were not moved.
    asked: usize,
    left: c_int,
}

impl Went<'_> {
    /// Returns the number of moved bytes, if the command was done.
    fn moved(self) -> Result<usize, Unanswered> {
        const CHECK_CONDITION: u8 = 0x02;
        // Some hosts count wrongly, so the number is limited: from zero to the bytes of the data.
        let left = usize::try_from(self.left).unwrap_or(0);
        let moved = self.asked.saturating_sub(left);
        match (self.status & 0x7E, Sense::of(self.sense)) {
            (CHECK_CONDITION, Some(sense)) if sense.is_done() => Ok(moved),
            (CHECK_CONDITION, Some(sense)) => Err(Unanswered::Sense(sense)),
            (0, _) if self.host != 0 => Err(Unanswered::Way(self.host)),
            (0, _) => Ok(moved),
            (status, _) => Err(Unanswered::Status(status)),
        }
    }
}

/// A disk behind the kernel's generic driver.
struct Generic<'a>(BorrowedFd<'a>);

const SG_IO: libc::c_ulong = 0x2285;
const SG_DXFER_TO_DEV: c_int = -2;
const SG_DXFER_FROM_DEV: c_int = -3;

/// `struct sg_io_hdr` (`scsi/sg.h`), names as there.
#[repr(C)]
struct SgIoHdr {
    interface_id: c_int,
    dxfer_direction: c_int,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: c_ushort,
    dxfer_len: c_uint,
    dxferp: *mut c_void,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: c_uint,
    flags: c_uint,
    pack_id: c_int,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: c_ushort,
    driver_status: c_ushort,
    resid: c_int,
    duration: c_uint,
    info: c_uint,
}

impl Wire for Generic<'_> {
    fn send(&mut self, command: &[u8], data: Data<'_>) -> Result<usize, Unanswered> {
        let mut sense = [0_u8; 96];
        let (direction, at, asked, timeout) = match data {
            Data::From(room) => (
                SG_DXFER_FROM_DEV,
                room.as_mut_ptr(),
                room.len(),
                SENSE_TIMEOUT,
            ),
            // The kernel only reads these bytes.
            Data::To(bytes) => (
                SG_DXFER_TO_DEV,
                bytes.as_ptr().cast_mut(),
                bytes.len(),
                SELECT_TIMEOUT,
            ),
        };
        let mut header = SgIoHdr {
            interface_id: c_int::from(b'S'),
            dxfer_direction: direction,
            cmd_len: command.len() as u8,
            mx_sb_len: sense.len() as u8,
            iovec_count: 0,
            dxfer_len: asked as c_uint,
            dxferp: at.cast(),
            cmdp: command.as_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout,
            flags: 0,
            pack_id: 0,
            usr_ptr: ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        };
        // SAFETY: header, command, data and sense outlive the call, with the lengths in the header. The kernel writes to the header and the
        // sense. It writes to the data only if they come from the disk, and then they are borrowed mutably.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), SG_IO, &raw mut header) };
        check(result).map_err(Unanswered::Kernel)?;
        let told = usize::from(header.sb_len_wr).min(sense.len());
        Went {
            status: header.status,
            host: header.host_status,
            sense: &sense[..told],
            asked,
            left: header.resid,
        }
        .moved()
    }
}

#[cfg(test)]
mod tests;
