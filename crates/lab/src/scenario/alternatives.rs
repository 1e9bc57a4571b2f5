//! A table in which lists stand for values, with every combination of the values.

use headtime_config::{Error, Node, Place, Table, Value, combinations, count, read};
use headtime_stack::entries;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;

/// The most runs of a scenario, repeats included. Lists of compared values multiply.
pub const RUNS_MAX: u64 = 100_000;

/// All values of a table whose keys may have lists: one for each combination, with the last list varying fastest. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternatives<T> {
    all: Vec<T>,
    /// The keys with several values, and the number of values of each.
    lists: Vec<(String, usize)>,
}

impl<T> Alternatives<T> {
    /// A table without lists.
    pub fn one(value: T) -> Alternatives<T> {
        Alternatives {
            all: vec![value],
            lists: Vec::new(),
        }
    }

    /// The keys that have several values.
    pub fn compared(&self) -> impl Iterator<Item = &str> {
        self.lists.iter().map(|(key, _)| key.as_str())
    }

    /// Changes each combination.
    #[must_use]
    pub fn each(mut self, change: impl FnMut(&mut T)) -> Alternatives<T> {
        self.all.iter_mut().for_each(change);
        self
    }
}

impl<T> Deref for Alternatives<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

impl<T: DeserializeOwned> Alternatives<T> {
    /// Reads the table `name`; each of `keys` may have a list. `of_one` may change the table of each combination before the table is read.
    pub(super) fn read<'k>(
        (name, table): (&str, Node),
        place: &Place,
        keys: impl IntoIterator<Item = &'k str>,
        of_one: impl Fn(&mut Table) -> Result<(), Error>,
    ) -> Result<Alternatives<T>, Error> {
        let mut base = Table::default();
        base.set_value(name, table)?;
        let keys: Vec<String> = keys
            .into_iter()
            .map(|key| format!("{name}.{key}"))
            .collect();
        let matrix = base.matrix(keys.iter().map(String::as_str))?;
        let axes = matrix.axes().filter(|(_, values)| values.len() > 1);
        let lists = axes.map(|(key, values)| (key[name.len() + 1..].to_owned(), values.len()));
        let lists: Vec<(String, usize)> = lists.collect();
        if matrix.count() > RUNS_MAX {
            let problem = format!(
                "its lists make {} combinations; allowed are {RUNS_MAX}",
                matrix.count()
            );
            let at = base.place(name).unwrap_or(place).clone();
            return Err(Error::new(at, name, problem));
        }
        let all = matrix.tables().map(|mut table| {
            of_one(&mut table)?;
            let mut read: BTreeMap<String, T> = read(&table, place)?;
            Ok(read.remove(name).expect("the table has this key alone"))
        });
        Ok(Alternatives {
            all: all.collect::<Result<_, Error>>()?,
            lists,
        })
    }
}

/// Writes lists for the keys that have several values.
impl<T: Serialize> Serialize for Alternatives<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut written = entries(&self.all[0]);
        let lengths: Vec<usize> = self.lists.iter().map(|(_, length)| *length).collect();
        debug_assert_eq!(count(&lengths), self.all.len() as u64);
        for (axis, (key, _)) in self.lists.iter().enumerate() {
            // Combinations in which all other lists are at their first value.
            let choices = combinations(&lengths).enumerate().filter(|(_, choice)| {
                let others = choice.iter().enumerate();
                others
                    .filter(|(other, _)| *other != axis)
                    .all(|(_, at)| *at == 0)
            });
            let values = choices.filter_map(|(number, _)| {
                let of_one = entries(&self.all[number]);
                let value = of_one.into_iter().find(|(own, _)| own == key)?.1;
                Some(Node::built_in(value))
            });
            let list = Value::List(values.collect());
            match written.iter_mut().find(|(own, _)| own == key) {
                Some((_, value)) => *value = list,
                None => written.push((key.clone(), list)),
            }
        }
        to.collect_map(written)
    }
}
