//! Superblocks of Linux's md, version 1.
//!
//! A client that makes an md array of served disks writes a superblock on each. [`detect`] reads the superblocks and
//! gives the layout of the array, which a coordinator needs. Nothing is written.
//!
//! Source: `struct mdp_superblock_1` in `include/uapi/linux/raid/md_p.h`, and `super_1_load` in `drivers/md/md.c`, of
//! Linux 6.13. Sectors have 512 bytes, and all numbers are little-endian.

use crate::header::{CHUNK_MAX, UNIT, is_chunk};
use headtime_engine::MEMBERS_MAX;
use headtime_units::Bytes;
use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

const MAGIC: u32 = 0xa92b_4efc;
const SECTOR: u64 = 512;
/// Bytes before the roles of the devices.
const FIXED: usize = 256;
/// Largest number of roles: a superblock has 4 KiB.
const ROLES_MAX: u32 = 1920;

/// Bits of `feature_map`.
mod feature {
    pub const RECOVERY: u32 = 2;
    pub const RESHAPE: u32 = 4;
    pub const REPLACEMENT: u32 = 16;
    pub const CLUSTER: u32 = 256;
    pub const JOURNAL: u32 = 512;
    /// `layout` of a RAID 0 has a value.
    pub const RAID0_LAYOUT: u32 = 4096;
}

/// Reason why devices are no md array that a coordinator knows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MdError {
    /// There is no superblock.
    #[error("has no superblock of md, version 1.0, 1.1 or 1.2")]
    None,
    /// A field or the checksum is wrong.
    #[error("the superblock of md is damaged: {0}")]
    Damaged(&'static str),
    /// The array has a level, a layout or a state that is not known.
    #[error("{0}")]
    Unknown(String),
    /// The device is no disk of the first device's array, or not in use.
    #[error("{0}")]
    Foreign(String),
    /// A system call failed.
    #[error("reading the superblock: {0}")]
    Io(#[from] io::Error),
}

/// Contents of a superblock.
///
/// Invariants of a superblock that `decode` returns:
///
/// - `data_offset + data_size` is at most the number of sectors of the device.
/// - `roles.len() ≤ ROLES_MAX`; `name` has no NUL.
///
/// `known` checks the other fields. The level is 0 or 5, `2 ≤ disks ≤ MEMBERS_MAX`, `data_size > 0`, and
/// `level = 5` ⇒ `layout = 2` and `size > 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Superblock {
    features: u32,
    set: [u8; 16],
    name: String,
    level: i32,
    layout: u32,
    /// Sectors.
    chunk: u32,
    disks: u32,
    /// Sectors of each disk that the array has; 0 for RAID 0.
    size: u64,
    data_offset: u64,
    data_size: u64,
    /// This device's place in `roles`.
    number: u32,
    events: u64,
    roles: Vec<u16>,
}

/// Level of an array with chunks, as far as a coordinator knows the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdLevel {
    /// RAID 0. `original` is the order of chunks from the second zone on; `None` if the superblocks do not say.
    Raid0 {
        /// True for the layout of Linux up to 3.13.
        original: Option<bool>,
    },
    /// RAID 5, left-symmetric.
    Raid5,
}

/// Range of bytes on a member device in which an md array has its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdDisk {
    /// Number of the device in the call.
    pub device: usize,
    /// Byte at which the data begin.
    pub offset: Bytes,
    /// Bytes of data.
    pub size: Bytes,
}

/// An md array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MdArray {
    /// Name that was given to mdadm, usually with the host before a colon.
    pub name: String,
    /// Level.
    pub level: MdLevel,
    /// Bytes of a chunk.
    pub chunk: Bytes,
    /// The disks in the order of the array.
    pub disks: Vec<MdDisk>,
}

/// Reads the superblocks of all devices of an array, given in any order.
///
/// # Errors
///
/// The number of the device at fault, and the reason.
pub fn detect(devices: &[File]) -> Result<MdArray, (usize, MdError)> {
    let mut all = Vec::with_capacity(devices.len());
    for (number, device) in devices.iter().enumerate() {
        all.push(read(device).map_err(|error| (number, error))?);
    }
    arrange(&all)
}

