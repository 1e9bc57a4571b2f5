//! Tables for people.
//!
//! Tables are set by hand rather than by a library. Reports need only headings over several columns.

/// Properties of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// True for colours and bold letters.
    pub colour: bool,
    /// Characters of a line. `None` if lines may have any length, as in a file or a pipe.
    pub width: Option<usize>,
}

impl Terminal {
    /// The terminal without a bound on the length of lines, if `wide`.
    pub fn as_wide(self, wide: bool) -> Terminal {
        let width = self.width.filter(|_| !wide);
        Terminal { width, ..self }
    }
}

/// Side on which a column is flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    /// Left: words.
    Left,
    /// Right: numbers.
    Right,
}

/// A column of a table: its heading and its cells.
#[derive(Clone, Debug)]
pub struct TableColumn {
    group: &'static str,
    /// Heading of the column.
    pub heading: String,
    align: Align,
    /// Cells of the column, from above.
    pub cells: Vec<String>,
}

impl TableColumn {
    /// Makes a column of words.
    pub fn words(heading: &str, cells: impl Iterator<Item = String>) -> TableColumn {
        TableColumn {
            group: "",
            heading: heading.to_owned(),
            align: Align::Left,
            cells: cells.collect(),
        }
    }

    /// Makes a column of numbers.
    pub fn numbers(heading: &str, cells: impl Iterator<Item = String>) -> TableColumn {
        TableColumn {
            align: Align::Right,
            ..TableColumn::words(heading, cells)
        }
    }

    /// Puts the column under a heading, shared with its neighbours of the same group.
    pub fn under(self, group: &'static str) -> TableColumn {
        TableColumn { group, ..self }
    }

    /// True if all cells are equal.
    pub fn is_constant(&self) -> bool {
        self.cells.windows(2).all(|pair| pair[0] == pair[1])
    }

    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.heading]);
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn cell(&self, text: &str, width: usize) -> String {
        match self.align {
            Align::Left => format!("{text:<width$}"),
            Align::Right => format!("{text:>width$}"),
        }
    }
}

/// Blanks between columns; groups stand further apart.
const GAP: usize = 2;
const GROUP_GAP: usize = 4;

/// As [`table`], without columns at the right that do not fit into the terminal's width. The last line says which columns
/// are left out.
pub fn table_that_fits(columns: &[TableColumn], terminal: Terminal) -> String {
    let whole = table(columns, terminal);
    let Some(width) = terminal.width else {
        return whole;
    };
    let plain = Terminal {
        colour: false,
        ..terminal
    };
    let fits = |count: &usize| {
        let text = table(&columns[..*count], plain);
        text.lines().all(|line| line.chars().count() <= width)
    };
    // A name and two values are shown however narrow the terminal is.
    let least = columns.len().min(3);
    let shown = (least..=columns.len()).rev().find(fits).unwrap_or(least);
    if shown == columns.len() {
        return whole;
    }
    let left_out: Vec<&str> = columns[shown..]
        .iter()
        .map(|column| column.heading.as_str())
        .collect();
    let text = table(&columns[..shown], terminal);
    format!(
        "{text}Left out for the width of the terminal (--wide shows all): {}\n",
        left_out.join(", ")
    )
}

/// Sets columns side by side, without trailing blanks.
pub fn table(columns: &[TableColumn], terminal: Terminal) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut groups = String::new();
    let mut headings = String::new();
    let mut lines = vec![String::new(); rows];
    let mut group = "";
    for (number, column) in columns.iter().enumerate() {
        let new_group = column.group != group;
        group = column.group;
        let gap = match number {
            0 => 0,
            _ if new_group => GROUP_GAP,
            _ => GAP,
        };
        let mut width = column.width();
        if new_group {
            // A group of one column must not be wider than the column.
            let alone = columns
                .get(number + 1)
                .is_none_or(|next| next.group != group);
            if alone {
                width = width.max(group.chars().count());
            }
            let at = headings.chars().count() + gap;
            groups = format!("{groups:<at$}{group}");
        }
        for (line, cell) in lines.iter_mut().zip(&column.cells) {
            line.push_str(&" ".repeat(gap));
            line.push_str(&column.cell(cell, width));
        }
        headings.push_str(&" ".repeat(gap));
        headings.push_str(&column.cell(&column.heading, width));
    }
    let mut text = String::new();
    for heading in [groups, headings] {
        let heading = heading.trim_end();
        if heading.is_empty() {
            continue;
        }
        if terminal.colour {
            text.push_str(&format!("\u{1b}[1m{heading}\u{1b}[0m\n"));
        } else {
            text.push_str(&format!("{heading}\n"));
        }
    }
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Number of decimal places that shows three digits of the smallest value, at most 3.
pub fn places(values: impl Iterator<Item = f64>) -> usize {
    let smallest = values
        .filter(|value| *value != 0.0)
        .fold(f64::INFINITY, |least, value| least.min(value.abs()));
    match smallest {
        size if size < 0.995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    }
}

/// A column of measured values, each with half the width of its confidence interval if known. A cell without a value is blank.
pub fn measured(name: &str, values: &[Option<(f64, Option<f64>)>]) -> TableColumn {
    let places = places(values.iter().flatten().map(|(value, _)| *value));
    let cells = values.iter().map(|value| match value {
        Some((value, Some(half))) => format!("{value:.places$} ±{half:.0$}", places + 1),
        Some((value, None)) => format!("{value:.places$}"),
        None => String::new(),
    });
    TableColumn::numbers(name, cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_flush_and_headings_bold_on_a_terminal() {
        let cells = |a: &str, b: &str| [a.to_owned(), b.to_owned()].into_iter();
        let columns = [
            TableColumn::words("name", cells("a", "longer")),
            TableColumn::numbers("x", cells("1", "200")).under("both"),
            TableColumn::numbers("y", cells("1.5", "2.25")).under("both"),
            TableColumn::numbers("z", cells("7", "8")).under("wider than it"),
        ];
        let plain = table(&columns, Terminal::default());
        let expected = "          both         wider than it
name        x     y                z
a           1   1.5                7
longer    200  2.25                8
";
        assert_eq!(plain, expected);
        let colour = table(
            &columns[..1],
            Terminal {
                colour: true,
                width: None,
            },
        );
        assert_eq!(colour, "\u{1b}[1mname\u{1b}[0m\na\nlonger\n");
    }

    #[test]
    fn the_smallest_number_shows_three_digits() {
        for (values, expected) in [
            (vec![0.0], 0),
            (vec![0.1234, 50.0], 3),
            (vec![1.0, 1000.0], 2),
            (vec![99.94], 1),
            (vec![99.96, 12_345.0], 0),
        ] {
            assert_eq!(places(values.iter().copied()), expected, "{values:?}");
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let cells = |one: &str, other: &str| [one, other].map(str::to_owned).into_iter();
        let numbers = |name| TableColumn::numbers(name, cells("1", "22"));
        let mut columns = vec![TableColumn::words("scheduler", cells("noop", "stream"))];
        columns.extend(["IOPS", "MB/s", "mean", "p99"].map(numbers));
        let text = |width| {
            let terminal = Terminal {
                width,
                ..Terminal::default()
            };
            table_that_fits(&columns, terminal)
        };
        assert_eq!(text(None), text(Some(38)));
        let narrow = text(Some(28));
        assert!(
            narrow.starts_with("scheduler  IOPS  MB/s  mean\n"),
            "{narrow}"
        );
        assert!(narrow.ends_with(": p99\n"), "{narrow}");
        let least = text(Some(1));
        assert!(least.starts_with("scheduler  IOPS  MB/s\n"), "{least}");
    }
}
