//! Who may connect to the unix sockets.

use crate::fault::Fault;
use crate::scenario::tree::{Place, Section, TreeError, Value};
use headtime_linux::sys;
use headtime_serve::listen::Access;
use std::fmt;

/// Who may connect to unix sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessConfig {
    /// Permissions of their files.
    pub mode: u32,
    /// Which group they are for; the server's own if absent.
    pub group: Option<GroupConfig>,
}

/// A group as it was given.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Its name, or its number as text.
    pub name: String,
    /// Its number.
    pub number: u32,
    place: Place,
    key: String,
}

/// Wherever it stands, and under whichever of its names.
impl PartialEq for GroupConfig {
    fn eq(&self, other: &GroupConfig) -> bool {
        self.number == other.number
    }
}

impl Eq for GroupConfig {}

/// Nobody but the owner.
impl Default for AccessConfig {
    fn default() -> AccessConfig {
        AccessConfig {
            mode: Access::OWNER.mode,
            group: None,
        }
    }
}

impl GroupConfig {
    /// An error about it that shows only later.
    pub fn error(&self, problem: &str) -> Fault {
        Fault::input(TreeError {
            place: self.place.clone(),
            key: self.key.clone(),
            problem: format!("\"{}\": {problem}", self.name),
        })
    }
}

impl AccessConfig {
    /// As sockets take it.
    pub fn access(&self) -> Access {
        Access {
            mode: self.mode,
            group: self.group.as_ref().map(|group| group.number),
        }
    }
}

/// What is behind a socket's name in a list; nothing if it is for its owner alone.
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

/// The keys of some sockets.
pub(super) struct Keys {
    pub(super) mode: &'static str,
    pub(super) group: &'static str,
    /// The key of the sockets themselves.
    pub(super) of: &'static str,
    /// Whether everybody may be let in.
    pub(super) others: bool,
}

/// Bits of a mode, from the right, at which the digit of a group or of others stands.
const GROUP: u32 = 3;
const OTHERS: u32 = 0;

/// Connecting takes permission to write (unix(7)).
fn lets_in(mode: u32, whom: u32) -> bool {
    mode >> whom & 0o2 != 0
}

/// Reads who may connect to the sockets of a key; `is_there` is whether there is one.
pub(super) fn access(
    section: &mut Section<'_>,
    keys: &Keys,
    is_there: bool,
) -> Result<AccessConfig, TreeError> {
    let given = section.parse(
        keys.mode,
        "permissions as octal text, such as \"0660\"",
        |text| mode(text, keys.others),
    )?;
    let group = group(section, keys.group)?;
    let key = [keys.mode, keys.group]
        .into_iter()
        .find(|key| section.has(key));
    if let Some(key) = key
        && !is_there
    {
        let problem = format!("is for unix sockets, and {} has none", keys.of);
        return Err(section.error(key, problem));
    }
    // Who names a group wants it to be let in.
    let mode = given.unwrap_or(match &group {
        Some(_) => 0o660,
        None => Access::OWNER.mode,
    });
    if let Some(group) = &group
        && !lets_in(mode, GROUP)
    {
        let problem = format!(
            "\"{}\": mode {mode:04o} lets no group in; {} = \"0660\" does",
            group.name, keys.mode
        );
        return Err(section.error(keys.group, problem));
    }
    Ok(AccessConfig { mode, group })
}

/// Reads permissions.
fn mode(text: &str, others: bool) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if !digits || !(3..=4).contains(&text.len()) {
        return Err("write octal digits for owner, group and others, such as 0660".to_owned());
    }
    let mode = u32::from_str_radix(text, 8).expect("four digits at most");
    if mode > 0o777 {
        return Err("a socket has permissions only; the first of four digits is 0".to_owned());
    }
    // The server looks by connecting whether another one is behind a socket that is there.
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
    if !others && lets_in(mode, OTHERS) {
        return Err(
            "every user of this machine could tell the server what to do; allowed is 0 for others, and a group"
                .to_owned(),
        );
    }
    Ok(mode)
}

/// Reads a group, by name or by number.
fn group(section: &mut Section<'_>, key: &'static str) -> Result<Option<GroupConfig>, TreeError> {
    // The highest stands for none (chown(2)).
    const NUMBERS: std::ops::RangeInclusive<u64> = 0..=u32::MAX as u64 - 1;
    let (name, number) = match section.table().get(key).map(|node| &node.value) {
        None => return Ok(None),
        Some(Value::Integer(_)) => match section.integer(key, NUMBERS)? {
            Some(number) => (number.to_string(), number as u32),
            None => return Ok(None),
        },
        Some(_) => {
            let expected = "the name or the number of a group, such as \"kvm\"";
            let look_up = |text: &str| Ok((text.to_owned(), group_number(text)?));
            match section.parse(key, expected, look_up)? {
                Some(found) => found,
                None => return Ok(None),
            }
        }
    };
    let TreeError { place, key, .. } = section.error(key, "");
    Ok(Some(GroupConfig {
        name,
        number,
        place,
        key,
    }))
}

/// As chgrp(1): a group may be called by digits.
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
