//! Permissions of unix sockets.

use headtime_config::{Error, Placed, parse};
use headtime_lab::fault::Fault;
use headtime_linux::sys;
use headtime_serve::listen::Access;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;

/// Permissions of unix sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessConfig {
    /// Mode of the sockets' files.
    pub mode: u32,
    /// Group of the sockets' files. `None` means the server's own group.
    pub group: Option<Placed<GroupConfig>>,
}

/// A group as it was given.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Name of the group, or its number as text.
    pub name: String,
    /// Number of the group.
    pub number: u32,
}

/// Groups are equal if their numbers are equal. Names do not count.
impl PartialEq for GroupConfig {
    fn eq(&self, other: &GroupConfig) -> bool {
        self.number == other.number
    }
}

impl Eq for GroupConfig {}

/// Permissions for the owner alone.
impl Default for AccessConfig {
    fn default() -> AccessConfig {
        AccessConfig {
            mode: Access::OWNER.mode,
            group: None,
        }
    }
}

/// Creates an error about a group that only the check of the sockets finds.
pub fn group_error(group: &Placed<GroupConfig>, problem: &str) -> Fault {
    Fault::input(group.error(format!("\"{}\": {problem}", group.name)))
}

impl AccessConfig {
    /// Returns the permissions in the form that sockets take.
    pub fn access(&self) -> Access {
        Access {
            mode: self.mode,
            group: self.group.as_ref().map(|group| group.number),
        }
    }
}

/// Writes the text behind a socket's name in a list. The text is empty if the socket is for its owner alone.
impl fmt::Display for AccessConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == AccessConfig::default() {
            return Ok(());
        }
        write!(f, ", {:04o}", self.mode)?;
        if let Some(group) = &self.group {
            write!(f, ", group {}", group.name)?;
        }
        match lets_in(self.mode, OTHERS) {
            true => f.write_str(", every user of this machine"),
            false => Ok(()),
        }
    }
}

/// Keys of the permissions of some sockets.
pub(super) struct AccessKeys {
    pub(super) mode: &'static str,
    pub(super) group: &'static str,
    /// Key that lists the sockets.
    pub(super) of: &'static str,
    /// True if all users of the machine may be let in.
    pub(super) others: bool,
}

/// Number of bits to the right of the digit of a group, or of others, in a mode.
const GROUP: u32 = 3;
const OTHERS: u32 = 0;

/// Returns true if a mode lets a group or others connect. Connecting requires permission to write (unix(7)).
fn lets_in(mode: u32, whom: u32) -> bool {
    mode >> whom & 0o2 != 0
}

/// Permissions that a configuration gives to the sockets of a key.
pub(super) struct Given<'a> {
    pub(super) mode: Option<u32>,
    pub(super) group: Option<&'a Placed<GroupConfig>>,
    /// True if there is a unix socket.
    pub(super) is_there: bool,
}

/// Permissions of the sockets of a key of `section`.
pub(super) fn access<T>(
    section: &Placed<T>,
    keys: &AccessKeys,
    given: &Given<'_>,
) -> Result<AccessConfig, Error> {
    let key = [keys.mode, keys.group]
        .into_iter()
        .find(|key| section.has(key));
    if let Some(key) = key
        && !given.is_there
    {
        let problem = format!("is for unix sockets, and {} has none", keys.of);
        return Err(section.error_at(key, problem));
    }
    if let Some(mode) = given.mode
        && !keys.others
        && lets_in(mode, OTHERS)
    {
        let problem = format!(
            "\"{mode:04o}\": every user of this machine could tell the server what to do; allowed is 0 for \
             others, and a group"
        );
        return Err(section.error_at(keys.mode, problem));
    }
    // A configuration that names a group lets that group in by default.
    let mode = given.mode.unwrap_or(match given.group {
        Some(_) => 0o660,
        None => Access::OWNER.mode,
    });
    if let Some(group) = given.group
        && !lets_in(mode, GROUP)
    {
        let problem = format!(
            "\"{}\": mode {mode:04o} lets no group in; {} = \"0660\" does",
            group.name, keys.mode
        );
        return Err(section.error_at(keys.group, problem));
    }
    Ok(AccessConfig {
        mode,
        group: given.group.cloned(),
    })
}

/// Permissions of a socket.
#[derive(Clone, Copy)]
pub(super) struct SocketMode(pub(super) u32);

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SocketMode, D::Error> {
        let expected = "permissions as octal text, such as \"0660\"";
        parse(from, expected, |text| mode(text).map(SocketMode))
    }
}

/// Reads permissions.
fn mode(text: &str) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if !digits || !(3..=4).contains(&text.len()) {
        return Err("write octal digits for owner, group and others, such as 0660".to_owned());
    }
    let mode = u32::from_str_radix(text, 8).expect("four digits at most");
    if mode > 0o777 {
        return Err("a socket has permissions only; the first of four digits is 0".to_owned());
    }
    // The server connects to an existing socket, to find out if another server uses the socket.
    if mode & 0o600 != 0o600 {
        return Err("the server has to be able to connect; allowed for the owner is 6".to_owned());
    }
    for (whom, name) in [(GROUP, "the group"), (OTHERS, "others")] {
        let digit = mode >> whom & 0o7;
        if digit != 0 && !lets_in(mode, whom) {
            return Err(format!(
                "the {digit} for {name} lets nobody in, as connecting takes permission to write; allowed is 0 or 6"
            ));
        }
    }
    Ok(mode)
}

/// Reads a group by name or by number.
impl<'de> Deserialize<'de> for GroupConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<GroupConfig, D::Error> {
        struct GroupVisitor;

        impl Visitor<'_> for GroupVisitor {
            type Value = GroupConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name or the number of a group, such as \"kvm\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<GroupConfig, E> {
                // The highest number stands for no group (chown(2)).
                let found = u32::try_from(number).ok().filter(|found| *found < u32::MAX);
                let number = found.ok_or_else(|| {
                    let most = u32::MAX - 1;
                    E::custom(format_args!(
                        "{number} is out of range; allowed is 0 to {most}"
                    ))
                })?;
                let name = number.to_string();
                Ok(GroupConfig { name, number })
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<GroupConfig, E> {
                let number = group_number(name)
                    .map_err(|problem| E::custom(format_args!("\"{name}\": {problem}")))?;
                let name = name.to_owned();
                Ok(GroupConfig { name, number })
            }
        }

        from.deserialize_any(GroupVisitor)
    }
}

/// Number of a group, as chgrp(1) finds it: the name of a group may be digits.
fn group_number(text: &str) -> Result<u32, String> {
    let found =
        sys::group_number(text).map_err(|error| format!("groups cannot be looked up: {error}"))?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let as_number = || text.parse().ok().filter(|number| *number != u32::MAX);
    found
        .or_else(|| digits.then(as_number).flatten())
        .ok_or_else(|| {
            "there is no such group; allowed are those of `getent group`, and numbers".to_owned()
        })
}

#[cfg(test)]
mod tests;