fn read(device: &File) -> Result<Superblock, MdError> {
    let sectors = seek(device, SeekFrom::End(0)).map_err(io::Error::from)? / SECTOR;
    // Versions 1.1, 1.2 and 1.0.
    for at in [0, 8, sectors.saturating_sub(16) & !7] {
        let mut bytes = vec![0; FIXED + 2 * ROLES_MAX as usize];
        match device.read_exact_at(&mut bytes, at * SECTOR) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
            Err(error) => return Err(error.into()),
        }
        if short(&bytes, 0) == MAGIC && long(&bytes, 144) == at {
            return decode(&bytes, sectors);
        }
    }
    Err(MdError::None)
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}

/// Sum over a superblock. The checksum's own bytes count as zero.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = 0;
    for (at, word) in bytes.chunks(4).enumerate() {
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        if at != 216 / 4 {
            sum += u64::from(u32::from_le_bytes(whole));
        }
    }
    ((sum & 0xffff_ffff) + (sum >> 32)) as u32
}

/// Decodes the bytes of a superblock on a device of `sectors` sectors.
fn decode(bytes: &[u8], sectors: u64) -> Result<Superblock, MdError> {
    let word = |at| short(bytes, at);
    let roles = word(220);
    if word(4) != 1 {
        return Err(MdError::Damaged("its version is not 1"));
    }
    if roles > ROLES_MAX {
        return Err(MdError::Damaged("it has too many roles"));
    }
    let end = FIXED + 2 * roles as usize;
    if checksum(&bytes[..end]) != word(216) {
        return Err(MdError::Damaged("the checksum does not fit"));
    }
    let (data_offset, data_size) = (long(bytes, 128), long(bytes, 136));
    if data_offset
        .checked_add(data_size)
        .is_none_or(|end| end > sectors)
    {
        return Err(MdError::Damaged("the data end beyond the device"));
    }
    let name = &bytes[32..64];
    let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(32)];
    let roles = bytes[FIXED..end].chunks_exact(2);
    Ok(Superblock {
        features: word(8),
        set: bytes[16..32].try_into().expect("sixteen"),
        name: String::from_utf8_lossy(name).into_owned(),
        level: word(72).cast_signed(),
        layout: word(76),
        chunk: word(88),
        disks: word(92),
        size: long(bytes, 80),
        data_offset,
        data_size,
        number: word(160),
        events: long(bytes, 200),
        roles: roles
            .map(|role| u16::from_le_bytes([role[0], role[1]]))
            .collect(),
    })
}

/// Puts the devices in the order of their array.
fn arrange(all: &[Superblock]) -> Result<MdArray, (usize, MdError)> {
    let newest = (0..all.len()).max_by_key(|device| all[*device].events);
    let Some(newest) = newest else {
        return Err((0, MdError::None));
    };
    let of = &all[newest];
    // The kernel notes some states on the disk concerned alone.
    let levels = all
        .iter()
        .enumerate()
        .map(|(device, other)| known(other).map_err(|problem| (device, MdError::Unknown(problem))));
    let levels: Vec<MdLevel> = levels.collect::<Result<_, _>>()?;
    let level = levels[newest];
    let mut disks = vec![None; of.disks as usize];
    for (device, other) in all.iter().enumerate() {
        let foreign = |problem: String| Err((device, MdError::Foreign(problem)));
        let layout = |of: &Superblock| (of.level, of.layout, of.chunk, of.disks);
        if other.set != of.set || layout(other) != layout(of) {
            let name = &of.name;
            return foreign(format!("belongs to another array than \"{name}\""));
        }
        if other.events.saturating_add(1) < of.events {
            let (own, newest) = (other.events, of.events);
            return foreign(format!(
                "is out of date: it has seen {own} events of {newest}"
            ));
        }
        let role = of
            .roles
            .get(other.number as usize)
            .map(|role| usize::from(*role));
        let Some(role) = role.filter(|role| *role < disks.len()) else {
            return foreign("is a spare or a failed disk of its array; leave it out".to_owned());
        };
        if disks[role].is_some() {
            return foreign(format!("is disk {role} of its array, as another device is"));
        }
        let size = match level {
            MdLevel::Raid0 { .. } => other.data_size,
            MdLevel::Raid5 => other.size.min(other.data_size),
        };
        disks[role] = Some(MdDisk {
            device,
            offset: Bytes(other.data_offset * SECTOR),
            size: Bytes(size * SECTOR),
        });
    }
    if let Some(missing) = disks.iter().position(Option::is_none) {
        let count = disks.len();
        let problem = format!("disk {missing} of {count} of its array is missing; give all");
        return Err((newest, MdError::Foreign(problem)));
    }
    Ok(MdArray {
        name: of.name.clone(),
        level,
        chunk: Bytes(u64::from(of.chunk) * SECTOR),
        disks: disks.into_iter().flatten().collect(),
    })
}

