//! The shipped profiles.

use super::{Profile, native, plausible};

/// A profile that comes with the program, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Name of the profile.
    pub name: &'static str,
    /// Text form of the profile.
    pub text: &'static str,
}

const SHIPPED: [Shipped; 11] = [
    Shipped {
        name: "atlas10k",
        text: include_str!("../../../../profiles/atlas10k.toml"),
    },
    Shipped {
        name: "cheetah9lp",
        text: include_str!("../../../../profiles/cheetah9lp.toml"),
    },
    Shipped {
        name: "cheetah18lp",
        text: include_str!("../../../../profiles/cheetah18lp.toml"),
    },
    Shipped {
        name: "barracuda-st32171w",
        text: include_str!("../../../../profiles/barracuda-st32171w.toml"),
    },
    Shipped {
        name: "ibm18es",
        text: include_str!("../../../../profiles/ibm18es.toml"),
    },
    Shipped {
        name: "hp-c2247a",
        text: include_str!("../../../../profiles/hp-c2247a.toml"),
    },
    Shipped {
        name: "barracuda-7200.10-160",
        text: include_str!("../../../../profiles/barracuda-7200.10-160.toml"),
    },
    Shipped {
        name: "st3400620as",
        text: include_str!("../../../../profiles/st3400620as.toml"),
    },
    Shipped {
        name: "wd5000aaks",
        text: include_str!("../../../../profiles/wd5000aaks.toml"),
    },
    Shipped {
        name: "exos-x18",
        text: include_str!("../../../../profiles/exos-x18.toml"),
    },
    Shipped {
        name: "nearline-20tb",
        text: include_str!("../../../../profiles/nearline-20tb.toml"),
    },
];

impl Shipped {
    /// The profile.
    pub fn profile(&self) -> Profile {
        Profile::from_toml(&format!("{}.toml", self.name), self.text)
            .unwrap_or_else(|error| panic!("a shipped profile is in order: {error}"))
    }
}

/// The profiles that come with the program: real drives, old ones first.
pub fn shipped() -> &'static [Shipped] {
    &SHIPPED
}

/// The profile of this name. Three kinds of names are known: the name of a shipped profile;
/// `NAME-4kn`, a shipped profile with 4 KiB sectors for the host too ([`Profile::native`]); and
/// `plausible-SEED`, a drawn profile ([`plausible`]).
pub fn by_name(name: &str) -> Option<Profile> {
    let shipped = |name| SHIPPED.iter().find(|shipped| shipped.name == name);
    if let Some(shipped) = shipped(name) {
        return Some(shipped.profile());
    }
    if let Some(small) = name.strip_suffix(native::SUFFIX) {
        return shipped(small)?.profile().native().ok();
    }
    let seed = name.strip_prefix(plausible::PREFIX)?.parse().ok()?;
    Some(plausible(seed))
}
