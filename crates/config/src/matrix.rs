//! Trees for all combinations of values.

use crate::{Error, Node, Table};

/// Keys whose values are compared, with all combinations of their values; see [`Table::matrix`].
#[derive(Clone, Debug)]
pub struct Matrix {
    base: Table,
    axes: Vec<(String, Vec<Node>)>,
}

/// Number of combinations of keys with these numbers of values; `u64::MAX` if there are more.
pub fn count(counts: &[usize]) -> u64 {
    let counts = counts.iter().map(|&count| count as u64);
    counts.fold(1, u64::saturating_mul)
}

/// All combinations of keys with these numbers of values, as indices of the values. The last index varies fastest.
pub fn combinations(counts: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let counts = counts.to_vec();
    (0..count(&counts)).map(move |number| {
        let mut rest = number;
        let mut values = vec![0; counts.len()];
        for (value, &count) in values.iter_mut().zip(&counts).rev() {
            *value = (rest % count as u64) as usize;
            rest /= count as u64;
        }
        values
    })
}

impl Table {
    /// Combines the values of `keys`. Each value may be a list, or a text that is a list by comma. A key that is not in the table is left
    /// out.
    ///
    /// # Errors
    ///
    /// If a list is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use headtime_config::Table;
    ///
    /// let table = Table::parse("a.toml", "a = [1, 2]\nb = 'x(1,2),y'\nc = [3, 4]").unwrap();
    /// let matrix = table.matrix(["a", "b"]).unwrap();
    /// assert_eq!(matrix.count(), 4);
    /// let texts = |table: Table| ["a", "b", "c"].map(|key| table.at(key).unwrap().value.text());
    /// let all: Vec<[String; 3]> = matrix.tables().map(texts).collect();
    /// assert_eq!(all[1], ["1", "y", "[3, 4]"]);
    /// assert_eq!(all[2], ["2", "x(1,2)", "[3, 4]"]);
    /// ```
    pub fn matrix<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Result<Matrix, Error> {
        let mut axes = Vec::new();
        for key in keys {
            let Some(node) = self.at(key) else {
                continue;
            };
            let items = node.all_items();
            if items.is_empty() {
                let problem = "is an empty list; give at least one";
                return Err(Error::new(node.place.clone(), key, problem));
            }
            axes.push((key.to_owned(), items));
        }
        Ok(Matrix {
            base: self.clone(),
            axes,
        })
    }
}

impl Matrix {
    /// Number of combinations; `u64::MAX` if there are more.
    pub fn count(&self) -> u64 {
        count(&self.lengths())
    }

    fn lengths(&self) -> Vec<usize> {
        self.axes.iter().map(|(_, items)| items.len()).collect()
    }

    /// The combined keys and their values.
    pub fn axes(&self) -> impl Iterator<Item = (&str, &[Node])> {
        self.axes.iter().map(|(key, items)| (&**key, &**items))
    }

    /// One tree for each combination, in which each combined key has one value. The values of the last key change fastest.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        combinations(&self.lengths()).map(|choice| {
            let mut table = self.base.clone();
            for ((key, items), at) in self.axes.iter().zip(choice) {
                table.replace(key, items[at].clone());
            }
            table
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_varies_fastest() {
        let all: Vec<Vec<usize>> = combinations(&[2, 1, 3]).collect();
        let expected = [
            [0, 0, 0],
            [0, 0, 1],
            [0, 0, 2],
            [1, 0, 0],
            [1, 0, 1],
            [1, 0, 2],
        ];
        assert_eq!(all, expected);
        // No keys have one combination. A key without values makes it none.
        assert_eq!(combinations(&[]).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(combinations(&[2, 0]).count(), 0);
        assert_eq!(count(&[1000; 30]), u64::MAX);
    }
}