/// Level of an array that a coordinator knows. The error is the reason why the coordinator does not.
fn known(of: &Superblock) -> Result<MdLevel, String> {
    for (bit, problem) in [
        (feature::RECOVERY, "a disk is being rebuilt"),
        (feature::RESHAPE, "the array is being reshaped"),
        (feature::REPLACEMENT, "a disk is being replaced"),
        (feature::CLUSTER, "the array is one of a cluster"),
        (feature::JOURNAL, "the array has a journal"),
    ] {
        if of.features & bit != 0 {
            return Err(format!("{problem}, which the coordinator does not follow"));
        }
    }
    let (disks, chunk) = (of.disks, u64::from(of.chunk) * SECTOR);
    if !(2..=MEMBERS_MAX).contains(&(disks as usize)) {
        return Err(format!("{disks} disks; known are 2 to {MEMBERS_MAX}"));
    }
    if !is_chunk(chunk) {
        let (chunk, unit, most) = (Bytes(chunk), Bytes(UNIT), Bytes(CHUNK_MAX));
        return Err(format!(
            "chunks of {chunk}; known are multiples of {unit} up to {most}"
        ));
    }
    if of.data_size == 0 || (of.level == 5 && of.size == 0) {
        return Err("an array without data".to_owned());
    }
    match (of.level, of.layout) {
        (0, layout) => {
            let says = of.features & feature::RAID0_LAYOUT != 0;
            Ok(MdLevel::Raid0 {
                original: says.then_some(layout == 1),
            })
        }
        (5, 2) => Ok(MdLevel::Raid5),
        (5, layout) => Err(format!(
            "RAID 5 with layout {layout}; known is left-symmetric (2), mdadm's default"
        )),
        (level, _) => Err(format!(
            "level {level}; known are RAID 0 and RAID 5, which spread a reader over all disks"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A superblock of version 1.2, of device `number` of three.
    fn block(number: u32, change: impl Fn(&mut [u8])) -> Vec<u8> {
        let mut bytes = vec![0; FIXED + 2 * ROLES_MAX as usize];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC.to_le_bytes());
        put(4, &1_u32.to_le_bytes());
        put(16, &[7; 16]);
        put(32, b"vm:data");
        put(72, &5_u32.to_le_bytes());
        put(76, &2_u32.to_le_bytes());
        put(80, &40_000_u64.to_le_bytes());
        put(88, &128_u32.to_le_bytes());
        put(92, &3_u32.to_le_bytes());
        put(128, &2_048_u64.to_le_bytes());
        put(136, &(40_000 + 8 * u64::from(number)).to_le_bytes());
        put(144, &8_u64.to_le_bytes());
        put(160, &number.to_le_bytes());
        put(200, &17_u64.to_le_bytes());
        put(220, &4_u32.to_le_bytes());
        // Device 0 is disk 2, device 1 is disk 0, device 3 is disk 1; device 2 is a spare.
        for (at, role) in [2, 0, 0xffff, 1_u16].into_iter().enumerate() {
            put(FIXED + 2 * at, &role.to_le_bytes());
        }
        change(&mut bytes);
        let sum = checksum(&bytes[..FIXED + 8]);
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn same(_: &mut [u8]) {}

    fn arranged(blocks: &[Vec<u8>]) -> Result<MdArray, String> {
        let decoded = blocks.iter().map(|bytes| decode(bytes, 50_000));
        let all: Result<Vec<_>, _> = decoded.collect();
        let all = all.map_err(|error| error.to_string())?;
        arrange(&all).map_err(|(device, error)| format!("{device}: {error}"))
    }

    #[test]
    fn devices_are_put_in_the_order_of_their_array() {
        let blocks = [0, 1, 3].map(|number| block(number, same));
        let array = arranged(&blocks).expect("an array");
        let disk = |device| MdDisk {
            device,
            offset: Bytes(1 << 20),
            size: Bytes(40_000 * SECTOR),
        };
        assert_eq!(array.disks, [disk(1), disk(2), disk(0)]);
        assert_eq!((&*array.name, array.level), ("vm:data", MdLevel::Raid5));
        assert_eq!(array.chunk, Bytes(64 << 10));
    }

    #[test]
    fn devices_that_are_no_known_array_are_refused() {
        let [one, two, three] = [0, 1, 3].map(|number| block(number, same));
        let changed = |at: usize, to: u8| block(3, move |bytes| bytes[at] = to);
        let all = |at: usize, to: u8| [0, 1, 3].map(|number| block(number, |bytes| bytes[at] = to));
        let mut damaged = two.clone();
        damaged[130] ^= 1;
        for (blocks, error) in [
            (
                vec![one.clone(), damaged, three.clone()],
                "the checksum does not fit",
            ),
            (
                vec![one.clone(), two.clone()],
                "1: disk 1 of 3 of its array is missing; give all",
            ),
            (
                vec![one.clone(), two.clone(), two.clone()],
                "2: is disk 0 of its array, as another device is",
            ),
            (
                vec![one.clone(), two.clone(), block(2, same)],
                "2: is a spare or a failed disk",
            ),
            (
                vec![one.clone(), two.clone(), changed(16, 9)],
                "belongs to another array than \"vm:data\"",
            ),
            (
                vec![one.clone(), two.clone(), changed(200, 9)],
                "2: is out of date: it has seen 9 events of 17",
            ),
            (
                vec![one.clone(), two, changed(138, 1)],
                "the data end beyond the device",
            ),
            (all(72, 1).to_vec(), "level 1; known are RAID 0 and RAID 5"),
            (all(76, 3).to_vec(), "RAID 5 with layout 3"),
            (all(95, 2).to_vec(), "33554435 disks; known are 2 to 64"),
            (all(8, 2).to_vec(), "a disk is being rebuilt"),
            (
                all(88, 3).to_vec(),
                "chunks of 1536B; known are multiples of 4KiB up to 64MiB",
            ),
            (all(90, 4).to_vec(), "chunks of 131136KiB; known"),
            (
                vec![
                    block(0, |bytes| bytes[8] = 2),
                    block(1, same),
                    block(3, same),
                ],
                "0: a disk is being rebuilt",
            ),
            (all(223, 9).to_vec(), "it has too many roles"),
        ] {
            let found = arranged(&blocks).expect_err(error);
            assert!(found.contains(error), "{found}");
        }
        assert!(arranged(&[]).is_err());
    }

    proptest! {
        /// Any superblock with a valid checksum is an array or is refused.
        #[test]
        fn any_superblock_is_decoded(changes in prop::collection::vec((8_usize..264, any::<u8>()), 0..6)) {
            let blocks = [0, 1, 3].map(|number| block(number, |bytes| {
                for (at, to) in &changes {
                    bytes[*at] = *to;
                }
            }));
            if let Ok(array) = arranged(&blocks) {
                prop_assert_eq!(array.disks.len(), 3);
            }
        }
    }

    #[test]
    fn any_number_of_events_is_taken() {
        let most = |bytes: &mut [u8]| bytes[200..208].fill(0xff);
        assert!(arranged(&[0, 1, 3].map(|number| block(number, most))).is_ok());
    }

    #[test]
    fn layouts_of_raid_0_are_told_apart() {
        for (features, layout, original) in
            [(0, 0, None), (0x10, 1, Some(true)), (0x10, 2, Some(false))]
        {
            let blocks = [0, 1, 3].map(|number| {
                block(number, |bytes| {
                    (bytes[72], bytes[76], bytes[9]) = (0, layout, features)
                })
            });
            let array = arranged(&blocks).expect("an array");
            assert_eq!(array.level, MdLevel::Raid0 { original });
            assert_eq!(array.disks[0].size, Bytes(40_008 * SECTOR));
        }
    }
}
