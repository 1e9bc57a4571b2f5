//! Names of processes.

use std::collections::BTreeMap;

/// Longest name of a process, in bytes. Linux's names have at most 15.
const NAME_BYTES: usize = 64;

/// Number of processes that are found without a search. A power of two.
const RECENT_PROCESSES: usize = 64;

/// Collects the last name of each process. Memory is bounded by the number of distinct processes.
#[derive(Debug)]
pub(crate) struct ProcessNames {
    /// Processes with their names as recorded, in order of appearance.
    list: Vec<(u32, Vec<u8>)>,
    /// Index in `list` of each process.
    places: BTreeMap<u32, u32>,
    /// Index in `list` of the last process with a number of this remainder.
    recent: [u32; RECENT_PROCESSES],
}

impl Default for ProcessNames {
    fn default() -> ProcessNames {
        ProcessNames {
            list: Vec::new(),
            places: BTreeMap::new(),
            recent: [0; RECENT_PROCESSES],
        }
    }
}

impl ProcessNames {
    /// Notes the name of a process. The name replaces an earlier name unless it is a
    /// [placeholder](is_placeholder). Allocates no memory for a name that is known.
    #[inline]
    pub(crate) fn saw(&mut self, process: u32, name: &[u8]) {
        let place = self.recent[process as usize % RECENT_PROCESSES];
        match self.list.get(place as usize) {
            Some((number, known)) if *number == process && known == name => {}
            _ => self.change(process, name),
        }
    }

    #[inline(never)]
    fn change(&mut self, process: u32, name: &[u8]) {
        let name = name.trim_ascii();
        let name = &name[..name.len().min(NAME_BYTES)];
        if is_placeholder(name) {
            return;
        }
        let next = self.list.len() as u32;
        let place = *self.places.entry(process).or_insert(next);
        if place == next {
            self.list.push((process, name.to_vec()));
        } else {
            let known = &mut self.list[place as usize].1;
            known.clear();
            known.extend_from_slice(name);
        }
        self.recent[process as usize % RECENT_PROCESSES] = place;
    }

    /// Returns the names in printable form, ascending by process.
    pub(crate) fn into_table(self) -> Vec<(u32, String)> {
        let list = self.list.into_iter();
        let mut table: Vec<(u32, String)> = list
            .map(|(process, name)| (process, shown(&name)))
            .collect();
        table.sort_unstable_by_key(|(process, _)| *process);
        table
    }
}

/// Returns true if recording programs print this text for a process whose name they do not know:
/// nothing, `<...>` and `<XXX>` (ftrace), `:123` (perf), `(null)` (blkparse), `?` (biosnoop).
fn is_placeholder(name: &[u8]) -> bool {
    match name {
        b"" | b"<...>" | b"<XXX>" | b"(null)" | b"?" => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Printable form of a name. The printable form of the result is the result itself, so a written name
/// comes back unchanged.
fn shown(name: &[u8]) -> String {
    let mut text = escaped(name);
    while text.len() > NAME_BYTES || text.ends_with(' ') {
        text.pop();
    }
    text
}

/// Bytes of unknown origin as text of one line, without terminal escapes.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for char in String::from_utf8_lossy(bytes).chars() {
        match char {
            '\'' | '"' | '\\' => text.push(char),
            _ => text.extend(char.escape_debug()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(seen: &[(u32, &[u8])]) -> Vec<(u32, String)> {
        let mut names = ProcessNames::default();
        for (process, name) in seen {
            names.saw(*process, name);
        }
        names.into_table()
    }

    #[test]
    fn the_last_name_counts_and_a_placeholder_never_does() {
        let seen: [(u32, &[u8]); 12] = [
            (9, b"<...>"),
            (9, b"bash"),
            (7, b"<...>"),
            (9, b"dd"),
            (9, b"<...>"),
            (9, b""),
            (9, b" :9"),
            (9, b"(null)"),
            (9 + RECENT_PROCESSES as u32, b"z_rd_int"),
            (9, b"dd"),
            (9, b"?"),
            (1, b" a b\x1b "),
        ];
        let expected = [(1, "a b\\u{1b}"), (9, "dd"), (73, "z_rd_int")];
        let expected = expected.map(|(process, name)| (process, name.to_owned()));
        assert_eq!(table(&seen), expected);
    }

    #[test]
    fn a_process_is_found_among_many() {
        let name = |process: u32| format!("p{}", process % 1000);
        let mut names = ProcessNames::default();
        for step in 0..30_000_u32 {
            let process = step.wrapping_mul(7919) % 10_000;
            names.saw(process, name(process).as_bytes());
        }
        let expected: Vec<_> = (0..10_000)
            .map(|process| (process, name(process)))
            .collect();
        assert_eq!(names.into_table(), expected);
    }

    proptest! {
        #[test]
        fn a_printed_name_is_short_and_printed_as_it_is(
            name in prop_oneof![prop::collection::vec(any::<u8>(), 0..90), "\\PC{0,40}".prop_map(String::into_bytes)],
        ) {
            for (process, text) in table(&[(1, &name)]) {
                prop_assert!(!text.is_empty() && text.len() <= NAME_BYTES);
                prop_assert!(!text.chars().any(char::is_control));
                prop_assert_eq!(table(&[(process, text.as_bytes())]), [(1, text.clone())]);
            }
        }
    }
}
