//! References to profiles in one line of text, which find the same profile again.

use super::{Profile, by_name};
use std::fmt;
use std::str::FromStr;

/// A profile in one line: the name of a shipped profile and a hash of its content. For a profile
/// that is not shipped with this content, the whole text is added.
///
/// `NAME HASH` or `NAME HASH TEXT`: the hash is [`Profile::fingerprint`] in 16 hexadecimal digits;
/// in the text (TOML), backslashes and ends of lines are `\\`, `\n` and `\r`. In a name, blanks
/// become underscores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    name: String,
    hash: u64,
    text: Option<String>,
}

/// Why a reference leads to no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The reference does not have the form.
    #[error("a drive is named as NAME HASH or NAME HASH TEXT, the hash in 16 hexadecimal digits")]
    Form,
    /// No shipped profile has the name.
    #[error("no drive that comes with the program is called `{0}`")]
    Unknown(String),
    /// The profile has changed since.
    #[error("the profile of {name} has changed: its hash was {was:016x} and is {is:016x}")]
    Changed {
        /// Name of the drive, as its profile has it.
        name: String,
        /// Hash in the reference.
        was: u64,
        /// Hash of the present profile.
        is: u64,
    },
    /// The text is not a profile.
    #[error("{0}")]
    Profile(String),
}

impl Profile {
    /// A hash of the whole profile, the same on every machine: FNV-1a, 64 bits (Fowler, Noll, Vo), of its text.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.to_toml().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash
    }
}

impl Reference {
    /// The line for a profile.
    pub fn of(profile: &Profile) -> Reference {
        let hash = profile.fingerprint();
        let is_shipped = by_name(&profile.name).is_some_and(|other| other.fingerprint() == hash);
        Reference {
            name: profile.name.replace(char::is_whitespace, "_"),
            hash,
            text: (!is_shipped).then(|| profile.to_toml()),
        }
    }

    /// The name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profile.
    ///
    /// # Errors
    ///
    /// If no shipped profile has the name, or it is another now; if the text is no profile.
    pub fn profile(&self) -> Result<Profile, ReferenceError> {
        let profile = match &self.text {
            None => {
                by_name(&self.name).ok_or_else(|| ReferenceError::Unknown(self.name.clone()))?
            }
            Some(text) => Profile::from_toml(&self.name, text)
                .map_err(|error| ReferenceError::Profile(error.to_string()))?,
        };
        let is = profile.fingerprint();
        if is != self.hash {
            return Err(ReferenceError::Changed {
                name: self.name.clone(),
                was: self.hash,
                is,
            });
        }
        Ok(profile)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.name, self.hash)?;
        if let Some(text) = &self.text {
            let text = text
                .replace('\\', "\\\\")
                .replace('\n', "\\n")
                .replace('\r', "\\r");
            write!(f, " {text}")?;
        }
        Ok(())
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(line: &str) -> Result<Reference, ReferenceError> {
        let (name, rest) = line.split_once(' ').ok_or(ReferenceError::Form)?;
        let (hash, text) = match rest.split_once(' ') {
            None => (rest, None),
            Some((hash, text)) => (hash, Some(unescaped(text).ok_or(ReferenceError::Form)?)),
        };
        let digits = hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        let hash = u64::from_str_radix(hash, 16)
            .ok()
            .filter(|_| digits && !name.is_empty());
        Ok(Reference {
            name: name.to_owned(),
            hash: hash.ok_or(ReferenceError::Form)?,
            text,
        })
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        out.push(match sign {
            '\\' => match signs.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::shipped;

    fn again(reference: &Reference) -> Result<Profile, ReferenceError> {
        let line = reference.to_string();
        assert!(!line.contains('\n'));
        let read: Reference = line.parse()?;
        assert_eq!(&read, reference);
        read.profile()
    }

    #[test]
    fn a_shipped_profile_goes_by_its_name() {
        for shipped in shipped() {
            let profile = shipped.profile();
            let reference = Reference::of(&profile);
            assert!(reference.to_string().len() < 60, "{reference}");
            assert_eq!(again(&reference), Ok(profile));
        }
    }

    #[test]
    fn any_other_is_there_as_a_whole() {
        let profile = by_name("wd5000aaks").unwrap();
        let changed = profile
            .with(|spec| {
                spec.queue.depth = 7;
                spec.model = "a \"new\"\nmodel \\ with\tsigns".to_owned();
            })
            .unwrap();
        let reference = Reference::of(&changed);
        assert_eq!(reference.name(), "wd5000aaks");
        let found = again(&reference).unwrap();
        assert_eq!(found, changed);
        assert_ne!(found, profile);
    }

    #[test]
    fn what_leads_nowhere_says_why() {
        let error = |line: &str| {
            let reference: Result<Reference, ReferenceError> = line.parse();
            let profile = reference.and_then(|reference| reference.profile());
            profile.unwrap_err().to_string()
        };
        for line in [
            "",
            "atlas10k",
            "atlas10k 12",
            "atlas10k 00000000000000001",
            " 0",
        ] {
            assert!(error(line).starts_with("a drive is named as"), "{line}");
        }
        assert_eq!(
            error("nobody 0000000000000001"),
            "no drive that comes with the program is called `nobody`"
        );
        let changed = error("atlas10k 0000000000000001");
        assert!(changed.contains("atlas10k has changed: its hash was 0000000000000001"));
        assert!(
            error("x 0000000000000001 name = 3").starts_with("x"),
            "names the drive"
        );
        assert!(error("x 0000000000000001 \\q").starts_with("a drive is named as"));
    }
}
